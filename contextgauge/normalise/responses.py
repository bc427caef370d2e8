"""API responses of any provider: usage, edits, compactions inside a response (R6 to R10, R29)."""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.normalise.adapter import Blocks, Fields, Inside, Meaning, Words, named
from contextgauge.normalise.fields import flag, items, mapping, name, window
from contextgauge.normalise.limit_signals import ModelWindow, OwnWindow, RuntimeWindows
from contextgauge.normalise.signals import Body, Boundary, Response, ResponseEnd, Signal
from contextgauge.normalise.usage import (
    find_usage,
    read_output,
    read_usage,
    server_compaction_cost,
    summary_cost,
    tier_of,
)
from contextgauge.records import Json

AnswerFormat: TypeAlias = Literal["anthropic", "openai-chat", "openai-responses"]

SYNTHETIC_MODEL: Final = "<synthetic>"
"""The model of messages that Claude Code writes itself."""
_WINDOW_EXCEEDED: Final = "model_context_window_exceeded"
_COMPACTION_CALL: Final = "response.compaction"
"""An OpenAI compaction's own response: its usage is that of the compacting call (R11)."""

_OBJECTS: Final = ("chat.completion", "response")
"""Beginnings of the `object` by which a bare response is known."""

_KIND: Final = re.compile(r"[\w.:<>/-]{1,64}", re.ASCII)

_ANSWERS: Final[Mapping[str, AnswerFormat]] = {
    "chat.completion": "openai-chat",
    "response": "openai-responses",
}


def _kind_of_object(kind: str) -> str:
    """Return what is read of an `object`: all of a word, else how a known one begins."""
    if _KIND.fullmatch(kind):
        return kind
    return next((begin for begin in _OBJECTS if kind.startswith(begin)), "")


CONTENT: Final = Blocks(
    {
        **named(Meaning.WORD, "type role status"),
        **named(Meaning.NAME, "id tool_use_id call_id"),
        "text": Meaning.TEXT,
    }
)
_MANAGEMENT: Final[Fields] = named(
    Inside(named(Meaning.FIGURES, "applied_edits appliedEdits")),
    "context_management contextManagement",
)
RESPONSE: Final[Fields] = {
    **named(Meaning.NAME, "id responseId response_id model modelVersion model_version"),
    **named(Meaning.WORD, "type role status stop_reason service_tier"),
    **named(Meaning.FIGURES, "usage usageMetadata usage_metadata"),
    **_MANAGEMENT,
    **named(CONTENT, "content output parts"),
    "object": Words(_kind_of_object),
}
"""An API response of any provider, bare or in a frame."""

DELTA: Final = Inside(named(Meaning.WORD, "type stop_reason"))
EVENT: Final[Fields] = {
    "type": Meaning.WORD,
    "message": Inside(RESPONSE, CONTENT),
    "usage": Meaning.FIGURES,
    "delta": DELTA,
    **_MANAGEMENT,
}
"""An event of an API's stream."""


def is_no_response(body: Body, message: Body) -> bool:
    """Return whether an assistant frame stands for no API response (R10)."""
    return message.get("model") == SYNTHETIC_MODEL or flag(
        body, "isApiErrorMessage", "is_api_error_message"
    )


def read_response(
    body: Body, message: Body, *, output_is_final: bool, is_whole: bool = False
) -> Response:
    """Return the response that an assistant frame, a transcript line or a raw response is."""
    request_id = name(body, "request_id", "requestId")
    key = name(message, "id", "responseId", "response_id") or request_id
    usage = find_usage(message) or find_usage(body)
    own_call = message.get("object") == _COMPACTION_CALL
    counts = None if usage is None or own_call else read_usage(usage)
    if counts is not None and counts.tier is None:  # OpenAI has it on the response
        counts.tier = tier_of(name(message, "service_tier"))
    boundary = inner_boundary(message)
    if boundary is not None and usage is not None:
        if own_call:
            cost = summary_cost(read_usage(usage), read_output(usage))
        else:
            cost = server_compaction_cost(usage)
        boundary = boundary._replace(receipt=cost)
    return Response(
        key,
        key,
        name(message, "model", "modelVersion", "model_version"),
        counts,
        read_output(usage) if usage is not None and output_is_final else None,
        applied_edits(message),
        message.get("stop_reason") == _WINDOW_EXCEEDED,
        boundary,
        is_whole=is_whole,
        request_id=request_id,
    )


def named_window(body: Body, message: Body, response: Response) -> tuple[Signal, ...]:
    """Return the window that a response's line names, for its model (R12, R32).

    A limit that the response exceeds is another's.
    """
    usage = find_usage(message) or find_usage(body)
    tokens = window(body, "contextWindowSize")
    if tokens is None and usage is not None:
        tokens = window(usage, "max_tokens")
    if tokens is None or (response.usage is not None and response.usage.used > tokens):
        return ()
    if response.model is None:
        return (OwnWindow(tokens),)
    return (RuntimeWindows((ModelWindow(response.model, None, tokens),)),)


