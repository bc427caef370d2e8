"""Random runs of the compaction service over the simulated servers; a failure prints its seed.

SIMULATION_SEED is the first seed, SIMULATION_RUNS the number of runs: few, as `make check` runs
`make dst` too.
"""

import os
from collections.abc import Iterator

import pytest

from tests.conftest import LONG
from tests.simulation.bugs import BUGS
from tests.simulation.mutants import control, find
from tests.simulation.runner import simulating

pytestmark = pytest.mark.extended

FIRST = int(os.environ.get("SIMULATION_SEED", "1"))
RUNS = int(os.environ.get("SIMULATION_RUNS", "10000" if LONG else "20"))
PORTION = 50
MOST_RUNS = 1_200
"""Within which each planted mistake is found."""


@pytest.fixture(autouse=True)
def _simulating() -> Iterator[None]:
    with simulating():
        yield


@pytest.mark.has_long_form
@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, PORTION))
def test_any_run_leaves_one_outcome_of_each_command(first: int) -> None:
    for seed in range(first, min(first + PORTION, FIRST + RUNS)):
        assert not control(seed), f"SIMULATION_SEED={seed}"


@pytest.mark.long
@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_found(name: str) -> None:
    assert find(("control", name, MOST_RUNS)).seed
