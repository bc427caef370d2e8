"""Random runs of the compaction service in memory, with faults; a failure prints its seed.

SIMULATION_SEED is the first seed, SIMULATION_RUNS the number of runs.
"""

import os

import pytest

from tests.conftest import LONG
from tests.simulation.bugs import BUGS, planted
from tests.simulation.invariants import violations
from tests.simulation.virtual_loop import run_virtually
from tests.simulation.world import World

FIRST = int(os.environ.get("SIMULATION_SEED", "1"))
RUNS = int(os.environ.get("SIMULATION_RUNS", "10000" if LONG else "200"))
PORTION = 50
MOST_RUNS = 1_200
"""Within which each planted mistake is found."""


async def _run(seed: int) -> list[str]:
    world = World(seed)
    await world.run()
    return await violations(world)


def result_of(seed: int) -> list[str]:
    """Return what is wrong after the run of a seed."""
    try:
        return run_virtually(_run(seed))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is the run's failure
        return [f"{type(error).__name__}: {error}"]


@pytest.mark.has_long_form
@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, PORTION))
def test_any_run_leaves_one_outcome_of_each_command(first: int) -> None:
    for seed in range(first, min(first + PORTION, FIRST + RUNS)):
        assert not result_of(seed), f"SIMULATION_SEED={seed}"


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_found(name: str) -> None:
    with planted(name):
        found = next((seed for seed in range(1, MOST_RUNS) if result_of(seed)), None)
    assert found is not None
