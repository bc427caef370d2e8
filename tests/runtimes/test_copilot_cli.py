"""Copilot CLI: a session's events, as its SDK describes them; all values are made up."""

from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.reading.lines import reduced
from contextgauge.normalise.runtimes import line_of
from schemas.records import (
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextEdit,
    ContextLimits,
    ContextReset,
    SessionInfo,
)
from streams.edge.files.session_files import first_prompt
from tests.core.given import Given, every, one
from tests.runtimes.runtimes_kit import (
    Body,
    Capture,
    boundaries,
    figures,
    records_of,
    shortened,
    sizes,
    without_texts,
    write,
)

SESSION = "0fae0000-0000-4000-8000-00000000c0a1"
MODEL = "claude-sonnet-4.6"
WORDS = "Meier's contract"
EVENTS = f".copilot/session-state/{SESSION}/events.jsonl"


def event(kind: str, at_s: int, agent: str | None = None, /, **data: Any) -> Body:
    """Return an event; `agent` is the subagent that it is of."""
    body = {
        "type": kind,
        "data": data,
        "id": f"00000000-0000-4000-8000-{at_s:012d}",
        "timestamp": f"2026-08-01T12:{at_s // 60:02}:{at_s % 60:02}.000Z",
        "parentId": None,
    }
    return body if agent is None else body | {"agentId": agent}


def parts(system: int, tools: int, conversation: int) -> dict[str, int]:
    return {
        "systemTokens": system,
        "toolDefinitionsTokens": tools,
        "conversationTokens": conversation,
    }


START = event(
    "session.start",
    0,
    sessionId=SESSION,
    version=1,
    producer="copilot-agent",
    copilotVersion="1.0.81",
    selectedModel=MODEL,
    context={"cwd": "/repo", "branch": "main"},
)
TURN = [
    event("user.message", 1, content=f"Read {WORDS}", transformedContent=f"<now>12</now> {WORDS}"),
    event("user.message", 2, content="Skill text", source="skill-pdf"),
    event(
        "assistant.message",
        3,
        messageId="m1",
        apiCallId="a1",
        model=MODEL,
        content=f"I read {WORDS}.",
        outputTokens=40,
        toolRequests=[{"toolCallId": "t1", "name": "view", "arguments": {"path": "a"}}],
    ),
    event("tool.execution_complete", 4, toolCallId="t1", success=True, result={"content": WORDS}),
    event("assistant.message", 5, "agent-1", messageId="s1", model="gpt-5-mini", content=WORDS),
]
BEFORE = parts(12_000, 18_000, 132_000)
AFTER = parts(12_000, 18_000, 9_000)
COMPACTED = [
    event(
        "session.compaction_start",
        60,
        **BEFORE,
        currentTokens=162_000,
        tokenLimit=200_000,
        trigger="threshold",
        model="gpt-5-mini",
    ),
    event(
        "session.compaction_complete",
        85,
        **AFTER,
        success=True,
        preCompactionTokens=162_000,
        postCompactionTokens=9_010,
        tokenLimit=200_000,
        trigger="threshold",
        summaryContent=f"Work on {WORDS}",
        compactionTokensUsed={
            "inputTokens": 130_000,
            "cacheReadTokens": 128_000,
            "outputTokens": 900,
            "duration": 24_000,
        },
    ),
]
END = [
    event("assistant.message", 90, messageId="m2", model=MODEL, content="Done.", outputTokens=12),
    event("session.shutdown", 91, shutdownType="routine", currentTokens=41_500, **AFTER),
]
CAPTURE: Capture = {EVENTS: [START, *TURN, *COMPACTED, *END]}


