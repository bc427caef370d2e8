"""From bytes to records, for one partition's sessions: the only path there is.

The derive worker, replay and the embedded mode all run this; they differ in where messages come
from and where records go.

    bytes ─▶ reader of usual messages ─────────┬─▶ normalised message ─▶ core derive ─▶ records
          └▶ JSON ─▶ normaliser ───────────────┘
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from contextgauge import json_codec
from contextgauge.normalise import normalise, normalise_usual
from contextgauge.normalise.content_signals import ContentFact
from contextgauge.normalise.signals import (
    Body,
    Boundary,
    InputMessage,
    MicroCompaction,
    Normal,
    Response,
    ResponseEnd,
    Signal,
)
from contextgauge.normalise.usual import NOTHING
from schemas.messages import (
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
from schemas.records import Record
from schemas.topics import MESSAGE_LIMIT_BYTES, MIB, RECORD_ROOM_BYTES
from streams import compiled
from streams.compiled.plain_messages import UsualRecord
from streams.core.derivation.derive import derive, derive_in
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import Session
from streams.core.derivation.step import Step
from streams.ports import LogRecord

_read_usual: Final = compiled.messages().read

_BLANK: Final = ord(" ")
"""The greatest of the characters that are white space in ASCII."""

LARGE_BYTES: Final = MIB
"""From here on a record may outgrow its topic: numbers like 1e15 are written longer than they
were read, four times at the most."""


def _too_large(records: tuple[Record, ...], limit: int) -> DeadLetter | None:
    """Return the dead letter for records of which one is too large to be written, else None."""
    largest = max((len(json_codec.dumps(record.data)) for record in records), default=0)
    if largest <= limit:
        return None
    return DeadLetter(
        "too_large",
        f"a record of it would have {largest} bytes; the limit is {limit}: "
        "shorten the object that the record keeps whole",
    )


def _has_objects(signals: tuple[Signal, ...]) -> bool:
    """Return whether records may contain objects of the message, exact to the last digit (R19)."""
    for signal in signals:
        if isinstance(signal, Response):
            if signal.edits or signal.boundary is not None:
                return True
        elif isinstance(signal, ResponseEnd):
            if signal.edits:
                return True
        elif isinstance(signal, Boundary | MicroCompaction):
            return True
    return False


_TRUTHS: Final[Mapping[bytes | None, bool]] = {b"true": True, b"false": False}


def input_message(record: LogRecord) -> InputMessage:
    """Return a Kafka record as an input message; one without a value is like a blank line."""
    _, timestamp_ms, key, body, headers, created = record
    received_ms: int | None = None
    task_id: str | None = None
    agent_id: str | None = None
    thread_id: str | None = None
    inherited: bool | None = None
    settings: dict[str, Any] | None = None
    for name, value in headers:
        if name == OBSERVED_HEADER:
            live = value == OBSERVED_LIVE and created and timestamp_ms >= 0
            received_ms = timestamp_ms if live else None
        elif name == TASK_ID_HEADER:
            task_id = text_of(value)
        elif name == AGENT_ID_HEADER:
            agent_id = text_of(value)
        elif name == THREAD_ID_HEADER:
            thread_id = text_of(value)
        elif name == INHERITED_HEADER:
            inherited = _TRUTHS.get(value)
        elif name == SETTINGS_HEADER:
            settings = settings_of(value)
    hint = None if key is None else text_of(key)
    return InputMessage(
        body or b"", hint, received_ms, task_id, agent_id, thread_id, inherited, settings
    )


def settings_of(header: bytes | None) -> dict[str, Any] | None:
    """Return a header's settings (R33); None for no JSON object, and for a larger one than any."""
    if header is None or len(header) > _MOST_SETTINGS_BYTES:
        return None
    read = json_codec.decode_fast(header)
    return None if isinstance(read, DeadLetter) else read


_MOST_SETTINGS_BYTES: Final = 4_096
"""Of a header with settings: some names, numbers and paths."""


def text_of(value: bytes | None) -> str | None:
    """Return a key's or header's text, None where there is none or it is not text."""
    try:
        return value.decode("utf-8", "surrogatepass") or None if value is not None else None
    except UnicodeDecodeError:
        return None


@dataclass(slots=True, init=False)
class DeriveResult:
    """What one message resulted in. `session_id` is None where it belongs to no session.

    `changed` is false where it changed no state, as a repeated message does.
    """

    session_id: str | None
    records: tuple[Record, ...]
    dead: DeadLetter | None
    changed: bool

    # Written out: one is made of each message, and compiled code runs no generated constructor.
    def __init__(
        self,
        session_id: str | None,
        records: tuple[Record, ...],
        dead: DeadLetter | None,
        *,
        changed: bool = False,
    ) -> None:
        self.session_id = session_id
        self.records = records
        self.dead = dead
        self.changed = changed


IGNORED: Final = DeriveResult(None, (), None)


def _derived(step: Step, normal: Normal) -> DeriveResult:
    """Derive a message in its session's step."""
    was_changed, step.changed = step.changed, False
    records = derive_in(step, normal)
    changed = step.changed
    step.changed = changed or was_changed
    return DeriveResult(step.session_id, records, None, changed=changed)


def _no_content(_: Body) -> tuple[ContentFact, ...]:
    return ()


