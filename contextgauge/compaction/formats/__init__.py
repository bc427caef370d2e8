"""Lossless readers and writers: conversations of every provider to the engine's messages and back.

`write_messages(read_messages(value, format), format)` equals `value`, with all fields and blocks
that the engine does not know. A changed block is laid over the other fields of what it was read
from. Written in another format than they came in, messages lose what cannot be expressed there
(thinking and opaque items); calls and results stay.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from contextgauge.compaction.formats import (
    anthropic,
    gemini,
    openai_chat,
    openai_responses,
    plain,
)
from contextgauge.compaction.formats.detection import detect
from contextgauge.compaction.formats.fields import an_array, an_object, optional_text, with_ids
from contextgauge.compaction.formats.requests import (
    answer_of,
    messages_of,
    reserved_of,
    system_of,
    tools_of,
)
from contextgauge.compaction.formats.sendable import accepted, sendable
from contextgauge.compaction.messages import FormatName, Message, ModelRequest, in_context
from contextgauge.errors import ConfigError
from contextgauge.records import Json

__all__ = [
    "detect",
    "read_answer",
    "read_messages",
    "read_request",
    "write_messages",
    "write_sendable",
]

IsUserTurn: TypeAlias = bool | Callable[[Message], bool | None] | None

_Read: TypeAlias = Callable[[Sequence[Json], Sequence[Message]], list[Message]]
_Write: TypeAlias = Callable[[Sequence[Message]], list[Json]]

_FORMATS: Final[dict[FormatName, tuple[_Read, _Write]]] = {
    "anthropic": (anthropic.read_messages, anthropic.write_messages),
    "openai-chat": (openai_chat.read_messages, openai_chat.write_messages),
    "openai-responses": (openai_responses.read_messages, openai_responses.write_messages),
    "gemini": (gemini.read_messages, gemini.write_messages),
    "plain": (plain.read_messages, plain.write_messages),
}


def read_messages(
    value: Sequence[object],
    format: FormatName,  # noqa: A002 -- its name everywhere
    *,
    after: Sequence[Message] = (),
    is_user_turn: IsUserTurn = None,
) -> list[Message]:
    """Read a conversation, or what follows the messages `after` of one.

    Where a format has no ids of calls, `after` is needed to pair results with calls before them.
    `is_user_turn` is whether a person wrote what has the user's role in these messages, or gives
    it for each; None: their shapes decide. Raises ConfigError with the path of what is wrong, such
    as `messages[3].content[0].text`.
    """
    read, _ = _functions(format)
    messages = with_ids(read(an_array(value, "messages"), after))
    if is_user_turn is not None:
        messages = [_marked(each, is_user_turn) for each in messages]
    before = after[-1] if after else None
    has_calls = any(each.calls for each in after)
    for index, message in enumerate(messages):
        before = messages[index] = in_context(message, before, has_calls=has_calls)
        has_calls = has_calls or bool(message.calls)
    return messages


def _marked(message: Message, is_user_turn: IsUserTurn) -> Message:
    if message.role != "user":
        return message
    mark = is_user_turn(message) if callable(is_user_turn) else is_user_turn
    return replace(message, from_user=mark)


def write_messages(messages: Sequence[Message], format: FormatName) -> list[Json]:  # noqa: A002 -- as above
    """Write a conversation. What was read from this format and not changed is the same object."""
    _, write = _functions(format)
    return write(messages)


def write_sendable(
    messages: Sequence[Message],
    format: FormatName,  # noqa: A002 -- as above
    *,
    leaves_last_open: bool = False,
) -> list[Json]:
    """Write a conversation as a request of the API may have it, whatever it was read from.

    The parts of an answer are one message, its results follow it, and fields of answers that
    requests do not take are left out. A call without a result gets one that says so; with
    `leaves_last_open`, not those that nothing follows. What is right already is not changed.
    """
    right = sendable(messages, format, leaves_last_open=leaves_last_open)
    return [accepted(each, format) for each in write_messages(right, format)]


def read_request(body: object, format: FormatName) -> ModelRequest:  # noqa: A002 -- as above
    """Read the body of a request: messages, system prompt, tools and what the answer may have.

    Raises ConfigError with the path of what is wrong.
    """
    _functions(format)
    fields = an_object(body, "request")
    return ModelRequest(
        read_messages(messages_of(fields, format), format),
        system_of(fields, format),
        tools_of(fields, format),
        reserved_of(fields, format),
        optional_text(fields, "model", "request"),
    )


def read_answer(
    body: object,
    format: FormatName,  # noqa: A002 -- as above
    *,
    after: Sequence[Message] = (),
) -> list[Message]:
    """Read the body of an answer: the messages to add, the last with what the API reported.

    Raises ConfigError with the path of what is wrong.
    """
    _functions(format)
    values, usage = answer_of(an_object(body, "answer"), format)
    messages = read_messages(values, format, after=after)
    if messages and usage is not None:
        messages[-1] = replace(messages[-1], usage=usage)
    return messages


def _functions(format: FormatName) -> tuple[_Read, _Write]:  # noqa: A002 -- as above
    if format not in _FORMATS:
        raise ConfigError(f"unknown format {format!r}; there are {', '.join(_FORMATS)}")
    return _FORMATS[format]