def test_sizes_are_those_of_compactions_and_of_the_end(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert {record.data.session_id for record in records} == {SESSION}
    assert sizes(records) == [(162_000, 200_000), (41_500, 200_000)]
    info = one(records, SessionInfo)
    assert (info.runtime, info.runtime_version, info.cwd) == ("copilot-cli", "1.0.81", "/repo")
    categories = [
        limits.categories for limits in every(records, ContextLimits) if limits.categories
    ]
    assert [(row.name, row.tokens) for row in categories[0]] == [
        ("System prompt", 12_000),
        ("Tool definitions", 18_000),
        ("Messages", 132_000),
    ]


def test_a_compaction_has_its_start_trigger_duration_summary_and_cost(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert one(records, CompactionStart).trigger_reason == "threshold_exceeded"
    (boundary,) = boundaries(records)
    assert (boundary.pre_tokens, boundary.post_tokens) == (162_000, 39_000)
    assert (boundary.trigger, boundary.duration_ms) == ("auto", 25_000)
    assert one(records, CompactionSummary).summary == f"Work on {WORDS}"
    assert boundary.receipt is not None
    assert boundary.receipt.summary_input_tokens == 130_000
    assert boundary.receipt.summary_cache_read_tokens == 128_000
    assert boundary.receipt.summary_output_tokens == 900


def test_no_window_is_taken_from_the_models_name() -> None:
    """Copilot gives a model a window of its own, which is often smaller."""
    given = Given()
    model = "claude-sonnet-5"
    started = START | {"data": START["data"] | {"selectedModel": model}}
    answer = event("assistant.message", 3, messageId="m1", model=model, content="Done.")
    given.take(started, answer, END[1], hint=SESSION)
    assert sizes(given.records) == [(41_500, None)]
    assert every(given.records, ContextLimits)[-1].window_source == "unknown"


def test_older_versions_name_neither_whole_nor_window() -> None:
    given = Given()
    given.take(START, TURN[2], event("session.compaction_start", 60, **BEFORE), hint=SESSION)
    given.take(
        event(
            "session.compaction_complete",
            70,
            success=True,
            preCompactionTokens=162_784,
            compactionTokensUsed={"input": 109_298, "cachedInput": 0, "output": 3_742},
        ),
        hint=SESSION,
    )
    assert sizes(given.records) == [(162_000, None)]
    (boundary,) = boundaries(given.records)
    assert (boundary.trigger, boundary.pre_tokens, boundary.post_tokens) == (None, 162_784, None)
    assert boundary.receipt is not None
    assert boundary.receipt.summary_input_tokens == 109_298


def test_a_compaction_without_any_figures_is_one() -> None:
    given = Given()
    given.take(START, TURN[2], event("session.compaction_start", 60), hint=SESSION)
    given.take(event("session.compaction_complete", 70, success=True), hint=SESSION)
    (boundary,) = boundaries(given.records)
    assert (boundary.pre_tokens, boundary.duration_ms, boundary.receipt) == (None, 10_000, None)
    assert sizes(given.records) == []


def test_a_failed_compaction_leaves_the_context_as_it_is() -> None:
    given = Given()
    given.take(START, TURN[2], COMPACTED[0], hint=SESSION)
    given.take(
        event("session.compaction_complete", 70, success=False, error="rate limited"), hint=SESSION
    )
    failed = one(given.records, CompactionFailed)
    assert (failed.outcome, failed.error) == ("failed", "rate limited")
    assert boundaries(given.records) == []


@pytest.mark.parametrize(("trigger", "shown"), [("manual", "manual"), ("model_switch", "auto")])
def test_a_trigger_is_a_persons_or_the_runtimes(trigger: str, shown: str) -> None:
    given = Given()
    given.take(
        START, event("session.compaction_complete", 70, success=True, trigger=trigger), hint=SESSION
    )
    assert boundaries(given.records)[0].trigger == shown


def test_what_a_subagent_does_is_of_its_own_chain() -> None:
    given = Given()
    given.take(START, *TURN[:3], hint=SESSION)
    given.take(
        event("session.compaction_start", 60, "agent-1", **BEFORE),
        event("session.compaction_complete", 61, "agent-1", success=True, **AFTER),
        event("assistant.message", 62, messageId="x", parentToolCallId="t1", content="old"),
        event("assistant.usage", 63, apiCallId="y", parentToolCallId="t1", inputTokens=9),
        event("session.usage_info", 64, "agent-1", currentTokens=1, tokenLimit=2),
        hint=SESSION,
    )
    assert sizes(given.records) == []
    assert [each.chain for each in boundaries(given.records)] == ["agent-1"]
    assert every(given.records, CompactionStart) == []


def test_events_that_only_the_sdk_gets_have_sizes_and_the_window() -> None:
    given = Given()
    given.take(
        START,
        event("session.usage_info", 1, currentTokens=11_591, tokenLimit=128_000, messagesLength=2),
        event(
            "assistant.usage",
            2,
            apiCallId="a1",
            model=MODEL,
            inputTokens=11_600,
            cacheReadTokens=11_000,
            cacheWriteTokens=500,
            outputTokens=7,
        ),
        event("assistant.usage", 3, apiCallId="a2", model=MODEL),
        hint=SESSION,
    )
    assert sizes(given.records) == [(11_600, 128_000)]


def test_models_folders_and_clearing_are_those_of_the_run() -> None:
    given = Given()
    given.take(
        START,
        event("session.resume", 1, selectedModel="gpt-5.4", context={"cwd": "/two"}),
        hint=SESSION,
    )
    given.take(event("session.context_changed", 2, cwd="/three"), hint=SESSION)
    given.take(event("session.model_change", 3, newModel="gpt-5.5"), hint=SESSION)
    given.take(event("session.model_change", 4), hint=SESSION)
    given.take(
        event("session.resume", 5),
        event("session.context_cleared", 6, messagesCleared=3),
        hint=SESSION,
    )
    assert every(given.records, SessionInfo)[-1].cwd == "/three"
    assert one(given.records, ContextReset).reason == "clear"
    assert given.chain(session_id=SESSION).model == "gpt-5.5"


def test_a_truncation_is_an_edit_that_names_the_window() -> None:
    given = Given()
    cut = {"tokenLimit": 64_000, "tokensRemovedDuringTruncation": 5_000, "performedBy": "Basic"}
    given.take(START, TURN[2], event("session.truncation", 9, **cut), hint=SESSION)
    assert one(given.records, ContextEdit).cleared_input_tokens == 5_000
    assert every(given.records, ContextLimits)[-1].window == 64_000


def test_a_truncation_that_removed_nothing_names_the_window_alone() -> None:
    given = Given()
    removed = {"tokensRemovedDuringTruncation": 0, "messagesRemovedDuringTruncation": 0}
    given.take(
        START, TURN[2], event("session.truncation", 9, tokenLimit=64_000, **removed), hint=SESSION
    )
    assert every(given.records, ContextEdit) == []
    assert every(given.records, ContextLimits)[-1].window == 64_000


def test_a_file_without_the_sessions_id_is_of_its_folders_session(tmp_path: Path) -> None:
    started = START | {"data": {"copilotVersion": "1.0.66"}}
    records = records_of(tmp_path, {EVENTS: [started, *TURN, *COMPACTED, *END]})
    assert {record.data.session_id for record in records} == {SESSION}


def test_an_older_file_lies_without_a_folder_of_its_own(tmp_path: Path) -> None:
    name = f".copilot/session-state/{SESSION}.jsonl"
    assert figures(records_of(tmp_path, {name: CAPTURE[EVENTS]})) == figures(
        records_of(tmp_path / "new", CAPTURE)
    )


def test_published_without_texts_or_shortened_the_figures_are_the_same(tmp_path: Path) -> None:
    shown = figures(records_of(tmp_path / "whole", CAPTURE))
    assert figures(without_texts(tmp_path / "a", CAPTURE, WORDS)) == shown
    long = [
        {**each, "data": each["data"] | {"more": WORDS * 300, "content": WORDS * 300}}
        for each in CAPTURE[EVENTS]
    ]
    assert figures(shortened(tmp_path / "b", {EVENTS: long}, 2_000)) == shown


def test_the_first_prompt_is_what_a_person_typed(tmp_path: Path) -> None:
    write(tmp_path, CAPTURE)
    assert first_prompt(tmp_path / EVENTS) == f"Read {WORDS}"
    injected = event("user.message", 1, content="x", source="autopilot")
    assert line_of(injected).prompt is not None
    assert line_of(injected).prompt(injected) is None  # type: ignore[misc]


USER = {"type": "user"}


@pytest.mark.parametrize(
    ("body", "rest"),
    [
        (START, {"type": "system", "subtype": "init", "model": MODEL, "cwd": "/repo"}),
        (event("session.resume", 1), None),
        (
            event("session.model_change", 1, newModel="m"),
            {"type": "system", "subtype": "init", "model": "m"},
        ),
        (event("session.context_cleared", 1), {"type": "conversation_reset"}),
        (TURN[0], USER | {"message": {"role": "user", "content": f"<now>12</now> {WORDS}"}}),
        (event("user.message", 1, content="a", parentToolCallId="t"), None),
        (event("user.message", 1), None),
        (
            TURN[2],
            {
                "type": "assistant",
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": f"I read {WORDS}."},
                        {"type": "tool_use", "id": "t1", "name": "view", "input": {"path": "a"}},
                    ],
                    "model": MODEL,
                },
            },
        ),
        (
            event("assistant.message", 1, toolRequests=[{"toolCallId": "c", "arguments": "x"}]),
            {
                "type": "assistant",
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "c", "name": None, "input": {"arguments": "x"}}
                    ],
                },
            },
        ),
        (event("assistant.message", 1, content="a", parentToolCallId="t"), None),
        (event("assistant.message", 1, content=""), None),
        (TURN[4], None),
        (
            TURN[3],
            USER
            | {
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": WORDS}],
                }
            },
        ),
        (
            event("tool.execution_complete", 1, toolCallId="t1", error={"message": "no"}),
            USER
            | {
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no"}],
                }
            },
        ),
        (event("tool.execution_complete", 1), None),
        (event("tool.execution_complete", 1, toolCallId="t1", parentToolCallId="t"), None),
        (
            COMPACTED[1],
            USER
            | {
                "isCompactSummary": True,
                "message": {"role": "user", "content": f"Work on {WORDS}"},
            },
        ),
        (event("session.compaction_complete", 1, success=False, summaryContent="a"), None),
        (event("session.compaction_complete", 1, success=True), None),
    ],
)
def test_a_conversation_is_reduced_to_claude_codes_form(body: Body, rest: Body | None) -> None:
    line = reduced(body)
    assert line == (None if rest is None else rest | {"timestamp": body["timestamp"]})
    assert line is None or reduced(line) == line
