"""Compares the active views with the log: each partition is folded in memory.

The projector goes on meanwhile. Documents are read at one moment with the position that they are
of, and the fold goes to exactly that position, so nothing has to wait and no reader is affected.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from contextgauge.errors import StopError
from streams import codec
from streams.flow.common.log_place import is_of_topic
from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import report_passed
from streams.flow.project.fold import FIRST_STATS, Fold, LoggedRecord, logged_record
from streams.flow.project.partition import LEAVING_SESSIONS
from streams.flow.project.view_write import ViewWrite
from streams.ports import (
    Batch,
    Clock,
    Log,
    PartitionDocuments,
    PartitionDump,
    PartitionReader,
    SessionDocuments,
    ViewChanges,
    ViewStore,
    started,
)

_AGENT_SESSIONS = 1_000
"""Of one agent that are compared, the latest: a reply of some tens of kilobytes."""

_SESSIONS_READ = 10
"""A session's documents may be some megabytes, and Redis serves no one else meanwhile."""

REPORTED_DIFFERENCES = 10
"""Differences that are reported; the others are counted."""

_REPORTED_FIELDS = 5
"""Fields that are reported of one session."""


class FoldedDocuments(Protocol):
    """A partition's documents in memory."""

    held: PartitionDump

    def write(self, changes: ViewChanges) -> None:
        """Write the changes."""

    def longest_idle(self, before_ms: int, limit: int) -> list[bytes]:
        """Return sessions whose last Kafka timestamp lies before, the longest idle first."""


class ViewFold:
    """Folds one partition's records, as they come, into documents."""

    def __init__(self, documents: FoldedDocuments, idle_ms: int) -> None:
        self._fold = Fold(strict=False, idle_ms=idle_ms)
        self._idle_ms = idle_ms
        self.documents = documents
        documents.held.stats.update(FIRST_STATS)

    def add(self, placed: LoggedRecord) -> None:
        """Fold the next record."""
        fold, call = self._fold, ViewWrite()
        for missing in fold.missing([placed.session]):
            fold.put_view(missing, None)
        idle_since_ms = fold.leaving_before(placed)
        if idle_since_ms is not None:
            idle = self.documents.longest_idle(idle_since_ms, LEAVING_SESSIONS)
            call.agents.update(fold.leave(idle, all_of_them=len(idle) < LEAVING_SESSIONS))
            call.leaving.update(dict.fromkeys(idle, idle_since_ms + self._idle_ms))
        documents = fold.add(placed)
        if documents is not None:
            call.add(documents)
        self.documents.write(call.changes())


class Difference(NamedTuple):
    """Fields in which a session, or the partition, differs: their names, never their values."""

    partition: int
    session: str | None
    fields: tuple[str, ...]


class Cut(NamedTuple):
    """A partition whose log no longer has records that the views contain."""

    partition: int
    views_begin: int
    log_begin: int


@dataclass(slots=True)
class AuditResult:
    """The result: how many sessions were compared, and how many differences there are."""

    generation: int
    sessions: int = 0
    different: int = 0
    first: list[Difference] = field(default_factory=list)
    cut: list[Cut] = field(default_factory=list)

    def add(self, partition: int, session: bytes | None, fields: Sequence[str]) -> None:
        """Count a difference, if there are any fields."""
        if not fields:
            return
        self.different += 1
        if len(self.first) < REPORTED_DIFFERENCES:
            more = ("…",) if len(fields) > _REPORTED_FIELDS else ()
            name = None if session is None else session.decode("utf-8", "backslashreplace")
            names = (*fields[:_REPORTED_FIELDS], *more)
            self.first.append(Difference(partition, name, names))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPorts:
    """What an audit uses. `new_documents` gives an empty partition in memory."""

    log: Log
    store: ViewStore
    clock: Clock
    events_topic: str
    idle_ms: int
    new_documents: Callable[[], FoldedDocuments]


async def audit(ports: AuditPorts) -> AuditResult:
    """Compare all partitions of the active generation. Raises RetryError, StopError."""
    generation = (await ports.store.generations()).active
    # One partition stands for all: they are of one topic, and have one number of partitions.
    first = None if generation is None else await ports.store.position(generation, 0)
    if generation is None or first is None:
        raise StopError("there are no views to compare: project workers build them")
    if not await is_of_topic(ports.log, ports.events_topic, first.log.topic_id):
        raise StopError(
            f"the views are of another topic than {ports.events_topic} is now: it was created "
            "again. Running project workers notice it and rebuild the views"
        )
    audited = AuditResult(generation)
    for partition in range(first.partitions):
        async with started(ports.log.reader(ports.events_topic, [partition])) as reader:
            await _PartitionAudit(ports, reader, partition, audited).run()
    return audited


