"""The conversation of a file: transcripts, lists of messages, bodies of requests."""

import json

import pytest

from contextgauge.compaction.formats import write_messages
from contextgauge.compaction.transcripts import read_conversation
from contextgauge.errors import ConfigError


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in values)


def claude(role: str, text: str, **more: object) -> dict[str, object]:
    return {"type": role, "sessionId": "s", "message": {"role": role, "content": text}, **more}


def test_a_transcript_of_claude_code_gives_its_main_conversation() -> None:
    value = lines(
        {"type": "file-history-snapshot"},
        claude("user", "go"),
        claude("assistant", "aside", isSidechain=True),
        claude("assistant", "done", isSidechain=False),
    )
    read = read_conversation(value)
    assert read.format == "anthropic"
    assert [each.text for each in read.request.messages] == ["go", "done"]


def test_a_subagents_own_file_is_its_conversation() -> None:
    value = lines(
        claude("user", "go", isSidechain=True), claude("assistant", "ok", isSidechain=True)
    )
    assert len(read_conversation(value).request.messages) == 2


def test_what_was_compacted_is_left_out_and_its_summary_is_no_users_turn() -> None:
    value = lines(
        claude("user", "before"),
        {"type": "system", "subtype": "compact_boundary"},
        claude("user", "This session is continued: never use tabs.", isCompactSummary=True),
        claude("user", "after"),
    )
    first, second = read_conversation(value).request.messages
    assert first.compaction is not None
    assert first.compaction.number == 1
    assert first.compaction.prose == "This session is continued: never use tabs."
    assert not first.is_user_turn
    assert second.text == "after"


def test_a_rollout_of_codex_gives_its_items() -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    call = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    value = lines(
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {**item, "id": "old"}},
        {"type": "compacted", "payload": {"message": "Summary of it."}},
        *({"type": "response_item", "payload": each} for each in (item, call, output)),
    )
    read = read_conversation(value)
    first, *rest = read.request.messages
    assert read.format == "openai-responses"
    assert first.compaction is not None
    assert write_messages(rest, read.format) == [item, call, output]


def test_a_replaced_history_of_codex_is_what_its_model_sees() -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}
    value = lines(
        {"type": "response_item", "payload": {**kept, "content": []}},
        {"type": "compacted", "payload": {"message": "", "replacement_history": [kept]}},
        {"type": "response_item", "payload": kept},
    )
    assert [each.text for each in read_conversation(value).request.messages] == ["kept", "kept"]


def test_a_list_of_messages_is_written_back_as_one() -> None:
    value = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok"}]
    read = read_conversation(json.dumps(value).encode())
    assert read.rewrite(write_messages(read.request.messages, read.format)) == value


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            {
                "model": "claude-x",
                "system": "s",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "go"}],
            },
            "anthropic",
        ),
        (
            {"model": "gpt-x", "instructions": "s", "input": [{"role": "user", "content": "go"}]},
            "openai-responses",
        ),
        ({"contents": [{"role": "user", "parts": [{"text": "go"}]}]}, "gemini"),
    ],
)
def test_the_body_of_a_request_keeps_its_other_fields(body: dict[str, object], name: str) -> None:
    read = read_conversation(json.dumps(body).encode())
    assert read.format == name
    assert read.request.model == body.get("model")
    assert read.rewrite(write_messages(read.request.messages, read.format)) == body


@pytest.mark.parametrize("value", [b"", b"# A text\n\nof words", b"3", b'{"a": 1}', b"[1, 2]"])
def test_something_else_is_an_error_that_says_what_is_expected(value: bytes) -> None:
    with pytest.raises(ConfigError, match="expected"):
        read_conversation(value)
