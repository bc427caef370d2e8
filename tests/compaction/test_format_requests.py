"""Errors, whole requests and answers of each provider, and which format a value is in."""

from typing import Any

import pytest

from contextgauge.compaction.formats import (
    detect,
    read_answer,
    read_messages,
    read_request,
    write_messages,
)
from contextgauge.compaction.messages import ApiUsage, FormatName
from contextgauge.errors import ConfigError
from tests.compaction.test_formats import ANTHROPIC, GEMINI, RESPONSES, SEED_001


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("anthropic", {}, "messages: expected an array, not an object"),
        ("anthropic", ["x"], "messages[0]: expected an object, not the text 'x'"),
        (
            "anthropic",
            [{"role": "tool", "content": ""}],
            "messages[0].role: expected one of user, assistant, system, not the text 'tool'",
        ),
        (
            "anthropic",
            [ANTHROPIC[0], {"role": "user", "content": [{"type": "text"}]}],
            "messages[1].content[0].text: expected text, not null or nothing",
        ),
        (
            "anthropic",
            [{"role": "user", "content": [{"type": "tool_use", "id": "", "name": "f"}]}],
            "messages[0].content[0].id: is empty",
        ),
        (
            "openai-chat",
            [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}],
            "messages[0].tool_calls[0].function.arguments: expected text, not null or nothing",
        ),
        (
            "openai-responses",
            [{"type": "function_call", "call_id": 5, "name": "f", "arguments": ""}],
            "input[0].call_id: expected text, not a number",
        ),
        (
            "gemini",
            [{"parts": [{"text": True}]}],
            "contents[0].parts[0].text: expected text, not a boolean",
        ),
        (
            "plain",
            [{"role": "user", "content": [{**SEED_001["content"][0], "timestamp": "now"}]}],
            (
                "messages[0].content[0].timestamp: expected a time of RFC 3339 with its zone, "
                "not the text 'now'"
            ),
        ),
        (
            "plain",
            [
                {
                    "role": "user",
                    "content": [
                        {**SEED_001["content"][0], "carried": {"entries": [{"speaker": "x"}]}}
                    ],
                }
            ],
            (
                "messages[0].content[0].carried.entries[0].speaker: expected one of user, agent, "
                "tool, data, todos, not the text 'x'"
            ),
        ),
        (
            "yaml",
            [],
            (
                "unknown format 'yaml'; there are anthropic, openai-chat, openai-responses, "
                "gemini, plain"
            ),
        ),
    ],
)
def test_a_wrong_part_is_reported_with_its_path(name: Any, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_messages(value, name)
    assert str(raised.value) == message


def test_an_object_of_an_sdk_is_reported_with_what_to_pass_instead() -> None:
    class TextBlock:
        def model_dump(self) -> None:
            """Return the block as a dict."""

    with pytest.raises(ConfigError) as raised:
        read_messages([{"role": "user", "content": [TextBlock()]}], "anthropic")
    assert str(raised.value) == (
        "messages[0].content[0]: expected an object, not a Python TextBlock: pass its model_dump()"
    )


def test_a_long_wrong_value_is_shortened_in_the_error() -> None:
    with pytest.raises(ConfigError) as raised:
        read_messages([{"role": "secret" * 100, "content": ""}], "plain")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        (
            "anthropic",
            {
                "model": "claude",
                "system": [{"type": "text", "text": "be"}, {"type": "text", "text": "brief"}],
                "tools": [{"name": "f", "input_schema": {}}],
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "hi"}],
            },
            ("be\nbrief", ('{"name":"f","input_schema":{}}',), 100, "claude"),
        ),
        (
            "openai-chat",
            {
                "model": "gpt",
                "tools": [{"type": "function"}],
                "functions": [{"name": "g"}],
                "max_tokens": 5,
                "max_completion_tokens": 7,
                "messages": [{"role": "user", "content": "hi"}],
            },
            ("", ('{"type":"function"}', '{"name":"g"}'), 7, "gpt"),
        ),
        (
            "openai-responses",
            {"instructions": "brief", "input": "hi", "max_output_tokens": 9},
            ("brief", (), 9, None),
        ),
        (
            "gemini",
            {
                "systemInstruction": {"parts": [{"text": "brief"}]},
                "contents": "hi",
                "generationConfig": {"maxOutputTokens": 8},
            },
            ("brief", (), 8, None),
        ),
        (
            "plain",
            {
                "system": "brief",
                "tools": {"f": {"parameters": {}}},
                "messages": [{"role": "user", "content": "hi"}],
            },
            ("brief", ('{"f":{"parameters":{}}}',), 0, None),
        ),
    ],
)
def test_a_whole_request_is_read(name: FormatName, body: Any, expected: Any) -> None:
    request = read_request(body, name)
    assert [(message.role, message.text) for message in request.messages] == [("user", "hi")]
    assert (
        request.system,
        request.tools,
        request.reserved_output_tokens,
        request.model,
    ) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "request: expected an object"),
        ({"messages": None}, "messages: expected an array"),
        ({"messages": [], "max_tokens": -1}, "request.max_tokens: expected a whole number"),
        ({"messages": [], "system": [5]}, r"system\[0\]: expected text or an array"),
        ({"messages": [], "tools": "f"}, "tools: expected an array"),
    ],
)
def test_a_wrong_request_is_reported(body: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        read_request(body, "anthropic")


@pytest.mark.parametrize(
    ("name", "body", "usage"),
    [
        (
            "anthropic",
            {
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "text", "text": "ok"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 3},
            },
            ApiUsage(3, 3),
        ),
        (
            "openai-chat",
            {
                "choices": [{"message": {"role": "assistant", "content": "ok"}}],
                "usage": {
                    "prompt_tokens": 10,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 8},
                },
            },
            ApiUsage(10, 2),
        ),
        (
            "openai-responses",
            {
                "output": [{"type": "message", "role": "assistant", "content": "ok"}],
                "usage": {
                    "input_tokens": 10,
                    "output_tokens": 2,
                    "input_tokens_details": {"cached_tokens": 8},
                },
            },
            ApiUsage(10, 2),
        ),
        (
            "gemini",
            {
                "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2},
            },
            ApiUsage(10, 2),
        ),
        ("plain", {"role": "assistant", "content": "ok"}, None),
    ],
)
def test_an_answer_is_read_with_what_it_reports(name: FormatName, body: Any, usage: Any) -> None:
    (message,) = read_answer(body, name)
    assert (message.role, message.text, message.usage) == ("assistant", "ok", usage)
    (written,) = write_messages([message], name)
    assert isinstance(written, dict)
    assert not {"usage", "id", "stop_reason"} & set(written)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (ANTHROPIC, "anthropic"),
        (RESPONSES, "openai-responses"),
        (GEMINI, "gemini"),
        ([SEED_001, *ANTHROPIC], "plain"),
        ([{"role": "tool", "tool_call_id": "1", "content": ""}], "openai-chat"),
        ([{"role": "user", "content": "hi"}], "plain"),
        ([{"role": "tool", "content": [{"type": "tool-result"}]}], "plain"),
        ({"contents": []}, "gemini"),
        ({"input": "hi"}, "openai-responses"),
        (
            {"messages": [{"role": "user", "content": "hi"}], "system": "s", "max_tokens": 1},
            "anthropic",
        ),
        ({"messages": ANTHROPIC}, "anthropic"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "plain"),
        ([], None),
        ({}, None),
        ("x", None),
        ([{"no": "role"}], None),
    ],
)
def test_a_format_is_detected(value: Any, name: FormatName | None) -> None:
    assert detect(value) == name