class _PartitionAudit:
    """The audit of one partition."""

    def __init__(
        self, ports: AuditPorts, reader: PartitionReader, partition: int, audited: AuditResult
    ) -> None:
        self._ports, self._reader, self._partition = ports, reader, partition
        self._audited = audited
        documents = ports.new_documents()
        self._fold, self._own = ViewFold(documents, ports.idle_ms), documents.held
        self._place = (audited.generation, partition)
        self._position = self._end = 0
        self._offset = self._views_begin = 0
        """The stored position as of the last documents, and the first offset in the views."""
        self._was_deleted = False
        """Whether retention deleted records just before they were read."""

    async def run(self) -> None:
        """Fold the log, and compare everything."""
        store, audited, partition = self._ports.store, self._audited, self._partition
        self._position, self._end = await self._reader.bounds(partition)
        stored = await store.position(*self._place)
        self._views_begin = 0 if stored is None else stored.begin
        self._note_cut(self._position)
        offset, documents = await store.partition_documents(*self._place)
        await self._fold_to(offset)
        own = PartitionDocuments.of(self._own)
        audited.add(partition, None, _differing(documents, own))
        sessions = await self._session_names()
        for start in range(0, len(sessions), _SESSIONS_READ):
            # Each portion is of a later position, up to which the fold goes on.
            names = sessions[start : start + _SESSIONS_READ]
            offset, stored_sessions = await store.session_documents(*self._place, names)
            await self._fold_to(offset)
            for name, session in zip(names, stored_sessions, strict=True):
                own_session = SessionDocuments.of(self._own, name)
                audited.add(partition, name, _differing_session(session, own_session))
        audited.sessions += documents.sizes["recent"]
        for agent in sorted(self._own.agents):
            await self._compare_agent(agent)

    async def _session_names(self) -> list[bytes]:
        """Return the sessions that the views have, and those of the log."""
        names, cursor = {*self._own.rankings["recent"], *self._own.left}, 0
        while True:
            cursor, more = await self._ports.store.session_names(*self._place, cursor)
            # A scan of Redis may return a name twice, and ends where the cursor is 0 again.
            names.update(more)
            if cursor == 0:
                return sorted(names)

    async def _compare_agent(self, agent: bytes) -> None:
        """Compare the latest sessions of an agent, read while no record was folded."""
        store = self._ports.store
        before = await store.position(*self._place)
        while True:
            stored = await store.agent_sessions(*self._place, agent, _AGENT_SESSIONS)
            after = await store.position(*self._place)
            if before == after or None in (before, after):
                break
            before = after
        await self._fold_to(None if after is None else after.offset)
        own = {(score, name) for name, score in self._own.agents.get(agent, {}).items()}
        latest = [(name, score) for score, name in sorted(own, reverse=True)[:_AGENT_SESSIONS]]
        self._audited.add(self._partition, None, [f"agent {_text(agent)}"] * (latest != stored))

    async def _fold_to(self, offset: int | None) -> None:
        """Fold what the log has before an offset, which is the stored position."""
        if offset is None or offset < self._offset:
            raise StopError(
                f"generation {self._audited.generation} was replaced, lost, or set back to an "
                "earlier position while it was compared: run the command again"
            )
        self._offset = offset
        if offset > self._end:
            # Workers went on since the end was read.
            _, self._end = await self._reader.bounds(self._partition)
        if offset > self._end:
            raise StopError(
                f"partition {self._partition}: the log ends at {self._end}, before the views' "
                f"position {offset}: the topic was created again, or lost its end. Running project "
                "workers notice it and rebuild the views"
            )
        async with aclosing(self._read(offset)) as batches:
            async for records, position in batches:
                for record in records:
                    self._fold.add(logged_record(self._partition, record))
                self._position = position
        if self._was_deleted:
            self._was_deleted = False
            self._note_cut((await self._reader.bounds(self._partition))[0])

    def _note_cut(self, log_begin: int) -> None:
        """Note where the log begins, if the views have earlier records; once per partition."""
        if self._views_begin < log_begin:
            cuts = self._audited.cut
            cuts[:] = [cut for cut in cuts if cut.partition != self._partition]
            cuts.append(Cut(self._partition, self._views_begin, log_begin))

    def _note_deleted(self) -> None:
        self._was_deleted = True

    def _read(self, end: int) -> AsyncGenerator[Batch, None]:
        return read_range(
            self._reader,
            self._ports.clock,
            self._partition,
            self._position,
            end,
            deleted=self._note_deleted,
            passed=report_passed,
        )


def _differing(one: PartitionDocuments, other: PartitionDocuments) -> list[str]:
    """Return what differs: fields of the stats and sets of sessions by their names."""
    fields = [f"stats {_text(name)}" for name in _unequal(one.stats, other.stats)]
    fields += ["live"] * (one.live != other.live)
    return fields + _unequal(one.sizes, other.sizes)


def _differing_session(one: SessionDocuments, other: SessionDocuments) -> list[str]:
    """Return what differs: fields of the view by their paths, other documents by their names."""
    if (one.view is None) != (other.view is None):
        return ["missing in the views" if one.view is None else "not in the log"]
    fields = _unequal_fields(_read_view(one.view), _read_view(other.view), "")
    if one.view != other.view and not fields:
        # Equal as JSON, but not byte for byte.
        fields = ["view"]
    # All between the view, compared above, and the scores, compared below.
    pairs = zip(one._fields[1:-1], one[1:-1], other[1:-1], strict=True)
    fields += [name for name, a, b in pairs if a != b]
    return fields + _unequal(one.scores, other.scores)


def _read_view(view: bytes | None) -> object:
    """Return a view's fields; none if it is damaged."""
    try:
        return {} if view is None else codec.loads(view)
    except ValueError:
        return {}


def _unequal(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> list[Any]:
    """Return the names whose values differ, or that only one has."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _unequal_fields(one: object, other: object, path: str) -> list[str]:
    """Return the paths below which two JSON values differ."""
    if one == other:
        return []
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return [path or "view"]
    below = f"{path}." if path else ""
    paths: Iterable[list[str]] = (
        _unequal_fields(one.get(name), other.get(name), below + name)
        for name in _unequal(one, other)
    )
    return [changed for some in paths for changed in some]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
