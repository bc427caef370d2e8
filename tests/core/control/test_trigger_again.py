"""Readings that are evaluated late, again, or by another worker than the one that took them."""

from dataclasses import replace

import pytest

from schemas.commands import CommandEntry, CommandOutcome, CompactionDecided, CompactRequested
from schemas.records import ContextLimits, ContextReading
from streams.core.alerts.rules import Patterns
from streams.core.control.thresholds import SessionRule
from tests.core.control.trigger_kit import (
    MINUTE_MS,
    ON,
    Deciding,
    after,
    at,
    init,
    noted,
    reasons,
    recall,
    requests,
)
from tests.core.given import OTHER_MODEL, SESSION, boundary, clear

REVIEWER = SessionRule(agents=Patterns(("reviewer",)), automatic=True)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_reading_of_before_the_swap_that_is_read_late_requests_nothing(
    is_restarted: bool,
) -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    (first,) = requests(entries)
    late = deciding.given.take(at(96, 5))
    if is_restarted:
        deciding = noted(entries)
    deciding.finish(first.command_id, "completed", 10)
    assert reasons(deciding.observe(late, read_late_ms=5 * MINUTE_MS)) == ["awaiting_effect"]
    assert deciding.trigger.due(after(600)) == []


def test_a_reading_of_before_the_swap_says_nothing_of_what_it_did() -> None:
    deciding = Deciding(ON)
    for start in (0, 100):
        (command,) = requests(deciding.take(init(at=start), at(86, start + 1)))
        deciding.finish(command.command_id, "completed", start + 10)
        deciding.observe(deciding.given.take(at(87, start + 5)), read_late_ms=MINUTE_MS)
        deciding.take(boundary({"trigger": "auto"}, at=start + 11), at(20, start + 12))
    assert len(requests(deciding.take(at(88, 300)))) == 1


def test_a_session_that_two_compactions_did_not_help_is_left_alone_by_the_next_worker() -> None:
    deciding, entries = Deciding(ON), list[CommandEntry]()
    for start in (0, 100):
        entries += deciding.take(init(at=start), at(86, start + 1))
        command_id = requests(entries)[-1].command_id
        entries.append(deciding.finish(command_id, "completed", start + 10))
        deciding.take(boundary({"trigger": "auto"}, at=start + 10))
    entries += deciding.take(at(87, 200))
    assert reasons(entries)[-1] == "no_progress"
    same, other, below = noted(entries), noted(entries), noted(entries)
    assert same.observe(deciding.given.take(at(88, 300))) == []
    # It was below meanwhile, as far as is known of it; of another epoch that is not known.
    below.observe(deciding.given.take(at(20, 301)))
    assert len(requests(below.observe(deciding.given.take(at(88, 302))))) == 1
    deciding.take(boundary({}, at=310))
    reading = deciding.given.take(at(88, 311))
    assert reasons(deciding.observe(reading)) == ["no_progress"]
    entries = other.observe(reading)
    (third,) = requests(entries)
    other.finish(third.command_id, "completed", 320)
    deciding.given.take(boundary({}, at=320))
    assert reasons(other.observe(deciding.given.take(at(89, 330)))) == ["no_progress"]


def not_helped(deciding: Deciding, start: float, entries: list[CommandEntry]) -> str:
    """Finish the command that was requested last, and let the next reading be above again."""
    command_id = requests(entries)[-1].command_id
    entries.append(deciding.finish(command_id, "completed", start + 9))
    deciding.take(boundary({"trigger": "auto"}, at=start + 9))
    entries += deciding.take(at(87, start + 10))
    return reasons(entries)[-1]


