"""R14 to R18: how an attempt opens, lives, and ends or is lost."""

import pytest

from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
)
from tests.core.given import (
    HOUR,
    START_MS,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    clear,
    cleared,
    compacting,
    every,
    failed,
    init,
    kinds,
    line,
    one,
    record_of,
    reset,
    result,
    session,
    side,
    status,
    succeeded,
    summary,
    system,
    user,
)


def opened(*bodies: Body, at: float = 0) -> tuple[Given, str]:
    """An open attempt, with its id."""
    given = session(*bodies)
    return given, one(given.take(compacting(at=at)), CompactionStart).attempt_id


def test_r14_compacting_opens_an_attempt() -> None:
    given = session(assistant(read=167_003))
    records = given.take(compacting())
    assert kinds(records) == ["compaction_start"]
    start = one(records, CompactionStart)
    assert (start.chain, start.used_tokens, start.context_used_percent) == (
        MAIN_CHAIN, 167_003, 83.5
    )  # fmt: skip
    assert start.attempt_id == records[0].id


def test_r14_while_the_size_is_unknown_a_start_has_none() -> None:
    start = one(session().take(compacting()), CompactionStart)
    assert (start.used_tokens, start.context_used_percent) == (None, None)
    after_boundary = session(assistant(read=9), boundary()).take(compacting())
    assert one(after_boundary, CompactionStart).used_tokens is None


@pytest.mark.parametrize("value", ["requesting", "idle", "Compacting", 5, True, ["compacting"]])
def test_r14_requesting_and_others_do_nothing(value: object) -> None:
    given = session()
    assert given.take(status(value)) == []
    assert given.sessions() == {}


def test_r14_null_and_absent_differ() -> None:
    given, _ = opened()
    absent = status(None)
    del absent["status"]
    given.take(absent)
    assert given.session().attempt.phase == "open"
    given.take(cleared())
    assert given.session().attempt.phase == "ended"


def test_r15_compacting_again_is_a_heartbeat() -> None:
    given, attempt = opened(at=0)
    records = given.take(compacting(at=30), compacting(at=60))
    assert kinds(records) == ["compaction_progress", "compaction_progress"]
    beats = every(records, CompactionProgress)
    assert [beat.attempt_id for beat in beats] == [attempt, attempt]
    assert [beat.elapsed_ms for beat in beats] == [30_000, 60_000]


def test_r15_more_than_5_min_after_the_last_sign_it_is_another_attempt() -> None:
    given = session(init(), compacting(at=0), compacting(at=30))
    late = given.take(compacting(at=331))
    assert kinds(late) == ["compaction_failed", "compaction_start"]
    failed_attempt, start = one(late, CompactionFailed), one(late, CompactionStart)
    assert (failed_attempt.outcome, failed_attempt.duration_ms) == ("unknown", None)
    assert failed_attempt.attempt_id != start.attempt_id
    boundary_record = one(given.take(boundary({"pre_tokens": 9}, at=384)), CompactBoundary)
    assert (boundary_record.attempt_id, boundary_record.duration_ms) == (start.attempt_id, 53_000)


def test_r15_exactly_5_min_is_a_heartbeat() -> None:
    given = session(init(), compacting(at=0), compacting(at=30))
    assert kinds(given.take(compacting(at=330))) == ["compaction_progress"]


def test_r15_an_earlier_time_does_not_move_the_last_sign_back() -> None:
    given = session(init(), compacting(at=100), compacting(at=20))
    assert kinds(given.take(compacting(at=390))) == ["compaction_progress"]


def test_r15_without_a_pair_of_times_it_is_a_heartbeat() -> None:
    given = session(init(), compacting(at=0))
    assert kinds(given.take(compacting())) == ["compaction_progress"]
    assert kinds(given.take(compacting(), received_ms=START_MS + 900_000)) == [
        "compaction_progress"
    ]
    late = given.take(compacting(), received_ms=START_MS + 1_300_000)
    assert kinds(late) == ["compaction_failed", "compaction_start"]


@pytest.mark.parametrize("mark", [{"parent_tool_use_id": "toolu_9"}, {"isSidechain": True}])
def test_r15_a_status_marked_as_a_subagents_moves_nothing(mark: Body) -> None:
    given = session(init())
    assert not given.take(compacting(at=0, **mark))
    start = one(given.take(compacting(at=1)), CompactionStart)
    assert not given.take(status(None, at=2, compact_result="failed", **mark))
    assert one(given.take(boundary({}, at=3)), CompactBoundary).attempt_id == start.attempt_id


