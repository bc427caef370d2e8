"""What decisions need of records that a former worker evaluated: each session's last reading.

Nine of ten records are readings, so only the last one of a session is decoded.
"""

from collections import OrderedDict
from typing import Final

from schemas.records import (
    MAIN_CHAIN,
    ContextLimits,
    ContextReading,
    SessionInfo,
    event_type,
)
from streams.core.control.trigger import MOST_SESSIONS, TRIGGER_KINDS
from streams.ports import LogRecord

_EVALUATED: Final = frozenset(event_type(kind).encode() for kind in TRIGGER_KINDS)
_INFO, _READING, _LIMITS = (
    event_type(each.kind).encode() for each in (SessionInfo, ContextReading, ContextLimits)
)
_MAIN: Final = MAIN_CHAIN.encode()


def is_evaluated(record: LogRecord) -> bool:
    """Return whether a decision can depend on a record."""
    return any(name == "ce_type" and value in _EVALUATED for name, value in record.headers)


class LatestReadings:
    """The last readings of a partition's sessions, and the last limits after each."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[bytes | None, tuple[LogRecord, ...]] = OrderedDict()

    def take(self, record: LogRecord) -> bool:
        """Take a record, in order; return whether it is to be recalled at once."""
        if not is_evaluated(record):
            return False
        headers = dict(record.headers)
        kind, key = headers["ce_type"], record.key
        if kind == _INFO:
            return True
        if headers.get("ce_subject") != _MAIN:
            return False
        if kind == _READING:
            self._sessions.pop(key, None)
            self._sessions[key] = (record,)
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
            return False
        if kind == _LIMITS:
            if key in self._sessions:
                self._sessions[key] = (self._sessions[key][0], record)
            return False
        self._sessions.pop(key, None)  # an epoch ended
        return True

    def records(self) -> list[LogRecord]:
        """Return what was held, in order."""
        held = [record for records in self._sessions.values() for record in records]
        return sorted(held, key=lambda record: record.offset)
