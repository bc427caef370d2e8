"""What a program hands to a publisher becomes the bytes of one message and the session it is of.

Whatever it hands over gives a result and no error: the program is an agent at work.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from contextgauge import json_codec
from contextgauge.claude_sdk import is_claude_object, stream_body
from contextgauge.containers import Line
from contextgauge.delivery.acknowledgement import Acknowledgement
from contextgauge.delivery.privacy import strip_text
from contextgauge.delivery.shorten import fit
from contextgauge.errors import ConfigError
from contextgauge.messages import (
    AGENT_ID_HEADER,
    INHERITED_HEADER,
    NO_SESSION,
    OBSERVED_HEADER,
    OBSERVED_LIVE,
    SETTINGS_HEADER,
    TASK_ID_HEADER,
    THREAD_ID_HEADER,
    DeadLetter,
)
from contextgauge.normalise import normalise, session_of
from contextgauge.normalise.fields import MAX_NAME
from contextgauge.normalise.signals import InputMessage
from contextgauge.partitioner import key_bytes
from contextgauge.ports import Headers
from contextgauge.units import MIB

_CONTROL = ("control_", "transcript_mirror", "keep_alive")
"""Frames between an SDK and its runtime begin so; they are no part of the conversation."""


@dataclass(slots=True)
class Conversation:
    """A conversation: the session of messages that name none, and the headers of all."""

    session_id: str | None
    headers: Headers


class OutgoingMessage(NamedTuple):
    """One message to send.

    `session_id` is null while it still has to be brought into its form; `hint` is its session then,
    as far as it is known (R1). `acknowledgement` is for who waits until the broker has it.
    """

    session_id: str | None
    value: bytes
    hint: str | None
    headers: Headers
    acknowledgement: Acknowledgement | None = None


def body_of(message: object) -> Mapping[str, object] | bytes | DeadLetter:
    """Return a message's object, or the bytes of its line. Raises TypeError for what is neither."""
    match message:
        case bytes():
            return message
        case bytearray() | memoryview():
            return bytes(message)
        case str():
            return json_codec.utf8(message)
        case Mapping():
            return message
    if is_claude_object(message):
        body = stream_body(message)
        return body or DeadLetter("not_object", f"a {type(message).__name__} is not a message")
    # What the model SDKs answer with is an object of pydantic.
    dump: Callable[..., dict[str, object]] | None = getattr(message, "model_dump", None)
    if dump is not None:
        try:
            return dump(mode="json", exclude_unset=True)
        except Exception as error:  # noqa: BLE001 -- the model's own code; the agent works on
            return DeadLetter("not_json", f"its model_dump raised {type(error).__name__}")
    raise TypeError(
        "a message is a mapping, one line of JSON (bytes or str), a message of the Claude Agent "
        f"SDK or an answer of a model SDK, and no {type(message).__name__}"
    )


def keyed(line: Line, limit: int) -> tuple[str, bytes] | DeadLetter | None:
    """Return a line's session and the bytes to send; None where it means nothing to anyone.

    What is not a message at all goes to its container's session: the deriver will keep it as a
    dead letter, whole.
    """
    value = fit(line, limit)
    if isinstance(value, DeadLetter):
        return value
    return _keyed(value, line.session_hint, limit)


def _keyed(value: bytes, hint: str | None, limit: int) -> tuple[str, bytes] | DeadLetter | None:
    body = json_codec.decode_fast(value, limit)
    if isinstance(body, DeadLetter):
        return body if hint is None else (hint, value)
    session_id = session_of(body, hint)
    if session_id is not None:
        return session_id, value
    return None if normalise(body, InputMessage(value)) is None else NO_SESSION


def headers_of(*, is_live: bool, task_id: str | None, agent_id: str | None) -> Headers:
    """Return the headers of a publisher's messages: seen live, the task, the session's agent.

    Raises ConfigError for a name that the deriver would not take.
    """
    live = ((OBSERVED_HEADER, OBSERVED_LIVE),) if is_live else ()
    named = ((TASK_ID_HEADER, task_id), (AGENT_ID_HEADER, agent_id))
    return live + tuple((name, _name(name, value)) for name, value in named if value is not None)


def headers_of_line(line: Line) -> Headers:
    """Return the headers that only this line has: its thread, whether it is a copy, settings."""
    headers: Headers = ()
    if line.thread_id is not None:
        headers = ((THREAD_ID_HEADER, key_bytes(line.thread_id)),)
    if line.inherited is not None:
        headers = (*headers, (INHERITED_HEADER, b"true" if line.inherited else b"false"))
    if line.settings is not None:
        headers = (*headers, (SETTINGS_HEADER, line.settings))
    return headers


def _name(header: str, value: str) -> bytes:
    if not 0 < len(value) <= MAX_NAME:
        raise ConfigError(f"the {header} has {len(value)} characters: give it 1 to {MAX_NAME}")
    return key_bytes(value)


class MessageFormat(NamedTuple):
    """In what form messages leave: none over the limit, and with a `text_key` without texts."""

    limit_bytes: int
    text_key: bytes | None = None

    @property
    def at_once_bytes(self) -> int:
        """Up to here a message is brought into its form at once; more takes too long for that."""
        return self.limit_bytes if self.text_key is None else min(self.limit_bytes, MIB)

    def of(self, value: bytes, hint: str | None) -> tuple[str, bytes] | DeadLetter | None:
        """Return a message's session and the bytes to send; see `keyed`."""
        if self.text_key is None and len(value) <= self.limit_bytes:
            return _keyed(value, hint, self.limit_bytes)
        line = Line("", 0, value, len(value), hint)
        if self.text_key is None:
            return keyed(line, self.limit_bytes)
        stripped = strip_text(line, self.text_key)
        return stripped if isinstance(stripped, DeadLetter) else keyed(stripped, self.limit_bytes)


def outgoing(
    body: Mapping[str, object] | bytes, conversation: Conversation, form: MessageFormat
) -> OutgoingMessage | DeadLetter | None:
    """Return what to send; None where it means nothing to anyone, a dead letter where it cannot."""
    hint, headers = conversation.session_id, conversation.headers
    if isinstance(body, bytes):
        value = body.removesuffix(b"\n").removesuffix(b"\r")
        if not value or value.isspace():
            return None
    else:
        try:
            plain: dict[str, Any] = body if isinstance(body, dict) else dict(body)
            value = json_codec.dumps(plain)
        except Exception as error:  # noqa: BLE001 -- a mapping's own code; the agent works on
            why = type(error).__name__
            return DeadLetter("not_json", f"it holds what JSON has no form for: {why}")
        hint = session_of(plain, hint)
        if form.text_key is None and hint is not None:
            ready = len(value) <= form.limit_bytes
            return OutgoingMessage(hint if ready else None, value, hint, headers)
    if len(value) > form.at_once_bytes:
        return OutgoingMessage(None, value, hint, headers)
    ready_form = form.of(value, hint)
    if isinstance(ready_form, tuple):
        return OutgoingMessage(*ready_form, hint, headers)
    return ready_form


def belongs_to_conversation(frame: Mapping[str, object]) -> bool:
    """Whether a frame of an SDK belongs to the conversation, or reports on its context.

    An SDK and its runtime exchange frames on permissions, tools and accounts too: not published.
    """
    kind = frame.get("type")
    if not isinstance(kind, str) or not kind.startswith(_CONTROL):
        return True
    return normalise(cast("dict[str, Any]", dict(frame)), InputMessage(b"")) is not None
