"""Objects of the Claude Agent SDK for Python, written back as the stream spells them.

The SDK parses each frame into a dataclass and forgets the frame. System messages keep it whole
in `data`; of the others only what the class has fields for is left, and nothing is added here:
what the SDK dropped stays absent. The SDK itself is not needed, its classes go by their names.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

_PACKAGE = "claude_agent_sdk"

_BLOCKS: Final = {
    "TextBlock": "text",
    "ThinkingBlock": "thinking",
    "ToolUseBlock": "tool_use",
    "ToolResultBlock": "tool_result",
    "ServerToolUseBlock": "server_tool_use",
    "ServerToolResultBlock": "advisor_tool_result",
}
"""The stream's types of the content blocks that the SDK has classes for."""


def is_claude_object(value: object) -> bool:
    """Whether the value is of a class of the Claude Agent SDK."""
    return type(value).__module__.partition(".")[0] == _PACKAGE


def stream_body(message: object) -> dict[str, object] | None:
    """Return the frame of a message of the SDK, as far as it is left; None where it is none."""
    data = getattr(message, "data", None)
    if isinstance(data, Mapping):
        return dict(data)
    write = _WRITERS.get(type(message).__name__)
    return None if write is None or not is_dataclass(message) else write(_told(message))


def lacks_usage(message: object) -> bool:
    """Whether it is a response of an early version of the SDK, which has no place for usage."""
    is_response = is_claude_object(message) and type(message).__name__ == "AssistantMessage"
    return is_response and not hasattr(message, "usage")


def _told(value: object) -> dict[str, object]:
    """Return the fields that are not null: the stream leaves out what it does not tell."""
    if not is_dataclass(value):
        return {}
    pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: item for name, item in pairs if item is not None}


def _assistant(told: dict[str, object]) -> dict[str, object]:
    message = {
        "role": "assistant",
        "id": told.pop("message_id", None),
        "model": told.pop("model", None),
        "content": _content(told.pop("content", None)),
        "stop_reason": told.pop("stop_reason", None),
        "usage": told.pop("usage", None),
    }
    kept = {name: item for name, item in message.items() if item is not None}
    return {"type": "assistant", "message": kept, **told}


def _user(told: dict[str, object]) -> dict[str, object]:
    message = {"role": "user", "content": _content(told.pop("content", None))}
    return {"type": "user", "message": message, **told}


def _content(content: object) -> object:
    return [_block(block) for block in content] if isinstance(content, list) else content


def _block(block: object) -> object:
    kind = _BLOCKS.get(type(block).__name__)
    return block if kind is None else {"type": kind, **_told(block)}


def _result(told: dict[str, object]) -> dict[str, object]:
    body: dict[str, object] = {"type": "result", **told}
    if "model_usage" in body:
        body["modelUsage"] = body.pop("model_usage")
    return body


def _rate_limit(told: dict[str, object]) -> dict[str, object]:
    info = told.pop("rate_limit_info", None)
    raw = getattr(info, "raw", None)
    return {"type": "rate_limit_event", "rate_limit_info": raw or _told(info), **told}


def _named(kind: str) -> Callable[[dict[str, object]], dict[str, object]]:
    return lambda told: {"type": kind, **told}


_WRITERS: Final[Mapping[str, Callable[[dict[str, object]], dict[str, object]]]] = {
    "AssistantMessage": _assistant,
    "UserMessage": _user,
    "ResultMessage": _result,
    "StreamEvent": _named("stream_event"),
    "RateLimitEvent": _rate_limit,
    "ConversationResetMessage": _named("conversation_reset"),
}
