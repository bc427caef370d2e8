"""Random runs of the compaction service in memory, with faults; a failure prints its seed.

SIMULATION_SEED is the first seed, SIMULATION_RUNS the number of runs.
"""

import os

import pytest

from tests.conftest import LONG
from tests.simulation.bugs import BUGS, planted
from tests.simulation.control import result_of

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


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_found(name: str) -> None:
    with planted(name):
        found = next((seed for seed in range(1, MOST_RUNS) if result_of(seed)), None)
    assert found is not None
