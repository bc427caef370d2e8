"""Random runs of the compaction service in memory, with faults; a failure prints its seed.

SIMULATION_SEED is the first seed, SIMULATION_RUNS the number of runs.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import LONG
from tests.simulation.bugs import BUGS, planted
from tests.simulation.control import result_of, run_world
from tests.simulation.world import World

FIRST = int(os.environ.get("SIMULATION_SEED", "1"))
RUNS = int(os.environ.get("SIMULATION_RUNS", "10000" if LONG else "200"))
PORTION = 50
MOST_RUNS = 1_200
"""Within which each planted mistake is found."""


@pytest.mark.has_long_form
@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, PORTION))
def test_any_run_leaves_one_outcome_of_each_command(first: int) -> None:
    for seed in range(first, min(first + PORTION, FIRST + RUNS)):
        assert not result_of(seed), f"SIMULATION_SEED={seed}"


def written(seed: int) -> list[str]:
    """Return what was done in the run of a seed, and what was written of commands."""
    world = World(seed)
    run_world(world)
    return [*world.done, *map(repr, world.entries())]


def test_a_run_does_not_depend_on_the_order_of_sets() -> None:
    """Seeds 10 and 11 have two sessions that change at once."""
    script = (
        "import json\n"
        "from tests.simulation.test_compaction_service import written\n"
        "print(json.dumps([written(seed) for seed in (10, 11)]))\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout.splitlines()[-1]
        for hash_seed in ("1", "2", "3")
    ]
    assert [json.loads(each) for each in printed] == [[written(10), written(11)]] * 3


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_found(name: str) -> None:
    with planted(name):
        found = next((seed for seed in range(1, MOST_RUNS) if result_of(seed)), None)
    assert found is not None
