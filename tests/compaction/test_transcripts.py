"""The conversation of a file: transcripts, lists of messages, bodies of requests."""

import json

import pytest

from contextgauge.compaction.carried.digest import carry
from contextgauge.compaction.formats import write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Carried, ContextCompaction, Message, Text
from contextgauge.compaction.reading.transcripts import read_conversation
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
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "kept"}],
    }
    value = lines(
        {"type": "response_item", "payload": {**message, "content": []}},
        {"type": "compacted", "payload": {"message": "", "replacement_history": [message]}},
        {"type": "response_item", "payload": message},
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


BARE = {
    "object": "chat.completion",
    "choices": [{"message": {"role": "assistant", "content": "ok"}}],
}


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({}, "this one mixes lines of anthropic and openai-chat"),
        (
            {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}]}},
            r"line 3 cannot be read: messages\[0\].content\[0\].tool_use_id",
        ),
    ],
)
def test_answers_of_another_api_in_lines_are_an_error_that_says_what_is_expected(
    last: dict[str, object], reason: str
) -> None:
    expected = "not a supported conversation: expected a transcript of Claude Code or Codex"
    with pytest.raises(ConfigError, match=f"{expected}.*; {reason}"):
        read_conversation(lines(claude("user", "go"), BARE, last))


def test_a_rollout_of_codex_that_begins_with_a_replaced_history_is_read() -> None:
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "kept"}],
    }
    value = lines(
        {"type": "compacted", "payload": {"message": "", "replacement_history": [message]}}
    )
    read = read_conversation(value)
    assert read.format == "openai-responses"
    assert [each.text for each in read.request.messages] == ["kept"]


def test_the_summary_in_a_replaced_history_is_no_users_turn() -> None:
    def item(text: str) -> dict[str, object]:
        return {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }

    history = [item("go"), item("Summary: never use tabs.")]
    payload = {"message": "Summary: never use tabs.", "replacement_history": history}
    first, second = read_conversation(
        lines({"type": "compacted", "payload": payload})
    ).request.messages
    assert first.is_user_turn
    assert not second.is_user_turn
    assert second.compaction is not None


def test_a_summary_in_parts_is_no_users_turn() -> None:
    content = [{"type": "text", "text": "Continued: never use tabs."}]
    summary = {**claude("user", ""), "isCompactSummary": True}
    summary["message"] = {"role": "user", "content": content}
    (first, second) = read_conversation(
        lines(
            claude("user", "before"),
            {"type": "system", "subtype": "compact_boundary"},
            summary,
            claude("user", "after"),
        )
    ).request.messages
    assert first.compaction is not None
    assert first.compaction.summary == "Continued: never use tabs."
    assert second.text == "after"


def test_a_summary_without_a_boundary_stands_for_what_was_before_it() -> None:
    value = lines(claude("user", "before"), claude("user", "So far.", isCompactSummary=True))
    (only,) = read_conversation(value).request.messages
    assert only.compaction is not None


def test_turns_that_were_taken_back_are_left_out() -> None:
    value = lines(
        claude("user", "A", uuid="1", parentUuid=None),
        claude("assistant", "done", uuid="2", parentUuid="1"),
        claude("user", "ABANDONED", uuid="3", parentUuid="2"),
        claude("assistant", "abandoned too", uuid="4", parentUuid="3"),
        claude("user", "REWOUND", uuid="5", parentUuid="2"),
    )
    assert [each.text for each in read_conversation(value).request.messages] == [
        "A",
        "done",
        "REWOUND",
    ]


def test_a_conversation_that_was_taken_back_to_its_start_begins_there() -> None:
    value = lines(
        claude("user", "ABANDONED", uuid="1", parentUuid=None),
        {"type": "system", "subtype": "compact_boundary", "uuid": "2", "logicalParentUuid": "1"},
        claude("user", "Summary", uuid="3", parentUuid="2", isCompactSummary=True),
        claude("user", "REWOUND", uuid="4", parentUuid=None),
    )
    assert [each.text for each in read_conversation(value).request.messages] == ["REWOUND"]


def test_results_of_parallel_calls_are_no_branch() -> None:
    def block(role: str, uuid: str, parent: str | None, **fields: object) -> dict[str, object]:
        message = {"role": role, "content": [fields]}
        return {"type": role, "uuid": uuid, "parentUuid": parent, "message": message}

    value = lines(
        claude("user", "go", uuid="1", parentUuid=None),
        block("assistant", "2", "1", type="tool_use", id="a", name="read", input={}),
        block("assistant", "3", "2", type="tool_use", id="b", name="read", input={}),
        block("user", "4", "2", type="tool_result", tool_use_id="a", content="x"),
        block("user", "5", "3", type="tool_result", tool_use_id="b", content="y"),
        claude("assistant", "done", uuid="6", parentUuid="5"),
    )
    assert len(read_conversation(value).request.messages) == 6


def test_links_that_lead_out_of_the_file_leave_nothing_out() -> None:
    value = lines(
        claude("user", "earlier", uuid="1", parentUuid="0"),
        claude("user", "later", uuid="9", parentUuid="8"),
    )
    assert len(read_conversation(value).request.messages) == 2


