"""Which format a conversation or a request is in, by fields that only one of them has."""

from collections.abc import Iterator, Mapping
from typing import Final

from contextgauge.compaction.messages import FormatName

_BODIES: Final[tuple[tuple[str, FormatName], ...]] = (
    ("contents", "gemini"),
    ("systemInstruction", "gemini"),
    ("input", "openai-responses"),
    ("instructions", "openai-responses"),
    ("anthropic_version", "anthropic"),
    ("max_completion_tokens", "openai-chat"),
)
"""Fields of a request that decide."""

_FIELDS: Final[tuple[tuple[str, FormatName], ...]] = (
    ("toolCalls", "plain"),
    ("parts", "gemini"),
    ("tool_calls", "openai-chat"),
    ("tool_call_id", "openai-chat"),
    ("function_call", "openai-chat"),
    ("call_id", "openai-responses"),
)
"""Fields of a message that decide."""

_KINDS: Final[dict[str, FormatName]] = {
    "context_compaction": "plain",
    "tool-call": "plain",
    "tool-result": "plain",
    "redacted-reasoning": "plain",
    "input_text": "openai-responses",
    "output_text": "openai-responses",
    "input_image": "openai-responses",
    "input_file": "openai-responses",
    "image_url": "openai-chat",
    "input_audio": "openai-chat",
    "refusal": "openai-chat",
    "tool_use": "anthropic",
    "tool_result": "anthropic",
    "thinking": "anthropic",
    "redacted_thinking": "anthropic",
    "server_tool_use": "anthropic",
    "document": "anthropic",
    "compaction": "anthropic",
}
"""Kinds of parts and blocks that decide."""

_ITEMS: Final = frozenset({"message", "reasoning", "compaction", "item_reference"})

_ORDER: Final[tuple[FormatName, ...]] = (
    "plain",
    "openai-responses",
    "gemini",
    "openai-chat",
    "anthropic",
)
"""Which wins: seed 001 stores blocks of Anthropic's kind with its own, so its own decide."""


def detect(value: object) -> FormatName | None:
    """Return the format of a request or of messages; None where it is neither.

    Messages that only have roles and texts are the same in several formats. Alone they are
    `plain`; in a request they are `anthropic` where its other fields are, and `openai-chat` where
    it names another model: its API takes nothing but texts for a summary.
    """
    if isinstance(value, Mapping):
        for name, format_ in _BODIES:
            if value.get(name) is not None:
                return format_
        messages = value.get("messages")
        if not isinstance(messages, list):
            return None
        by_messages = detect(messages) if messages else "plain"
        if by_messages == "plain" and not set(_marks(messages)):
            return _of_texts(value, messages)
        return by_messages
    if not isinstance(value, list) or not value:
        return None
    marks = set(_marks(value))
    for format_ in _ORDER:
        if format_ in marks:
            return format_
    simple = all(isinstance(each, Mapping) and isinstance(each.get("role"), str) for each in value)
    return "plain" if simple else None


def _of_texts(body: Mapping[str, object], messages: list[object]) -> FormatName:
    """Return the format of a request whose messages only have roles and texts."""
    if _is_anthropic_request(body):
        return "anthropic"
    results = any(isinstance(each, Mapping) and each.get("role") == "tool" for each in messages)
    return "openai-chat" if isinstance(body.get("model"), str) and not results else "plain"


def _is_anthropic_request(body: Mapping[str, object]) -> bool:
    tools = body.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    model = body.get("model")
    claude = isinstance(model, str) and model.startswith("claude")
    system = isinstance(body.get("system"), str | list) and "max_tokens" in body
    return claude or system or (isinstance(first, Mapping) and "input_schema" in first)


def _marks(messages: list[object]) -> Iterator[FormatName]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if message.get("role") in ("developer", "function"):
            yield "openai-chat"
        for name, format_ in _FIELDS:
            if message.get(name) is not None:
                yield format_
        kind = message.get("type")
        if isinstance(kind, str) and (
            kind in _ITEMS or kind.endswith(("_call", "_call_output")) or "role" not in message
        ):
            yield "openai-responses"
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            yield from _part_marks(part)


def _part_marks(part: object) -> Iterator[FormatName]:
    if not isinstance(part, Mapping):
        return
    kind = part.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        yield _KINDS[kind]
    elif kind == "image":
        yield "anthropic" if isinstance(part.get("source"), Mapping) else "plain"
    elif kind == "file":
        yield "openai-chat" if isinstance(part.get("file"), Mapping) else "plain"
    elif kind == "reasoning":
        yield "plain"
    if isinstance(part.get("cache_control"), Mapping):
        yield "anthropic"
