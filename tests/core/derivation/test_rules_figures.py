"""The numbers of the records, warnings, exhaustion, and the facts of a session."""

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    ContextExhausted,
    ContextReading,
    ContextWarning,
    SessionInfo,
)
from streams.core.derivation.rules_config import Rules
from tests.core.given import (
    CATALOG,
    MODEL,
    START_MS,
    WINDOW,
    Given,
    any_message,
    assistant,
    boundary,
    compacting,
    every,
    failed,
    init,
    kinds,
    line,
    message_start,
    one,
    reset,
    result,
    rollout,
    session,
    side,
    stream_event,
    user,
)


@pytest.mark.parametrize(
    ("used", "percent", "remaining"),
    [(20_000, 10.0, 90.0), (66_666, 33.33, 66.66), (167_003, 83.5, 16.49), (199_999, 99.99, 0.0)],
)
def test_numbers_percentages_are_floored_to_two_decimals(
    used: int, percent: float, remaining: float
) -> None:
    records = session().take(assistant(read=used))
    assert one(records, ContextReading).used_percent == percent
    warning = one(records, ContextWarning)
    assert (warning.context_used_percent, warning.context_remaining_percent) == (percent, remaining)


def test_warning_one_record_for_a_reading_that_jumps_over_several() -> None:
    warning = one(session().take(assistant("a", 3, 2_000, 165_000)), ContextWarning)
    assert warning.thresholds_crossed == (10, 20, 30, 40, 50, 60, 70, 80)
    assert (warning.threshold_percent, warning.context_window, warning.window_source) == (
        80, WINDOW, "catalog"
    )  # fmt: skip
    assert (warning.used_tokens, warning.input_tokens, warning.cache_tokens) == (
        167_003,
        3,
        167_000,
    )


def test_warning_is_crossed_at_exactly_the_threshold() -> None:
    given = session(assistant("a", read=19_999))
    assert not every(given.records, ContextWarning)
    assert one(given.take(assistant("b", read=20_000)), ContextWarning).threshold_percent == 10


def test_warning_at_most_once_per_epoch() -> None:
    given = session(assistant("a", read=90_000), assistant("b", read=20))
    assert not every(given.take(assistant("c", read=90_000)), ContextWarning)
    warning = one(given.take(assistant("d", read=100_000)), ContextWarning)
    assert warning.thresholds_crossed == (50,)


def crossed(given: Given, response: str, read: int) -> tuple[int, ...] | None:
    """Return the thresholds of the warning that a reading gives, None where it gives none."""
    warnings = every(given.take(assistant(response, read=read)), ContextWarning)
    return warnings[0].thresholds_crossed if warnings else None


def test_warning_each_window_value_of_an_epoch_has_its_own() -> None:
    given = session(assistant("a", read=185_000))
    assert one(given.records, ContextWarning).thresholds_crossed[-1] == 90
    given.take(result({MODEL: {"contextWindow": 1_000_000}}))
    assert crossed(given, "b", 300_000) == (10, 20, 30)
    assert crossed(given, "c", 310_000) is None
    assert crossed(given, "d", 990_000) == (40, 50, 60, 70, 80, 90)


def test_warning_a_window_that_returns_repeats_nothing() -> None:
    given = session(assistant("a", read=60_000))
    given.take(result({MODEL: {"contextWindow": 1_000_000}}))
    assert crossed(given, "b", 110_000) == (10,)
    given.take(result({MODEL: {"contextWindow": WINDOW}}))
    assert crossed(given, "c", 61_000) is None
    assert crossed(given, "d", 90_000) == (40,)


def test_warning_the_8_latest_windows_of_an_epoch_are_remembered() -> None:
    given = session(assistant("a", read=50_000))
    for number in range(1, 9):
        given.take(result({MODEL: {"contextWindow": WINDOW + number}}))
        assert crossed(given, f"b{number}", 50_000 + number) == (10, 20)
    given.take(result({MODEL: {"contextWindow": WINDOW + 1}}))
    assert crossed(given, "c", 50_100) is None
    given.take(result({MODEL: {"contextWindow": WINDOW}}))
    assert crossed(given, "d", 50_200) == (10, 20)


def test_warning_a_window_in_force_is_not_forgotten_for_a_ninth() -> None:
    given = session(assistant("a", read=50_000))
    for number in [*range(1, 8), 0, 8]:
        given.take(result({MODEL: {"contextWindow": WINDOW + number}}))
        given.take(assistant(f"b{number}", read=50_000 + number))
    given.take(result({MODEL: {"contextWindow": WINDOW}}))
    assert crossed(given, "c", 50_100) is None


