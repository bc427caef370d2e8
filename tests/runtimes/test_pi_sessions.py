"""R32: sessions of pi, and of oh-my-pi and OpenClaw, which write the same entries."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextgauge.compaction.messages import Image, Text, Thinking, ToolCall, ToolResult
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import reduced
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.containers import Line, Scout
from contextgauge.delivery.shorten import fit
from contextgauge.normalise.pi.entries import stream_moment, usage_of
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.signals import Usage
from contextgauge.normalise.user_words import words_of
from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextLimits,
    ContextReading,
    ContextReset,
    Record,
    SessionInfo,
)
from streams.edge.files.names import is_no_transcript, name_of
from tests.core.given import Given, every, limits, one
from tests.library.privacy_kit import check_no_text, check_same_records, derived
from tests.runtimes.pi_captures import (
    ORIGIN,
    SESSION,
    Entry,
    answered,
    asked,
    compaction,
    entry,
    head,
    message,
    usage,
)

LOOK = {"type": "text", "text": "I look."}
CALL = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "make"}}
THOUGHT = {"type": "thinking", "thinking": "Look first.", "thinkingSignature": "sig"}
PICTURE = {"type": "image", "mimeType": "image/png", "data": "AAAA"}
SESSION_ENTRIES = (
    head(),
    entry("model_change", "m1", None, 10, provider="anthropic", modelId="claude-opus-5"),
    asked("a1", "m1", 11, "make the tests pass"),
    answered("a2", "a1", 12, usage(3, 170_000, 5_001), THOUGHT, LOOK, CALL, responseId="msg_1"),
    message("a3", "a2", 13, role="toolResult", toolCallId="t1", toolName="bash", isError=True,
            content=[{"type": "text", "text": "1 failed"}, PICTURE]),
    compaction("c1", "a3", 14, firstKeptEntryId="a2", fromHook=False,
               usage=usage(900, 170_000, 0, output=700)),
    answered("a4", "c1", 15, usage(3, 0, 31_000)),
)  # fmt: skip
"""As a person's first session is: a turn, a compaction, and what came after it."""


def taken(*entries: Entry) -> list[Record]:
    given = Given()
    given.take(*entries, hint=SESSION)
    return given.records


def sizes(records: list[Record]) -> list[int]:
    return [each.used_tokens for each in every(records, ContextReading)]


def values(*entries: Entry) -> list[bytes]:
    return [json.dumps(each).encode() for each in entries]


def conversation(*entries: Entry) -> list[str]:
    read = read_conversation(b"\n".join(values(*entries)))
    return [f"{each.role}: {each.text}" for each in read.request.messages]


def test_r32_a_session_has_sizes_a_boundary_and_its_own_cost() -> None:
    records = taken(*SESSION_ENTRIES)
    facts = one(records, SessionInfo)
    assert (facts.runtime, facts.runtime_version, facts.cwd) == ("pi", None, "/repo")
    assert sizes(records) == [175_004, 31_003]
    first, second = every(records, ContextReading)
    assert (first.cache_read_tokens, first.cache_creation_tokens) == (170_000, 5_001)
    assert (first.response_id, first.model, first.messages) == ("msg_1", "claude-opus-5", 2)
    assert second.messages == 1
    boundary = one(records, CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (175_024, "reported")
    assert (boundary.post_tokens, boundary.trigger, boundary.duration_ms) == (None, None, None)
    assert boundary.metadata == {
        "tokensBefore": 175_024,
        "firstKeptEntryId": "a2",
        "fromHook": False,
    }
    assert one(records, CompactionSummary).summary == "What was done."


def test_r32_what_a_summary_cost_is_the_compactions_own() -> None:
    (signal,) = line_of(SESSION_ENTRIES[5]).read(SESSION_ENTRIES[5])
    receipt = signal.receipt  # type: ignore[union-attr]  # a boundary
    assert receipt is not None
    assert (receipt.summary_input_tokens, receipt.summary_cache_read_tokens) == (170_900, 170_000)
    assert receipt.summary_output_tokens == 700


def test_r32_no_window_is_assumed_for_a_model_that_is_not_listed() -> None:
    records = taken(head(), answered("a1", None, 11, usage(90_000), model="a-local-model"))
    assert limits(one(records, ContextLimits)) == (None, "unknown")
    assert one(records, ContextReading).window is None


def test_r32_the_field_case_of_a_pi_session(shared: Path) -> None:
    lines = (shared / "field" / "pi_session.jsonl").read_text().splitlines()
    records = taken(*map(json.loads, lines))
    assert sizes(records) == [175_004, 31_003]
    assert one(records, CompactBoundary).pre_tokens == 175_004


def test_r32_an_answer_that_failed_is_no_reading() -> None:
    failed = answered("a1", None, 11, usage(0, output=0), stopReason="error")
    assert not every(taken(head(), failed), ContextReading)
    assert not every(taken(head(), message("a1", None, 11, role="assistant")), ContextReading)


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        (usage(100, 40, 3), Usage(100, 3, 40)),
        ({"input": 100, "cacheRead": 40, "output": 5, "totalTokens": 105}, Usage(60, None, 40)),
        ({"input": 10, "cacheRead": 40, "output": 5, "totalTokens": 15}, Usage(0, None, 40)),
        ({"input": 100, "cacheRead": 40, "output": 5}, Usage(100, None, 40)),
        ({"output": 5}, None),
    ],
)
def test_r07_cached_tokens_that_a_total_shows_to_be_inside_count_once(
    counts: Entry, wanted: Usage | None
) -> None:
    assert usage_of(counts) == wanted