@pytest.mark.parametrize("pause", [1, 100])
def test_a_single_compaction_that_did_not_help_is_counted_by_the_next_worker(pause: int) -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    reason = not_helped(deciding, pause, entries)
    assert reason == ("awaiting_effect" if pause == 1 else "above_threshold")
    other = noted(entries)
    other.given = deciding.given
    if pause == 1:
        entries = other.take(at(88, 100))
        assert reasons(entries) == ["above_threshold"]
    assert not_helped(other, 200, entries) == "no_progress"


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_seen", [True, False])
def test_a_compaction_before_a_failure_is_counted_once(is_seen: bool, is_restarted: bool) -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries.append(deciding.finish(requests(entries)[-1].command_id, "completed", 10))
    if is_seen:
        deciding.take(boundary({"trigger": "auto"}, at=10))
    entries.append(deciding.by_hand(12))
    entries.append(deciding.finish("by hand", "failed", 13))
    entries += deciding.take(at(87, 20))
    assert reasons(entries)[-1] == "pause_after_failure"
    other = noted(entries) if is_restarted else deciding
    other.given = deciding.given
    again = other.take(at(88, 100))
    assert reasons(again) == ["above_threshold"]
    assert not_helped(other, 200, again) == "no_progress"


def test_a_pause_that_a_completed_compaction_has_ended_says_nothing_of_its_effect() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries.append(deciding.finish(requests(entries)[-1].command_id, "failed", 10))
    late = deciding.take(at(86, 20))
    assert reasons(late) == ["pause_after_failure"]
    entries.append(deciding.by_hand(21))
    entries.append(deciding.finish("by hand", "completed", 22))
    other = noted([*entries, *late])
    other.given = deciding.given
    again = other.take(at(88, 100))
    assert not_helped(other, 200, again) == "no_progress"


def test_a_compaction_that_helped_begins_the_count_again_for_the_next_worker() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    not_helped(deciding, 100, entries)
    command_id = requests(entries)[-1].command_id
    entries.append(deciding.finish(command_id, "completed", 200))
    deciding.take(boundary({"trigger": "auto"}, at=200), at(20, 201))
    entries += deciding.take(at(86, 300))
    for other in (deciding, noted(entries)):
        other.given = deciding.given
        assert not_helped(other, 400, list(entries)) == "above_threshold"


def test_what_the_last_compaction_did_is_not_known_after_a_long_silence() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    not_helped(deciding, 100, entries)
    entries.append(deciding.finish(requests(entries)[-1].command_id, "completed", 200))
    deciding.take(boundary({"trigger": "auto"}, at=200), at(20, 201))
    other = noted(entries)
    other.given = deciding.given
    recall(other, [], 2_000)
    entries = other.take(at(86, 2_000))
    assert not_helped(other, 2_100, entries) == "above_threshold"


def test_a_decision_that_is_read_back_late_changes_nothing() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    not_helped(deciding, 100, entries)
    deciding.finish(requests(entries)[-1].command_id, "completed", 200)
    deciding.take(boundary({"trigger": "auto"}, at=200), at(20, 201))
    for entry in entries:
        if isinstance(entry.data, CompactionDecided):
            deciding.trigger.note(entry)
    late = deciding.take(at(86, 300))
    assert not_helped(deciding, 400, late) == "above_threshold"


def test_a_request_after_no_progress_takes_it_back_for_the_next_worker() -> None:
    deciding = Deciding(ON)
    stopped = CompactionDecided(
        session_id=SESSION,
        fired=False,
        reason="no_progress",
        used_tokens=175_000,
        window=200_000,
        threshold_tokens=170_000,
    )
    again = CompactRequested(
        session_id=SESSION, command_id="later", trigger="auto", requested_by="control"
    )
    deciding.trigger.note(CommandEntry("stopped", after(-900), stopped))
    deciding.trigger.note(CommandEntry("again", after(-800), again))
    deciding.finish("later", "completed", -700)
    assert len(requests(deciding.take(init(at=0), at(86, 1)))) == 1


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "refused", "nothing_to_compact"])
def test_a_single_reading_is_requested_again_when_its_command_did_not_complete(
    outcome: CommandOutcome,
) -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    (first,) = requests(entries)
    assert deciding.trigger.due(after(2)) == []
    entries.append(deciding.finish(first.command_id, outcome, 3))
    assert reasons(deciding.trigger.due(after(4))) == ["pause_after_failure"]
    again = deciding.trigger.due(after(64))
    (second,) = requests(again)
    assert second.command_id != first.command_id
    assert second.cause_id == first.cause_id
    assert deciding.trigger.due(after(65)) == []
    deciding.finish(second.command_id, outcome, 70)
    (third,) = requests(deciding.trigger.due(after(190)))
    assert len({first.command_id, second.command_id, third.command_id}) == 3
    deciding.finish(third.command_id, "completed", 200)
    assert deciding.trigger.due(after(400)) == []
    # Whoever reads the log comes to the same requests.
    other = noted(entries)
    assert requests(other.observe(deciding.records)) == []
    assert [entry.id for entry in other.trigger.due(after(64))] == [entry.id for entry in again]


