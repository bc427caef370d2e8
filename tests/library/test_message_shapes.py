"""Messages of every kind, in the orders of real streams and transcripts, made by the simulator.

The constructed samples next to the project hold the same kinds: they must give the same records.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from contextgauge.normalise.signals import InputMessage
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
    Json,
    Record,
    SessionInfo,
)
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import DialectName
from streams.flow.simulator.claude_stream import NEUTRAL_FRAMES, context_frame
from streams.flow.simulator.session import SimulatedChain
from tests.captures import MODEL, SESSION, Recording
from tests.core.given import RULES, Given, any_message, every, kinds, one, system

LARGE = 1_000_000
AUTO_COMPACTION = [
    *("session_info", "context_limits", "context_reading", "context_warning", "context_limits"),
    *("compaction_start", "compact_boundary", "compaction_summary", "context_reading"),
    "compaction_complete",
]
FAILED_THEN_SUCCEEDED = [
    *("session_info", "context_limits", "compaction_start", "compaction_failed"),
    *("context_reading", "context_warning", "context_limits", "compaction_start"),
    *("compact_boundary", "compaction_summary", "context_reading", "compaction_complete"),
]
MANUAL_COMPACTION = [
    *("compaction_start", "session_info", "context_limits", "compact_boundary"),
    *("compaction_summary", "context_limits"),
]
IN_TRANSCRIPT = [
    *("session_info", "context_limits", "context_reading", "context_warning", "compact_boundary"),
    *("compaction_summary", "context_reading", "compaction_complete", "context_warning"),
]


def derived(lines: Iterable[bytes], hint: str = SESSION) -> list[Record]:
    deriver = Deriver(RULES)
    records: list[Record] = []
    for value in lines:
        taken = deriver.derive(InputMessage(value, hint))
        assert taken.dead is None, value
        records.extend(taken.records)
    return records


def stream(**plan: Any) -> Recording:
    return Recording("claude-stream", window=LARGE, **plan)


def test_an_automatic_compaction_in_a_stream() -> None:
    recording = stream().begin().respond(167_003).end_turn().begin().compact()
    records = derived(recording.respond(28_404).end_turn().take())
    assert kinds(records) == AUTO_COMPACTION
    first, second = every(records, ContextReading)
    assert (first.used_tokens, first.used_percent, first.window_source) == (
        167_003, 83.5, "catalog"
    )  # fmt: skip
    assert one(records, ContextWarning).thresholds_crossed == (10, 20, 30, 40, 50, 60, 70, 80)
    assert [value.window_source for value in every(records, ContextLimits)] == [
        "catalog",
        "runtime",
    ]
    start, bound = one(records, CompactionStart), one(records, CompactBoundary)
    assert start.used_tokens == 167_003
    # Whether the PreCompact hook is seen is up to the stream.
    assert start.trigger_reason in {None, "threshold_exceeded"}
    assert (bound.attempt_id, bound.trigger, bound.pre_tokens) == (
        start.attempt_id, "auto", 167_412
    )  # fmt: skip
    assert (bound.duration_ms, bound.duration_source, bound.number) == (24_100, "reported", 1)
    assert (bound.messages_since_last, bound.post_tokens) == (1, 5_210)
    assert one(records, CompactionSummary).summary.startswith("This session is being continued")
    assert (second.used_tokens, second.window, second.messages) == (28_404, LARGE, 1)
    complete = one(records, CompactionComplete)
    assert (complete.tokens_before, complete.tokens_after) == (167_412, 28_404)


def test_a_manual_compaction_in_a_stream() -> None:
    records = derived(stream().compact(is_manual=True, pre_tokens=90_500).take())
    assert kinds(records) == MANUAL_COMPACTION
    start, bound = one(records, CompactionStart), one(records, CompactBoundary)
    assert (start.used_tokens, start.context_used_percent) == (None, None)
    assert start.trigger_reason == "manual"
    assert (bound.attempt_id, bound.trigger, bound.duration_ms) == (
        start.attempt_id, "manual", 24_100
    )  # fmt: skip
    assert (bound.pre_tokens, bound.messages_since_last) == (90_500, 0)


def test_a_manual_compaction_that_failed() -> None:
    records = derived(stream().compact("failed", is_manual=True).begin().take())
    assert kinds(records)[:2] == ["compaction_start", "compaction_failed"]
    failure = one(records, CompactionFailed)
    assert failure.attempt_id == one(records, CompactionStart).attempt_id
    assert (failure.outcome, failure.error) == ("failed", "too_few_groups")


def test_an_automatic_compaction_that_failed_and_then_succeeded() -> None:
    recording = stream().begin().compact("failed").respond(68_504).end_turn().begin()
    records = derived(recording.compact(pre_tokens=70_633).respond(23_304).end_turn().take())
    assert kinds(records) == FAILED_THEN_SUCCEEDED
    first, second = every(records, CompactionStart)
    assert one(records, CompactionFailed).attempt_id == first.attempt_id
    bound = one(records, CompactBoundary)
    assert (bound.attempt_id, bound.pre_tokens) == (second.attempt_id, 70_633)
    assert (second.used_tokens, one(records, CompactionComplete).tokens_after) == (68_504, 23_304)


def test_a_compaction_of_an_early_version() -> None:
    records = derived(stream().compact("unmarked", pre_tokens=155_201, duration_ms=9_000).take())
    assert kinds(records) == ["compaction_start", "compact_boundary", "compaction_summary"]
    bound = one(records, CompactBoundary)
    assert (bound.pre_tokens, bound.post_tokens, bound.duration_ms) == (155_201, None, None)
    assert bound.attempt_id == one(records, CompactionStart).attempt_id


@pytest.mark.parametrize(
    ("trigger", "messages", "name"), [("auto", 1, "main"), ("manual", 2, "main"), ("auto", 1, None)]
)
def test_a_compaction_in_a_transcript(trigger: str, messages: int, name: str | None) -> None:
    recording = Recording("claude-transcript")
    chain = None if name == "main" else recording.subagent
    recording.prompt(chain=chain).respond(162_003, tool=True, output=212, chain=chain)
    recording.compact(is_manual=trigger == "manual", chain=chain)
    if trigger == "manual":
        recording.prompt()
    records = derived(recording.respond(28_404, chain=chain).take())
    of_main = name == "main"
    assert kinds(records) == [kind for kind in IN_TRANSCRIPT if of_main or kind != "context_limits"]
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.attempt_id, bound.duration_ms) == (trigger, None, 24_100)
    assert (bound.messages_since_last, bound.chain) == (3, "main" if of_main else "a1b2c3d4")
    first, second = every(records, ContextReading)
    assert (first.used_tokens, first.messages, first.messages_total) == (162_003, 2, 2)
    assert (second.used_tokens, second.messages, second.messages_total) == (
        28_404, messages, 3 + messages
    )  # fmt: skip
    assert (first.previous_output_tokens, second.previous_output_tokens) == (None, 212)
    assert one(records, SessionInfo).chain == "main"


def test_a_response_of_several_lines_is_one_reading() -> None:
    for dialect, fields in (
        ("claude-stream", {}),
        ("claude-stream", {"is_partial": True}),
        ("claude-transcript", {}),
    ):
        recording = Recording(dialect, **fields)  # type: ignore[arg-type]
        for tokens in (50_788, 60_010, 162_003):
            lines = recording.respond(tokens, tool=True).take()
            assert len(lines) > 2
            assert one(derived(lines), ContextReading).used_tokens == tokens


def test_the_size_of_several_calls_is_that_of_the_last() -> None:
    lines = stream().respond(48_504, read=48_000, with_iterations=True).take()
    assert one(derived(lines), ContextReading).used_tokens == 48_504
    assert json.loads(lines[-1])["message"]["usage"]["cache_read_input_tokens"] == 96_000


def test_a_subagents_response_is_its_own_chains() -> None:
    recording = stream()
    lines = recording.prompt(chain=recording.subagent).respond(
        12_004, chain=recording.subagent
    ).take()  # fmt: skip
    reading = one(derived(lines), ContextReading)
    assert (reading.used_tokens, reading.chain) == (12_004, "a1b2c3d4")


def test_a_compaction_within_a_response() -> None:
    records = derived(stream().respond(50_788).compact("server").respond(23_000).take())
    bound = one(records, CompactBoundary)
    assert (bound.trigger, bound.pre_tokens, bound.pre_tokens_source) == (
        None, 50_788, "last_reading"
    )  # fmt: skip
    assert one(records, CompactionComplete).tokens_saved == 27_788
    of_openai = Recording("openai-responses", model="gpt-5.2").compact().respond(12_000)
    assert one(derived(of_openai.take()), CompactBoundary).trigger is None


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "gemini", "codex"])
def test_another_providers_cached_tokens_are_inside_its_input(dialect: DialectName) -> None:
    lines = Recording(dialect, model="gpt-4o").respond(12_000, read=9_000).take()
    reading = one(derived(lines), ContextReading)
    assert (reading.used_tokens, reading.input_tokens, reading.cache_read_tokens) == (
        12_000,
        3_000,
        9_000,
    )


def test_edits() -> None:
    edits: tuple[dict[str, Json], ...] = (
        {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 15_000},
        {"type": "clear_thinking_20251015", "cleared_input_tokens": 2_100},
    )
    lines = stream().respond(60_010, edits=edits).take()
    assert one(derived(lines), ContextEdit).cleared_input_tokens == 17_100
    recording = Recording("claude-transcript").respond(90_000).noise(40)
    first, *_ = every(derived(recording.take()), ContextEdit)
    assert first.cleared_input_tokens == 18_000


def test_a_reset_and_an_exhaustion() -> None:
    assert one(derived(stream().reset().take()), ContextReset).reason == "clear"
    assert kinds(derived(Recording("claude-transcript").reset().take()))[-1] == "context_reset"
    ended = stream().end_turn("prompt_too_long").take()
    assert one(derived(ended), ContextExhausted).reason == "prompt_too_long"


@pytest.mark.parametrize("is_frame", [False, True])
def test_context_usage(*, is_frame: bool) -> None:
    recording = stream().begin().respond(122_300)
    bodies = recording.bodies()
    if is_frame:
        chain = SimulatedChain(MODEL, 15_000, new_tokens=122_300)
        bodies.append({**context_frame(chain, LARGE), "session_id": SESSION})
    else:
        answers = recording.noise(30).bodies()
        bodies.append(next(body for body in answers if body["type"] == "control_response"))
    usage = every(Given().take(*bodies, hint=SESSION), ContextLimits)[-1]
    assert (usage.total_tokens, usage.window, usage.effective_window) == (122_300, LARGE, LARGE)
    assert usage.categories is not None
    assert {"Messages", "Free space"} <= {row.name for row in usage.categories}


def test_a_fallback_is_the_models() -> None:
    fallback = system("model_refusal_fallback", fallback_model="claude-sonnet-5", scope="session")
    assert one(Given().take(fallback, hint=SESSION), ContextLimits).model == "claude-sonnet-5"


@pytest.mark.parametrize("frame", NEUTRAL_FRAMES)
def test_messages_without_a_figure_give_no_record(frame: dict[str, Json]) -> None:
    given = Given()
    assert given.take({**frame, "session_id": SESSION}) == []
    assert given.sessions() == {}


def test_noise_gives_no_record() -> None:
    quiet = ("rate_limit_event", "system")
    bodies = [body for body in stream().noise(30).bodies() if body["type"] in quiet]
    assert {body.get("subtype") for body in bodies} == {None, "status", "task_progress"}
    assert Given().take(*bodies) == []
    request = {"subtype": "get_context_usage"}
    assert Given().take(any_message("control_request", request=request)) == []


SEQUENCES = {
    "stream_auto_compaction": AUTO_COMPACTION,
    "stream_auto_failed_then_success": FAILED_THEN_SUCCEEDED,
    "stream_legacy_0_1": ["compaction_start", "compact_boundary"],
    "stream_manual_compact": MANUAL_COMPACTION,
    "stream_manual_compact_failed": [
        *("compaction_start", "compaction_failed", "session_info", "context_limits"),
        "context_limits",
    ],
    "transcript_auto": IN_TRANSCRIPT,
    "transcript_manual": IN_TRANSCRIPT,
    "transcript_subagent_agent-a1b2c3d4": [
        kind for kind in IN_TRANSCRIPT if kind != "context_limits"
    ],
}
"""Kinds of the records of each constructed sequence."""

SIZES = {
    "assistant_text": 50_788,
    "assistant_iterations": 48_504,
    "assistant_server_compaction": 23_000,
    "assistant_context_edits": 60_010,
    "assistant_subagent": 12_004,
    "stream_message_start": 50_788,
    "transcript_assistant_line1": 162_003,
}
"""Size that each constructed response alone reports."""

SILENT = (
    *("api_retry", "background_tasks_changed", "control_request_get_context_usage"),
    *("hook_input_postcompact", "hook_input_sessionstart_compact"),
    *("hook_input_sessionstart_resume", "hook_response_sessionstart_compact"),
    *("rate_limit_event", "status_requesting", "task_notification", "task_progress"),
    *("task_started", "task_updated", "thinking_tokens", "user_local_command_stdout"),
)
"""Constructed messages without a figure."""


@pytest.mark.shared
def test_constructed_samples_give_the_same_kinds_of_records(shared: Path) -> None:
    folder = shared / "samples"
    for name, expected in SEQUENCES.items():
        lines = (folder / "sequences" / f"{name}.jsonl").read_bytes().splitlines()
        assert kinds(derived(lines, "file")) == expected, name
    samples = {
        path.stem: json.loads(path.read_bytes())["message"] for path in folder.glob("*.json")
    }
    assert len(samples) >= 54
    for name, message in samples.items():
        records = Given().take(message, hint=SESSION)
        assert not (name in SILENT and records), name
        if name in SIZES:
            assert one(records, ContextReading).used_tokens == SIZES[name], name
