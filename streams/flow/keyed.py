"""What a publisher makes of one line: its session, and the bytes to send."""

from schemas.messages import DeadLetter, Message
from streams.core.containers import Line
from streams.core.normalise import normalise, session_of
from streams.edge import codec
from streams.flow.funnel import NO_SESSION
from streams.flow.shorten import fit


def keyed(line: Line, limit: int) -> tuple[str, bytes] | DeadLetter | None:
    """Return a line's session and the bytes to send; None where it means nothing to anyone.

    What is no message at all goes to its container's session: the deriver will keep it as a
    dead letter, whole.
    """
    value = fit(line, limit)
    if isinstance(value, DeadLetter):
        return value
    body = codec.decode(value, limit)
    if isinstance(body, DeadLetter):
        return body if line.session_hint is None else (line.session_hint, value)
    session_id = session_of(body, line.session_hint)
    if session_id is not None:
        return session_id, value
    return None if normalise(Message(body, value)) is None else NO_SESSION
