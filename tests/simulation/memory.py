"""What the product's pure functions returned, kept for the next run with the same input.

Deriving a message, reading a record and folding it take much of a run's time and give the same:
what is simulated is who does it when. Patched in by `runner.simulating` only.
"""

from typing import Any

from contextgauge.normalise.signals import Normal
from schemas.records import Record
from streams import codec
from streams.core.derivation import derive as core
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_SESSION, Session
from streams.core.projection import project as projection
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.partition_state import PartitionState, Work

_REST_EVERY = 5
"""Sessions rest where a batch ends at a position that is a multiple of this."""

_READ: dict[Any, Any] = {}
_DERIVED: dict[tuple[int, int], tuple[Session, tuple[Record, ...]]] = {}
_KNOWN: dict[int, Any] = {id(None): None}
"""Sessions that came of remembered messages, by identity: they are kept, so it is theirs alone."""

_NORMALS: set[int] = set()
_RECORDS: dict[Any, Any] = {}

_MOST_RECORDS = 50_000
"""Records of the whole pipeline are others in each run: they do not stay for ever."""

_VIEWS: dict[tuple[int, int, int], tuple[Any, Any, Any]] = {}
"""By identity, with what is identified: a view and a record, and the view after it."""

_KNOWN_VIEWS: set[int] = {id(None)}
_EVENTS: dict[int, tuple[Any, bytes]] = {}

_read, _from_binary = Deriver._read, codec.from_binary  # noqa: SLF001 -- patched
_finish = PartitionState.finish
_project, _to_structured = projection.project, codec.to_structured


def finish_and_rest(self: PartitionState, position: int) -> Work:
    """End a batch as `PartitionState.finish` does; after some, let all sessions rest.

    In simulated time no session is without a message for hours.
    """
    work = _finish(self, position)
    if position % _REST_EVERY == 0:
        for session_id in list(self.in_use):
            self.rest(session_id)
    return work


def read(self: Deriver, message: Any) -> Any:
    """Return what a message says, as `Deriver._read` does."""
    key = message.value, message.session_hint
    normal = _READ.get(key)
    if normal is None:
        normal = _READ[key] = _read(self, message)
        _NORMALS.add(id(normal))
    return normal


class RememberedStep:
    """A `Step` of a session whose states are remembered, so that none is worked out again."""

    def __init__(self, rules: Rules, session: Session | None, session_id: str) -> None:
        self.rules, self.session_id, self.changed = rules, session_id, False
        self._state = session

    def derive(self, normal: Normal) -> tuple[Record, ...]:
        """Return a message's records, and take the state that it leads to."""
        before = self._state
        if id(before) not in _KNOWN or id(normal) not in _NORMALS:
            after, records = core.derive(self.rules, before, normal, self.session_id)
        else:
            key = id(before), id(normal)
            if key not in _DERIVED:
                _DERIVED[key] = core.derive(self.rules, before, normal, self.session_id)
                _KNOWN[id(_DERIVED[key][0])] = _DERIVED[key][0]
            after, records = _DERIVED[key]
        if after is not before and after is not NEW_SESSION:
            self._state, self.changed = after, True
        return records

    def end(self) -> Session:
        """Return the session after all messages."""
        return self._state or NEW_SESSION


def from_binary(headers: Any, value: bytes) -> Any:
    """Return a record, as `codec.from_binary` does."""
    key = headers, value
    record = _RECORDS.get(key)
    if record is None:
        if len(_RECORDS) > _MOST_RECORDS:
            _RECORDS.clear()
        record = _RECORDS[key] = _from_binary(headers, value)
    return record


def project(before: Any, record: Any, offset: int) -> Any:
    """Return the view after a record, as `project` does."""
    if id(before) not in _KNOWN_VIEWS:
        return _project(before, record, offset)
    key = id(before), id(record), offset
    known = _VIEWS.get(key)
    if known is None:
        known = _VIEWS[key] = (before, record, _project(before, record, offset))
        _KNOWN_VIEWS.add(id(known[2]))
    return known[2]


def to_structured(record: Any) -> bytes:
    """Return a record as an event, as `codec.to_structured` does."""
    known = _EVENTS.get(id(record))
    if known is None:
        known = _EVENTS[id(record)] = (record, _to_structured(record))
    return known[1]
