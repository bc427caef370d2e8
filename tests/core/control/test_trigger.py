"""When a session is compacted, given real messages: decisions, requests, and their ids."""

from dataclasses import replace

import pytest

from schemas.commands import (
    CancelRequested,
    CommandEntry,
    CompactionDecided,
    CompactRequested,
    ThresholdsSet,
)
from schemas.records import ContextLimits, ContextReading
from streams.core.alerts.rules import Patterns
from streams.core.control import trigger as triggering
from streams.core.control.thresholds import SessionRule
from streams.core.until_compaction import Threshold
from tests.core.control.trigger_kit import (
    MAX_AGE_MS,
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
from tests.core.given import (
    MODEL,
    OTHER_MODEL,
    SESSION,
    START_MS,
    boundary,
    clear,
    line,
    side,
)
from tests.core.given import init as claude


def test_the_first_reading_above_the_threshold_requests_a_compaction() -> None:
    deciding = Deciding(ON)
    assert deciding.take(init(at=0), at(84.9, 1)) == []
    decided, requested = deciding.take(at(85, 2))
    assert isinstance(decided.data, CompactionDecided)
    assert isinstance(requested.data, CompactRequested)
    reading = next(each for each in deciding.records[::-1] if isinstance(each.data, ContextReading))
    assert decided.data == CompactionDecided(
        session_id=SESSION,
        fired=True,
        reason="above_threshold",
        command_id=requested.data.command_id,
        cause_id=reading.id,
        model=MODEL,
        used_tokens=170_000,
        window=200_000,
        window_source="catalog",
        threshold_tokens=170_000,
        unhelpful=0,
    )
    assert requested.data == CompactRequested(
        session_id=SESSION,
        command_id=requested.data.command_id,
        trigger="auto",
        requested_by="control",
        cause_id=reading.id,
    )
    assert decided.time_ms == START_MS + 2_000


@pytest.mark.parametrize(
    ("profile", "threshold"), [("seed-001", 170_000), ("seed-002", 151_200), ("seed-004", 180_000)]
)
def test_a_session_is_compacted_at_the_threshold_of_its_profile(
    profile: str, threshold: int
) -> None:
    deciding = Deciding(SessionRule(automatic=True, profile=profile))
    assert deciding.take(init(at=0), at(threshold / 2_000 - 0.1, 1)) == []
    decided, _ = deciding.take(at(threshold / 2_000 + 0.1, 2))
    assert isinstance(decided.data, CompactionDecided)
    assert (decided.data.fired, decided.data.threshold_tokens) == (True, threshold)


def test_reading_a_record_again_comes_to_the_same_entries() -> None:
    deciding, other = Deciding(ON), Deciding(ON)
    first = deciding.take(init(at=0), at(90, 1))
    again = other.observe(deciding.records)
    assert [entry.id for entry in first] == [entry.id for entry in again]
    assert first == again


def test_a_record_whose_command_is_in_the_log_gives_nothing() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(90, 1))
    again = Deciding(ON)
    for entry in entries:
        again.trigger.note(entry)
    assert again.observe(deciding.records) == []
    again.finish(requests(entries)[0].command_id, "completed", 2)
    assert again.observe(deciding.records) == []


@pytest.mark.parametrize("rules", [(), (SessionRule(compact_at=Threshold(percent=50)),)])
def test_a_session_that_is_not_opted_in_is_left_alone(rules: tuple[SessionRule, ...]) -> None:
    assert Deciding(*rules).take(init(at=0), at(99, 1)) == []


def test_an_assumed_window_compacts_no_session_and_is_reported_once() -> None:
    deciding = Deciding(ON)
    first = deciding.take(claude("my-model", at=0), at(99, 1, "my-model"))
    assert reasons(first) == ["default_window"]
    assert deciding.take(at(99, 2, "my-model")) == []
    assert requests(first) == []


@pytest.mark.parametrize("late", [{"late_ms": MAX_AGE_MS + 1}, {"read_late_ms": MAX_AGE_MS + 1}])
def test_a_backfill_compacts_no_session(late: dict[str, int]) -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(90, 1), at(92, 2), **late)
    assert reasons(entries) == ["record_too_old"]
    assert requests(entries) == []


