"""Runs portions of inputs, compares some with the pure product, and shows what is wrong.

make fuzz SEED=1 INPUTS=1000000 JOBS=2
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from streams.cli import build
from tests.fuzz.portion import Cost, Failure, Input, Portion, run_portion, shrink
from tests.fuzz.tasks import Task, run_task

PORTION: Final = 50_000
_MOST_SHOWN: Final = 8
_SHOWN_EVERY_S: Final = 30


def _shown(given: Input) -> str:
    """Return an input as Python has it, long names and values cut off."""
    shown = [repr(each) for each in given]
    return ", ".join(each if len(each) < 2_000 else f"{each[:2_000]}…" for each in shown)


class Totals:
    """What all portions gave."""

    def __init__(self) -> None:
        self.inputs = self.size = self.records = self.shapes = self.compared = 0
        self.cpu_s = 0.0
        self.outcomes = Counter[str]()
        self.wrong = Counter[str]()
        self.slowest: list[Cost] = []
        self.largest: list[Cost] = []

    def add(self, portion: Portion) -> None:
        """Add a portion."""
        self.inputs += portion.inputs
        self.size += portion.input_bytes
        self.records += portion.records
        self.cpu_s += portion.cpu_s
        self.compared += portion.compared
        self.shapes = max(self.shapes, portion.shapes)
        self.outcomes += portion.outcomes
        self.slowest = sorted([*self.slowest, *portion.costs], key=Cost.per_byte)[-3:]
        self.largest = sorted([*self.largest, *portion.costs], key=Cost.memory_per_byte)[-3:]

    def fail(self, failure: Failure, number: int) -> None:
        """Note what is wrong; print the first of each kind, with the least inputs that show it."""
        self.wrong[failure.kind] += 1
        if self.wrong[failure.kind] > 1 or len(self.wrong) > _MOST_SHOWN:
            return
        smallest = failure if failure.kind in {"slow", "memory"} else shrink(failure)
        print(f"WRONG in portion {number}: {failure.kind}\n{smallest.what}")
        for each in smallest.inputs:
            print(f"  {_shown(each)}", flush=True)

    def show(self) -> None:
        """Print a summary."""
        kind = "compiled" if build.is_compiled() else "pure"
        print(
            f"{self.inputs} inputs ({kind}), {self.size / max(self.inputs, 1):.0f} bytes each, "
            f"{self.inputs / max(self.cpu_s, 0.001):.0f} a second of CPU time; {self.records} "
            f"records, up to {self.shapes} shapes of them in a portion; {self.compared} inputs "
            f"compared with the pure product; {self.wrong.total()} wrong"
        )
        print("  " + ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common()))
        for cost in reversed(self.slowest):
            print(f"  slowest: {cost.us:.0f} µs for {cost.size} bytes")
        for cost in reversed(self.largest):
            print(f"  most memory: {cost.peak_bytes} bytes for {cost.size} bytes")
        for name, count in self.wrong.most_common():
            print(f"  {count:6} WRONG: {name}")
        sys.stdout.flush()


def sweep(seed: int, inputs: int, jobs: int) -> int:
    """Run so many inputs; return an exit code."""
    totals, began, shown_s = Totals(), time.monotonic(), 0.0
    tasks = [
        (seed, number, min(PORTION, inputs - number * PORTION))
        for number in range(-(-inputs // PORTION))
    ]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for task, portion in _in_order(pool, tasks, 8 * jobs):
            totals.add(portion)
            for failure in portion.failures:
                totals.fail(failure, task[1])
            if time.monotonic() - began - shown_s > _SHOWN_EVERY_S:
                shown_s = time.monotonic() - began
                print(
                    f"{totals.inputs} of {inputs} inputs after {shown_s:.0f} s, "
                    f"{totals.inputs / totals.cpu_s:.0f} a second of CPU time; "
                    f"wrong: {dict(totals.wrong)}"
                )
                sys.stdout.flush()
    totals.show()
    return 1 if totals.wrong else 0


def _in_order(
    pool: ProcessPoolExecutor, tasks: list[Task], ahead: int
) -> Iterator[tuple[Task, Portion]]:
    """Yield portions as they are done, a few ahead, so that none waits in memory for long."""
    running = [(task, pool.submit(run_task, task)) for task in tasks[:ahead]]
    upcoming = iter(tasks[ahead:])
    while running:
        task, future = running.pop(0)
        yield task, future.result()
        if (following := next(upcoming, None)) is not None:
            running.append((following, pool.submit(run_task, following)))


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--digests", help="of one portion: seed, number, inputs")
    arguments = parser.parse_args()
    if arguments.digests:
        seed, number, inputs = map(int, arguments.digests.split())
        print(json.dumps(run_portion((seed, number, inputs)).digests))
        return 0
    return sweep(arguments.seed, arguments.inputs, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
