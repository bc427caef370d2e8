"""What a record tells beside a message: key, task, agent, and when it was seen (R28)."""

from schemas.messages import AGENT_ID_HEADER, OBSERVED_HEADER, OBSERVED_LIVE, TASK_ID_HEADER
from streams.flow.derive.deriver import Intake
from streams.ports import LogRecord


def intake(message: LogRecord) -> Intake:
    """Read what the record's wrapping tells. A record without a value is as a blank line."""
    _, timestamp_ms, key, body, headers, created = message
    received_ms: int | None = None
    task_id: str | None = None
    agent_id: str | None = None
    for name, value in headers:
        if name == OBSERVED_HEADER:
            live = value == OBSERVED_LIVE and created and timestamp_ms >= 0
            received_ms = timestamp_ms if live else None
        elif name == TASK_ID_HEADER:
            task_id = text_of(value)
        elif name == AGENT_ID_HEADER:
            agent_id = text_of(value)
    hint = None if key is None else text_of(key)
    return Intake(body or b"", hint, received_ms, task_id, agent_id)


def text_of(value: bytes | None) -> str | None:
    """Return a key's or header's text, None where there is none or it is not text."""
    try:
        return value.decode("utf-8", "surrogatepass") or None if value is not None else None
    except UnicodeDecodeError:
        return None