def test_r32_sessions_from_before_entries_were_a_tree_are_read() -> None:
    entries = [
        {name: value for name, value in each.items() if name not in ("parentId", "version")}
        for each in SESSION_ENTRIES
    ]
    for each in entries[1:]:
        del each["id"]
    entries[0] |= {"provider": "anthropic", "modelId": "claude-opus-5"}
    entries[5]["firstKeptEntryIndex"] = 2
    records = taken(*entries)
    assert sizes(records) == [175_004, 31_003]
    assert one(records, CompactBoundary).metadata["firstKeptEntryIndex"] == 2
    # What is kept cannot be found: entries have no ids.
    assert conversation(*entries) == ["user: What was done.", "assistant: Answer a4."]


@pytest.mark.parametrize(
    "parent",
    [ORIGIN, f"/r/.pi/agent/sessions/--r--/2026-08-19T16-00-00-000Z_{ORIGIN}.jsonl",
     f"C:\\u\\sessions\\{ORIGIN}.jsonl"],
)  # fmt: skip
def test_r30_a_fork_begins_with_its_origins_entries(parent: str) -> None:
    records = taken(
        head(parentSession=parent),
        answered("a1", None, 5, usage(90_000)),
        compaction("c1", "a1", 6),
        answered("a2", "c1", 11, usage(40_000)),
    )
    assert one(records, SessionInfo).forked_from == ORIGIN
    copied, own = every(records, ContextReading)
    assert (copied.inherited, own.inherited) == (True, None)
    assert one(records, CompactBoundary).inherited is True


def test_r32_going_back_to_an_earlier_entry_leaves_the_size_unknown() -> None:
    given = Given()
    given.take(head(), answered("a1", None, 11, usage(90_000)), hint=SESSION)
    left = entry("branch_summary", "b1", "a1", 12, fromId="a9", summary="It did not work.")
    assert one(given.take(left, hint=SESSION), ContextReset).reason == "rollback"
    assert given.chain(session_id=SESSION).used is None


def test_r32_what_the_model_does_not_see_is_not_counted() -> None:
    records = taken(
        head(),
        entry("custom_message", "x1", None, 10, customType="plan", content="Plan.", display=True),
        message("b1", "x1", 11, role="bashExecution", command="ls", output="a"),
        message("b2", "b1", 11, role="bashExecution", command="ls", excludeFromContext=True),
        answered("a1", "b2", 12, usage(9_000)),
    )
    assert one(records, ContextReading).messages == 3


def test_a_model_that_is_chosen_is_the_main_chains() -> None:
    changed = entry("model_change", "m2", "a1", 12, provider="openai", modelId="gpt-4")
    given = Given()
    given.take(head(), answered("a1", None, 11, usage(90)), changed, hint=SESSION)
    assert given.chain(session_id=SESSION).model == "gpt-4"
    given.take(entry("model_change", "m3", "m2", 13), hint=SESSION)
    assert given.chain(session_id=SESSION).model == "gpt-4"