def test_a_reading_whose_command_failed_gives_way_to_the_next_one() -> None:
    for later in (at(20, 30), boundary({}, at=30), clear(at=30)):
        deciding = Deciding(ON)
        (first,) = requests(deciding.take(init(at=0), at(86, 1)))
        deciding.finish(first.command_id, "failed", 3)
        deciding.take(later)
        assert deciding.trigger.due(after(64)) == []


def test_a_session_that_waits_in_the_pause_between_requests_is_evaluated_again() -> None:
    deciding = Deciding(ON)
    (first,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(first.command_id, "completed", 10)
    assert reasons(deciding.take(boundary({}, at=10), at(86, 11))) == ["awaiting_effect"]
    assert deciding.trigger.due(after(30)) == []
    (second,) = requests(deciding.trigger.due(after(62)))
    assert second.command_id != first.command_id


def test_what_is_read_late_gives_way_to_what_is_behind_it() -> None:
    deciding = Deciding(ON)
    records = deciding.given.take(init(at=0), at(86, 1))
    assert deciding.observe(records, read_late_ms=MINUTE_MS) == []
    other = Deciding(ON)
    rest = deciding.given.take(boundary({}, at=2), at(20, 3))
    assert other.observe([*records, *rest], read_late_ms=MINUTE_MS) == []
    assert other.trigger.due(after(65)) == []
    assert len(requests(deciding.trigger.due(after(65)))) == 1


# Another worker


def test_what_a_worker_put_off_is_evaluated_by_the_next() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries += deciding.take(at(90, 2))
    entries.append(deciding.finish(requests(entries)[0].command_id, "failed", 4))
    other = noted(entries)
    recall(other, deciding.records, 30)
    assert requests(other.trigger.due(after(30))) == []
    assert requests(other.trigger.due(after(63))) == []
    (second,) = requests(other.trigger.due(after(65)))
    readings = [each for each in deciding.records if isinstance(each.data, ContextReading)]
    assert second.cause_id == readings[-1].id
    assert other.trigger.due(after(66)) == []


def test_what_a_worker_awaited_or_had_done_is_not_evaluated_by_the_next() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries.append(deciding.finish(requests(entries)[0].command_id, "completed", 4))
    first = noted(entries)
    recall(first, deciding.records, 300)
    assert first.trigger.due(after(300)) == []  # its command completed
    entries += deciding.take(at(88, 5))
    second = noted(entries)
    recall(second, deciding.records, 300)
    assert second.trigger.due(after(300)) == []  # awaited until the next reading
    deciding.take(boundary({}, at=6), at(20, 7))
    third = noted(entries)
    recall(third, deciding.records, 300)
    assert third.trigger.due(after(300)) == []  # it is below


def test_the_effect_of_a_compaction_is_known_after_its_boundary_only() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries.append(deciding.finish(requests(entries)[0].command_id, "completed", 4))
    other = noted(entries)
    recall(other, deciding.records, 5)
    assert reasons(other.observe(deciding.given.take(at(88, 6)))) == ["awaiting_effect"]
    assert other.trigger.due(after(70)) == []
    ended = [*deciding.records, *deciding.given.take(boundary({}, at=7), at(86, 8))]
    other = noted(entries)
    recall(other, ended, 9)
    assert len(requests(other.trigger.due(after(70)))) == 1


def test_compactions_of_long_ago_do_not_count_as_such_that_did_not_help() -> None:
    deciding = Deciding(ON)
    for number in range(2):
        data = CompactRequested(
            session_id=SESSION, command_id=f"c{number}", trigger="auto", requested_by="control"
        )
        deciding.trigger.note(CommandEntry(f"e{number}", after(number - 9_000), data))
        deciding.finish(f"c{number}", "completed", number - 8_000)
    recall(deciding, [], 0)
    for start in (0, 100):
        (command,) = requests(deciding.take(init(at=start), at(86, start + 1)))
        deciding.finish(command.command_id, "completed", start + 10)
        deciding.take(boundary({"trigger": "auto"}, at=start + 10))
    assert reasons(deciding.take(at(87, 200))) == ["no_progress"]


def test_what_is_read_back_waits_until_it_is_known_whose_session_it_is() -> None:
    deciding = Deciding(ON)
    records = deciding.given.take(init(at=0), at(86, 1))
    other = Deciding(REVIEWER)
    recall(other, records, 2)
    assert other.trigger.due(after(2)) == []
    assert other.trigger.unidentified(after(3)) == [SESSION]
    other.trigger.identify(SESSION, "reviewer", None, after(3))
    assert other.trigger.unidentified(after(3)) == []
    assert len(requests(other.trigger.due(after(3)))) == 1


def test_where_it_is_not_known_whose_session_it_is_it_is_looked_up_again() -> None:
    deciding = Deciding(REVIEWER)
    records = deciding.given.take(init(at=0), at(86, 1))
    reading = next(each for each in records if isinstance(each.data, ContextReading))
    deciding.trigger.defer(reading, after(1))
    assert deciding.trigger.due(after(1)) == []
    deciding.trigger.identify(SESSION, None, None, after(1))
    assert not deciding.trigger.needs_identity(reading, after(1), after(2))
    assert deciding.trigger.needs_identity(reading, after(1), after(61))
    deciding.trigger.identify(SESSION, "reviewer", None, after(61))
    assert not deciding.trigger.needs_identity(reading, after(1), after(200))


def test_a_window_that_shrinks_is_not_evaluated_before_it_is_known_whose_session_it_is() -> None:
    deciding = Deciding(REVIEWER)
    records = deciding.given.take(init(at=0), at(50, 1))
    limits, data = next(
        (each, each.data) for each in records if isinstance(each.data, ContextLimits)
    )
    window = replace(data, window=110_000, window_source="runtime")
    smaller = replace(limits, id="smaller", time_ms=after(2), data=window)
    assert not deciding.trigger.needs_identity(smaller, after(2), after(2))  # of no known size
    deciding.trigger.defer(smaller, after(2))
    recall(deciding, [*records, smaller], 3)
    assert deciding.trigger.needs_identity(
        replace(smaller, data=replace(data, window=90_000)), after(2), after(2)
    )
    assert requests(deciding.trigger.due(after(3))) == []
    deciding.trigger.identify(SESSION, "reviewer", None, after(3))
    (command,) = requests(deciding.trigger.due(after(3)))
    assert command.cause_id == "smaller"


def test_of_a_sidechain_nothing_is_read_back() -> None:
    deciding = Deciding(ON)
    records = [
        replace(each, data=replace(each.data, chain="agent-1"))
        for each in deciding.given.take(init(OTHER_MODEL, at=0), at(86, 1, OTHER_MODEL))
    ]
    recall(deciding, records, 2)
    assert deciding.trigger.due(after(2)) == []


def test_a_reading_that_is_derived_after_the_swap_but_before_its_boundary_is_not_its_effect() -> (
    None
):
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(86, 1))
    entries.append(deciding.finish(requests(entries)[0].command_id, "completed", 100))
    other = noted(entries)
    assert reasons(other.observe(deciding.given.take(at(88, 101)))) == ["awaiting_effect"]
    assert other.trigger.due(after(102)) == []
    other.take(boundary({}, at=103))
    assert len(requests(other.observe(deciding.given.take(boundary({}, at=103), at(86, 104))))) == 1