def applied_edits(holder: Body) -> tuple[dict[str, Json], ...]:
    """Return the context edits that the API applied (R26)."""
    management = mapping(holder, "context_management", "contextManagement")
    return () if management is None else tuple(items(management, "applied_edits", "appliedEdits"))


def text_of(content: object) -> str | None:
    """Return a content's text: the string, or its text blocks joined by a blank line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    values = (block.get("text") for block in content if isinstance(block, dict))
    texts = [text for text in values if isinstance(text, str)]
    return "\n\n".join(texts) if texts else None


def inner_boundary(message: Body) -> Boundary | None:
    """Return the compaction of a block or an item; several are one (R29)."""
    content, output = _compactions(message, "content"), _compactions(message, "output")
    if not content and not output:
        return None
    boundary: Boundary | None = None
    for block in (*(block for block in content if _says_compacted(block)), *output):
        summary = text_of(block.get("content")) or None
        if boundary is None:
            boundary = Boundary(None, None, None, None, None, block, summary)
        elif boundary.summary is None:
            boundary = boundary._replace(summary=summary)
    return boundary


def _compactions(message: Body, name: str) -> list[dict[str, Json]]:
    """Return the compactions among a message's blocks or items."""
    blocks = message.get(name)
    if not isinstance(blocks, list):
        return _NO_BLOCKS
    return [
        block for block in blocks if isinstance(block, dict) and block.get("type") == "compaction"
    ]


_NO_BLOCKS: Final[list[dict[str, Json]]] = []


def _says_compacted(block: dict[str, Json]) -> bool:
    """Return whether a content block is a compaction: one without content is not.

    An OpenAI item among the content has no such field, and counts by what it carries encrypted.
    """
    if "content" in block:
        return block["content"] is not None
    return isinstance(block.get("encrypted_content"), str)


def stream_event(body: Body) -> tuple[Signal, ...]:
    """Return what a partial-message event says: the start is a reading, the delta seldom is."""
    return bare_event(mapping(body, "event") or {}, body)


def bare_event(event: Body, frame: Body | None = None) -> tuple[Signal, ...]:
    """Return what an event of the API's own stream says, with or without a frame around it."""
    body = event if frame is None else frame
    kind = event.get("type")
    if kind == "message_start":
        message = mapping(event, "message")
        if message is None or is_no_response(body, message):
            return ()
        return (read_response(body, message, output_is_final=False),)
    if kind != "message_delta":
        return ()
    usage = mapping(event, "usage")
    counts = None if usage is None else read_usage(usage)
    delta = mapping(event, "delta")
    end = ResponseEnd(
        output=None if usage is None else read_output(usage),
        edits=applied_edits(event),
        exhausted=delta is not None and delta.get("stop_reason") == _WINDOW_EXCEEDED,
        usage=None if counts is None or not counts.used else counts,
    )
    return (end,) if end != (None, (), False, None) else ()


def completed_response(body: Body) -> tuple[Signal, ...]:
    """Return what the last event of an OpenAI response's stream says: the response in it."""
    response = mapping(body, "response")
    return () if response is None else raw_response(response)


def raw_response(body: Body) -> tuple[Signal, ...]:
    """Return what a provider's bare response object says, published as it is."""
    kind = body.get("object")
    known = isinstance(kind, str) and kind.startswith(_OBJECTS)
    if known or mapping(body, "usageMetadata", "usage_metadata") is not None:
        return (read_response(body, body, output_is_final=True, is_whole=True),)
    return ()


def bare_message(body: Body) -> tuple[Signal, ...]:
    """Return what a bare API answer says: the message itself, without a frame around it.

    One without a usage is none: OpenAI's output items have the same type.
    """
    if body.get("role") != "assistant" or mapping(body, "usage") is None:
        return ()
    if is_no_response(body, body):
        return ()
    return (read_response(body, body, output_is_final=True, is_whole=True),)


class BareAnswer(NamedTuple):
    """The body of an API's answer, published as it is."""

    format: AnswerFormat
    body: dict[str, Json]


def answer_of(line: Body) -> BareAnswer | None:
    """Return the answer of an API that a line is."""
    kind = line.get("type")
    if kind == "message" and line.get("role") == "assistant" and "content" in line:
        return BareAnswer("anthropic", dict(line))
    if kind == "response.completed" and (response := mapping(line, "response")) is not None:
        return BareAnswer("openai-responses", response)
    own = line.get("object")
    if kind is None and isinstance(own, str) and own in _ANSWERS:
        return BareAnswer(_ANSWERS[own], dict(line))
    return None
