"""What a provider signed goes back as it came, or goes with what it signs."""

from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.tool_arguments import shorten_arguments
from contextgauge.compaction.engine.tool_results import shorten_message
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import FormatName
from contextgauge.compaction.profiles import DEFAULT

LONG = "long " * 4_000
SIGNED = {"thoughtSignature": "c2lnbmVk"}


def gemini(number: int) -> list[Any]:
    """Parallel calls, of which the first is signed, and an answer that is signed at its end."""
    called = [
        {"functionCall": {"name": "write", "args": {"path": f"{number}.py", "text": LONG}}},
        {"functionCall": {"name": "write", "args": {"path": f"{number}.md", "text": LONG}}},
    ]
    done = {"functionResponse": {"name": "write", "response": {"output": "written"}}}
    return [
        {"role": "user", "parts": [{"text": f"Write {number}."}]},
        {"role": "model", "parts": [{**called[0], **SIGNED}, called[1]]},
        {"role": "user", "parts": [done, done]},
        {
            "role": "model",
            "parts": [{"text": "thoughts", "thought": True}, {"text": LONG, **SIGNED}],
        },
    ]


def chat(number: int) -> list[Any]:
    """Gemini behind OpenAI's Chat Completions."""
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "write", "arguments": '{"text":"' + LONG + '"}'},
        "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
    }
    return [
        {"role": "user", "content": f"Write {number}."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "written"},
    ]


def plain(number: int) -> list[Any]:
    """Gemini behind the AI SDK."""
    call = {
        "type": "tool-call",
        "toolCallId": f"c{number}",
        "toolName": "write",
        "input": {"text": LONG},
        "providerOptions": {"google": SIGNED},
    }
    done = {"type": "tool-result", "toolCallId": f"c{number}", "toolName": "write"}
    output = {"type": "text", "value": "written"}
    return [
        {"role": "user", "content": f"Write {number}."},
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [{**done, "output": output}]},
    ]


def anthropic(number: int) -> list[Any]:
    thinking = {"type": "thinking", "thinking": LONG, "signature": "c2lnbmVk"}
    redacted = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    call = {"type": "tool_use", "id": f"c{number}", "name": "write", "input": {"text": "short"}}
    done = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "written"}
    return [
        {"role": "user", "content": f"Write {number}."},
        {"role": "assistant", "content": [thinking, redacted, call]},
        {"role": "user", "content": [done]},
    ]


def responses(number: int) -> list[Any]:
    reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
    call = {"type": "function_call", "call_id": f"c{number}", "name": "write", "arguments": "{}"}
    return [
        {"role": "user", "content": f"Write {number}."},
        {**reasoning, "encrypted_content": LONG},
        call,
        {"type": "function_call_output", "call_id": f"c{number}", "output": "written"},
    ]


def answers(item: Any) -> list[Any]:
    """What the model wrote of an item."""
    if item.get("role") in ("assistant", "model"):
        return list(item.get("parts") or item.get("tool_calls") or item["content"])
    return [item] if item.get("type") in ("reasoning", "function_call") else []


@pytest.mark.parametrize(
    ("format_", "turn"),
    [
        ("gemini", gemini),
        ("openai-chat", chat),
        ("plain", plain),
        ("anthropic", anthropic),
        ("openai-responses", responses),
    ],
)
async def test_what_stays_of_signed_answers_is_what_came(format_: FormatName, turn: Any) -> None:
    items = [item for number in range(12) for item in turn(number)]
    came = [each for item in items for each in answers(item)]
    for window in (30_000, 60_000):
        history = History(read_messages(items, format_))
        call = ModelCall(window_tokens=window, reserved_output_tokens=500)
        prepared = await Compactor().before_call(history, call)
        assert prepared.receipt is not None
        written: Any = write_messages(prepared.messages, format_)
        staying = [each for item in written for each in answers(item)]
        # All of an answer or nothing, in order: the end of what came.
        assert staying
        assert staying == came[-len(staying) :]


def test_signed_calls_and_texts_are_not_shortened() -> None:
    messages = read_messages([*gemini(1), *gemini(2)], "gemini")
    positions = range(len(messages))
    assert not shorten_arguments(messages, DEFAULT, positions, ESTIMATE, 10**6).changed
    assert [shorten_message(each, 100, ESTIMATE) for each in messages] == messages
    messages = read_messages(chat(1), "openai-chat")
    assert not shorten_arguments(messages, DEFAULT, range(3), ESTIMATE, 10**6).changed


def test_an_argument_with_the_name_of_a_signature_is_none() -> None:
    item = chat(1)[1]
    del item["tool_calls"][0]["extra_content"]
    item["tool_calls"][0]["function"]["arguments"] = (
        '{"thoughtSignature":"x","text":"' + LONG + '"}'
    )
    messages = read_messages([item, chat(1)[2]], "openai-chat")
    assert shorten_arguments(messages, DEFAULT, range(2), ESTIMATE, 10**6).changed
    item = {"role": "model", "parts": [gemini(1)[1]["parts"][1]]}
    item["parts"][0]["functionCall"]["args"]["thoughtSignature"] = "x"
    messages = read_messages([item, gemini(1)[2]], "gemini")
    assert shorten_arguments(messages, DEFAULT, range(2), ESTIMATE, 10**6).changed


@pytest.mark.parametrize(("format_", "turn"), [("openai-chat", chat), ("plain", plain)])
def test_a_call_that_was_changed_loses_its_signature(format_: FormatName, turn: Any) -> None:
    message = read_messages(turn(1), format_)[1]
    (call,) = message.calls
    changed = message.with_blocks((replace(call, arguments='{"text":"other"}'),))
    assert "c2lnbmVk" in str(write_messages([message], format_))
    assert "c2lnbmVk" not in str(write_messages([changed], format_))
