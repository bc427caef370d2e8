"""R32: chats of Qwen Code: what their own records say, and their conversation."""

import json
from typing import Any

import pytest

from contextgauge.compaction.messages import Image, Text, Thinking, ToolCall, ToolResult
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import reduced
from contextgauge.compaction.reading.transcripts import read_conversation
from contextgauge.normalise.runtimes import line_of
from schemas.records import CompactBoundary, ContextReset
from tests.core.given import SESSION, Given, one
from tests.library.privacy_kit import check_no_text, check_same_records

Body = dict[str, Any]

OWN: Body = {"sessionId": SESSION, "cwd": "/repo", "version": "0.24.4"}


def line(kind: str, key: str, parent: str | None, **fields: object) -> Body:
    return {**OWN, "uuid": key, "parentUuid": parent, "type": kind, **fields}


def asked(key: str, parent: str | None, text: str, **fields: object) -> Body:
    return line("user", key, parent, message={"role": "user", "parts": [{"text": text}]}, **fields)


def answered(key: str, parent: str, size: int, *parts: Body, **fields: object) -> Body:
    own = {"role": "model", "parts": list(parts) or [{"text": f"Answer {key}."}]}
    usage = {"promptTokenCount": size, "candidatesTokenCount": 42}
    known = {"model": "qwen3.8", "usageMetadata": usage, "contextWindowSize": 262_144}
    return line("assistant", key, parent, message=own, **known | fields)


def compressed(key: str, parent: str, *kept: Body, **info: object) -> Body:
    counts = {"originalTokenCount": 210_042, "newTokenCount": 31_024, "compressionStatus": 1}
    history = [
        {"role": "user", "parts": [{"text": "What was done."}]},
        {"role": "model", "parts": [{"text": "Got it."}]},
        *kept,
    ]
    payload = {"info": counts | info, "compressedHistory": history}
    return line("system", key, parent, subtype="chat_compression", systemPayload=payload)


def own_record(key: str, parent: str, subtype: str, **payload: object) -> Body:
    return line("system", key, parent, subtype=subtype, systemPayload=payload)


CALL = {"functionCall": {"id": "c1", "name": "read", "args": {"path": "a.py"}}}
RESULT = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "x = 1"}}}
BEFORE = (
    asked("a1", None, "make the tests pass", provenance="real_user"),
    answered("a2", "a1", 210_000, {"text": "Look first.", "thought": True}, CALL),
    line("tool_result", "a3", "a2", message={"role": "user", "parts": [RESULT]}),
)


@pytest.mark.parametrize(
    ("reason", "trigger"),
    [("token_limit", "auto"), ("image_overflow", "auto"), ("manual", "manual"), ("other", None)],
)
def test_r24_a_compression_says_what_triggered_it(reason: str, trigger: str | None) -> None:
    given = Given()
    given.take(*BEFORE)
    boundary = one(given.take(compressed("c1", "a3", triggerReason=reason)), CompactBoundary)
    assert (boundary.trigger, boundary.pre_tokens) == (trigger, 210_042)


def test_r19_a_size_that_the_runtime_estimated_is_not_the_contexts() -> None:
    given = Given()
    given.take(*BEFORE)
    estimated = compressed("c1", "a3", originalTokenCountIsEstimated=True)
    boundary = one(given.take(estimated), CompactBoundary)
    assert (boundary.pre_tokens, boundary.pre_tokens_source) == (210_000, "last_reading")


def test_r32_what_a_person_took_back_leaves_the_size_unknown() -> None:
    given = Given()
    given.take(*BEFORE)
    rewound = given.take(own_record("r1", "a1", "rewind", truncatedCount=2))
    assert one(rewound, ContextReset).reason == "rollback"
    assert given.chain().used is None


def test_a_model_that_is_chosen_is_the_main_chains() -> None:
    given = Given()
    given.take(*BEFORE)
    given.take(own_record("m1", "a3", "session_model", modelId="gpt-4", authType="openai"))
    assert given.chain().model == "gpt-4"
    given.take(own_record("m2", "m1", "session_model"))
    assert given.chain().model == "gpt-4"


def conversation(*lines: Body) -> list[str]:
    read = read_conversation(b"\n".join(json.dumps(each).encode() for each in lines))
    return [f"{each.role}: {each.text}" for each in read.request.messages]