def test_r15_a_heartbeat_without_times_has_no_elapsed_time() -> None:
    given = session(compacting())
    assert one(given.take(compacting(at=30)), CompactionProgress).elapsed_ms is None


def test_r16_other_frames_may_come_between_success_and_boundary() -> None:
    given, attempt = opened()
    between = given.take(
        succeeded(),
        init(),
        system("hook_started", hook_event="SessionStart", hook_name="SessionStart:compact"),
        system("hook_response", hook_event="SessionStart", hook_name="SessionStart:compact"),
        any_message("rate_limit_event", rate_limit_info={"status": "allowed"}),
        result(),
        assistant(read=9),
    )
    assert not every(between, CompactionFailed)
    assert one(given.take(boundary()), CompactBoundary).attempt_id == attempt


def test_r17_a_failure_is_reported_at_once_with_its_error() -> None:
    given, attempt = opened(at=0)
    records = given.take(failed("too_few_groups", at=4))
    assert kinds(records) == ["compaction_failed"]
    failure = one(records, CompactionFailed)
    assert (failure.attempt_id, failure.outcome, failure.error, failure.duration_ms) == (
        attempt, "failed", "too_few_groups", 4_000
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("Compaction blocked by PreCompact hook", "blocked"),
        ("a hook blocked it", "blocked"),
        ("hook timed out", "failed"),
        ("blocked by policy", "failed"),
        (None, "failed"),
    ],
)
def test_r17_only_an_error_that_names_a_blocking_hook_means_blocked(
    error: str | None, outcome: str
) -> None:
    given, _ = opened()
    failure = one(given.take(failed(error)), CompactionFailed)
    assert (failure.outcome, failure.error) == (outcome, error)


def test_r17_a_failure_without_an_attempt_has_no_attempt_id() -> None:
    failure = one(session().take(failed("too_few_groups")), CompactionFailed)
    assert (failure.attempt_id, failure.outcome, failure.duration_ms) == (None, "failed", None)


def test_r17_a_failed_try_and_a_successful_one_share_a_turn() -> None:
    given, first = opened()
    given.take(failed())
    second = one(given.take(compacting()), CompactionStart).attempt_id
    given.take(succeeded())
    assert second != first
    assert one(given.take(boundary()), CompactBoundary).attempt_id == second
    assert one(given.records, CompactionFailed).attempt_id == first


LOSERS = {
    "result": result(),
    "reset": reset(),
    "clear": clear(),
    "response": assistant("new", read=9),
    "empty response": assistant("none", 0),
}


@pytest.mark.parametrize("loser", LOSERS)
@pytest.mark.parametrize("end", ["open", "ended"])
def test_r18_a_lost_end_is_closed_by_the_sessions_next_messages(loser: str, end: str) -> None:
    given, attempt = opened(at=0)
    if end == "ended":
        given.take(cleared(at=1))
    failure = one(given.take(LOSERS[loser]), CompactionFailed)
    assert (failure.attempt_id, failure.outcome, failure.error) == (attempt, "unknown", None)
    assert given.session().attempt.phase == "idle"


def test_r18_a_success_that_was_noted_outlives_a_result_and_a_response() -> None:
    given, attempt = opened()
    given.take(succeeded())
    assert not every(given.take(result(), assistant("x", read=9)), CompactionFailed)
    failure = one(given.take(reset()), CompactionFailed)
    assert (failure.attempt_id, failure.outcome) == (attempt, "unknown")


def test_r18_a_subagents_response_closes_nothing() -> None:
    given, _ = opened()
    frame = assistant("s", read=9, parent_tool_use_id="toolu_1")
    assert not every(given.take(frame, side(user())), CompactionFailed)


def test_r18_a_known_response_closes_nothing() -> None:
    given = session(assistant("a", read=9))
    given.take(compacting())
    assert not every(given.take(assistant("a", read=10)), CompactionFailed)


def test_r18_user_lines_synthetic_frames_and_summaries_close_nothing() -> None:
    given, _ = opened()
    given.take(user(), summary(), assistant("x", model="<synthetic>"), init())
    assert given.session().attempt.phase == "open"


