"""`make dst SEED=… RUNS=… JOBS=…`: simulate runs; print what was wrong, and the smallest schedule.

python -m tests.simulation --seed 1 --runs 20000 --jobs 2
python -m tests.simulation --seed 4711 --trace            one run, step by step
python -m tests.simulation --schedule found.json --trace  a schedule that was printed
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.simulation.runner import (
    in_processes,
    kind_of,
    prepare_inputs,
    result_of,
    shrink,
    simulating,
)
from tests.simulation.schedule import (
    DISASTERS,
    OPEN,
    Schedule,
    control_schedule_of,
    read,
    schedule_of,
)

_PORTION = 5_000
"""Runs of one process at most: at first each copies the pages that it shares with the others."""

_PROGRESS_S = 60.0
"""A long sweep says so often how far it is."""

_MOST_SHOWN = 5
"""Kinds of violations of which the first one is shrunk and shown."""


class Portion(NamedTuple):
    """What a number of runs came to."""

    runs: int
    cpu_s: float
    violations: list[tuple[int, str]]


def run_portion(task: tuple[str, int, int, frozenset[str]]) -> Portion:
    """Run some seeds of a scenario, inside `simulating`."""
    scenario, first, end, without = task
    violations, began = [], time.process_time()
    for seed in range(first, end):
        violation = result_of(drawn(scenario, seed, without))
        if violation is not None:
            violations.append((seed, violation))
    return Portion(end - first, time.process_time() - began, violations)


def show(schedule: Schedule, violation: str) -> None:
    """Print a schedule so that it can be read, and run again."""
    print(f"  {violation}")
    print(
        f"  {schedule.stage}, input {schedule.input}, {schedule.derivers} derive and "
        f"{schedule.projectors} project workers, batches of {schedule.batch}, {schedule.rates}"
    )
    for act in schedule.acts:
        print(f"    {act.at_s:7.3f} s  {act.kind} (number {act.number}, amount {act.amount})")
    print(f"  --schedule: {json.dumps(schedule.document())}", flush=True)


def drawn(scenario: str, seed: int, without: frozenset[str]) -> Schedule:
    """Return the schedule of a seed in a scenario."""
    return control_schedule_of(seed) if scenario == "control" else schedule_of(seed, without)


def _traced(schedule: Schedule) -> int:
    violation = result_of(schedule, print)
    print(violation or "nothing is wrong")
    return violation is not None


def _sweep(arguments: argparse.Namespace, without: frozenset[str]) -> int:
    first, end = arguments.seed, arguments.seed + arguments.runs
    name = arguments.scenario
    portion = max(1, min(_PORTION, arguments.runs // arguments.jobs))
    tasks = [
        (name, begin, min(begin + portion, end), without) for begin in range(first, end, portion)
    ]
    runs, cpu_s, kinds, shown = 0, 0.0, Counter[str](), set[str]()
    if name == "pipeline":
        prepare_inputs()
        cpu_s = time.process_time()
    shown_s = time.monotonic()
    for portion in in_processes(run_portion, tasks, arguments.jobs):
        runs, cpu_s = runs + portion.runs, cpu_s + portion.cpu_s
        if time.monotonic() - shown_s > _PROGRESS_S:
            shown_s = time.monotonic()
            print(f"{runs} of {arguments.runs} runs", flush=True)
        for seed, violation in portion.violations:
            kind = kind_of(violation)
            if name == "pipeline":
                kind = f"{_disaster_of(drawn(name, seed, without))}: {kind}"
            kinds[kind] += 1
            if kind not in shown and len(shown) < arguments.show:
                shown.add(kind)
                print(f"SEED={seed}: {violation}")
                show(*shrink(drawn(name, seed, without), violation))
        if arguments.stop and kinds:
            break
    print(f"{runs} runs, {runs / max(cpu_s, 0.001):.0f} a second and core, {kinds.total()} wrong")
    for kind, count in kinds.most_common():
        print(f"  {count:6}  {kind}")
    return bool(kinds)


def _disaster_of(schedule: Schedule) -> str:
    kinds = {kind for some in DISASTERS.values() for kind in some}
    return next((act.kind for act in schedule.acts if act.kind in kinds), "no disaster")


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--scenario", choices=["pipeline", "control"], default="pipeline")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--trace", action="store_true", help="one run, step by step")
    parser.add_argument("--schedule", type=Path, help="a file with a printed schedule")
    parser.add_argument("--show", type=int, default=_MOST_SHOWN)
    parser.add_argument("--stop", action="store_true", help="end after the first violations")
    parser.add_argument("--all", action="store_true", help="with what is known to be open")
    arguments = parser.parse_args()
    without = frozenset() if arguments.all else OPEN
    with simulating():
        if arguments.schedule is not None:
            return _traced(read(json.loads(arguments.schedule.read_text())))
        if arguments.trace:
            return _traced(drawn(arguments.scenario, arguments.seed, without))
        return _sweep(arguments, without)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set of strings must follow from the seed as well.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main())