def test_a_record_just_young_enough_does() -> None:
    assert requests(Deciding(ON).take(init(at=0), at(90, 1), late_ms=MAX_AGE_MS))


def test_a_sidechain_compacts_no_session() -> None:
    assert Deciding(ON).take(init(at=0), side(at(99, 1))) == []


def test_a_size_that_a_fork_inherited_compacts_no_session() -> None:
    deciding = Deciding(ON)
    copied = line(at(99, 1), 1, forkedFrom={"sessionId": "origin"})
    assert deciding.take(init(at=0), copied) == []
    assert requests(deciding.take(at(99, 2)))


def test_nothing_more_is_requested_while_a_command_is_open() -> None:
    deciding = Deciding(ON)
    deciding.take(init(at=0), at(86, 1))
    assert reasons(deciding.take(at(87, 2))) == ["command_open"]
    assert deciding.take(at(88, 3), at(89, 600)) == []


def test_the_hard_limit_makes_a_request_urgent_once() -> None:
    deciding = Deciding(ON)
    (command,) = requests(deciding.take(init(at=0), at(86, 1)))
    assert not command.urgent
    entries = deciding.take(at(95, 2))
    (again,) = requests(entries)
    assert (again.command_id, again.urgent) == (command.command_id, True)
    assert reasons(entries) == ["hard_limit", "command_open"]
    assert deciding.take(at(96, 3)) == []


def test_a_session_that_is_first_seen_above_the_hard_limit_is_urgent() -> None:
    entries = Deciding(ON).take(init(at=0), at(97, 1))
    assert [each.urgent for each in requests(entries)] == [True]
    assert reasons(entries) == ["hard_limit"]