TITLE: Entry = {
    "type": "title",
    "v": 1,
    "title": "Tests",
    "updatedAt": "2026-08-19T16:10:00Z",
    "pad": "",
}


@pytest.mark.parametrize(
    ("entries", "runtime"),
    [
        ([TITLE, head()], "oh-my-pi"),
        ([head(title="Tests", titleSource="auto")], "oh-my-pi"),
        ([head(), entry("session_init", "i1", None, 10, systemPrompt="", task="")], "oh-my-pi"),
        ([head(), entry("model_change", "m1", None, 10, model="openai/gpt-4")], "oh-my-pi"),
        ([head(), entry("custom", "x", None, 10, customType="model-snapshot")], "openclaw"),
        ([head(), answered("a", None, 10, usage(0), provider="openclaw", model="m")], "openclaw"),
        ([head(), entry("custom", "x", None, 10, customType="plan")], "pi"),
    ],
)
def test_r32_who_writes_a_session_is_known_by_what_only_it_writes(
    entries: list[Entry], runtime: str
) -> None:
    assert every(taken(*entries), SessionInfo)[-1].runtime == runtime


def test_r32_openclaws_own_messages_are_no_responses() -> None:
    mirror = answered("a2", "a1", 12, usage(0), provider="openclaw", model="delivery-mirror")
    records = taken(head(), answered("a1", None, 11, usage(90)), mirror)
    assert {each.model for each in every(records, ContextLimits)} == {"claude-opus-5"}
    assert every(records, SessionInfo)[-1].runtime == "openclaw"


def test_r32_a_model_of_oh_my_pi_is_named_after_its_provider() -> None:
    given = Given()
    given.take(head(), entry("model_change", "m", None, 1, model="a/b/c"), hint=SESSION)
    given.take(entry("model_change", "n", "m", 1, model="a/small", role="smol"), hint=SESSION)
    assert given.chain(session_id=SESSION).model == "b/c"


def test_r27_a_cleared_session_of_oh_my_pi_is_a_reset() -> None:
    cleared = entry("reset_boundary", "r1", "a1", 12)
    records = taken(head(), answered("a1", None, 11, usage(90_000)), cleared)
    assert one(records, ContextReset).reason == "clear"
    assert conversation(head(), asked("a1", None, 11, "go"), entry("reset_boundary", "r", "a1", 12),
                        asked("a2", "r", 13, "on")) == ["user: on"]  # fmt: skip


def test_a_compaction_of_oh_my_pi_reports_the_size_after_it() -> None:
    records = taken(head(), compaction("c1", None, 12, tokensAfter=30_000, method="summary"))
    assert one(records, CompactBoundary).post_tokens == 30_000


def test_r01_a_head_after_a_title_names_the_session() -> None:
    scout = Scout()
    assert not scout.look(TITLE)
    assert scout.look(head())
    assert scout.container(None, None).hint == SESSION


def test_the_conversation_is_what_the_model_sees() -> None:
    before = conversation(*SESSION_ENTRIES[:5])
    assert before == ["user: make the tests pass", "assistant: I look.", "tool: "]
    # The compaction kept the answer and its result.
    assert conversation(*SESSION_ENTRIES) == [
        "user: What was done.",
        "assistant: I look.",
        "tool: ",
        "assistant: Answer a4.",
    ]


def test_blocks_of_messages_are_read() -> None:
    read = read_conversation(b"\n".join(values(*SESSION_ENTRIES[:5])))
    _, answer, result = read.request.messages
    assert [type(each) for each in answer.blocks] == [Thinking, Text, ToolCall]
    assert answer.usage is not None
    assert answer.usage.context == 175_004
    (block,) = result.blocks
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert [type(each) for each in block.content] == [Text, Image]


def test_what_a_compaction_retained_in_its_own_words_is_not_known() -> None:
    reading = ConversationReading()
    tail = [{"role": "user", "content": "go on"}]
    for each in (*SESSION_ENTRIES[:5], compaction("c1", "a3", 14, retainedTail=tail)):
        reading.add(each, "key")
    assert reading.is_incomplete
    # Without one, nothing but the summary is left.
    bare = compaction("c2", "c1", 15, tokensBefore=None)
    assert reading.add(bare, "key")
    assert not reading.is_incomplete


