"""A session's commands: what the log says of them, and what its owner has to do next."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.records import Json
from contextgauge.units import MINUTE_MS
from schemas.commands import (
    CancelRequested,
    CommandAccepted,
    CommandCalled,
    CommandData,
    CommandEntry,
    CommandFinished,
    CommandPlanned,
    CommandTrigger,
    CompactionDecided,
    CompactRequested,
    TextDeleted,
    ThresholdsSet,
)
from streams.core.control.log import (
    CANCELLED,
    MANUAL_MAX_AGE_MS,
    MOST_COMMANDS,
    MOST_DECISIONS,
    CarryOut,
    Finish,
    SessionControl,
    actions,
    empty,
    fold,
)

SESSION = "session"
NOW_MS = 1_000_000_000
STALE_MS = 10 * MINUTE_MS


def request(command_id: str = "a", trigger: CommandTrigger = "manual") -> CompactRequested:
    return CompactRequested(
        session_id=SESSION, command_id=command_id, trigger=trigger, requested_by="test"
    )


def cancel(command_id: str = "a") -> CancelRequested:
    return CancelRequested(session_id=SESSION, command_id=command_id, requested_by="test")


def accepted(command_id: str = "a") -> CommandAccepted:
    return CommandAccepted(
        session_id=SESSION, command_id=command_id, driver="service", upto_offset=7
    )


def planned(attempt: int = 1, command_id: str = "a") -> CommandPlanned:
    return CommandPlanned(session_id=SESSION, command_id=command_id, attempt=attempt)


def called(attempt: int = 1, command_id: str = "a") -> CommandCalled:
    return CommandCalled(
        session_id=SESSION, command_id=command_id, attempt=attempt, summariser="extractive"
    )


def finished(command_id: str = "a", attempt: int = 1) -> CommandFinished:
    return CommandFinished(
        session_id=SESSION, command_id=command_id, outcome="completed", attempt=attempt
    )


def after(*entries: CommandData, state: SessionControl | None = None) -> SessionControl:
    state = state or empty(SESSION)
    for number, data in enumerate(entries):
        state = fold(state, CommandEntry(f"{data.kind}-{number}", NOW_MS + number, data), NOW_MS)
    return state


def test_a_command_goes_through_its_states() -> None:
    state = empty(SESSION)
    seen = []
    for entry in (request(), accepted(), planned(), called(), finished()):
        state = after(entry, state=state)
        seen.append(state.view.commands[0].state)
    assert seen == ["requested", "accepted", "planned", "called", "finished"]
    assert not state.open
    assert actions(state, NOW_MS, STALE_MS, busy=None) == []


def test_one_command_at_a_time() -> None:
    state = after(request("a"), request("b"))
    assert actions(state, NOW_MS, STALE_MS, busy=None) == [CarryOut(state.open[0])]
    assert actions(state, NOW_MS, STALE_MS, busy="a") == []
    state = after(accepted("a"), state=state)
    run, refused = actions(state, NOW_MS, STALE_MS, busy=None)
    assert run == CarryOut(state.open[0])
    assert isinstance(refused, Finish)
    assert refused.outcome == "refused"
    assert "command a" in refused.reason
    assert actions(state, NOW_MS, STALE_MS, busy="a") == [refused]


@pytest.mark.parametrize("trigger", ["auto", "model_change"])
def test_an_old_automatic_request_expires(trigger: CommandTrigger) -> None:
    state = after(request(trigger=trigger))
    assert isinstance(actions(state, NOW_MS + STALE_MS, STALE_MS, busy=None)[0], CarryOut)
    late = actions(state, NOW_MS + STALE_MS + MINUTE_MS, STALE_MS, busy=None)
    assert [each.outcome for each in late if isinstance(each, Finish)] == ["expired"]


def test_what_a_person_asked_for_expires_later() -> None:
    state = after(request())
    assert isinstance(actions(state, NOW_MS + MANUAL_MAX_AGE_MS, STALE_MS, busy=None)[0], CarryOut)
    (late,) = actions(state, NOW_MS + MANUAL_MAX_AGE_MS + 1, STALE_MS, busy=None)
    assert isinstance(late, Finish)
    assert (late.outcome, late.reason) == (
        "expired",
        "requested 60 minutes ago, for a conversation that has gone on since",
    )


def test_a_request_that_was_cancelled_is_not_begun() -> None:
    state = after(request(), cancel())
    (only,) = actions(state, NOW_MS, STALE_MS, busy=None)
    assert isinstance(only, Finish)
    assert only.outcome == "cancelled"


def test_one_of_several_is_cancelled() -> None:
    state = after(request(), request("other"), cancel("other"))
    assert [(each.id, each.cancelled) for each in state.open] == [("a", None), ("other", CANCELLED)]


def test_all_that_was_requested_before_is_cancelled() -> None:
    every = CancelRequested(session_id=SESSION, command_id=None, requested_by="ada")
    state = after(request(), request("other"), every, request("later"))
    assert [(each.id, each.cancelled) for each in state.open] == [
        ("a", CANCELLED),
        ("other", CANCELLED),
        ("later", None),
    ]


def test_a_cancel_marks_what_runs_and_nothing_that_is_finished() -> None:
    state = after(request(), accepted(), cancel())
    assert state.open[0].cancelled
    assert state.view.commands[0].is_cancelling
    done = after(request(), accepted(), finished())
    assert after(cancel(), state=done) == done


def test_deleting_the_text_cancels_what_is_open() -> None:
    deleted = TextDeleted(session_id=SESSION, requested_by="test")
    state = after(request(), accepted(), deleted)
    assert state.view.text_deleted_ms == NOW_MS
    assert state.open[0].cancelled == "the session's text was deleted"


def test_a_repeated_request_is_the_same_one_long_after() -> None:
    state = after(request(), accepted(), finished())
    assert after(request(), state=state) == state
    for number in range(MOST_COMMANDS + 5):
        name = f"other-{number}"
        state = after(request(name), accepted(name), finished(name), state=state)
    assert len(state.view.commands) == MOST_COMMANDS
    assert after(request(), state=state) == state


def test_what_is_open_stays_in_the_view() -> None:
    state = after(*(request(f"{number}") for number in range(MOST_COMMANDS + 5)))
    assert len(state.view.commands) == len(state.open) == MOST_COMMANDS + 5


def test_a_late_answer_has_no_effect() -> None:
    end = CommandFinished(session_id=SESSION, command_id="a", outcome="cancelled", attempt=1)
    state = after(request(), accepted(), planned(), called(), end)
    assert after(finished(), called(2), planned(2), accepted(), state=state) == state


def test_an_attempt_takes_the_place_of_the_one_before() -> None:
    state = after(request(), accepted(), planned(), called(), planned(2))
    assert (state.view.commands[0].state, state.view.commands[0].attempt) == ("planned", 2)
    assert after(called(1), planned(1), state=state) == state
    assert state.open[0].is_called


def test_thresholds_are_those_set_last() -> None:
    some = ThresholdsSet(scope="session", name=SESSION, requested_by="test", compact_at="85%")
    none = replace(some, compact_at=None)
    assert after(some).view.thresholds == some
    assert after(some, none).view.thresholds is None


def test_decisions_are_bounded_and_each_is_there_once() -> None:
    decided = CompactionDecided(session_id=SESSION, fired=False, reason="command_open")
    state = empty(SESSION)
    for number in (*range(MOST_DECISIONS + 1), MOST_DECISIONS):
        state = fold(state, CommandEntry(f"d{number}", NOW_MS, decided), NOW_MS)
    assert [each.id for each in state.view.decisions] == [
        f"d{number}" for number in range(1, MOST_DECISIONS + 1)
    ]


_STEPS: list[CommandData] = [
    request(),
    accepted(),
    planned(),
    called(),
    planned(2),
    called(2),
    cancel(),
    finished(),
]


@given(st.lists(st.integers(0, len(_STEPS) - 1)), st.integers(1, len(_STEPS)))
def test_entries_that_come_again_change_nothing(again: list[int], count: int) -> None:
    state = after(*_STEPS[:count])
    repeated = [_STEPS[number] for number in again if number < count]
    # A cancel is one of the requests, which may come later than in the log, but only once.
    assert after(*repeated, state=state) == state


def test_a_repeated_request_can_only_make_a_command_urgent() -> None:
    state = after(request())
    urgent = replace(request(), urgent=True, trigger="auto", instructions="other")
    state = fold(state, CommandEntry("again", NOW_MS, urgent), NOW_MS)
    command = state.of("a")
    assert command is not None
    assert command.request == replace(request(), urgent=True)
    again = fold(state, CommandEntry("third", NOW_MS, request()), NOW_MS)
    assert again is state
    done = fold(state, CommandEntry("end", NOW_MS, finished()), NOW_MS)
    assert fold(done, CommandEntry("late", NOW_MS, urgent), NOW_MS) is done


def test_a_view_keeps_the_figures_of_a_long_receipt() -> None:
    ids: list[Json] = [f"message-{number}" for number in range(9_000)]
    long: dict[str, Json] = {"tokens_before": 5, "steps": [], "archived_ids": ids}
    end = replace(finished(), receipt=long)
    state = fold(after(request()), CommandEntry("end", NOW_MS, end), NOW_MS)
    assert state.view.commands[0].receipt == {**long, "archived_ids": []}
