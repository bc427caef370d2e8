"""Constructed messages of every kind, in the orders seen in real streams and transcripts.

They lie beside the project; where they are absent, these tests skip.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextEdit,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextReset,
    ContextWarning,
    Record,
    SessionInfo,
)
from streams.flow.derive.deriver import Funnel, Intake
from tests.core.given import RULES, Given, every, kinds, one

FOLDER = Path(__file__).parents[3] / "shared" / "samples"
SESSION = "5b1f0c2e-7a11-4a55-9c01-0d6f3b2a9e10"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the sample messages (../shared/samples) are not on this machine"
)


def sequence(name: str) -> list[Record]:
    funnel = Funnel(RULES)
    records: list[Record] = []
    for value in (FOLDER / "sequences" / f"{name}.jsonl").read_bytes().splitlines():
        taken = funnel.take(Intake(value, "file"))
        assert taken.dead is None
        records.extend(taken.records)
    return records


def sample(name: str) -> dict[str, Any]:
    message: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_bytes())["message"]
    return message


def take(*names: str) -> list[Record]:
    return Given().take(*(sample(name) for name in names), hint=SESSION)


def test_an_automatic_compaction_in_a_stream() -> None:
    records = sequence("stream_auto_compaction")
    assert kinds(records) == [
        "session_info",
        "context_limits",
        "context_reading",
        "context_warning",
        "context_limits",
        "compaction_start",
        "compact_boundary",
        "compaction_summary",
        "context_reading",
        "compaction_complete",
    ]
    first, second = every(records, ContextReading)
    assert (first.used_tokens, first.used_percent, first.window_source) == (
        167_003, 83.5, "catalog"
    )  # fmt: skip
    assert one(records, ContextWarning).thresholds_crossed == (10, 20, 30, 40, 50, 60, 70, 80)
    assert [told.window_source for told in every(records, ContextLimits)] == ["catalog", "runtime"]
    start, bound = one(records, CompactionStart), one(records, CompactBoundary)
    assert (start.used_tokens, start.trigger_reason) == (167_003, None)
    assert (bound.attempt_id, bound.trigger, bound.pre_tokens) == (
        start.attempt_id, "auto", 167_412
    )  # fmt: skip
    assert (bound.duration_ms, bound.duration_source, bound.number) == (24_100, "reported", 1)
    assert (bound.messages_since_last, bound.post_tokens) == (1, 5_210)
    assert one(records, CompactionSummary).summary.startswith("This session is being continued")
    assert (second.used_tokens, second.window, second.messages) == (28_404, 1_000_000, 1)
    complete = one(records, CompactionComplete)
    assert (complete.tokens_before, complete.tokens_after) == (167_412, 28_404)


def test_a_manual_compaction_in_a_stream() -> None:
    records = sequence("stream_manual_compact")
    assert kinds(records) == [
        "compaction_start",
        "session_info",
        "context_limits",
        "compact_boundary",
        "compaction_summary",
        "context_limits",
    ]
    start, bound = one(records, CompactionStart), one(records, CompactBoundary)
    assert (start.used_tokens, start.context_used_percent) == (None, None)
    assert (bound.attempt_id, bound.trigger, bound.duration_ms) == (
        start.attempt_id, "manual", 16_800
    )  # fmt: skip
    assert (bound.pre_tokens, bound.messages_since_last) == (90_500, 0)


def test_a_manual_compaction_that_failed() -> None:
    records = sequence("stream_manual_compact_failed")
    assert kinds(records) == [
        "compaction_start",
        "compaction_failed",
        "session_info",
        "context_limits",
        "context_limits",
    ]
    told = one(records, CompactionFailed)
    assert (told.attempt_id, told.outcome) == (one(records, CompactionStart).attempt_id, "failed")
    assert told.error == "Not enough messages to compact."


def test_an_automatic_compaction_that_failed_and_then_succeeded() -> None:
    records = sequence("stream_auto_failed_then_success")
    assert kinds(records) == [
        "session_info",
        "context_limits",
        "compaction_start",
        "compaction_failed",
        "context_reading",
        "context_warning",
        "context_limits",
        "compaction_start",
        "compact_boundary",
        "compaction_summary",
        "context_reading",
        "compaction_complete",
    ]
    first, second = every(records, CompactionStart)
    assert one(records, CompactionFailed).attempt_id == first.attempt_id
    bound = one(records, CompactBoundary)
    assert (bound.attempt_id, bound.pre_tokens) == (second.attempt_id, 70_633)
    assert (second.used_tokens, one(records, CompactionComplete).tokens_after) == (68_504, 23_304)


def test_a_compaction_of_an_early_version() -> None:
    records = sequence("stream_legacy_0_1")
    assert kinds(records) == ["compaction_start", "compact_boundary"]
    bound = one(records, CompactBoundary)
    assert (bound.pre_tokens, bound.post_tokens, bound.duration_ms) == (155_201, None, None)
    assert bound.attempt_id == one(records, CompactionStart).attempt_id


@pytest.mark.parametrize(
    ("name", "trigger", "messages", "chain"),
    [
        ("transcript_auto", "auto", 1, "main"),
        ("transcript_manual", "manual", 2, "main"),
        ("transcript_subagent_agent-a1b2c3d4", "auto", 1, "a1b2c3d4"),
    ],
)
def test_a_compaction_in_a_transcript(name: str, trigger: str, messages: int, chain: str) -> None:
    records = sequence(name)
    told = [kind for kind in kinds(records) if kind != "context_limits"]
    assert told == [
        "session_info",
        "context_reading",
        "context_warning",
        "compact_boundary",
        "compaction_summary",
        "context_reading",
        "compaction_complete",
        "context_warning",
    ]
    assert len(every(records, ContextLimits)) == (1 if chain == "main" else 0)
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.attempt_id, bound.duration_ms) == (trigger, None, 24_100)
    assert (bound.messages_since_last, bound.chain) == (3, chain)
    first, second = every(records, ContextReading)
    assert (first.used_tokens, first.messages, first.messages_total) == (162_003, 2, 2)
    assert (second.used_tokens, second.messages, second.messages_total) == (
        28_404, messages, 3 + messages
    )  # fmt: skip
    assert (first.previous_output_tokens, second.previous_output_tokens) == (None, 212)
    assert one(records, SessionInfo).chain == "main"


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("assistant_text", 50_788),
        ("assistant_iterations", 48_504),
        ("assistant_server_compaction", 23_000),
        ("assistant_context_edits", 60_010),
        ("assistant_subagent", 12_004),
        ("stream_message_start", 50_788),
        ("transcript_assistant_line1", 162_003),
    ],
)
def test_a_response_alone(name: str, used: int) -> None:
    assert one(take(name), ContextReading).used_tokens == used


def test_a_start_a_frame_and_an_end_of_one_response() -> None:
    records = take("stream_message_start", "assistant_text", "stream_message_delta")
    assert len(every(records, ContextReading)) == 1


def test_two_lines_of_one_response() -> None:
    records = take("transcript_assistant_line1", "transcript_assistant_line2_same_message_id")
    assert len(every(records, ContextReading)) == 1


def test_a_compaction_within_a_response() -> None:
    records = take("assistant_text", "assistant_server_compaction")
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens, bound.pre_tokens_source) == (
        None, 50_788, "last_reading"
    )  # fmt: skip
    assert one(records, CompactionComplete).tokens_saved == 27_788
    of_openai = take("openai_compacted_response")
    assert kinds(of_openai) == ["compact_boundary"]


@pytest.mark.parametrize(
    "name", ["openai_chat_usage", "openai_responses_usage", "gemini_usage_metadata"]
)
def test_another_providers_usage(name: str) -> None:
    frame = {"type": "assistant", "uuid": "u", "message": {"id": "m", "usage": sample(name)}}
    told = one(Given().take(frame, hint=SESSION), ContextReading)
    assert (told.used_tokens, told.input_tokens, told.cache_read_tokens) == (12_000, 3_000, 9_000)


def test_edits() -> None:
    assert one(take("assistant_context_edits"), ContextEdit).cleared_input_tokens == 17_100
    assert one(take("transcript_microcompact_boundary"), ContextEdit).cleared_input_tokens == 18_000


def test_a_reset_and_an_exhaustion() -> None:
    assert one(take("conversation_reset"), ContextReset).reason == "clear"
    assert one(take("result_prompt_too_long"), ContextExhausted).reason == "prompt_too_long"


@pytest.mark.parametrize(
    "name", ["control_response_get_context_usage", "assistant_synthetic_context_usage"]
)
def test_context_usage(name: str) -> None:
    told = every(take("system_init", name), ContextLimits)[-1]
    assert (told.total_tokens, told.window, told.effective_window) == (122_300, 200_000, 200_000)
    assert told.categories is not None
    assert {"Messages", "Free space"} <= {row.name for row in told.categories}


def test_a_fallback_and_hints() -> None:
    records = take("model_refusal_fallback", "hook_started_precompact", "status_compacting")
    assert one(records, ContextLimits).model == "claude-sonnet-5"
    assert one(records, CompactionStart).trigger_reason == "threshold_exceeded"
    by_input = take("hook_input_precompact", "status_compacting")
    assert one(by_input, CompactionStart).trigger_reason == "manual"


@pytest.mark.parametrize(
    "name",
    [
        "api_retry",
        "background_tasks_changed",
        "control_request_get_context_usage",
        "hook_input_postcompact",
        "hook_input_sessionstart_compact",
        "hook_input_sessionstart_resume",
        "hook_response_sessionstart_compact",
        "rate_limit_event",
        "status_requesting",
        "task_notification",
        "task_progress",
        "task_started",
        "task_updated",
        "thinking_tokens",
        "user_local_command_stdout",
    ],
)
def test_messages_that_say_nothing(name: str) -> None:
    given = Given()
    assert given.take(sample(name), hint=SESSION) == []
    assert given.funnel.sessions == {}


def test_no_sample_is_a_dead_letter() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    assert len(names) == 54
    for name in names:
        assert Given().dead(sample(name), SESSION) is None, name
