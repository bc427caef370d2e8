"""The simulator: it repeats its runs, and finds what is planted.

`make dst` runs as many seeds as one wants; here only as many as show that it works.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.simulation.mutants import find
from tests.simulation.runner import kind_of, result_of, shrink, simulating
from tests.simulation.schedule import (
    DISASTERS,
    OPEN,
    Schedule,
    control_schedule_of,
    read,
    schedule_of,
)

RUNS = 60
"""Within which the planted mistake is found."""

CLEAN_RUNS = 12


@pytest.fixture(autouse=True)
def _simulating() -> Iterator[None]:
    with simulating():
        yield


@pytest.mark.extended
def test_all_runs_of_some_seeds_are_clean() -> None:
    results = {seed: result_of(schedule_of(seed, OPEN)) for seed in range(1, CLEAN_RUNS)}
    assert not {seed: result for seed, result in results.items() if result}


def _trace(schedule: Schedule) -> list[str]:
    lines: list[str] = []
    result_of(schedule, lines.append)
    return lines


@pytest.mark.extended
def test_a_seed_gives_the_same_run_whatever_ran_before() -> None:
    schedules = [schedule_of(seed) for seed in range(1, 10)]
    schedules += [control_schedule_of(seed) for seed in range(1, 3)]
    first = [_trace(schedule) for schedule in schedules]
    again = [_trace(schedule) for schedule in reversed(schedules)]
    assert first == again[::-1]
    assert sum(map(len, first)) > 10 * len(first)


@pytest.mark.extended
@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_run_does_not_depend_on_the_order_of_sets(hash_seed: str) -> None:
    script = (
        "from tests.simulation.runner import result_of, simulating\n"
        "from tests.simulation.schedule import control_schedule_of, schedule_of\n"
        "with simulating():\n"
        "    for seed in range(1, 5):\n"
        "        print(result_of(schedule_of(seed), print))\n"
        "        print(result_of(control_schedule_of(seed), print))\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    ).stdout
    lines: list[str] = []
    for seed in range(1, 5):
        lines.append(str(result_of(schedule_of(seed), lines.append)))
        lines.append(str(result_of(control_schedule_of(seed), lines.append)))
    assert printed.splitlines() == "\n".join(lines).splitlines()


def test_a_printed_schedule_can_be_run_again() -> None:
    for schedule in (schedule_of(7), control_schedule_of(7)):
        assert read(json.loads(json.dumps(schedule.document()))) == schedule


def test_all_kinds_of_disasters_are_drawn() -> None:
    drawn = {act.kind for seed in range(1, 2_000) for act in schedule_of(seed).acts}
    assert drawn >= {kind for kinds in DISASTERS.values() for kind in kinds}


@pytest.mark.extended
@pytest.mark.parametrize(
    "mistake",
    [
        ("pipeline", "the restore stops before the end"),
        ("pipeline", "a stop within a rebalance does not wait"),
        ("control", "the restore begins at the end"),
        ("control", "an announcement is left open"),
    ],
)
def test_a_planted_mistake_is_found(mistake: tuple[str, str]) -> None:
    assert find((*mistake, 50)).seed


@pytest.mark.extended
def test_a_schedule_is_shrunk_to_what_shows_the_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.simulation.derive_bugs import DERIVE_BUGS  # noqa: PLC0415 -- planted here only

    DERIVE_BUGS["records and state are two transactions"](monkeypatch)
    seed, violation = next(
        (seed, violation)
        for seed in range(1, RUNS)
        if (violation := result_of(schedule_of(seed, OPEN)))
    )
    schedule = schedule_of(seed, OPEN)
    smallest, shown = shrink(schedule, violation)
    assert kind_of(shown) == kind_of(violation) == kind_of(result_of(smallest) or "")
    assert len(smallest.acts) <= len(schedule.acts)