def test_the_conversation_is_that_of_the_branch_with_the_last_message() -> None:
    assert conversation(
        head(),
        asked("a1", None, 11, "go"),
        answered("a2", "a1", 12, usage(90), model=None),
        entry("custom", "x1", "a2", 12, customType="plan", data={}),
        asked("a3", "x1", 13, "the wrong way"),
        entry("branch_summary", "b1", "a2", 14, fromId="a3", summary="Not that way."),
        entry("custom_message", "x2", "b1", 14, customType="plan", content="Plan."),
        message("b2", "x2", 15, role="bashExecution", command="ls", output="a.py"),
        message("b3", "b2", 15, role="bashExecution", command="ls", excludeFromContext=True),
        message("x3", "b3", 16, role="custom", content=None),
        asked("a4", "x3", 17, "the other way"),
    ) == [
        "user: go",
        "assistant: Answer a2.",
        "user: Not that way.",
        "user: Plan.",
        "user: Ran `ls`\n\na.py",
        "user: ",
        "user: the other way",
    ]


def test_reducing_what_was_reduced_changes_nothing() -> None:
    for each in (*SESSION_ENTRIES, TITLE, entry("reset_boundary", "r", "a", 12)):
        line = reduced(each)
        assert line is None or reduced(line) == line


def test_a_title_is_what_a_person_wrote() -> None:
    titles = [line_of(each).prompt for each in SESSION_ENTRIES]
    prompts = [read and read(each) for read, each in zip(titles, SESSION_ENTRIES, strict=True)]
    assert [each for each in prompts if each] == [SESSION_ENTRIES[2]["message"]["content"]]


@pytest.mark.parametrize("text", ["make the tests pass", ""])
def test_r31_what_openclaw_writes_before_a_persons_words_is_not_theirs(text: str) -> None:
    known = 'Sender (untrusted metadata):\n```json\n{\n  "label": "tui"\n}\n```\n\n'
    info = 'Conversation info (untrusted metadata):\n```json\n{\n  "id": "1"\n}\n```\n\n'
    for before in (known, info + known, f"{known}[Sun 2026-03-08 22:03 GMT+9] "):
        assert [each.of_user for each in words_of([before + text])] == [text]
    quoted = f"Look: {text}\n{known}"
    assert words_of([quoted])[0].of_user == quoted


def test_what_lies_next_to_openclaws_sessions_is_no_transcript() -> None:
    folder = "/h/.openclaw/agents/main/sessions"
    assert name_of(f"{folder}/{SESSION}.jsonl").session == SESSION
    assert name_of(f"{folder}/{SESSION}-topic-7.jsonl").session == SESSION
    for other in ("trajectory", "checkpoint.11111111-2222-4333-8444-555555555555"):
        assert is_no_transcript(f"{folder}/{SESSION}.{other}.jsonl")


def streamed(kind: str, minute: int, role: str, **own: object) -> Entry:
    time_ms = 1_793_534_400_000 + minute * 60_000
    return {"type": kind, "message": {"role": role, "content": [], "timestamp": time_ms, **own}}


def ended(kind: str, **fields: object) -> Entry:
    return {"type": kind, "aborted": False, "willRetry": False, **fields}


def stream(begin: Entry, *ends: Entry) -> tuple[Entry, ...]:
    """What `pi --mode json` prints of a turn, a compaction, and another turn."""
    answer = {"model": "claude-opus-5", "provider": "anthropic", "api": "anthropic-messages"}
    return (
        head(),
        {"type": "agent_start"},
        streamed("message_start", 1, "user"),
        streamed("message_end", 1, "user"),
        streamed("message_start", 2, "assistant", **answer, usage=usage(3)),
        streamed("message_end", 2, "assistant", **answer, usage=usage(3, 170_000, 5_001)),
        {"type": "turn_end", "message": {"role": "assistant", "usage": usage(9)}},
        begin,
        *ends,
        streamed("message_end", 4, "assistant", **answer, usage=usage(3, 0, 31_000)),
    )


