"""From a body to messages that are ready to be published: each with its session, none too large."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from contextgauge import json_codec
from contextgauge.delivery.outgoing import Conversation, MessageFormat, OutgoingMessage
from contextgauge.messages import DeadLetter

MOST_MESSAGES: Final = 10_000
"""Of one request: a second's work."""

_READ_LIMITS: Final = 2
"""A message of more than so many times the limit is not even parsed to be shortened."""

BodyForm: TypeAlias = Literal["json", "lines"]
"""One object or an array of objects; or an object on each line."""

_NO_SESSION: Final = (
    "names no session: give the message a `session_id`, or add `?session_id=ID` to the address"
)


class UnreadableBodyError(Exception):
    """The body as a whole cannot be read; the text says what to do."""


class TooManyMessagesError(Exception):
    """There are more than `MOST_MESSAGES` messages in a body."""


@dataclass(slots=True)
class BodyMessages:
    """What there is in a body. `refused` has the place of each message that cannot be published.

    Lines are counted from 1, members of an array from 0.
    """

    ready: list[OutgoingMessage] = field(default_factory=list)
    ignored: int = 0
    """Messages of no session that mean nothing to anyone."""
    refused: list[tuple[int, DeadLetter]] = field(default_factory=list)


def read(
    content: bytes, body: BodyForm, conversation: Conversation, form: MessageFormat
) -> BodyMessages:
    """Return what there is in a body. Raises UnreadableBodyError or TooManyMessagesError."""
    result = BodyMessages()
    for place, value in _lines(content) if body == "lines" else _members(content):
        add(result, place, value, conversation, form)
    return result


def add(
    result: BodyMessages,
    place: int,
    value: bytes | DeadLetter,
    conversation: Conversation,
    form: MessageFormat,
) -> None:
    """Add one message to what there is."""
    message = value if isinstance(value, DeadLetter) else _formed(value, conversation, form)
    if message is None:
        result.ignored += 1
    elif isinstance(message, DeadLetter):
        result.refused.append((place, message))
    else:
        session_id, ready = message
        result.ready.append(OutgoingMessage(session_id, ready, None, conversation.headers))


def _formed(
    value: bytes, conversation: Conversation, form: MessageFormat
) -> tuple[str, bytes] | DeadLetter | None:
    most = _READ_LIMITS * form.limit_bytes
    if len(value) > most:
        detail = f"has {len(value)} bytes, more than {most}: leave out what is large in it"
        return DeadLetter("too_large", detail)
    # Without the session of the request at first: with it, what is not a message has a form too.
    message = form.of(value, None)
    is_of_none = message is None or (
        isinstance(message, DeadLetter) and message.reason == "no_session"
    )
    if is_of_none and conversation.session_id is not None:
        return form.of(value, conversation.session_id)
    if isinstance(message, DeadLetter) and is_of_none:
        return DeadLetter("no_session", _NO_SESSION)
    return message


def _lines(content: bytes) -> Sequence[tuple[int, bytes]]:
    if content.count(b"\n") > MOST_MESSAGES:
        raise TooManyMessagesError
    lines = enumerate(content.split(b"\n"), 1)
    return [(number, line.removesuffix(b"\r")) for number, line in lines if line.strip()]


def _members(content: bytes) -> Sequence[tuple[int, bytes | DeadLetter]]:
    stripped = content.strip()
    if not stripped:
        raise UnreadableBodyError("the body is empty: send a message")
    if not stripped.startswith(b"["):
        return [(0, stripped)]
    members = loaded(stripped)
    if len(members) > MOST_MESSAGES:
        raise TooManyMessagesError
    return [
        (place, json_codec.dumps(member) if isinstance(member, dict) else _NO_OBJECT)
        for place, member in enumerate(members)
    ]


_NO_OBJECT: Final = DeadLetter("not_object", "is no JSON object: send each message as one")


def loaded(content: bytes) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the value of a body of JSON. Raises UnreadableBodyError."""
    exactly = json_codec.LONG_NUMBER.search(content) is not None
    try:
        return json_codec.loads_exactly(content) if exactly else json_codec.loads(content)
    except ValueError as error:
        raise UnreadableBodyError(f"the body is not JSON: {error}") from None
