"""Decisions in simulated time: at most one open command, none by an old reading, none forgotten."""

import os

import pytest

from streams.core.control.trigger import Trigger
from streams.flow.control.decisions.compaction_decisions import DecisionPartition
from tests.conftest import LONG
from tests.simulation.deciding import DecidingWorld, violations
from tests.simulation.virtual_loop import run_virtually

pytestmark = pytest.mark.extended

FIRST = int(os.environ.get("SIMULATION_SEED", "1"))
RUNS = int(os.environ.get("SIMULATION_RUNS", "5000" if LONG else "40"))
PORTION = 20
MOST_RUNS = 300
"""Within which each planted mistake is found."""


async def _run(seed: int) -> list[str]:
    world = DecidingWorld(seed)
    await world.run()
    return violations(world)


def result_of(seed: int) -> list[str]:
    """Return what is wrong after the run of a seed."""
    try:
        return run_virtually(_run(seed))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is the run's failure
        return [f"{type(error).__name__}: {error}"]


@pytest.mark.has_long_form
@pytest.mark.parametrize("first", range(FIRST, FIRST + RUNS, PORTION))
def test_any_run_compacts_each_session_that_waits_once(first: int) -> None:
    for seed in range(first, min(first + PORTION, FIRST + RUNS)):
        assert not result_of(seed), f"SIMULATION_SEED={seed}"


def _nothing_is_read_back(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_given: object) -> None:
        pass

    patch.setattr(DecisionPartition, "_recall", nothing)


def _failed_readings_are_done_with(patch: pytest.MonkeyPatch) -> None:
    command_of = Trigger._command_of  # noqa: SLF001 -- a mistake is planted

    def barred(self: Trigger, record: object) -> tuple[str | None, int]:
        command_id, number = command_of(self, record)  # type: ignore[arg-type]  # passed on
        return (None if number else command_id), number

    patch.setattr(Trigger, "_command_of", barred)


def _lookups_that_fail_are_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Trigger, "defer", lambda *_given: None)


@pytest.mark.parametrize(
    "plant",
    [
        _nothing_is_read_back,
        _failed_readings_are_done_with,
        _lookups_that_fail_are_the_end,
    ],
)
@pytest.mark.long
def test_a_mistake_is_found(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)  # type: ignore[operator]  # one of the functions above
    assert any(result_of(seed) for seed in range(1, MOST_RUNS))