RESULT = {"summary": "What was done.", "firstKeptEntryId": "a2", "tokensBefore": 175_024,
          "estimatedTokensAfter": 9_000}  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "end", "trigger"),
    [
        ({"type": "auto_compaction_start", "reason": "overflow"},
         ended("auto_compaction_end", result=RESULT), "auto"),
        ({"type": "compaction_start", "reason": "manual"},
         ended("compaction_end", reason="manual", result=RESULT), "manual"),
        ({"type": "compaction_start", "reason": "threshold"},
         ended("compaction_end", reason="threshold", result=RESULT), "auto"),
        ({"type": "compaction_start", "reason": "other"},
         ended("compaction_end", reason="other", result=RESULT), None),
    ],
)  # fmt: skip
def test_r14_a_stream_has_the_start_of_a_compaction_and_its_trigger(
    begin: Entry, end: Entry, trigger: str | None
) -> None:
    records = taken(*stream(begin, end))
    assert sizes(records) == [175_004, 31_003]
    assert [each.messages for each in every(records, ContextReading)] == [2, 1]
    start, boundary = one(records, CompactionStart), one(records, CompactBoundary)
    reasons = {"auto": "threshold_exceeded", "manual": "manual", None: None}
    assert (start.trigger_reason, boundary.trigger) == (reasons[trigger], trigger)
    assert boundary.attempt_id is not None
    assert (boundary.pre_tokens, boundary.post_tokens) == (175_024, 9_000)
    read = [each for each in records if isinstance(each.data, ContextReading)]
    assert read[0].time_ms == 1_793_534_520_000


def test_r17_a_compaction_that_was_aborted_failed() -> None:
    begin = {"type": "compaction_start", "reason": "threshold"}
    end = ended("compaction_end", reason="threshold", aborted=True, errorMessage="Stopped.")
    records = taken(*stream(begin, end))
    assert one(records, CompactionFailed).error == "Stopped."
    assert not every(records, CompactBoundary)


def test_r28_a_message_without_a_time_has_none() -> None:
    assert line_of(streamed("message_end", 1, "user")).moment is not None
    assert stream_moment({"type": "message_end"}) is None


def test_a_message_start_of_anthropics_api_is_none_of_pi() -> None:
    started = {"type": "message_start", "message": {"role": "assistant", "id": "msg_1",
               "model": "claude-sonnet-5", "usage": {"input_tokens": 90_000}}}  # fmt: skip
    given = Given()
    assert sizes(given.take(started, hint=SESSION)) == [90_000]


WORDS = "a S3cret of mine"
SPOKEN: list[Entry] = [
    TITLE | {"title": WORDS},
    head(parentSession=ORIGIN, title=WORDS),
    entry("model_change", "m1", None, 10, provider="anthropic", modelId="claude-opus-5"),
    entry("model_change", "m2", "m1", 10, model="openai/gpt-4", role="default"),
    asked("a1", "m2", 11, WORDS),
    message("b2", "a1", 11, role="bashExecution", command=WORDS, excludeFromContext=True),
    answered("a2", "b2", 12, usage(3, 170_000, 5_001), {"type": "text", "text": WORDS}, CALL),
    answered("a3", "a2", 12, usage(0), provider="openclaw", model="gateway-injected"),
    compaction("c1", "a3", 13, summary=WORDS, tokensAfter=9, usage=usage(5), fromHook=True,
               details={"readFiles": [WORDS]}),
    entry("branch_summary", "d1", "c1", 14, fromId="a1", summary=WORDS),
    entry("reset_boundary", "r1", "d1", 15),
    answered("a4", "r1", 16, usage(3, 0, 31_000)),
]  # fmt: skip


def test_without_texts_the_records_are_the_same() -> None:
    streamed_lines = stream({"type": "compaction_start", "reason": "manual"},
                  ended("compaction_end", reason="manual", result=RESULT | {"summary": WORDS}),
                  {"type": "compaction_start", "reason": "manual"},
                  ended("compaction_end", errorMessage=WORDS))  # fmt: skip
    lines = values(*SPOKEN, *streamed_lines[1:])
    assert check_same_records(lines) > len(lines) // 2
    check_no_text(lines)


def test_shortened_lines_give_the_same_sizes() -> None:
    long: list[dict[str, Any]] = [each | {"padding": "x" * 3_000} for each in SPOKEN]
    lines = values(*long)
    shortened = [fit(Line("f", 1, line, len(line), None), 2_000) for line in lines]
    assert all(isinstance(each, bytes) and len(each) <= 2_000 for each in shortened)
    assert sizes(derived(each for each in shortened if isinstance(each, bytes))) == sizes(
        derived(lines)
    )
