"""What the providers' APIs answer, from one description of an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.summarisers import (
    AnthropicModel,
    ChatModel,
    GeminiModel,
    Model,
    ResponsesModel,
)
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
    kind: Callable[..., Model]
    path: str
    limit_field: tuple[str, ...]
    whole: Callable[[Said], Json]
    variable: str

    def connect(self, url: str | None) -> Model:
        return self.kind(MODEL, api_key=None if url is None else KEY, base_url=url)


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
    parts: list[Json] = [{"text": said.reasoning, "thought": True}] if said.reasoning else []
    parts += [{"text": said.text}] if said.text else []
    return parts + [{"functionCall": {"name": "bash", "args": {}}}] * said.calls


def _gemini(said: Said) -> dict[str, Json]:
    return _gemini_chunk(_gemini_parts(said), _GEMINI_STOPS[said.stop])


APIS: Final[Mapping[str, Api]] = {
    each.name: each
    for each in (
        Api(
            "anthropic",
            AnthropicModel,
            "/v1/messages",
            ("max_tokens",),
            _anthropic,
            "ANTHROPIC_API_KEY",
        ),
        Api(
            "chat",
            ChatModel,
            "/chat/completions",
            ("max_tokens",),
            _chat,
            "OPENAI_API_KEY",
        ),
        Api(
            "responses",
            ResponsesModel,
            "/responses",
            ("max_output_tokens",),
            _response,
            "OPENAI_API_KEY",
        ),
        Api(
            "gemini",
            GeminiModel,
            f"/models/{MODEL}:",
            ("generationConfig", "maxOutputTokens"),
            _gemini,
            "GEMINI_API_KEY",
        ),
    )
}
