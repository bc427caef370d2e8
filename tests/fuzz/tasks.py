"""What a process of `make fuzz` does at a time: a portion, and now and then the rest."""

import json
import os
import subprocess
import sys
from typing import Final

from streams.cli import build
from tests.fuzz.entrances import run_entrances
from tests.fuzz.mutation import ROOT
from tests.fuzz.portion import Failure, Portion, run_portion

Task = tuple[int, int, int]
"""A portion: its seed, its number, and how many inputs it has."""

_PURE_EVERY: Final = 20
"""Portions, of which one is run by the pure product too, and one of the other entrances."""


def pure_digests(task: Task) -> list[int]:
    """Return the digests of a portion's episodes as the pure product gives them."""
    seed, number, inputs = task
    run = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--digests", f"{seed} {number} {inputs}"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        check=True,
    )
    digests: list[int] = json.loads(run.stdout)
    return digests


def compare(task: Task, portion: Portion) -> None:
    """Note the first episode that the pure product derives otherwise."""
    portion.compared = portion.inputs
    pure = pure_digests(task)
    for number, (one, other) in enumerate(zip(portion.digests, pure, strict=True)):
        if one != other:
            what = f"portion {task}: episode {number} differs where it is not compiled"
            portion.failures.append(Failure("compiled and pure", what, ()))
            return


def run_task(task: Task) -> Portion:
    """Run a portion; of some, the other entrances and the pure product too."""
    began = _cpu_s()
    portion = run_portion(task)
    if task[1] % _PURE_EVERY == 0:
        portion.failures += run_entrances(*task[:2])
        if build.is_compiled():
            compare(task, portion)
    portion.digests.clear()
    portion.cpu_s = _cpu_s() - began
    return portion


def _cpu_s() -> float:
    """Return the CPU time of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
