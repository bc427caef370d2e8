"""What each provider's messages are read into, and how changed ones are written."""

from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction.formats import (
    read_messages,
    write_messages,
)
from contextgauge.compaction.messages import (
    ApiUsage,
    Carried,
    ContextCompaction,
    DigestEntry,
    FileUse,
    FormatName,
    JsonSource,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    open_calls,
)
from contextgauge.errors import ConfigError

FORMATS: list[FormatName] = ["anthropic", "openai-chat", "openai-responses", "gemini", "plain"]

ANTHROPIC: Any = [
    {"role": "user", "content": "read a and b"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xxxx"},
            {"type": "text", "text": "both"},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
        ],
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 30,
            "output_tokens": 4,
        },
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "A"},
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "is_error": True,
                "content": [{"type": "text", "text": "B", "cache_control": {"type": "ephemeral"}}],
                "cache_control": {"type": "ephemeral"},
            },
        ],
    },
    {"role": "assistant", "content": [{"type": "compaction", "content": "earlier"}]},
]


def test_anthropic_messages_are_read() -> None:
    user, answer, results, compaction = read_messages(ANTHROPIC, "anthropic")
    assert user == Message("user", (Text("read a and b"),))
    assert user.is_user_turn
    assert answer.blocks == (
        Thinking("hm", 5),
        Thinking("", 4),
        Text("both"),
        ToolCall("t1", "read", '{"path":"a"}'),
        ToolCall("t2", "read", '{"path":"b"}'),
    )
    assert answer.usage == ApiUsage(60, 4)
    assert results == Message(
        "tool", (ToolResult("t1", (Text("A"),)), ToolResult("t2", (Text("B"),), is_error=True))
    )
    assert compaction.blocks == (Opaque("compaction", 41),)


def test_a_cleared_result_is_laid_over_its_other_fields() -> None:
    messages = read_messages(ANTHROPIC, "anthropic")
    one, two = messages[2].results
    blocks = (replace(one, content=(Text("gone"),)), replace(two, content=(Text("gone"),)))
    messages[2] = replace(messages[2], blocks=blocks)
    written = write_messages(messages, "anthropic")
    assert written[:2] == ANTHROPIC[:2]
    assert written[3] == ANTHROPIC[3]
    assert written[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "gone"},
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "is_error": True,
                "content": [{"type": "text", "text": "gone"}],
                "cache_control": {"type": "ephemeral"},
            },
        ],
    }


def test_an_opaque_block_in_the_place_of_another_is_written() -> None:
    messages = read_messages(ANTHROPIC, "anthropic")
    other: Any = {"type": "compaction", "content": "EARLIER"}
    block = Opaque("compaction", 41, JsonSource("anthropic", other))
    assert write_messages([replace(messages[3], blocks=(block,))], "anthropic") == [
        {"role": "assistant", "content": [other]}
    ]


def test_a_changed_role_is_written() -> None:
    (message,) = read_messages(ANTHROPIC[:1], "anthropic")
    assert write_messages([replace(message, role="assistant")], "anthropic") == [
        {"role": "assistant", "content": "read a and b"}
    ]


def test_parallel_results_of_another_format_become_one_message() -> None:
    chat: Any = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for each in ("c1", "c2")
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "user", "content": "next"},
    ]
    messages = read_messages(chat, "openai-chat")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert write_messages(messages, "anthropic")[2:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "2"},
            ],
        },
        {"role": "user", "content": "next"},
    ]
    contents: Any = write_messages(messages, "gemini")
    assert [part["functionResponse"] for part in contents[2]["parts"]] == [
        {"id": "c1", "name": "f", "response": {"output": "1"}},
        {"id": "c2", "name": "f", "response": {"output": "2"}},
    ]


def test_former_functions_of_chat_are_paired_by_name() -> None:
    chat: Any = [
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": "{}", "x": 1},
        },
        {"role": "function", "name": "f", "content": "1"},
    ]
    messages = read_messages(chat, "openai-chat")
    assert not open_calls(messages)
    assert messages[1].results[0].call_id == messages[0].calls[0].id
    assert write_messages(messages, "openai-chat") == chat
    call = replace(messages[0].calls[0], arguments='{"a":1}')
    assert write_messages([replace(messages[0], blocks=(call,))], "openai-chat") == [
        {**chat[0], "function_call": {"name": "f", "arguments": '{"a":1}', "x": 1}}
    ]


