"""The attempt machine: the table is complete, is the spec's, and the docs show it."""

import itertools
from pathlib import Path

import pytest

from streams.core.derivation.transitions import (
    IDLE,
    TABLE,
    Attempt,
    AttemptEvent,
    Effect,
    Move,
    Phase,
    Start,
    attempt_in,
)
from tools.draw_attempts import diagram, document

DOCUMENT = Path(__file__).parents[3] / "docs" / "ATTEMPTS.md"

SPEC = """
| Idle      | start → Open          | start → Open          | -           | -       | failed        | boundary        | -              | -              | -              | -              |
| Open      | heartbeat             | lost, start → Open    | → Succeeded | → Ended | failed → Idle | boundary → Idle | unknown → Idle | unknown → Idle | unknown → Idle | unknown → Idle |
| Succeeded | unknown, start → Open | unknown, start → Open | -           | -       | failed → Idle | boundary → Idle | -              | unknown → Idle | -              | unknown → Idle |
| Ended     | unknown, start → Open | unknown, start → Open | → Succeeded | -       | failed → Idle | boundary → Idle | unknown → Idle | unknown → Idle | unknown → Idle | unknown → Idle |
"""  # noqa: E501
"""The specified table, with a column for each event: a late `compacting`, and of the last column
result, reset, new main response, own gap."""

EVENTS = (
    AttemptEvent.COMPACTING,
    AttemptEvent.LATE,
    AttemptEvent.SUCCESS,
    AttemptEvent.CLEARED,
    AttemptEvent.FAILED,
    AttemptEvent.BOUNDARY,
    AttemptEvent.RESULT,
    AttemptEvent.RESET,
    AttemptEvent.RESPONSE,
    AttemptEvent.GAP,
)
EFFECTS = {
    "start": Effect.START,
    "heartbeat": Effect.HEARTBEAT,
    "failed": Effect.FAILED,
    "unknown": Effect.UNKNOWN,
    "lost": Effect.LOST,
}
PAIRS = list(itertools.product(Phase, AttemptEvent))
START = Start("attempt", 1, 2, 1, 2)


def spec() -> dict[tuple[Phase, AttemptEvent], Move]:
    moves = {}
    for row in SPEC.strip().splitlines():
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        phase = Phase(name.lower())
        for event, cell in zip(EVENTS, cells, strict=True):
            causes, _, to = cell.partition("→")
            words = [word.strip() for word in causes.split(",")]
            effects = tuple(EFFECTS[word] for word in words if word in EFFECTS)
            moves[phase, event] = Move(Phase(to.strip().lower()) if to else phase, effects)
    return moves


@pytest.mark.parametrize(("phase", "event"), PAIRS)
def test_every_pair_of_the_table_matches_the_spec(phase: Phase, event: AttemptEvent) -> None:
    assert TABLE[phase][event] == spec()[phase, event]


def test_the_table_has_nothing_else() -> None:
    assert {(phase, event) for phase in TABLE for event in TABLE[phase]} == set(PAIRS)
    assert set(spec()) == set(PAIRS)


@pytest.mark.parametrize(("phase", "event"), PAIRS)
def test_only_an_open_attempt_can_have_heartbeats_or_be_lost(
    phase: Phase, event: AttemptEvent
) -> None:
    move = TABLE[phase][event]
    if phase is Phase.IDLE:
        assert not {Effect.HEARTBEAT, Effect.UNKNOWN} & set(move.effects)
    if move.to is not Phase.IDLE:
        assert phase is not Phase.IDLE or Effect.START in move.effects


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.SUCCEEDED, Phase.ENDED])
def test_an_attempt_is_in_its_phase_with_its_start(phase: Phase) -> None:
    assert attempt_in(phase, START) == Attempt(phase, START)


def test_idle_has_no_start() -> None:
    assert attempt_in(Phase.IDLE, START) is IDLE
    assert Attempt(Phase.IDLE, None) == IDLE


@pytest.mark.parametrize("phase", Phase)
def test_without_a_start_there_is_no_attempt(phase: Phase) -> None:
    assert attempt_in(phase, None) is IDLE


def test_the_document_is_drawn_from_the_table() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), (
        "docs/ATTEMPTS.md is stale: run `python -m tools.draw_attempts`"
    )


def test_the_diagram_has_an_arrow_for_every_pair_that_does_something() -> None:
    arrows = diagram().splitlines()[2:]
    for phase, event in PAIRS:
        move = TABLE[phase][event]
        begin = f"    {phase.capitalize()} --> {move.to.capitalize()}: "
        labels = [arrow.removeprefix(begin) for arrow in arrows if arrow.startswith(begin)]
        found = [label for label in labels if event in label.partition(" / ")[0].split(" or ")]
        does = move != Move(phase) or event is AttemptEvent.BOUNDARY
        assert len(found) == (1 if does else 0), (phase, event, found)