def test_warning_after_an_exceeded_window_the_reported_one_has_its_own() -> None:
    given = session(assistant("a", read=150_000))
    assert crossed(given, "b", 250_000) is None
    given.take(result({MODEL: {"contextWindow": 1_000_000}}))
    assert crossed(given, "c", 260_000) == (10, 20)


@pytest.mark.parametrize("kind", ["hard_limit", "compaction_window"])
def test_exhausted_by_a_context_usage_frame_that_is_over_the_limit(kind: str) -> None:
    usage = {"totalTokens": 210_000, "over_limit": {"tokens_over": 10_000, "kind": kind}}
    frame = assistant("s", inside={"model": "<synthetic>"}, context_usage=usage)
    exhausted = one(session(init()).take(frame), ContextExhausted)
    assert (exhausted.reason, exhausted.tokens_over) == (kind, 10_000)


def test_warning_an_epoch_is_its_chains() -> None:
    given = session(assistant("a", read=90_000))
    warning = one(given.take(side(assistant("s", read=90_000))), ContextWarning)
    assert (warning.chain, warning.thresholds_crossed) == ("a1b2", (10, 20, 30, 40))
    given.take(side(boundary()))
    assert not every(given.take(assistant("b", read=99_000)), ContextWarning)


def test_warning_any_ascending_list_may_be_configured() -> None:
    rules = Rules(CATALOG, thresholds=(80, 90))
    given = session(assistant("a", read=159_999), rules=rules)
    assert not every(given.records, ContextWarning)
    warning = one(given.take(assistant("b", read=185_000)), ContextWarning)
    assert warning.thresholds_crossed == (80, 90)


def test_warning_unreported_parts_count_0() -> None:
    warning = one(
        session().take(assistant(inside={"usage": {"input_tokens": 50_000}})), ContextWarning
    )
    assert (warning.input_tokens, warning.cache_tokens) == (50_000, 0)


@pytest.mark.parametrize("reason", ["prompt_too_long", "blocking_limit", "rapid_refill_breaker"])
def test_exhausted_by_a_results_terminal_reason(reason: str) -> None:
    records = session(init()).take(result(terminal_reason=reason))
    assert one(records, ContextExhausted).reason == reason


@pytest.mark.parametrize("reason", ["completed", None, 5, "aborted_streaming"])
def test_exhausted_not_by_another_terminal_reason(reason: object) -> None:
    assert session(init()).take(result(terminal_reason=reason)) == []


def test_exhausted_by_a_messages_stop_reason_once_per_response() -> None:
    ended = {"stop_reason": "model_context_window_exceeded"}
    given = session(init())
    exhausted = one(given.take(assistant("a", read=9, inside=ended)), ContextExhausted)
    assert exhausted.reason == "model_context_window_exceeded"
    assert not every(given.take(assistant("a", read=9, inside=ended)), ContextExhausted)
    of_side = given.take(side(assistant("s", read=9, inside=ended)))
    assert one(of_side, ContextExhausted).chain == "a1b2"


def test_exhausted_by_a_message_deltas_stop_reason() -> None:
    given = session(message_start("a", read=9))
    delta = {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}
    assert len(every(given.take(stream_event(delta)), ContextExhausted)) == 1
    assert given.take(stream_event(delta)) == []


def test_info_init_reports_the_sessions_facts() -> None:
    info = one(Given().take(init(f"{MODEL}[1m]")), SessionInfo)
    assert (info.runtime, info.runtime_version, info.model, info.cwd, info.forked_from) == (
        "claude-code", "2.1.329", f"{MODEL}[1m]", "/repo", None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("runtime", "expected"), [("gemini", "gemini"), ("openai", "openai"), ("else", "claude-code")]
)
def test_info_init_may_name_its_runtime(runtime: str, expected: str) -> None:
    assert one(Given().take(init(runtime=runtime)), SessionInfo).runtime == expected


def test_info_a_transcript_line_reports_version_and_cwd() -> None:
    info = one(Given().take(line(user())), SessionInfo)
    assert (info.runtime, info.runtime_version, info.model, info.cwd) == (
        "claude-code", "2.1.329", None, "/repo"
    )  # fmt: skip


def test_info_a_rollouts_head_and_turns_report_facts() -> None:
    given = Given()
    meta = {"id": "r", "cwd": "/repo", "cli_version": "0.40.0"}
    info = one(given.take(rollout("session_meta", meta), hint="r"), SessionInfo)
    assert (info.runtime, info.runtime_version, info.model, info.cwd) == (
        "codex", "0.40.0", None, "/repo"
    )  # fmt: skip
    turn = rollout("turn_context", {"model": "gpt-5-codex", "cwd": "/repo"})
    assert one(given.take(turn, hint="r"), SessionInfo).model == "gpt-5-codex"
    without = rollout("turn_context", {"cwd": "/repo/sub"})
    info = one(given.take(without, hint="r"), SessionInfo)
    assert (info.model, info.cwd, info.runtime_version) == ("gpt-5-codex", "/repo/sub", "0.40.0")