def test_reasoning_that_a_provider_takes_back_is_thinking() -> None:
    value: Any = [{"role": "assistant", "content": "yes", "reasoning_content": "because"}]
    (message,) = read_messages(value, "openai-chat")
    assert message.blocks == (Thinking("because", 7), Text("yes"))
    without = replace(message, blocks=message.blocks[1:])
    assert write_messages([without], "openai-chat") == [{"role": "assistant", "content": "yes"}]


RESPONSES: Any = [
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e" * 100},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "id": "fc1"},
    {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}", "id": "fc2"},
    {"type": "function_call_output", "call_id": "c1", "output": "1"},
    {"type": "function_call_output", "call_id": "c2", "output": "2"},
    {"type": "compaction", "id": "cmp", "encrypted_content": "opaque"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg",
        "status": "completed",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    },
]


def test_the_items_of_one_answer_are_one_message() -> None:
    messages = read_messages(RESPONSES, "openai-responses")
    assert [message.role for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
    ]
    assert messages[2].blocks == (
        Thinking("", 100),
        ToolCall("c1", "f", "{}"),
        ToolCall("c2", "f", "{}"),
    )
    assert [result.call_id for result in messages[3].results] == ["c1", "c2"]
    assert messages[4].blocks == (Opaque("compaction", 61),)


def test_a_changed_item_leaves_the_others_of_its_answer() -> None:
    messages = read_messages(RESPONSES, "openai-responses")
    call = messages[2].calls[1]
    blocks = (*messages[2].blocks[:2], replace(call, arguments='{"a":1}'))
    messages[2] = replace(messages[2], blocks=blocks)
    assert write_messages(messages, "openai-responses") == [
        *RESPONSES[:4],
        {**RESPONSES[4], "arguments": '{"a":1}'},
        *RESPONSES[5:],
    ]


