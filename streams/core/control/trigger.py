"""When a session is to be compacted: records in, decisions and requests out.

    the size is below compact_at ................. nothing, nor where less than a tenth of the
                                                   window was added since a compaction
    not opted in, or not the main chain .......... nothing
    the window is assumed, or unknown ............ not fired
    the record is older than max_age ............. not fired
    its runtime compacts itself .................. not fired, unless by a driver, or its agent asks
                                                   for the context that its model should see
    it is from before the last compaction ........ not fired, nor if of a call that began before it
    a command of the session is open ............. not fired; from hard_at on it is made urgent
    two compactions did not help ................. not fired } but at hard_at, where a tenth of the
    the last one failed, or has just ended ....... not fired } window was added since the last one
    else ......................................... fired

A decision that did not fire is written once for its reason, window and epoch; where time alone
stands against it, or a command has to end first, it is evaluated again (`due`). All ids follow from
what caused them, so reading records again comes to the same entries: of several requests because of
one record, each follows from the record and how many came before it. What became of commands is
read from the log itself (`note`), and what a former worker put off from the records (`recall`).
All of it is pure: the time is passed in.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

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
    Runtime,
    SessionInfo,
)
from streams.core.bounded_memory import BoundedMemory
from streams.core.control.decided import (
    decided,
    fired_entries,
    idle_id,
    is_hard,
    is_of_consequence,
    urgent_entries,
    urgent_id,
)
from streams.core.control.ids import id_of
from streams.core.control.reasons import NO_DRIVER, IdleReason
from streams.core.control.service import SERVICE
from streams.core.control.sessions import ContextSize, SessionMemory, SizeReading
from streams.core.control.thresholds import Sizes, ThresholdBook
from streams.core.late_answers import LateAnswers

MOST_SESSIONS: Final = 50_000
"""Remembered of a partition: some tens of megabytes. The session that was quiet for longest is
forgotten first, and known again by its next reading."""

MOST_IDS: Final = 100_000
"""Entries of the log that are known by their ids, so that they are not written again."""

_PASSING: Final = frozenset[IdleReason]((NO_DRIVER, "command_open", "pause_after_failure"))
"""Reasons that go away without another reading. An effect that is awaited shows in the next one,
unless it is known and only the pause between two requests is not over."""

_LATE_MS: Final = 10_000
"""A record that is read so late may be followed by a newer one: what it would give rise to is put
off until the next look."""

TRIGGER_KINDS: Final = frozenset(
    data.kind
    for data in (CompactBoundary, ContextLimits, ContextReading, ContextReset, SessionInfo)
)
"""Kinds of records that a decision can depend on."""


class Trigger:
    """The decisions of one partition: at most `MOST_SESSIONS` sessions are remembered."""

    def __init__(self, book: ThresholdBook, max_age_ms: int) -> None:
        self._book, self._max_age_ms = book, max_age_ms
        self._sessions = BoundedMemory[str, SessionMemory](MOST_SESSIONS)
        self._known = BoundedMemory[str, None](MOST_IDS)
        self._finished = BoundedMemory[str, bool](MOST_IDS)
        """Commands, and whether each completed."""
        self._deferred = BoundedMemory[str, None](MOST_SESSIONS)
        self._late = LateAnswers()

    def note(self, entry: CommandEntry) -> None:
        """Take an entry of the log, in its order."""
        is_new = entry.id not in self._known
        self._known[entry.id] = None
        match entry.data:
            case ThresholdsSet() as data:
                self._book.apply(data)
            case CompactRequested() as data:
                # A request that is written again after its outcome is not open.
                if data.command_id not in self._finished:
                    self._session(data.session_id).requested(data, entry.time_ms)
            case CommandFinished() as data:
                self._finished[data.command_id] = data.outcome == "completed"
                self._session(data.session_id).finished(data, entry.time_ms)
            case CompactionDecided() as data if is_new:  # what was decided here is known already
                session = self._session(data.session_id)
                if data.fired:
                    session.fired_tokens = data.used_tokens
                if data.reason == "no_progress" and data.threshold_tokens is not None:
                    session.stopped(entry.id, data.threshold_tokens, data.window)
                elif data.unhelpful is not None:
                    session.counted(data.unhelpful, data.reason)
            case _:
                return

    def needs_identity(self, record: Record, logged_ms: int, now_ms: int) -> bool:
        """Return whether the agent and the project of a record's session must be looked up."""
        data = record.data
        if data.chain != MAIN_CHAIN or not self._is_fresh(record, logged_ms, now_ms):
            return False
        reading = self._reading(record, logged_ms)
        if reading is None or not self._depends_on_owner(reading):
            return False
        return self._is_unknown(data.session_id, now_ms)

    def _depends_on_owner(self, reading: SizeReading) -> bool:
        """Return whether a decision depends on whose session it is, or on what runs it."""
        if self._book.needs_identity:
            return True
        size, session = reading.size, self._session(reading.session_id)
        thresholds = self._book.of(session.subject(reading.session_id, size.model))
        sizes = thresholds.sizes(size.window)
        if sizes is None or size.used_tokens < sizes.compact_at or not thresholds.automatic:
            return False
        return thresholds.driver == SERVICE and (session.runtime is None or session.lacks_driver)

    def identify(
        self,
        session_id: str,
        agent_id: str | None,
        project: str | None,
        now_ms: int,
        *,
        runtime: Runtime | None = None,
        asks: bool = False,
    ) -> None:
        """Take whose session it is, as it was looked up; where it is not known, it may be later."""
        session = self._session(session_id)
        session.identify(agent_id, project, runtime)
        session.looked_up(now_ms, asks=asks)

    def unidentified(self, now_ms: int) -> list[str]:
        """Return the sessions that wait to be evaluated until it is known whose they are."""
        unknown = [name for name in self._deferred if self._is_unknown(name, now_ms)]
        return [name for name in unknown if self._is_held_up(name)]

    def _is_held_up(self, session_id: str) -> bool:
        """Return whether what was put off depends on whose session it is."""
        deferred = self._session(session_id).deferred
        return deferred is not None and self._depends_on_owner(deferred)

    def _is_unknown(self, session_id: str, now_ms: int) -> bool:
        session = self._sessions.get(session_id)
        return session is None or session.is_to_be_looked_up(now_ms)

    def defer(self, record: Record, logged_ms: int) -> None:
        """Have a record evaluated once it is known whose session it is."""
        reading = self._reading(record, logged_ms)
        if reading is not None:
            self._put_off(reading)

    def recall(self, record: Record, logged_ms: int) -> None:
        """Take a record that a former worker evaluated, in order, after the log's entries."""
        data = record.data
        if isinstance(data, SessionInfo):
            self.observe(record, logged_ms, logged_ms)
        elif data.chain != MAIN_CHAIN:
            return
        elif isinstance(data, (CompactBoundary, ContextReset)):
            self._ended(data, logged_ms)
        else:
            reading = self._reading(record, logged_ms)
            if reading is not None:
                self._session(data.session_id).read(reading.size)
                self._put_off(reading._replace(is_recalled=True))

    def restored(self, since_ms: int) -> None:
        """End the recalling: what earlier compactions did showed in readings from before."""
        for session in self._sessions.values():
            if session.completed_ms < since_ms and session.awaits_effect:
                session.awaits_effect = False
                session.unhelpful = 0  # the last one may have helped

    def _put_off(self, reading: SizeReading) -> None:
        self._session(reading.session_id).deferred = reading
        self._deferred[reading.session_id] = None

    def due(self, now_ms: int) -> list[CommandEntry]:
        """Return what sessions give rise to whose time has come: an agent that waits is silent."""
        entries: list[CommandEntry] = []
        for session_id in list(self._deferred):
            session = self._sessions.get(session_id)
            deferred = None if session is None else session.deferred
            is_known = session is None or session.is_known(self._book.needs_identity)
            if not is_known and self._is_held_up(session_id):
                continue
            del self._deferred[session_id]
            if deferred is None or not self._is_put_off(deferred):
                continue
            evaluated = self._evaluate(deferred, now_ms, is_again=True)
            entries += map(self._counted, evaluated)
        for entry in entries:
            self.note(entry)
        return entries

    def _is_put_off(self, reading: SizeReading) -> bool:
        """Return whether a recalled reading was put off: it is evaluated as it was then."""
        if not reading.is_recalled:
            return True
        entries = list(self._evaluate(reading, reading.logged_ms))
        is_due = any(map(is_of_consequence, entries))
        return is_due or self._session(reading.session_id).deferred is not None

    def observe(self, record: Record, logged_ms: int, now_ms: int) -> list[CommandEntry]:
        """Return what a record gives rise to. `logged_ms` is its Kafka timestamp."""
        data = record.data
        if isinstance(data, SessionInfo):
            who = (data.publisher_agent_id, data.cwd, data.runtime)
            self._session(data.session_id).identify(*who)
            return []
        if data.chain != MAIN_CHAIN or data.inherited or not self._book.may_be_automatic:
            return []
        if isinstance(data, (CompactBoundary, ContextReset)):
            self._ended(data, logged_ms)
            return []
        reading = self._reading(record, logged_ms)
        if reading is None:
            return []
        entries = list(map(self._counted, self._evaluate(reading, now_ms)))
        for entry in entries:
            self.note(entry)
        return entries

    def _ended(self, data: CompactBoundary | ContextReset, logged_ms: int) -> None:
        is_compacted = isinstance(data, CompactBoundary)
        self._session(data.session_id).ended(logged_ms, is_compacted=is_compacted)
        self._late.ended(data)

    def _counted(self, entry: CommandEntry) -> CommandEntry:
        """Return an entry; a decision with how many compactions did not help: for who is next."""
        data = entry.data
        if not isinstance(data, CompactionDecided):
            return entry
        session = self._session(data.session_id)
        unhelpful = None if session.awaits_effect else session.unhelpful
        return replace(entry, data=replace(data, unhelpful=unhelpful))

    def _reading(self, record: Record, logged_ms: int) -> SizeReading | None:
        """Return the size that a record changes a session's to; None where it does not."""
        data = record.data
        if isinstance(data, ContextReading):
            is_late = data.late or self._late.reported(record)
            return None if is_late else SizeReading(record, ContextSize.of(data), logged_ms)
        if not isinstance(data, ContextLimits):
            return None
        before = self._session(data.session_id).size
        size = None if before is None else before.within(data)
        return None if size is None else SizeReading(record, size, logged_ms)

    def _evaluate(
        self, reading: SizeReading, now_ms: int, *, is_again: bool = False
    ) -> Iterator[CommandEntry]:
        reading = reading._replace(is_recalled=False)
        record, size, logged_ms, _ = reading
        session_id = reading.session_id
        session = self._session(session_id)
        before, session.deferred = session.size, None
        session.read(size)
        command_id, number = self._command_of(record)
        if command_id is None:
            return
        # The record's own request is under way: its outcome decides whether another one is due.
        if command_id in session.open:
            self._put_off(reading)
            return
        thresholds = self._book.of(session.subject(session_id, size.model))
        if not thresholds.automatic:
            return
        sizes = thresholds.sizes(size.window)
        if size.window is None or sizes is None:
            yield from self._idle(reading, sizes, "unknown_window", now_ms)
            return
        if session.rests(size, sizes):
            return
        is_change = (
            before is not None
            and session.was_below
            and (before.model, before.window) != (size.model, size.window)
            and before.used_tokens >= sizes.compact_at
        )
        is_served = thresholds.driver == SERVICE
        reason = self._why_not(reading, sizes, now_ms, is_served=is_served)
        if reason == "command_open":
            yield from self._made_urgent(reading, session, sizes, now_ms)
        if reason is not None:
            is_pause = reason == "awaiting_effect" and not (
                session.awaits_effect or logged_ms <= session.completed_ms
            )
            if is_pause or reason in _PASSING:
                self._put_off(reading)
            yield from self._idle(reading, sizes, reason, now_ms)
            return
        self._put_off(reading)
        if not is_again and (number or now_ms - logged_ms > _LATE_MS):
            return
        trigger: CommandTrigger = "model_change" if is_change else "auto"
        yield from fired_entries(reading, sizes, trigger, command_id, now_ms)

    def _why_not(
        self, reading: SizeReading, sizes: Sizes, now_ms: int, *, is_served: bool
    ) -> IdleReason | None:
        record, size, logged_ms, _ = reading
        if size.window_source == "default":
            return "default_window"
        if not self._is_fresh(record, logged_ms, now_ms):
            return "record_too_old"
        session = self._session(reading.session_id)
        if is_served and session.lacks_driver:
            return NO_DRIVER
        if logged_ms <= session.completed_ms:
            return "awaiting_effect"
        if session.open:
            session.was_below = False
            return "command_open"
        if session.stopped_by not in {None, idle_id(reading, "no_progress")}:
            session.doubted()
        return session.above(size, sizes, now_ms)

    def _command_of(self, record: Record) -> tuple[str | None, int]:
        """Return the id of a record's latest command, and how many came before it.

        It is open, or to be requested; None where one completed. What another outcome ended is
        requested again.
        """
        command_id, number = id_of("command", record.id), 0
        while command_id in self._finished:
            if self._finished[command_id]:
                return None, number
            number += 1
            command_id = id_of("command", record.id, number)
        return command_id, number

    def _is_fresh(self, record: Record, logged_ms: int, now_ms: int) -> bool:
        """Return whether a record is young by its own time and by Kafka's."""
        oldest_ms = now_ms - self._max_age_ms
        # By the older of both: a file that is published late has new times in Kafka.
        return record.time_ms is not None and min(record.time_ms, logged_ms) >= oldest_ms

    def _made_urgent(
        self, reading: SizeReading, session: SessionMemory, sizes: Sizes, now_ms: int
    ) -> Iterator[CommandEntry]:
        """Request the open command again as an urgent one, where the size reached `hard_at`."""
        command_id, is_urgent = next(iter(session.open.items()))
        if is_urgent or not is_hard(reading.size, sizes) or urgent_id(command_id) in self._known:
            return
        yield from urgent_entries(reading, sizes, command_id, now_ms)

    def _idle(
        self, reading: SizeReading, sizes: Sizes | None, reason: IdleReason, now_ms: int
    ) -> Iterator[CommandEntry]:
        """Give a decision that did not fire, once for its reason, window and epoch."""
        entry_id = idle_id(reading, reason)
        if entry_id not in self._known:
            yield CommandEntry(entry_id, now_ms, decided(reading, sizes, reason, None))

    def _session(self, session_id: str) -> SessionMemory:
        # It moves to the end: the first session is the one that was quiet for longest.
        session = self._sessions[session_id] = self._sessions.get(session_id) or SessionMemory()
        return session