def _content_reader() -> Callable[[Body], tuple[ContentFact, ...]]:
    """Return what measures a message's content: a status line does without its modules."""
    from contextgauge.compaction.reading.content_facts import content_facts  # noqa: PLC0415 -- above

    return content_facts


class Changed(NamedTuple):
    """A session that messages have changed; `before` is None for a new one."""

    session_id: str
    before: Session | None
    after: Session


class Deriver:
    """Derives the messages of one partition's sessions, whose states it holds.

    `sessions` are the states as they were when `end_steps` was last called. What changed since is
    in steps, so that a session that gets several messages in between is changed in place.
    `misrouted` returns a dead letter for a session of another partition; a message over the limit
    is a dead letter too (R5). `stored` hands over a restored session at its first message. Where
    the rules ask for what messages contain (R35), all of each message is read, which takes longer.
    """

    def __init__(
        self,
        rules: Rules,
        misrouted: Callable[[str], DeadLetter | None] | None = None,
        limit_bytes: int = MESSAGE_LIMIT_BYTES,
        stored: Callable[[str], Session | None] | None = None,
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self._steps: dict[str, Step] = {}
        self._stored = stored
        self._rules = rules
        self._content_of = _content_reader() if rules.content else _no_content
        self._misrouted = misrouted
        self.limit_bytes = limit_bytes

    def derive(self, message: InputMessage) -> DeriveResult:
        """Derive one message; any bytes give a result."""
        value = message.value
        if not value or (value[0] <= _BLANK and value.isspace()):
            return IGNORED
        normal = self._read(message)
        if normal is None:
            return IGNORED
        if not isinstance(normal, Normal):
            return DeriveResult(None, (), normal)
        step = self._step_of(normal.session_id)
        if not isinstance(step, Step):
            return DeriveResult(None, (), step)
        # Fast readers round large numbers; records that contain whole objects are derived from
        # exact ones.
        if _has_objects(normal.signals) and (exactly := json_codec.decode_exactly(value)):
            normal = normalise(exactly, message, normal.content) or normal
        if len(value) > LARGE_BYTES:
            return self._derive_large(step, normal)
        return _derived(step, normal)

    def derive_usual(self, usual: UsualRecord) -> DeriveResult:
        """Derive a message that was read in place."""
        # Its value only identifies a message without a uuid, and usual ones have one.
        message = InputMessage(
            b"", usual.key, usual.received_ms, usual.task_id, usual.publisher_agent_id
        )
        normal = normalise_usual(usual.message, message)
        if normal is None:
            return IGNORED
        step = self._step_of(normal.session_id)
        if not isinstance(step, Step):
            return DeriveResult(None, (), step)
        return _derived(step, normal)

    def _step_of(self, session_id: str | None) -> Step | DeadLetter:
        """Return the step of a session, begun if need be; a dead letter where there can be none."""
        if session_id is None:
            return NO_SESSION
        step = self._steps.get(session_id)
        if step is None:
            before = self.sessions.get(session_id)
            if before is None:
                first_seen = self._first_seen(session_id)
                if isinstance(first_seen, DeadLetter):
                    return first_seen
                before = first_seen
            step = self._steps[session_id] = Step(self._rules, before, session_id)
        return step

    def _derive_large(self, step: Step, normal: Normal) -> DeriveResult:
        """Derive a message whose records may be too large: then it changes nothing."""
        session_id, was_changed = step.session_id, step.changed
        step.changed = False
        before = step.end()
        after, records = derive(self._rules, before, normal, session_id)
        dead = _too_large(records, self.limit_bytes + RECORD_ROOM_BYTES)
        if dead is not None:
            after = before
        changed = after is not before
        step = self._steps[session_id] = Step(self._rules, after, session_id)
        step.changed = changed or was_changed
        if dead is not None:
            return DeriveResult(None, (), dead)
        return DeriveResult(session_id, records, None, changed=changed)

    def end_steps(self) -> list[Changed]:
        """Put the sessions that changed since the last call among `sessions`, and return them."""
        changed = []
        for session_id, step in self._steps.items():
            if step.changed:
                after = step.end()
                changed.append(Changed(session_id, self.sessions.get(session_id), after))
                self.sessions[session_id] = after
        self._steps.clear()
        return changed

    def drop(self, session_id: str) -> Session | None:
        """Forget a session; return it as it was when `end_steps` was last called."""
        self._steps.pop(session_id, None)
        return self.sessions.pop(session_id, None)

    def _read(self, message: InputMessage) -> Normal | DeadLetter | None:
        """Return the normalised message or its dead letter; None for one without meaning here."""
        value = message.value
        is_plain = (
            message.thread_id is None
            and message.inherited is None
            and message.settings is None
            and not self._rules.content
        )
        if is_plain and len(value) <= self.limit_bytes:
            usual = _read_usual(value)
            if usual is not None:
                return None if usual is NOTHING else normalise_usual(usual, message)
        body = json_codec.decode_fast(value, self.limit_bytes)
        if isinstance(body, DeadLetter):
            return body
        return normalise(body, message, self._content_of(body))

    def _first_seen(self, session_id: str) -> Session | DeadLetter | None:
        """Return a session that is not in memory: restored, new (None), or of another partition.

        Routing is checked only here: it cannot change for a session that is in memory.
        """
        if self._misrouted is not None and (dead := self._misrouted(session_id)) is not None:
            return dead
        session = None if self._stored is None else self._stored(session_id)
        if session is not None:
            self.sessions[session_id] = session
        return session