GEMINI: Any = [
    {"role": "user", "parts": [{"text": "go"}]},
    {
        "role": "model",
        "parts": [
            {"text": "thoughts", "thought": True},
            {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": "sig"},
            {"functionCall": {"name": "g"}},
            {"functionCall": {"name": "f", "args": {"n": 2}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "f", "response": {"output": "first"}}},
            {"functionResponse": {"name": "f", "response": {"error": "second"}}},
            {"functionResponse": {"name": "g", "response": {"rows": [1, 2]}}},
        ],
    },
]


def test_calls_without_ids_are_paired_in_order_by_name() -> None:
    messages = read_messages(GEMINI, "gemini")
    assert messages[1].blocks[0] == Thinking("thoughts", 8)
    one, other, two = messages[1].calls
    assert len({one.id, two.id, other.id}) == 3
    assert messages[2].role == "tool"
    assert messages[2].results == [
        ToolResult(one.id, (Text("first"),), "f"),
        ToolResult(two.id, (Text("second"),), "f", is_error=True),
        ToolResult(other.id, (Text('{"rows":[1,2]}'),), "g"),
    ]
    assert not open_calls(messages)


def test_ids_go_on_where_a_conversation_is_read_in_parts() -> None:
    first = read_messages(GEMINI[:2], "gemini")
    results = read_messages(GEMINI[2:], "gemini", after=first)
    assert not open_calls([*first, *results])
    again = read_messages(GEMINI[1:2], "gemini", after=[*first, *results])
    ids = [call.id for message in [*first, *again] for call in message.calls]
    assert len(set(ids)) == 6


def test_a_changed_call_loses_its_signature_and_gets_no_id() -> None:
    messages = read_messages(GEMINI, "gemini")
    blocks = tuple(
        replace(block, arguments='{"n":9}') if isinstance(block, ToolCall) else block
        for block in messages[1].blocks
    )
    written: Any = write_messages([replace(messages[1], blocks=blocks)], "gemini")
    assert written[0]["parts"][1:3] == [
        {"functionCall": {"name": "f", "args": {"n": 9}}},
        {"functionCall": {"name": "g", "args": {"n": 9}}},
    ]
    result = replace(messages[2].results[1], content=(Text("gone"),))
    written = write_messages([replace(messages[2], blocks=(result,))], "gemini")
    assert written[0]["parts"] == [
        {"functionResponse": {"name": "f", "response": {"error": "gone"}}}
    ]


SEED_001: Any = {
    "role": "user",
    "content": [
        {
            "type": "context_compaction",
            "compaction_number": 1,
            "timestamp": "2024-01-15T10:30:00Z",
            "summary": "Original task was...",
            "messages_archived": 45,
            "context_size_before": 150_000,
        },
        {
            "type": "text",
            "text": "Context has been compacted. Continue based on the summary above.",
        },
    ],
}


def test_seed_001_s_stored_compaction_is_read_and_written() -> None:
    (message,) = read_messages([SEED_001], "plain")
    assert message.compaction == ContextCompaction(
        1, 1_705_314_600_000, "Original task was...", 45, 150_000
    )
    assert not message.is_user_turn
    new = replace(message, source=None)
    assert write_messages([new], "plain") == [SEED_001]


def test_the_time_of_a_compaction_is_one_that_can_be_written() -> None:
    far = {"secs_since_epoch": 10**17, "nanos_since_epoch": 0}
    marker = {**SEED_001["content"][0], "timestamp": far}
    with pytest.raises(ConfigError, match="timestamp: expected a time"):
        read_messages([{"role": "user", "content": [marker]}], "plain")


def test_a_compaction_is_stored_with_what_code_carries() -> None:
    looked = DigestEntry(1, "m2", "agent", "I looked", "OK?", 900)
    files = (FileUse("a.py", read=True), FileUse("b.py", changed=True))
    carried = Carried((DigestEntry(1, "m1", "user", "never push"), looked), files, 7)
    marker = ContextCompaction(2, 1_705_314_600_123, "whole", 3, 4, "prose", carried)
    message = Message("user", (marker,))
    written: Any = write_messages([message], "plain")
    assert written[0]["content"][0]["timestamp"] == "2024-01-15T10:30:00.123Z"
    assert read_messages(written, "plain") == [message]


@pytest.mark.parametrize("name", [each for each in FORMATS if each != "plain"])
def test_a_model_sees_the_summary_of_a_compaction(name: FormatName) -> None:
    message = Message("user", (ContextCompaction(1, 0, "the summary", 1, 1, "prose"),))
    (again,) = read_messages(write_messages([message], name), name)
    assert (again.role, again.text) == ("user", "the summary")


def test_thinking_and_opaque_items_are_left_out_of_other_formats() -> None:
    messages = read_messages(ANTHROPIC, "anthropic")
    for name in FORMATS[1:]:
        again = read_messages(write_messages(messages, name), name)
        kinds = {type(block) for message in again for block in message.blocks}
        assert kinds == {Text, ToolCall, ToolResult}


def test_calls_apart_from_the_parts_follow_a_change() -> None:
    value: Any = [
        {
            "role": "assistant",
            "content": "two",
            "toolCalls": [
                {"toolCallId": "1", "toolName": "f", "args": {}, "x": 1},
                {"toolCallId": "2", "toolName": "f", "args": {}},
            ],
        }
    ]
    (message,) = read_messages(value, "plain")
    text, one, _ = message.blocks
    assert isinstance(one, ToolCall)
    changed = replace(message, blocks=(text, replace(one, arguments='{"a":1}')))
    assert write_messages([changed], "plain") == [
        {
            "role": "assistant",
            "content": "two",
            "toolCalls": [{"toolCallId": "1", "toolName": "f", "args": {"a": 1}, "x": 1}],
        }
    ]


def test_an_id_of_the_caller_is_the_message_s() -> None:
    value: Any = [{"role": "user", "content": "a", "id": each} for each in ("m1", "m1", "", 5)]
    assert [message.id for message in read_messages(value, "plain")] == ["m1", "", "", ""]


@pytest.mark.parametrize("kind", [[], 5, None])
def test_a_later_output_of_any_kind_is_read(kind: Any) -> None:
    output = {"type": kind, "value": "text"}
    part = {"type": "tool-result", "toolCallId": "1", "toolName": "f", "output": output}
    (message,) = read_messages([{"role": "tool", "content": [part]}], "plain")
    assert message.results == [ToolResult("1", (Text("text"),), "f")]
    item = {"type": "computer_call_output", "call_id": "1", "output": output}
    (message,) = read_messages([item], "openai-responses")
    assert message.results[0].call_id == "1"
