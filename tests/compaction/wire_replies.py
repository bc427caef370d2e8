"""What the providers' APIs answer, whole and as streams, from one description of an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.summarisers import (
    AnthropicModel,
    ChatModel,
    GeminiModel,
    Model,
    ResponsesModel,
)
from contextgauge.json_codec import dumps
from contextgauge.records import Json

MODEL: Final = "small-model"
KEY: Final = "a-key-of-the-test"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer: `stop` in our own words, as in `Answer`."""

    text: str = ""
    stop: str = "end"
    calls: int = 0
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: how its model is made, and what it answers."""

    name: str
    connect: Callable[[str, bool], Model]
    path: str
    limit_field: tuple[str, ...]
    whole: Callable[[Said], Json]
    events: Callable[[Said], Sequence[bytes]]


def _event(value: Json, name: str | None = None) -> bytes:
    head = b"" if name is None else f"event: {name}\n".encode()
    return head + b"data: " + dumps(value) + b"\n\n"


def _halves(text: str) -> Sequence[str]:
    middle = len(text) // 2
    return [each for each in (text[:middle], text[middle:]) if each]


# Anthropic

_ANTHROPIC_STOPS: Final = {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"}


def _anthropic(said: Said) -> dict[str, Json]:
    content: list[Json] = []
    if said.reasoning:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": "s"})
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += [
        {"type": "tool_use", "id": f"toolu_{each}", "name": "bash", "input": {}}
        for each in range(said.calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": f"{MODEL}-1",
        "content": content,
        "stop_reason": "tool_use" if said.calls else _ANTHROPIC_STOPS[said.stop],
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 3,
            "output_tokens": 40,
        },
    }


def _anthropic_events(said: Said) -> list[bytes]:
    whole = _anthropic(said)
    blocks = whole["content"]
    assert isinstance(blocks, list)
    start = {**whole, "content": [], "stop_reason": None}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        assert isinstance(block, dict)
        kind = block["type"]
        field, delta = {
            "text": ("text", "text_delta"),
            "thinking": ("thinking", "thinking_delta"),
            "tool_use": ("partial_json", "input_json_delta"),
        }[str(kind)]
        text = "{}" if kind == "tool_use" else str(block[field])
        empty = block if kind == "tool_use" else {**block, field: ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": delta, field: half},
            }
            for half in _halves(text)
        ]
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 40},
        }
    )
    events.append({"type": "message_stop"})
    return [_event(each, str(each["type"])) for each in events if isinstance(each, dict)]


# OpenAI Chat Completions

_CHAT_STOPS: Final = {"end": "stop", "length": "length", "refusal": "content_filter"}
_CHAT_USAGE: Final[Json] = {
    "prompt_tokens": 123,
    "completion_tokens": 40,
    "total_tokens": 163,
    "prompt_tokens_details": {"cached_tokens": 3},
}


def _chat_calls(said: Said) -> list[Json]:
    return [
        {
            "index": each,
            "id": f"call_{each}",
            "type": "function",
            "function": {"name": "bash", "arguments": "{}"},
        }
        for each in range(said.calls)
    ]


def _chat(said: Said) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = _chat_calls(said)
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    finish = "tool_calls" if said.calls else _CHAT_STOPS[said.stop]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": f"{MODEL}-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _CHAT_USAGE,
    }


def _chat_events(said: Said) -> list[bytes]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": half} for half in _halves(said.reasoning)]
    deltas += [{"content": half} for half in _halves(said.text)]
    deltas += [{"tool_calls": [each]} for each in _chat_calls(said)]
    finish = "tool_calls" if said.calls else _CHAT_STOPS[said.stop]
    common: dict[str, Json] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": f"{MODEL}-1",
    }
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [_event({**common, "choices": [each]}) for each in choices]
    return [*events, _event({**common, "choices": [], "usage": _CHAT_USAGE}), b"data: [DONE]\n\n"]


# OpenAI Responses


def _response(said: Said) -> dict[str, Json]:
    output: list[Json] = []
    if said.reasoning:
        output.append({"type": "reasoning", "id": "rs_1", "summary": []})
    if said.text:
        part: Json = {"type": "output_text", "text": said.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{each}",
            "call_id": f"call_{each}",
            "name": "bash",
            "arguments": "{}",
        }
        for each in range(said.calls)
    ]
    reason = {"length": "max_output_tokens", "refusal": "content_filter"}.get(said.stop)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": f"{MODEL}-1",
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 123,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 40,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 163,
        },
    }


def _response_events(said: Said) -> list[bytes]:
    whole = _response(said)
    begun = {**whole, "output": [], "status": "in_progress", "usage": None}
    deltas: list[Json] = [
        {
            "type": "response.output_text.delta",
            "item_id": "msg_1",
            "output_index": 0,
            "content_index": 0,
            "delta": half,
        }
        for half in _halves(said.text)
    ]
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        *deltas,
        {"type": f"response.{whole['status']}", "response": whole},
    ]
    return [
        _event({**each, "sequence_number": number}, str(each["type"]))
        for number, each in enumerate(events)
        if isinstance(each, dict)
    ]


# Gemini

_GEMINI_STOPS: Final = {"end": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}


def _gemini_chunk(parts: list[Json], finish: str | None) -> dict[str, Json]:
    candidate: dict[str, Json] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 123,
            "cachedContentTokenCount": 3,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": 10,
            "totalTokenCount": 163,
        },
        "modelVersion": f"{MODEL}-1",
    }


def _gemini_parts(said: Said) -> list[Json]:
    parts: list[Json] = [{"text": half, "thought": True} for half in _halves(said.reasoning)]
    parts += [{"text": half} for half in _halves(said.text)]
    return parts + [{"functionCall": {"name": "bash", "args": {}}}] * said.calls


def _gemini(said: Said) -> dict[str, Json]:
    return _gemini_chunk(_gemini_parts(said), _GEMINI_STOPS[said.stop])


def _gemini_events(said: Said) -> list[bytes]:
    chunks = [_gemini_chunk([part], None) for part in _gemini_parts(said)]
    return [_event(each) for each in (*chunks, _gemini_chunk([], _GEMINI_STOPS[said.stop]))]


APIS: Final[Mapping[str, Api]] = {
    each.name: each
    for each in (
        Api(
            "anthropic",
            lambda url, stream: AnthropicModel(MODEL, api_key=KEY, base_url=url, stream=stream),
            "/v1/messages",
            ("max_tokens",),
            _anthropic,
            _anthropic_events,
        ),
        Api(
            "chat",
            lambda url, stream: ChatModel(MODEL, api_key=KEY, base_url=url, stream=stream),
            "/chat/completions",
            ("max_tokens",),
            _chat,
            _chat_events,
        ),
        Api(
            "responses",
            lambda url, stream: ResponsesModel(MODEL, api_key=KEY, base_url=url, stream=stream),
            "/responses",
            ("max_output_tokens",),
            _response,
            _response_events,
        ),
        Api(
            "gemini",
            lambda url, stream: GeminiModel(MODEL, api_key=KEY, base_url=url, stream=stream),
            f"/models/{MODEL}:",
            ("generationConfig", "maxOutputTokens"),
            _gemini,
            _gemini_events,
        ),
    )
}