def test_r18_compacting_again_loses_the_previous_attempt() -> None:
    for end in (succeeded(at=10), cleared(at=10)):
        given, first = opened(at=0)
        given.take(end)
        records = given.take(compacting(at=60))
        assert kinds(records) == ["compaction_failed", "compaction_start"]
        failure = one(records, CompactionFailed)
        assert (failure.attempt_id, failure.outcome, failure.duration_ms) == (
            first,
            "unknown",
            60_000,
        )
        second = one(records, CompactionStart).attempt_id
        assert one(given.take(compacting()), CompactionProgress).attempt_id == second != first


def test_r18_an_own_gap_of_more_than_6_hours_loses_the_attempt() -> None:
    given, attempt = opened(at=0)
    failure = one(given.take(user(at=6 * HOUR + 0.001)), CompactionFailed)
    assert (failure.attempt_id, failure.outcome) == (attempt, "unknown")


def test_r18_a_gap_of_6_hours_does_not() -> None:
    given, _ = opened(at=0)
    assert not every(given.take(user(at=6 * HOUR)), CompactionFailed)


def test_r18_the_gap_is_checked_before_the_message() -> None:
    given, first = opened(at=0)
    records = given.take(boundary({"trigger": "auto"}, at=7 * HOUR))
    assert kinds(records) == ["compaction_failed", "compact_boundary"]
    assert one(records, CompactionFailed).attempt_id == first
    assert one(records, CompactBoundary).attempt_id is None

    given, first = opened(at=0)
    records = given.take(compacting(at=7 * HOUR))
    assert kinds(records) == ["compaction_failed", "compaction_start"]

    given, first = opened(at=0)
    records = given.take(failed("late", at=7 * HOUR))
    failures = every(records, CompactionFailed)
    assert [(one.attempt_id, one.outcome) for one in failures] == [
        (first, "unknown"),
        (None, "failed"),
    ]


def test_r18_the_gap_is_between_consecutive_messages_that_carry_a_time() -> None:
    given, _ = opened(at=0)
    given.take(user(at=4 * HOUR), user(), user(at=8 * HOUR))
    assert not every(given.records, CompactionFailed)
    given.take(user(), user(at=15 * HOUR))
    assert every(given.records, CompactionFailed)


def test_r18_a_live_receive_time_is_a_time() -> None:
    given = Given()
    given.take(compacting(), received_ms=START_MS)
    records = given.take(user(), received_ms=START_MS + 7 * HOUR * 1000)
    assert one(records, CompactionFailed).outcome == "unknown"


def test_r18_another_sessions_clock_never_closes_anything() -> None:
    given, _ = opened(at=0)
    given.take(user(at=9 * HOUR, session_id="another"))
    assert given.session().attempt.phase == "open"
    assert not every(given.records, CompactionFailed)


def test_r18_an_attempt_may_be_lost_without_any_attempt_being_open() -> None:
    records = session(user(at=0)).take(user(at=20 * HOUR), result(), reset())
    assert not every(records, CompactionFailed)


def test_r18_an_attempts_records_carry_their_messages_time_and_cause() -> None:
    given, _ = opened(at=0)
    beat = given.take(compacting(at=30))
    assert record_of(beat, CompactionProgress).time_ms == START_MS + 30_000
    lost = given.take(line(assistant("late", read=9), at=90))
    assert record_of(lost, CompactionFailed).time_ms == START_MS + 90_000


def test_r14_an_agent_that_goes_on_does_not_end_a_compaction_in_the_background() -> None:
    own = {"contextgauge": {"command_id": "c1", "attempt": 1, "background": True}}
    given = Given()
    records = given.take(
        init(at=0),
        compacting(1, **own),
        assistant("r1", read=1_000, at=2),
        result(at=3),
        compacting(31, **own),
        succeeded(40),
        boundary({"trigger": "auto", "duration_ms": 39_000, "precomputed": True}, at=40),
    )
    kinds = [each.kind for each in records]
    assert "compaction_failed" not in kinds
    start, bound = (
        next(each.data for each in records if each.kind == kind)
        for kind in ("compaction_start", "compact_boundary")
    )
    assert isinstance(start, CompactionStart)
    assert isinstance(bound, CompactBoundary)
    assert bound.attempt_id == start.attempt_id
    assert (bound.duration_ms, bound.duration_source) == (39_000, "precomputed")
    assert kinds.count("compaction_progress") == 1
