"""When a session is to be compacted: records in, decisions and requests out.

    the size is below compact_at ................. nothing
    not opted in, or not the main chain .......... nothing
    the window is assumed, or unknown ............ not fired
    the record is older than max_age ............. not fired
    a command of the session is open ............. not fired; from hard_at on it is made urgent
    two compactions did not help ................. not fired
    the last one failed, or has just ended ....... not fired
    else ......................................... fired

A decision that did not fire is written once for its reason, window and epoch; where time alone
stands against it, it is evaluated again (`due`). All ids follow from
what caused them, so reading records again comes to the same entries. What became of commands is
read from the log itself (`note`). All of it is pure: the time is passed in.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeVar

from schemas.commands import (
    CommandEntry,
    CommandFinished,
    CommandTrigger,
    CompactionDecided,
    CompactRequested,
    ThresholdsSet,
)
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    ContextLimits,
    ContextReading,
    ContextReset,
    Record,
    SessionInfo,
)
from streams.core.control.ids import id_of
from streams.core.control.reasons import DecisionReason, FiredReason, IdleReason
from streams.core.control.sessions import ContextSize, Deferred, SessionMemory
from streams.core.control.thresholds import Sizes, ThresholdBook

_Value = TypeVar("_Value")

REQUESTED_BY: Final = "control"
"""Who requests what is decided here."""

MOST_SESSIONS: Final = 50_000
"""Remembered of a partition: some tens of megabytes. The session that was quiet for longest is
forgotten first, and known again by its next reading."""

MOST_IDS: Final = 100_000
"""Entries of the log that are known by their ids, so that they are not written again."""

_PASSING: Final = frozenset[IdleReason](("command_open", "pause_after_failure"))
"""Reasons that time takes away. An effect that is awaited shows in the next reading."""

TRIGGER_KINDS: Final = frozenset(
    data.kind
    for data in (CompactBoundary, ContextLimits, ContextReading, ContextReset, SessionInfo)
)
"""Kinds of records that a decision can depend on."""


class Trigger:
    """The decisions of one partition: at most `MOST_SESSIONS` sessions are remembered."""

    def __init__(self, book: ThresholdBook, max_age_ms: int) -> None:
        self._book, self._max_age_ms = book, max_age_ms
        self._sessions: OrderedDict[str, SessionMemory] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._deferred: OrderedDict[str, None] = OrderedDict()

    def note(self, entry: CommandEntry) -> None:
        """Take an entry of the log, in its order."""
        _remember(self._known, entry.id, None, MOST_IDS)
        match entry.data:
            case ThresholdsSet() as data:
                self._book.apply(data)
            case CompactRequested() as data:
                if data.command_id not in self._finished:
                    self._session(data.session_id).requested(data, entry.time_ms)
            case CommandFinished() as data:
                _remember(self._finished, data.command_id, None, MOST_IDS)
                self._session(data.session_id).finished(data, entry.time_ms)
            case _:
                return

    def needs_identity(self, record: Record, logged_ms: int, now_ms: int) -> bool:
        """Return whether the agent and the project of a record's session must be looked up."""
        data = record.data
        if not isinstance(data, ContextReading) or data.chain != MAIN_CHAIN:
            return False
        if not self._book.needs_identity or not self._is_fresh(record, logged_ms, now_ms):
            return False
        session = self._sessions.get(data.session_id)
        return session is None or not session.is_identified

    def identify(self, session_id: str, agent_id: str | None, project: str | None) -> None:
        """Take whose session it is, as it was looked up."""
        session = self._session(session_id)
        session.identify(agent_id, project)
        session.is_identified = True

    def due(self, now_ms: int) -> list[CommandEntry]:
        """Return what sessions give rise to whose time has come: an agent that waits is silent."""
        entries: list[CommandEntry] = []
        for session_id in list(self._deferred):
            session = self._sessions.get(session_id)
            deferred = None if session is None else session.deferred
            del self._deferred[session_id]
            if deferred is not None:
                entries += self._evaluate(*deferred, now_ms)
        for entry in entries:
            self.note(entry)
        return entries

    def observe(self, record: Record, logged_ms: int, now_ms: int) -> list[CommandEntry]:
        """Return what a record gives rise to. `logged_ms` is its Kafka timestamp."""
        data = record.data
        if isinstance(data, SessionInfo):
            session = self._session(data.session_id)
            session.identify(data.publisher_agent_id, data.cwd)
            return []
        if data.chain != MAIN_CHAIN or not self._book.may_be_automatic:
            return []
        match data:
            case ContextReading():
                size = ContextSize.of(data)
            case ContextLimits():
                before = self._session(data.session_id).size
                if before is None or data.window in {None, before.window}:
                    return []
                size = replace(
                    before,
                    window=data.window,
                    window_source=data.window_source,
                    model=data.model or before.model,
                )
            case CompactBoundary() | ContextReset():
                session = self._session(data.session_id)
                session.size = session.deferred = None
                return []
            case _:
                return []
        entries = list(self._evaluate(record, size, logged_ms, now_ms))
        for entry in entries:
            self.note(entry)
        return entries

    def _evaluate(
        self, record: Record, size: ContextSize, logged_ms: int, now_ms: int
    ) -> Iterator[CommandEntry]:
        session_id = record.data.session_id
        session = self._session(session_id)
        before, session.size, session.deferred = session.size, size, None
        thresholds = self._book.of(session.subject(session_id, size.model))
        if not thresholds.automatic or self._has_fired(record, session):
            return
        sizes = thresholds.sizes(size.window)
        if size.window is None or sizes is None:
            yield from self._idle(record, size, sizes, "unknown_window", now_ms)
            return
        if size.used_tokens < sizes.compact_at:
            session.below()
            return
        is_change = (
            before is not None
            and session.was_below
            and (before.model, before.window) != (size.model, size.window)
            and before.used_tokens >= sizes.compact_at
        )
        reason = self._why_not(record, size, sizes, logged_ms, now_ms)
        if reason == "command_open":
            yield from self._made_urgent(record, session, size, sizes, now_ms)
        if reason is not None:
            if reason in _PASSING:
                session.deferred = Deferred(record, size, logged_ms)
                _remember(self._deferred, session_id, None, MOST_SESSIONS)
            yield from self._idle(record, size, sizes, reason, now_ms)
            return
        yield from self._fire(record, size, sizes, "model_change" if is_change else "auto", now_ms)

    def _why_not(
        self, record: Record, size: ContextSize, sizes: Sizes, logged_ms: int, now_ms: int
    ) -> IdleReason | None:
        if size.window_source == "default":
            return "default_window"
        if not self._is_fresh(record, logged_ms, now_ms):
            return "record_too_old"
        session = self._session(record.data.session_id)
        if session.open:
            session.was_below = False
            return "command_open"
        return session.above(size, sizes, now_ms)

    def _has_fired(self, record: Record, session: SessionMemory) -> bool:
        """Return whether a record is read again whose command is in the log."""
        command_id = id_of("command", record.id)
        return command_id in session.open or command_id in self._finished

    def _is_fresh(self, record: Record, logged_ms: int, now_ms: int) -> bool:
        """Return whether a record is young by its own time and by Kafka's."""
        oldest_ms = now_ms - self._max_age_ms
        return record.time_ms is not None and min(record.time_ms, logged_ms) >= oldest_ms

    def _fire(
        self, record: Record, size: ContextSize, sizes: Sizes, trigger: CommandTrigger, now_ms: int
    ) -> Iterator[CommandEntry]:
        is_urgent = _is_hard(size, sizes)
        command_id = id_of("command", record.id)
        reason: FiredReason = "above_threshold"
        if is_urgent:
            reason = "hard_limit"
        elif trigger == "model_change":
            reason = "model_change"
        yield CommandEntry(
            id_of("decided", command_id),
            now_ms,
            _decided(record, size, sizes, reason, command_id),
        )
        yield CommandEntry(
            id_of("requested", command_id),
            now_ms,
            CompactRequested(
                session_id=record.data.session_id,
                command_id=command_id,
                trigger=trigger,
                requested_by=REQUESTED_BY,
                cause_id=record.id,
                urgent=is_urgent,
            ),
        )

    def _made_urgent(
        self, record: Record, session: SessionMemory, size: ContextSize, sizes: Sizes, now_ms: int
    ) -> Iterator[CommandEntry]:
        """Request the open command again as an urgent one, where the size reached `hard_at`."""
        command_id, is_urgent = next(iter(session.open.items()))
        entry_id = id_of("urgent", command_id)
        if is_urgent or not _is_hard(size, sizes) or entry_id in self._known:
            return
        yield CommandEntry(
            id_of("decided urgent", command_id),
            now_ms,
            _decided(record, size, sizes, "hard_limit", command_id),
        )
        yield CommandEntry(
            entry_id,
            now_ms,
            CompactRequested(
                session_id=record.data.session_id,
                command_id=command_id,
                trigger="auto",
                requested_by=REQUESTED_BY,
                cause_id=record.id,
                urgent=True,
            ),
        )

    def _idle(
        self,
        record: Record,
        size: ContextSize,
        sizes: Sizes | None,
        reason: IdleReason,
        now_ms: int,
    ) -> Iterator[CommandEntry]:
        """Give a decision that did not fire, once for its reason, window and epoch."""
        entry_id = id_of("idle", record.data.session_id, size.epoch, size.window, reason)
        if entry_id not in self._known:
            yield CommandEntry(entry_id, now_ms, _decided(record, size, sizes, reason, None))

    def _session(self, session_id: str) -> SessionMemory:
        session = self._sessions.pop(session_id, None) or SessionMemory()
        _remember(self._sessions, session_id, session, MOST_SESSIONS)
        return session


def _is_hard(size: ContextSize, sizes: Sizes) -> bool:
    return sizes.hard_at is not None and size.used_tokens >= sizes.hard_at


def _decided(
    record: Record,
    size: ContextSize,
    sizes: Sizes | None,
    reason: DecisionReason,
    command_id: str | None,
) -> CompactionDecided:
    return CompactionDecided(
        session_id=record.data.session_id,
        fired=command_id is not None,
        reason=reason,
        command_id=command_id,
        cause_id=record.id,
        model=size.model,
        used_tokens=size.used_tokens,
        window=size.window,
        window_source=size.window_source,
        threshold_tokens=None if sizes is None else sizes.compact_at,
    )


def _remember(memory: OrderedDict[str, _Value], key: str, value: _Value, most: int) -> None:
    memory.pop(key, None)
    memory[key] = value
    while len(memory) > most:
        memory.popitem(last=False)
