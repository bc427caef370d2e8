"""Whole requests and answers of each API: what is sent besides messages, and what came back."""

from collections.abc import Callable, Sequence
from typing import Final

from contextgauge.compaction.formats.fields import (
    Fields,
    an_array,
    an_object,
    json_text,
    optional_count,
    optional_text,
    usage_of,
    wrong,
)
from contextgauge.compaction.messages import ApiUsage, FormatName
from contextgauge.records import Json

MESSAGES_FIELDS: Final[dict[FormatName, tuple[str, ...]]] = {
    "anthropic": ("messages",),
    "openai-chat": ("messages",),
    "openai-responses": ("input",),
    "gemini": ("contents",),
    "plain": ("messages",),
}
"""Where a request has its messages."""

_SYSTEM: Final[dict[FormatName, tuple[str, ...]]] = {
    "anthropic": ("system",),
    "openai-chat": (),
    "openai-responses": ("instructions",),
    "gemini": ("systemInstruction", "system_instruction"),
    "plain": ("system",),
}
"""Where a request has its system prompt, if not among the messages."""

_OUTPUT: Final[dict[FormatName, tuple[str, ...]]] = {
    "anthropic": ("max_tokens",),
    "openai-chat": ("max_completion_tokens", "max_tokens"),
    "openai-responses": ("max_output_tokens",),
    "gemini": ("maxOutputTokens", "max_output_tokens"),
    "plain": ("max_tokens", "maxTokens", "maxOutputTokens", "max_output_tokens"),
}
"""What a request reserves for its answer."""


def messages_of(body: Fields, format: FormatName) -> Sequence[Json]:  # noqa: A002 -- its name everywhere
    """Return the messages of a request. Raises ConfigError."""
    (name,) = MESSAGES_FIELDS[format]
    value = body.get(name)
    if format in {"openai-responses", "gemini"} and isinstance(value, str):
        part: Fields = {"parts": [{"text": value}]} if format == "gemini" else {"content": value}
        return [{"role": "user", **part}]
    if format == "gemini" and isinstance(value, dict):
        return [value]
    return an_array(value, name)


def system_of(body: Fields, format: FormatName) -> str:  # noqa: A002 -- as above
    """Return the system prompt that is not among the messages. Raises ConfigError."""
    for name in _SYSTEM[format]:
        if body.get(name) is not None:
            return _text_of(body[name], name)
    return ""


def _text_of(value: Json, path: str) -> str:
    """Return the text of a prompt: text, parts, or an object of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "parts" in value:
        return _text_of(value["parts"], f"{path}.parts")
    if isinstance(value, dict):
        return optional_text(value, "text", path) or ""
    if not isinstance(value, list):
        raise wrong(path, "text or an array", value)
    return "\n".join(_text_of(each, f"{path}[{index}]") for index, each in enumerate(value))


def tools_of(body: Fields, format: FormatName) -> tuple[str, ...]:  # noqa: A002 -- as above
    """Return the definitions of tools as JSON texts. Raises ConfigError."""
    texts: list[str] = []
    for name in ("tools", "functions") if format == "openai-chat" else ("tools",):
        value = body.get(name)
        if isinstance(value, dict):  # the AI SDK's tools by name
            texts += [json_text({key: each}) for key, each in value.items()]
        elif value is not None:
            texts += map(json_text, an_array(value, name))
    return tuple(texts)


def reserved_of(body: Fields, format: FormatName) -> int:  # noqa: A002 -- as above
    """Return what a request reserves for its answer, 0 for nothing. Raises ConfigError."""
    if format != "gemini":
        return optional_count(body, "request", *_OUTPUT[format])
    for name in ("generationConfig", "generation_config", "config"):
        if body.get(name) is not None:
            return optional_count(an_object(body[name], name), name, *_OUTPUT[format])
    return 0


def answer_of(body: Fields, format: FormatName) -> tuple[Sequence[Json], ApiUsage | None]:  # noqa: A002 -- as above
    """Return what an API answered, as messages to send back, and what it reported."""
    return _ANSWERS[format](body), usage_of(body)


def _anthropic(body: Fields) -> Sequence[Json]:
    return [{"role": body.get("role", "assistant"), "content": body.get("content")}]


def _chat(body: Fields) -> Sequence[Json]:
    choices = an_array(body.get("choices"), "choices")
    if not choices:
        raise wrong("choices", "at least one choice", choices)
    return [an_object(choices[0], "choices[0]").get("message")]


def _responses(body: Fields) -> Sequence[Json]:
    return an_array(body.get("output"), "output")


def _gemini(body: Fields) -> Sequence[Json]:
    candidates = an_array(body.get("candidates"), "candidates")
    if not candidates:
        raise wrong("candidates", "at least one candidate", candidates)
    content = an_object(candidates[0], "candidates[0]").get("content")
    return [] if content is None else [content]


def _plain(body: Fields) -> Sequence[Json]:
    return [body] if "role" in body else an_array(body.get("messages"), "messages")


_ANSWERS: Final[dict[FormatName, Callable[[Fields], Sequence[Json]]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "plain": _plain,
}