def test_after_a_failure_it_is_tried_once_a_minute_and_then_less_often() -> None:
    deciding = Deciding(ON)
    (first,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(first.command_id, "failed", 10)
    assert reasons(deciding.take(at(86, 69))) == ["pause_after_failure"]
    (second,) = requests(deciding.take(at(86, 70)))
    assert second.command_id != first.command_id
    deciding.finish(second.command_id, "failed", 80)
    assert deciding.take(at(86, 199)) == []
    assert len(requests(deciding.take(at(86, 200)))) == 1


def test_the_hard_limit_does_not_wait_for_the_pause() -> None:
    deciding = Deciding(ON)
    (first,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(first.command_id, "failed", 10)
    (second,) = requests(deciding.take(at(96, 11)))
    assert second.urgent
    deciding.finish(second.command_id, "failed", 12)
    assert requests(deciding.take(at(96, 13))) == []


def test_an_effect_is_awaited_for_a_minute() -> None:
    deciding = Deciding(ON)
    (first,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(first.command_id, "completed", 10)
    assert reasons(deciding.take(at(86, 11))) == ["awaiting_effect"]
    assert len(requests(deciding.take(at(86, 70)))) == 1


def test_a_compaction_that_helps_makes_room_for_the_next() -> None:
    deciding = Deciding(ON)
    for start in (0, 1_000, 2_000, 3_000):
        (command,) = requests(deciding.take(init(at=start), at(86, start + 1)))
        deciding.finish(command.command_id, "completed", start + 10)
        deciding.take(boundary({"trigger": "auto"}, at=start + 10), at(20, start + 11))


def test_two_compactions_that_do_not_help_are_the_last() -> None:
    deciding = Deciding(ON)
    for start in (0, 100):
        (command,) = requests(deciding.take(init(at=start), at(86, start + 1)))
        deciding.finish(command.command_id, "completed", start + 10)
        deciding.take(boundary({"trigger": "auto"}, at=start + 10))
    assert reasons(deciding.take(at(87, 200))) == ["no_progress"]
    assert deciding.take(at(94, 5_000)) == []
    lower = ThresholdsSet(scope="session", name=SESSION, requested_by="ada", compact_at="80%")
    deciding.trigger.note(CommandEntry("set", 0, lower))
    assert len(requests(deciding.take(at(87, 5_100)))) == 1


def test_the_hard_limit_waits_for_nothing_where_a_tenth_of_the_window_was_added() -> None:
    deciding = Deciding(ON)
    for start in (0, 100):
        (command,) = requests(deciding.take(init(at=start), at(86, start + 1)))
        deciding.finish(command.command_id, "completed", start + 10)
        deciding.take(boundary({"trigger": "auto"}, at=start + 10))
    assert reasons(deciding.take(at(95.9, 200))) == ["no_progress"]
    (command,) = requests(deciding.take(at(96, 201)))
    assert command.urgent
    deciding.finish(command.command_id, "completed", 210)
    deciding.take(boundary({"trigger": "auto"}, at=210))
    assert reasons(deciding.take(at(99, 300))) == ["no_progress"]


def test_a_compaction_that_left_much_is_not_followed_by_another_at_once() -> None:
    deciding = Deciding(ON)
    (command,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(command.command_id, "completed", 10)
    deciding.take(boundary({"trigger": "auto"}, at=10), at(80, 11))
    assert deciding.take(at(89.9, 100)) == []
    assert len(requests(deciding.take(at(90, 101)))) == 1


def test_a_clock_that_is_ahead_leaves_no_pause_of_hours() -> None:
    deciding = Deciding(ON)
    (first,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.finish(first.command_id, "failed", 100_000)
    assert len(requests(deciding.take(at(86, 70)))) == 1


def test_an_answer_to_a_call_that_began_before_the_boundary_requests_nothing() -> None:
    deciding = Deciding(ON)
    (command,) = requests(deciding.take(init(at=0), at(96, 1)))
    deciding.finish(command.command_id, "completed", 10)
    during_call = {"trigger": "auto", "contextgauge": {"during_call": True}}
    assert deciding.take(boundary(during_call, at=10), at(97, 11)) == []
    assert requests(deciding.take(at(97, 90))) != []


def test_a_former_workers_answer_of_before_the_boundary_is_known_as_such() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(init(at=0), at(96, 1))
    (command,) = requests(entries)
    entries.append(deciding.finish(command.command_id, "completed", 10))
    during_call = {"trigger": "auto", "contextgauge": {"during_call": True}}
    deciding.take(boundary(during_call, at=10), at(97, 11))
    other = noted(entries)
    recall(other, deciding.records, 12)
    assert other.trigger.due(after(200)) == []


def test_a_smaller_model_compacts_what_does_not_fit_it() -> None:
    deciding = Deciding(ON)
    assert deciding.take(init(at=0), at(10, 1)) == []
    entries = deciding.take(init(OTHER_MODEL, at=2), at(10, 3, OTHER_MODEL))
    (command,) = requests(entries)
    assert (command.trigger, command.urgent) == ("model_change", True)
    assert reasons(entries)[0] == "hard_limit"


def test_a_model_with_a_smaller_window_is_a_reason_of_its_own() -> None:
    small = SessionRule(models=Patterns((OTHER_MODEL,)), compact_at=Threshold(tokens=4_000))
    deciding = Deciding(ON, small)
    assert deciding.take(init(at=0), at(2.5, 1)) == []
    entries = deciding.take(init(OTHER_MODEL, at=2), at(2.5, 3, OTHER_MODEL))
    assert [each.trigger for each in requests(entries)] == ["model_change"]
    assert reasons(entries)[0] == "model_change"


def test_a_window_that_shrinks_compacts_without_another_reading() -> None:
    deciding = Deciding(ON)
    records = deciding.given.take(init(at=0), at(50, 1))
    assert deciding.observe(records) == []
    limits, data = next(
        (each, each.data) for each in records if isinstance(each.data, ContextLimits)
    )
    window = replace(data, window=110_000, window_source="runtime")
    smaller = replace(limits, id="smaller", time_ms=START_MS + 2_000, data=window)
    entries = deciding.observe([smaller])
    (command,) = requests(entries)
    assert (command.trigger, command.cause_id, command.urgent) == ("model_change", "smaller", False)
    assert reasons(entries) == ["model_change"]
    assert deciding.observe([smaller]) == []


def test_after_a_reset_the_former_size_is_of_no_use() -> None:
    deciding = Deciding(ON)
    deciding.take(init(at=0), at(10, 1), clear(at=2))
    assert requests(deciding.take(init(OTHER_MODEL, at=3))) == []


def test_rules_by_agent_ask_whose_session_it_is_once() -> None:
    deciding = Deciding(SessionRule(agents=Patterns(("reviewer",)), automatic=True))
    deciding.given.take(init(at=0))
    (reading, *_) = [
        record
        for record in deciding.given.take(at(90, 1))
        if isinstance(record.data, ContextReading)
    ]
    now_ms = START_MS + 1_000
    assert deciding.trigger.needs_identity(reading, now_ms, now_ms)
    assert deciding.observe([reading]) == []
    deciding.trigger.identify(SESSION, "reviewer", "/repo", now_ms)
    assert not deciding.trigger.needs_identity(reading, now_ms, now_ms)
    assert len(requests(deciding.observe([replace(reading, id="another")]))) == 1


def test_a_backfill_looks_up_no_session() -> None:
    deciding = Deciding(SessionRule(agents=Patterns(("reviewer",)), automatic=True))
    for record in deciding.given.take(init(at=0), at(90, 1)):
        late_ms = START_MS + 2 * MAX_AGE_MS
        assert not deciding.trigger.needs_identity(record, late_ms, late_ms)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggering, "MOST_SESSIONS", 3)
    monkeypatch.setattr(triggering, "MOST_IDS", 5)
    deciding = Deciding(ON)
    (reading,) = [
        record
        for record in deciding.given.take(init(at=0), at(90, 1))
        if isinstance(record.data, ContextReading)
    ]
    for number in range(20):
        data = replace(reading.data, session_id=f"s-{number}")
        deciding.observe([replace(reading, id=f"r-{number}", data=data)])
    trigger = deciding.trigger
    assert len(trigger._sessions) == 3  # noqa: SLF001 -- what it holds is what is tested
    assert len(trigger._known) == 5  # noqa: SLF001 -- as above


def test_a_cancellation_and_steps_say_nothing_of_when_to_compact() -> None:
    deciding = Deciding(ON)
    data = CancelRequested(session_id=SESSION, command_id="other", requested_by="ada")
    deciding.trigger.note(CommandEntry("cancel", START_MS, data))
    deciding.finish("early", "completed", -100)
    late = CompactRequested(
        session_id=SESSION, command_id="early", trigger="manual", requested_by="ada"
    )
    deciding.trigger.note(CommandEntry("late", START_MS - 200_000, late))
    assert len(requests(deciding.take(init(at=0), at(86, 1)))) == 1


def test_open_commands_of_a_session_are_bounded_and_those_of_people_are_no_decision() -> None:
    deciding = Deciding(ON)
    for number in range(30):
        data = CompactRequested(
            session_id=SESSION, command_id=f"c{number}", trigger="manual", requested_by="ada"
        )
        deciding.trigger.note(CommandEntry(f"e{number}", START_MS, data))
    assert reasons(deciding.take(init(at=0), at(86, 1))) == ["command_open"]
    for number in range(10, 30):
        deciding.finish(f"c{number}", "completed", 2)
    deciding.take(boundary({}, at=3), at(20, 4))
    assert len(requests(deciding.take(at(87, 5)))) == 1


def test_an_effect_that_was_read_before_the_commands_end_is_known() -> None:
    """The log of commands may be read later than the records."""
    deciding = Deciding(ON)
    (command,) = requests(deciding.take(init(at=0), at(86, 1)))
    deciding.take(boundary({}, at=5), at(30, 6))
    deciding.finish(command.command_id, "completed", 4)
    assert len(requests(deciding.take(at(88, 7)))) == 1
    other = Deciding(ON)
    (command,) = requests(other.take(init(at=0), at(86, 1)))
    other.take(boundary({}, at=5), at(87, 6))
    other.finish(command.command_id, "completed", 4)
    assert len(requests(other.trigger.due(after(70)))) == 1


def test_a_stop_that_was_not_written_is_written_by_the_next_worker() -> None:
    deciding = Deciding(ON)
    entries: list[CommandEntry] = []
    for start in (0, 100):
        made = deciding.take(init(at=start), at(86, start + 1))
        finished = deciding.finish(requests(made)[0].command_id, "completed", start + 10)
        entries += [*made, finished]
        deciding.take(boundary({"trigger": "auto"}, at=start + 10))
    other = noted(entries)
    recall(other, [*deciding.records, *deciding.given.take(at(87, 200))], 201)
    assert reasons(other.trigger.due(after(201))) == ["no_progress"]
    assert other.trigger.due(after(202)) == []