def test_the_conversation_is_what_the_model_sees() -> None:
    read = read_conversation(b"\n".join(json.dumps(each).encode() for each in BEFORE))
    person, answer, result = read.request.messages
    assert (person.text, person.is_user_turn) == ("make the tests pass", True)
    assert [type(each) for each in answer.blocks] == [Thinking, ToolCall]
    assert answer.usage is not None
    assert (answer.usage.context, read.window_tokens) == (210_000, 262_144)
    (block,) = result.blocks
    assert isinstance(block, ToolResult)
    assert (block.call_id, block.text) == ("c1", "x = 1")


def test_results_pictures_and_what_has_no_id_are_read() -> None:
    call = {"functionCall": {"name": "list"}}
    result = {"functionResponse": {"name": "list", "response": {"names": ["a.py"]}}}
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    lines = (
        asked("a1", None, "go"),
        answered("a2", "a1", 90, call, model=None, usageMetadata=None),
        line("tool_result", "a3", "a2", message={"role": "user", "parts": [result, picture]}),
    )
    read = read_conversation(b"\n".join(json.dumps(each).encode() for each in lines))
    *_, answer, results = read.request.messages
    assert [type(each) for each in answer.blocks] == [ToolCall]
    assert [type(each) for each in results.blocks] == [ToolResult, Image]
    assert isinstance(results.blocks[0], ToolResult)
    assert results.blocks[0].text == '{"names":["a.py"]}'
    assert isinstance(read.request.messages[0].blocks[0], Text)


def test_what_the_runtime_writes_in_the_users_role_is_no_persons() -> None:
    lines = (asked("a1", None, "go"), asked("a2", "a1", "A task ended.", provenance="system"))
    read = read_conversation(b"\n".join(json.dumps(each).encode() for each in lines))
    assert [each.is_user_turn for each in read.request.messages] == [True, False]
    prompts = [line_of(each).prompt for each in lines]
    assert [read and read(each) for read, each in zip(prompts, lines, strict=True)] == [
        [{"text": "go"}],
        None,
    ]


def test_a_title_is_what_was_shown_of_a_message() -> None:
    shown = asked("a1", None, "the file's text", systemPayload={"displayText": "read @a.py"})
    read = line_of(shown).prompt
    assert read is not None
    assert read(shown) == "read @a.py"


def test_a_compression_leaves_its_summary() -> None:
    after = asked("a4", "c1", "go on")
    assert conversation(*BEFORE, compressed("c1", "a3"), after) == [
        "user: What was done.",
        "user: go on",
    ]
    assert conversation(*BEFORE, own_record("n1", "a3", "ui_telemetry"), after)[0].endswith("pass")
    assert conversation(*BEFORE, own_record("n1", "a3", "chat_compression"))[0].endswith("pass")


def test_what_a_compression_preserved_is_not_known() -> None:
    reading = ConversationReading()
    preserved = {"role": "user", "parts": [{"text": "the last words"}]}
    for number, each in enumerate(
        (*BEFORE, compressed("c1", "a3", preserved, originalTokenCount=None))
    ):
        reading.add(each, str(number))
    assert reading.is_incomplete
    reading.add(compressed("c2", "c1"), "5")
    assert not reading.is_incomplete


def test_reducing_what_was_reduced_changes_nothing() -> None:
    bare = line("tool_result", "a4", "a3", provenance="tool_result")
    for each in (*BEFORE, bare, compressed("c1", "a3"), line("user", "u", None)):
        once = reduced(each)
        assert once is None or reduced(once) == once


WORDS = "a S3cret of mine"


def test_without_texts_the_records_are_the_same() -> None:
    spoken = (
        asked("a1", None, WORDS, systemPayload={"displayText": WORDS}),
        answered("a2", "a1", 210_000, {"text": WORDS}),
        compressed("c1", "a2", {"role": "user", "parts": [{"text": WORDS}]}, triggerReason="manual",
                   warning=WORDS),
        own_record("m1", "c1", "session_model", modelId="gpt-4", baseUrl=WORDS),
        answered("a4", "m1", 33_000),
    )  # fmt: skip
    lines = [json.dumps(each).encode() for each in spoken]
    assert check_same_records(lines) > 4
    check_no_text(lines)
