"""The one path from bytes to records, for one partition's sessions.

The deriver, replay and the embedded mode all run this; they differ in where lines come from and
where records go. It holds the sessions' states and knows nothing of transport.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from contextgauge import json_codec
from contextgauge.normalise import normalise_body, normalise_usual
from contextgauge.normalise.signals import Normal
from schemas.messages import NO_SESSION, DeadLetter
from schemas.records import CompactBoundary, ContextEdit, Json, Record
from schemas.topics import MESSAGE_LIMIT_BYTES, MIB, RECORD_ROOM_BYTES
from streams.codec.compiled import read_usual
from streams.core.derivation.derive import derive
from streams.core.derivation.rules import Rules
from streams.core.derivation.state import Session

_read_usual: Final = read_usual

_KEEPING: Final = (CompactBoundary, ContextEdit)
"""Records with whole objects of the message."""

_LARGE_BYTES: Final = MIB
"""From here on a record may outgrow its topic: numbers like 1e15 are written longer than they
were read, four times at the most."""


def _too_large(records: tuple[Record, ...], limit: int) -> DeadLetter | None:
    """Say why records cannot be written, where one of them cannot."""
    largest = max((len(json_codec.dumps(record.data)) for record in records), default=0)
    if largest <= limit:
        return None
    return DeadLetter(
        "too_large",
        f"a record of it would have {largest} bytes; the limit is {limit}: "
        "shorten the object that the record keeps whole",
    )


def _keep_objects(records: tuple[Record, ...]) -> bool:
    """Return whether records keep a part of the message as it came, to the last digit (R19)."""
    for record in records:  # noqa: SIM110 -- any() takes twice as long, for each message
        if isinstance(record.data, _KEEPING):
            return True
    return False


@dataclass(slots=True, init=False)
class Intake:
    """One line or Kafka record as it came. `session_hint` is the key's or the file's session."""

    value: bytes
    session_hint: str | None
    received_ms: int | None
    task_id: str | None
    publisher_agent_id: str | None

    def __init__(
        self,
        value: bytes,
        session_hint: str | None = None,
        received_ms: int | None = None,
        task_id: str | None = None,
        publisher_agent_id: str | None = None,
    ) -> None:
        self.value = value
        self.session_hint = session_hint
        self.received_ms = received_ms
        self.task_id = task_id
        self.publisher_agent_id = publisher_agent_id


def _said(body: dict[str, Json], intake: Intake) -> Normal | None:
    return normalise_body(
        body,
        intake.value,
        intake.session_hint,
        intake.received_ms,
        intake.task_id,
        intake.publisher_agent_id,
    )


def _said_in_short(usual: tuple[Any, ...], intake: Intake) -> Normal | None:
    return normalise_usual(
        usual,
        intake.value,
        intake.session_hint,
        intake.received_ms,
        intake.task_id,
        intake.publisher_agent_id,
    )


@dataclass(slots=True, init=False)
class Taken:
    """What one message gave. `session_id` is null where the message changed no session.

    `before` is the state that it changed, null for a new session.
    """

    session_id: str | None
    records: tuple[Record, ...]
    dead: DeadLetter | None
    before: Session | None

    def __init__(
        self,
        session_id: str | None,
        records: tuple[Record, ...],
        dead: DeadLetter | None,
        before: Session | None = None,
    ) -> None:
        self.session_id = session_id
        self.records = records
        self.dead = dead
        self.before = before


IGNORED: Final = Taken(None, (), None)


class Funnel:
    """The sessions of one partition.

    `misrouted` says why a session does not belong here; a message over the limit is dead (R5).
    `stored` gives up a session that it has and `sessions` has not.
    """

    def __init__(
        self,
        rules: Rules,
        misrouted: Callable[[str], DeadLetter | None] | None = None,
        limit_bytes: int = MESSAGE_LIMIT_BYTES,
        stored: Callable[[str], Session | None] | None = None,
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self._stored = stored
        self._rules = rules
        self._misrouted = misrouted
        self._limit_bytes = limit_bytes

    def take(self, intake: Intake) -> Taken:
        """Derive one message; total: any bytes give a result."""
        value = intake.value
        if not value or value.isspace():
            return IGNORED
        normal = self._read(intake)
        if normal is None:
            return IGNORED
        if isinstance(normal, DeadLetter):
            return Taken(None, (), normal)
        session_id = normal.session_id
        if session_id is None:
            return Taken(None, (), NO_SESSION)
        before = self.sessions.get(session_id) or self._new_here(session_id)
        if isinstance(before, DeadLetter):
            return Taken(None, (), before)
        after, records = derive(self._rules, before, normal, session_id)
        if after is before:
            return IGNORED
        if _keep_objects(records) and (exactly := json_codec.decode_exactly(value)) is not None:
            exact = _said(exactly, intake) or normal
            after, records = derive(self._rules, before, exact, session_id)
        if len(value) > _LARGE_BYTES:
            dead = _too_large(records, self._limit_bytes + RECORD_ROOM_BYTES)
            if dead is not None:
                return Taken(None, (), dead)
        self.sessions[session_id] = after
        return Taken(session_id, records, None, before)

    def _read(self, intake: Intake) -> Normal | DeadLetter | None:
        """Return what a message says, or why it is a dead letter."""
        value = intake.value
        if _read_usual is not None and len(value) <= self._limit_bytes:
            usual = _read_usual(value)
            if usual is not None:
                return _said_in_short(usual, intake) if usual else None
        body = json_codec.decode_fast(value, self._limit_bytes)
        return body if isinstance(body, DeadLetter) else _said(body, intake)

    def _new_here(self, session_id: str) -> Session | DeadLetter | None:
        """Take over a session that was only stored so far; say if it does not belong here.

        One that is here was looked at when it came.
        """
        if self._misrouted is not None and (dead := self._misrouted(session_id)) is not None:
            return dead
        session = None if self._stored is None else self._stored(session_id)
        if session is not None:
            self.sessions[session_id] = session
        return session
