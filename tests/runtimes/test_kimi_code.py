"""Kimi Code: the journals of a session's agents, as version 0.38.0 writes them; values made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.transcripts import read_conversation
from schemas.records import (
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextReset,
    SessionInfo,
)
from streams.edge.files.session_files import first_prompt
from streams.edge.files.session_reading import SessionReading
from streams.edge.files.watch import subagents_of
from tests.core.given import Given, every, one
from tests.library.privacy_kit import check_no_text
from tests.runtimes.runtimes_kit import (
    Body,
    Capture,
    boundaries,
    figures,
    records_of,
    sizes,
    without_texts,
    write,
)

SESSION = "session_5f2f0000-0000-4000-8000-00000000c0a1"
AGENTS = f".kimi-code/sessions/wd_repo_0123456789ab/{SESSION}/agents"
MAIN, SIDE = f"{AGENTS}/main/wire.jsonl", f"{AGENTS}/agent-0/wire.jsonl"
MODEL = "moonshot-ai/kimi-k2.7-code"
WORDS = "Meier's contract"
START_MS = 1_785_000_000_000
HEAD = {"type": "metadata", "protocol_version": "1.5", "created_at": START_MS}


def record(kind: str, at_s: int, **fields: Any) -> Body:
    return {"type": kind, "agentId": "main", **fields, "time": START_MS + at_s * 1_000}


def used(at_s: int, other: int, read: int, scope: str | None = "turn", created: int = 0) -> Body:
    usage = {
        "inputOther": other,
        "output": 20,
        "inputCacheRead": read,
        "inputCacheCreation": created,
    }
    return record("usage.record", at_s, model=MODEL, usage=usage, usageScope=scope)


def asked(at_s: int, origin: object, words: str = f"Read {WORDS}") -> Body:
    return record("turn.prompt", at_s, input=[{"type": "text", "text": words}], origin=origin)


COMPACTION = [
    record("full_compaction.begin", 20, source="auto"),
    used(30, 1_400, 40_000, "session"),
    record(
        "context.apply_compaction",
        44,
        summary=f"Work on {WORDS}",
        contextSummary="framed",
        compactedCount=30,
        tokensBefore=15_912,
        tokensAfter=654,
        summaryOutputTokens=937,
    ),
    record("full_compaction.complete", 45),
]
LINES = [
    HEAD,
    record("config.update", 1, environmentDisclosure={"cwd": "/repo"}, systemPrompt=WORDS),
    record("profile.bind", 1, modelAlias=MODEL),
    asked(2, {"kind": "system_trigger"}, "not a person"),
    asked(3, {"kind": "user"}),
    used(5, 600, 40_000, created=500),
    *COMPACTION,
    used(60, 9_000, 0),
    record("turn.ended", 61, reason="completed"),
]
CAPTURE: Capture = {MAIN: LINES, SIDE: [HEAD, used(10, 3_000, 4_000)]}


def test_sizes_are_the_usage_of_turns_and_no_window_is_guessed(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert {each.data.session_id for each in records} == {SESSION}
    assert sizes(records) == [(41_100, None), (9_000, None)]
    assert sizes(records, "agent-0") == [(7_000, None)]
    info = every(records, SessionInfo)[-1]
    assert (info.runtime, info.cwd) == ("kimi-code", "/repo")


def test_all_agents_of_a_session_come_with_its_main_journal(tmp_path: Path) -> None:
    home = write(tmp_path, CAPTURE)
    lines = [line for block in SessionReading(str(home / MAIN), {}).lines(10**6) for line in block]
    assert {line.thread_id for line in lines} == {None, "agent-0"}
    alone = write(tmp_path / "alone", {MAIN: LINES})
    assert subagents_of(str(alone / MAIN)) is None


def test_a_compaction_has_its_start_duration_summary_and_cost(tmp_path: Path) -> None:
    records = records_of(tmp_path, CAPTURE)
    assert one(records, CompactionStart).trigger_reason == "threshold_exceeded"
    (boundary,) = boundaries(records)
    # What the runtime counts leaves out the system prompt and tools in some versions.
    assert (boundary.pre_tokens, boundary.post_tokens) == (41_100, None)
    assert (boundary.duration_ms, boundary.trigger) == (24_000, "auto")
    assert one(records, CompactionSummary).summary == f"Work on {WORDS}"
    assert boundary.receipt is not None
    assert boundary.receipt.summary_output_tokens == 937


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        ({"contextSummary": "framed"}, "framed"),
        ({"summary": {"role": "user", "content": [{"type": "text", "text": "whole"}]}}, "whole"),
        ({}, None),
    ],
)
def test_a_summary_has_several_forms(fields: dict[str, object], summary: str | None) -> None:
    given = Given()
    given.take(HEAD, record("context.apply_compaction", 1, **fields), hint=SESSION)
    summaries = [each.summary for each in every(given.records, CompactionSummary)]
    assert summaries == ([] if summary is None else [summary])


def test_a_cancelled_compaction_failed() -> None:
    given = Given()
    begun = record("full_compaction.begin", 1, source="manual")
    given.take(HEAD, begun, record("full_compaction.cancel", 4), hint=SESSION)
    assert one(given.records, CompactionStart).trigger_reason == "manual"
    assert one(given.records, CompactionFailed).outcome == "failed"


def test_clearing_and_undoing_begin_again() -> None:
    given = Given()
    given.take(HEAD, used(1, 9, 9), record("context.undo", 2, count=1), hint=SESSION)
    given.take(used(3, 9, 8), hint=SESSION)
    given.take(record("context.clear", 3), hint=SESSION)
    assert [each.reason for each in every(given.records, ContextReset)] == ["rollback", "clear"]


@pytest.mark.parametrize(
    "body",
    [
        used(1, 9, 9, None),
        record("usage.record", 1, usage="none", usageScope="turn"),
        record("profile.bind", 1),
        asked(1, None),
    ],
)
def test_what_is_no_figure_of_the_conversation_gives_nothing(body: Body) -> None:
    given = Given()
    given.take(body, hint=SESSION)
    assert given.records == []


def test_a_record_without_a_time_is_of_an_unknown_one() -> None:
    given = Given()
    body = used(1, 9, 9) | {"time": 1.5}
    given.take(HEAD, body, hint=SESSION)
    assert {each.time_ms for each in given.records if each.kind == "context_reading"} <= {None}


def test_published_without_texts_the_figures_are_the_same(tmp_path: Path) -> None:
    shown = figures(records_of(tmp_path / "whole", CAPTURE))
    assert figures(without_texts(tmp_path, CAPTURE, WORDS)) == shown


def test_the_first_prompt_is_what_a_person_typed(tmp_path: Path) -> None:
    assert first_prompt(write(tmp_path, CAPTURE) / MAIN) == f"Read {WORDS}"
    older = asked(3, "user")
    assert first_prompt(write(tmp_path / "old", {MAIN: [HEAD, older]}) / MAIN) == f"Read {WORDS}"


def event(kind: str, at_s: int, key: str | None, **fields: Any) -> Body:
    own = {"type": kind, "stepUuid": "step1", **fields}
    return record("context.append_loop_event", at_s, event=own if key is None else {"uuid": key, **own})  # fmt: skip  # noqa: E501


def wrote(at_s: int, words: str, kind: str | None = "user", **own: Any) -> Body:
    origin = {} if kind is None else {"origin": {"kind": kind}}
    content = [{"type": "text", "text": words}]
    return record("context.append_message", at_s, message={"role": "user", "content": content, **origin, **own})  # fmt: skip  # noqa: E501


TURN = [
    HEAD,
    asked(1, {"kind": "user"}, "Read it"),
    wrote(2, "Read it", id="m1"),
    wrote(3, "<system-reminder>", "injection"),
    wrote(3, "An old answer.", role="assistant"),
    event("step.begin", 4, "step1"),
    event("content.part", 5, "p1", part={"type": "think", "think": "I look."}),
    event("content.part", 6, None, part={"type": "text", "text": "Now."}),
    event("tool.call", 7, "c1", toolCallId="t1", name="Read", args={"path": "a.py"}),
    event("tool.result", 8, "r1", toolCallId="t1", result={"output": "x = 1", "isError": False}),
    event("step.end", 9, "step1"),
]


def conversation(*bodies: Body) -> list[str]:
    read = read_conversation(b"\n".join(json.dumps(each).encode() for each in bodies))
    return [f"{each.role}: {each.text}" for each in read.request.messages]


def test_the_conversation_is_what_the_model_sees() -> None:
    assert conversation(*TURN) == [
        "user: Read it",
        "user: <system-reminder>",
        "assistant: ",
        "assistant: Now.",
        "assistant: ",
        "tool: ",
    ]
    after = conversation(*TURN, COMPACTION[2], wrote(50, "go on", None))
    assert after == ["user: framed", "user: go on"]
    other = record("context.apply_compaction", 44, summary={"content": "An older form."})
    assert conversation(*TURN, other) == ["user: An older form."]
    cleared = record("context.clear", 45)
    assert conversation(*TURN, cleared, wrote(50, "go on")) == ["user: go on"]


def test_what_was_taken_back_leaves_the_conversation_incomplete() -> None:
    reading = ConversationReading()
    for number, each in enumerate((*TURN, record("context.undo", 10, count=1))):
        reading.add(each, f"m{number}")
    assert reading.is_incomplete


def test_a_conversation_without_texts_has_none() -> None:
    spoken = [wrote(1, WORDS), event("content.part", 2, "p", part={"type": "text", "text": WORDS}),
              event("tool.result", 3, "r", toolCallId="t", result={"output": WORDS})]  # fmt: skip
    check_no_text([json.dumps(each).encode() for each in spoken])