def answer(*content: object, **more: object) -> dict[str, object]:
    return {"type": "assistant", "message": {"role": "assistant", "content": content, **more}}


def test_what_the_api_compacted_inside_an_answer_is_left_out() -> None:
    usage = {"input_tokens": 100, "output_tokens": 5}
    summary = {"type": "compaction", "content": "So far: tabs."}
    text = {"type": "text", "text": "on it"}
    for parts in (
        (answer(summary, id="m", usage=usage), answer(text, id="m", usage=usage)),
        (answer(summary, text, id="m", usage=usage),),
    ):
        read = read_conversation(lines(claude("user", "never use tabs"), *parts))
        first, second = read.request.messages
        assert first.compaction is not None
        assert first.compaction.prose == "So far: tabs."
        assert not first.is_user_turn
        assert (second.role, second.text) == ("assistant", "on it")
        assert second.usage is not None
        written = write_messages(read.request.messages, read.format)
        assert [each["role"] for each in written if isinstance(each, dict)] == ["user", "assistant"]


def test_a_bare_answer_in_which_the_api_compacted_begins_the_conversation_again() -> None:
    content = [{"type": "compaction", "content": "So far."}, {"type": "text", "text": "on it"}]
    bare = {"type": "message", "role": "assistant", "content": content}
    messages = read_conversation(lines(claude("user", "go"), bare)).request.messages
    assert [each.text for each in messages] == ["So far.", "on it"]


def test_a_block_that_says_it_compacted_nothing_leaves_nothing_out() -> None:
    block = {"type": "compaction", "content": None}
    messages = read_conversation(lines(claude("user", "go"), answer(block))).request.messages
    assert [each.role for each in messages] == ["user", "assistant"]


def test_an_encrypted_compaction_stays_as_it_came() -> None:
    block = {"type": "compaction", "encrypted_content": "AbC"}
    read = read_conversation(lines(claude("user", "go"), answer(block)))
    assert write_messages(read.request.messages, read.format) == [
        {"role": "assistant", "content": [block]}
    ]


def test_the_lines_of_one_answer_count_once() -> None:
    def part(text: str) -> dict[str, object]:
        usage = {"input_tokens": 100, "output_tokens": 5}
        message = {
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "text", "text": text}],
            "usage": usage,
        }
        return {"type": "assistant", "message": message}

    messages = read_conversation(lines(claude("user", "go"), part("a"), part("b"))).request.messages
    assert [each.usage and each.usage.context for each in messages] == [None, None, 100]


def test_the_model_that_a_transcript_names_last_is_the_conversations() -> None:
    def by(model: str) -> dict[str, object]:
        return {
            "type": "assistant",
            "message": {"role": "assistant", "content": "ok", "model": model},
        }

    value = lines(claude("user", "go"), by("claude-a"), by("claude-b"), by("<synthetic>"))
    assert read_conversation(value).request.model == "claude-b"
    item = {"type": "message", "role": "user", "content": "go"}
    rollout = lines(
        {"type": "turn_context", "payload": {"model": "gpt-a"}},
        {"type": "response_item", "payload": item},
    )
    assert read_conversation(rollout).request.model == "gpt-a"


@pytest.mark.parametrize(
    ("model", "name"), [("gpt-4o", "openai-chat"), ("claude-haiku-4-5", "anthropic")]
)
def test_a_summary_in_the_body_of_a_request_is_text(model: str, name: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "go"}]}
    read = read_conversation(json.dumps(body).encode())
    assert read.format == name
    marker = Message("user", (ContextCompaction(1, 0, "So far.", 5, 100),))
    (written,) = write_messages([marker], read.format)
    assert "context_compaction" not in json.dumps(written)
    assert "So far." in json.dumps(written)


def test_lines_that_nest_too_deeply_are_no_lines_of_a_conversation() -> None:
    deep = b'{"a":' + b"[" * 100_000
    turn = b'{"type":"user","message":{"role":"user","content":"hi"}}'
    assert [each.text for each in read_conversation(deep + b"\n" + turn).request.messages] == ["hi"]
    for value in (deep, b'{\n"type": "x"}', b'{"type": "x"}\n{"a": 1}\n'):
        with pytest.raises(ConfigError, match="not a supported conversation") as error:
            read_conversation(value)
        assert ("the JSON cannot be read" in str(error.value)) == (value is deep)


def test_what_the_runtime_writes_of_local_commands_is_no_rule_of_the_user() -> None:
    caveat = "Caveat: The messages below were generated by the user while running local commands."
    for text in (
        caveat + " DO NOT respond.",
        f"<local-command-caveat>{caveat}</local-command-caveat>",
    ):
        history = History(
            [
                Message("user", (Text(text),), "u1"),
                Message("user", (Text("Never touch legacy.py."),), "u2"),
            ]
        )
        carried = carry(Carried(), history.active)
        turns = [each.text for each in carried.entries if each.speaker == "user"]
        assert turns == ["Never touch legacy.py."]
        assert history.turns == 1
