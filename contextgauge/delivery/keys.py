"""What a publisher makes of one line: its session, the bytes to send, the headers."""

from contextgauge import json_codec
from contextgauge.containers import Line
from contextgauge.delivery.shorten import fit
from contextgauge.errors import ConfigError
from contextgauge.messages import (
    AGENT_ID_HEADER,
    NO_SESSION,
    OBSERVED_HEADER,
    OBSERVED_LIVE,
    TASK_ID_HEADER,
    DeadLetter,
    Message,
)
from contextgauge.normalise import normalise, session_of
from contextgauge.normalise.fields import MAX_NAME
from contextgauge.partitioner import key_bytes
from contextgauge.ports import Headers


def keyed(line: Line, limit: int) -> tuple[str, bytes] | DeadLetter | None:
    """Return a line's session and the bytes to send; None where it means nothing to anyone.

    What is no message at all goes to its container's session: the deriver will keep it as a
    dead letter, whole.
    """
    value = fit(line, limit)
    if isinstance(value, DeadLetter):
        return value
    body = json_codec.decode(value, limit)
    if isinstance(body, DeadLetter):
        return body if line.session_hint is None else (line.session_hint, value)
    session_id = session_of(body, line.session_hint)
    if session_id is not None:
        return session_id, value
    return None if normalise(Message(body, value)) is None else NO_SESSION


def headers_of(*, is_live: bool, task_id: str | None, agent_id: str | None) -> Headers:
    """Return the headers of a publisher's messages: seen live, the task, the session's agent.

    Raises ConfigError for a name that the deriver would not take.
    """
    live = ((OBSERVED_HEADER, OBSERVED_LIVE),) if is_live else ()
    named = ((TASK_ID_HEADER, task_id), (AGENT_ID_HEADER, agent_id))
    return live + tuple((name, _name(name, value)) for name, value in named if value is not None)


def _name(header: str, value: str) -> bytes:
    if not 0 < len(value) <= MAX_NAME:
        raise ConfigError(f"the {header} has {len(value)} characters: give it 1 to {MAX_NAME}")
    return key_bytes(value)
