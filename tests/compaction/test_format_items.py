"""Items of single providers: bytes of an SDK, ids of items, results that a model sees otherwise."""

import json
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    ContextCompaction,
    FormatName,
    Message,
    Text,
    open_calls,
)
from contextgauge.compaction.store.stored_history import load_history, store_history
from contextgauge.compaction.summarisers.redaction import Redaction
from tests.compaction.test_formats import SEED_001


def test_bytes_of_geminis_sdk_become_the_base64_that_it_reads() -> None:
    from google.genai import types

    data = b"\xff\xef\xbe"
    parts: Any = [
        {"text": "hm", "thought": True, "thought_signature": data},
        {"executable_code": {"code": "x"}, "thought_signature": data},
        {"inline_data": {"mime_type": "image/png", "data": data}},
    ]
    messages = read_messages([{"role": "model", "parts": parts}], "gemini")
    (written,) = write_messages(load_history(store_history(History(messages))).active, "gemini")
    assert isinstance(written, dict)
    read = types.Content.model_validate(written).parts
    assert read is not None
    assert [each.thought_signature for each in read[:2]] == [data, data]
    assert read[2].inline_data is not None
    assert read[2].inline_data.data == data
    (image,) = write_messages([Message("user", messages[0].blocks[2:])], "anthropic")
    assert '"/+++"' in json.dumps(image)


SHELL: Any = [
    {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {"type": "exec"}},
    {"type": "local_shell_call_output", "id": "ls_1", "output": "ok"},
]


def test_a_result_that_names_its_calls_item_is_paired() -> None:
    messages = read_messages(SHELL, "openai-responses")
    assert open_calls(messages) == set()
    assert messages[1].results[0].call_id == "c1"
    assert write_messages(messages, "openai-responses") == SHELL
    changed = replace(messages[1].results[0], content=(Text("cut"),))
    written = write_messages([replace(messages[1], blocks=(changed,))], "openai-responses")
    assert written == [{**SHELL[1], "output": "cut"}]


@pytest.mark.parametrize(
    ("items", "name"),
    [
        (SHELL, "openai-responses"),
        (
            [
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}],
                },
            ],
            "gemini",
        ),
    ],
)
def test_a_conversation_read_piece_by_piece_is_paired(items: Any, name: FormatName) -> None:
    history = History()
    for item in items:
        history.extend(read_messages([item], name, after=history.active))
    assert open_calls(history.active) == set()


def test_items_of_a_search_of_tools_come_back_and_open_no_call() -> None:
    items: Any = [
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "call_id": None, "tools": []},
    ]
    messages = read_messages(items, "openai-responses")
    assert open_calls(messages) == set()
    assert write_messages(messages, "openai-responses") == items


def test_what_a_model_sees_of_an_ai_sdk_result_is_cleared_and_redacted_with_it() -> None:
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    part = {
        "type": "tool-result",
        "toolCallId": "c",
        "toolName": "read",
        "result": {"rows": "password: hunter22x"},
        "experimental_content": [{"type": "text", "text": "password: hunter22x"}, image],
    }
    items: Any = [{"role": "tool", "content": [part]}]
    (message,) = read_messages(items, "plain")
    assert write_messages([message], "plain") == items
    assert message.results[0].text == "password: hunter22x"
    redacted: Any = write_messages([Redaction().message(message)], "plain")
    assert "hunter22x" not in json.dumps(redacted)
    assert image in redacted[0]["content"][0]["experimental_content"]
    cleared = replace(message.results[0], content=(Text("Cleared."),))
    written: Any = write_messages([replace(message, blocks=(cleared,))], "plain")
    assert written[0]["content"][0] == {
        **part,
        "result": "Cleared.",
        "experimental_content": [{"type": "text", "text": "Cleared."}],
    }


@pytest.mark.parametrize("unknown", [(None, None), ("1970-01-01T00:00:00Z", 0)])
def test_what_is_unknown_of_a_compaction_is_null(unknown: tuple[str | None, int | None]) -> None:
    time, count = unknown  # a 0 was stored for it before
    block = {**SEED_001["content"][0], "timestamp": time}
    block |= dict.fromkeys(("messages_archived", "context_size_before"), count)
    (message,) = read_messages([{"role": "user", "content": [block]}], "plain")
    assert message.compaction == ContextCompaction(1, None, "Original task was...", None, None)
    (written,) = write_messages([replace(message, source=None)], "plain")
    assert written == {
        "role": "user",
        "content": [
            {**block, **dict.fromkeys(("timestamp", "messages_archived", "context_size_before"))}
        ],
    }
