"""`make mutants`: plant each mistake in turn, and look for the first seed that finds it.

A seed counts where the same run without the mistake is clean.

    python -m tests.simulation.mutants --runs 3000 --jobs 2
    python -m tests.simulation.mutants --only "released state"
"""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.simulation.bugs import BUGS
from tests.simulation.derive_bugs import DERIVE_BUGS
from tests.simulation.project_bugs import PROJECT_BUGS
from tests.simulation.runner import in_processes, prepare_inputs, result_of, simulating
from tests.simulation.schedule import OPEN, control_schedule_of, schedule_of

MOST_RUNS = 3_000
"""Within which each mistake is found."""


class Found(NamedTuple):
    """The first seed that finds a mistake, and what it shows; 0: none did."""

    name: str
    seed: int
    violation: str


def _pipeline(seed: int) -> str | None:
    return result_of(schedule_of(seed, OPEN))


def control(seed: int) -> str | None:
    """Return what is wrong after a run of the compaction service."""
    return result_of(control_schedule_of(seed))


_SCENARIOS: dict[str, tuple[Callable[[int], str | None], dict[str, Callable[..., None]]]] = {
    "pipeline": (_pipeline, DERIVE_BUGS | PROJECT_BUGS),
    "control": (control, BUGS),
}

NAMES = [(scenario, name) for scenario, (_, bugs) in _SCENARIOS.items() for name in bugs]


def find(task: tuple[str, str, int]) -> Found:
    """Return the first seed that finds a mistake."""
    scenario, name, runs = task
    run, bugs = _SCENARIOS[scenario]
    with simulating():
        for seed in range(1, runs + 1):
            with pytest.MonkeyPatch.context() as patch:
                bugs[name](patch)
                violation = run(seed)
            if violation and not run(seed):
                return Found(f"{scenario}: {name}", seed, violation)
    return Found(f"{scenario}: {name}", 0, "")


def main() -> int:
    """Plant all mistakes; return 0 where each was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants")
    parser.add_argument("--runs", type=int, default=MOST_RUNS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the mistakes' names")
    arguments = parser.parse_args()
    tasks = [(*name, arguments.runs) for name in NAMES if arguments.only in name[1]]
    missed = 0
    with simulating():
        prepare_inputs()
        for mutant in in_processes(find, tasks, arguments.jobs):
            missed += not mutant.seed
            print(
                f"{mutant.seed or 'none':>6}  {mutant.name}: {mutant.violation[:100]}", flush=True
            )
    print(f"{len(tasks) - missed} of {len(tasks)} mistakes found within {arguments.runs} runs")
    return bool(missed)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.mutants", *sys.argv[1:]])
    sys.exit(main())