def test_info_once_and_again_when_a_fact_changes() -> None:
    given = session(line(user()), line(user()), line(assistant(read=9)))
    assert len(every(given.records, SessionInfo)) == 1
    info = one(given.take(line(user(), cwd="/elsewhere")), SessionInfo)
    assert (info.cwd, info.runtime_version) == ("/elsewhere", "2.1.329")
    info = one(given.take(line(user(), cwd="/elsewhere", version="2.2.0")), SessionInfo)
    assert (info.cwd, info.runtime_version) == ("/elsewhere", "2.2.0")


def test_info_ignores_a_messages_model() -> None:
    given = session(init())
    assert not every(given.take(assistant("b", read=9, model="gpt-4")), SessionInfo)
    assert not every(session().take(assistant("a", read=9)), SessionInfo)


def test_info_a_line_without_facts_gives_no_record() -> None:
    given = session()
    assert not every(given.take(line(user(), cwd=None, version=5)), SessionInfo)
    assert every(given.take(line(boundary())), SessionInfo)


def test_info_a_subagents_folder_is_its_own() -> None:
    given = session(line(user()))
    assert not every(given.take(side(user(), cwd="/worktree")), SessionInfo)
    first = session(side(user(), cwd="/worktree"))
    assert one(first.records, SessionInfo).chain == "main"


def test_order_of_a_compaction_lost_and_started_again() -> None:
    given = session(compacting(at=0))
    assert kinds(given.take(line(compacting(), at=8 * 3600))) == [
        "session_info", "compaction_failed", "compaction_start"
    ]  # fmt: skip


def test_order_of_a_first_reading_after_a_boundary() -> None:
    given = session(boundary({"pre_tokens": 150_000}))
    full = assistant(
        "a",
        read=90_000,
        inside={
            "context_management": {"applied_edits": [{"type": "x"}]},
            "stop_reason": "model_context_window_exceeded",
        },
    )
    assert kinds(given.take(line(full))) == [
        "session_info", "context_limits", "context_edit", "context_reading",
        "compaction_complete", "context_warning", "context_exhausted",
    ]  # fmt: skip


def test_order_of_a_boundary_over_an_unmeasured_one() -> None:
    given = session(compacting(at=0), boundary(at=1), compacting(at=2))
    block = {"type": "compaction", "content": "Done."}
    records = given.take(line(assistant("a", read=9, inside={"content": [block]}), at=9 * 3600))
    assert kinds(records) == [
        "session_info", "compaction_failed", "compaction_complete", "compact_boundary",
        "compaction_summary", "context_limits", "context_reading", "compaction_complete",
    ]  # fmt: skip
    assert len({record.id for record in records}) == len(records)


def test_order_of_a_reset_over_an_open_attempt_and_an_unmeasured_boundary() -> None:
    given = session(boundary(), compacting())
    assert kinds(given.take(reset())) == [
        "compaction_failed", "context_reset", "compaction_complete"
    ]  # fmt: skip


def test_order_of_a_result_that_loses_an_attempt_and_reports_a_window() -> None:
    given = session(init(), compacting())
    message = result({MODEL: {"contextWindow": 9}}, terminal_reason="prompt_too_long")
    assert kinds(given.take(message)) == [
        "compaction_failed", "context_limits", "context_exhausted"
    ]  # fmt: skip


def test_records_of_one_message_share_its_time() -> None:
    records = session().take(line(assistant(read=90_000), at=4))
    assert {record.time_ms for record in records} == {START_MS + 4_000}
    assert len(records) == 4


def test_failures_of_one_message_have_ids_of_their_own() -> None:
    given = session(compacting(at=0))
    records = given.take(failed("late", at=8 * 3600))
    assert len({record.id for record in records}) == len(every(records, CompactionFailed)) == 2


def test_an_attempts_id_is_its_starts_id() -> None:
    given = session(compacting())
    start = given.records[0]
    assert one([start], CompactionStart).attempt_id == start.id
    assert one(given.take(boundary()), CompactBoundary).attempt_id == start.id


def test_an_unknown_message_of_a_known_session_changes_nothing() -> None:
    given = session(init())
    before = given.session()
    given.take(any_message("keep_alive"))
    assert given.session() is before
