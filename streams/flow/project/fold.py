"""The fold of one partition's records into documents: what a record changes, as bytes.

It holds only the documents that the next records change: its caller loads
what is `missing`, adds records in order, and writes what they give. The worker and the fold of a
whole log both run this; they differ in where documents are kept.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from contextgauge.errors import LostError, VersionError
from contextgauge.frozen import replace
from schemas.records import CompactionTiming, PinsChecked, Record
from schemas.topics import DAY_MS
from schemas.views import (
    MODEL_FIELD,
    PARTITION_FIELD,
    SESSION_IDLE_MS,
    Aggregates,
    Compaction,
    EntryStream,
    PartitionView,
    SessionView,
)
from streams import codec
from streams.codec import view_codec
from streams.core.projection import statistics as project_stats
from streams.core.projection.documents import (
    changeable_compactions,
    compaction,
    compaction_name,
    entry_stream,
    live_entry,
    pressure,
    recency,
    touched_compaction,
)
from streams.core.projection.project import project
from streams.flow.project.sizes import GROWTH, RANKS, heartbeat_bytes, most_bytes
from streams.ports import Entry, LogRecord

PARTITION_KEY = PARTITION_FIELD.encode()
"""The field of the aggregates that is the partition's own account."""

_NOTHING_COUNTED = Aggregates()
_NOTHING_CHANGED: Mapping[bytes, Aggregates | None] = {}

FIRST_STATS: Mapping[bytes, bytes] = {PARTITION_KEY: view_codec.encode(PartitionView())}
"""What a partition's aggregates begin with: if even this is missing, they were lost."""


@dataclass(slots=True, init=False)
class LoggedRecord:
    """A record at its place in the log; `logged_ms` is its Kafka timestamp, if it has one.

    `session` is its session's key. Not changed once it is there: the constructors of this module
    are written out because they are quick so (docs/adr/0023-the-deriver-can-be-compiled.md).
    """

    offset: int
    logged_ms: int | None
    record: Record
    session: bytes

    def __init__(self, offset: int, logged_ms: int | None, record: Record) -> None:
        self.offset = offset
        self.logged_ms = logged_ms
        self.record = record
        self.session = codec.key_bytes(record.data.session_id)


def logged_record(partition: int, record: LogRecord) -> LoggedRecord:
    """Return a record of a partition as the fold takes it. Raises VersionError."""
    try:
        read = codec.from_binary(record.headers, record.value or b"")
    except (ValueError, VersionError) as error:
        raise VersionError(
            f"record {record.offset} of partition {partition} cannot be read: {error}"
        ) from error
    return LoggedRecord(record.offset, record.timestamp_ms, read)


@dataclass(slots=True, init=False)
class Documents:
    """What one record changes. Sessions and fields are keys, documents bytes.

    The view and the aggregates are not: the next record may well replace them. `view_bytes` is
    what the view takes at most, `other_bytes` all else. `agents` as in `ViewChanges`.
    """

    session: bytes
    view: SessionView
    view_bytes: int
    compaction: tuple[bytes, bytes] | None
    entry: tuple[EntryStream, Entry] | None
    recent: int
    pressure: float | None
    idle: int | None
    partition: PartitionView
    stats: Mapping[bytes, Aggregates | None]
    live: Entry
    agents: Mapping[tuple[bytes, bytes], int | None]
    other_bytes: int

    def __init__(self, placed: LoggedRecord, view: SessionView) -> None:
        """Take over what follows from the view; the rest is what the fold sets."""
        self.session = placed.session
        self.view = view
        self.recent = recency(view, placed.logged_ms)
        self.pressure = pressure(view)
        self.idle = placed.logged_ms


class Fold:
    """The documents of one partition that are in memory.

    `strict`: a record whose session's documents are gone raises LostError; else, where the log
    does not have the session's beginning, the view begins there.
    """

    def __init__(self, *, strict: bool, idle_ms: int = SESSION_IDLE_MS) -> None:
        self._strict = strict
        self._idle_ms = idle_ms
        self._views: dict[bytes, SessionView | None] = {}
        self._view_bytes: dict[bytes, int] = {}
        self._loaded_to = 0
        self._compactions: dict[tuple[bytes, bytes], Compaction] = {}
        self._excused: set[bytes] = set()
        self._all_left = False
        self._partition = PartitionView()
        self._aggregates: dict[str, Aggregates] = {}
        self._models: set[str] = set()

    def load_stats(self, stats: Mapping[bytes, bytes]) -> None:
        """Load the partition's aggregates. Raises LostError, VersionError."""
        fields = {name.decode("utf-8", "surrogatepass"): value for name, value in stats.items()}
        partition = fields.pop(PARTITION_FIELD, None)
        if partition is None:
            raise LostError("the partition's aggregates are gone")
        self._partition = view_codec.decode(PartitionView, partition)
        self._aggregates = {
            name: view_codec.decode(Aggregates, value) for name, value in fields.items()
        }
        self._models = {name for name in self._aggregates if name.startswith(MODEL_FIELD)}

    def missing(self, sessions: Iterable[bytes]) -> list[bytes]:
        """Return the sessions whose views are not in memory."""
        return [session for session in sessions if session not in self._views]

    def view(self, session: bytes) -> SessionView | None:
        """Return the view of a session that is in memory."""
        return self._views[session]

    def put_view(self, session: bytes, document: bytes | None) -> list[bytes]:
        """Load a view; return the names of its compactions that are not complete."""
        view = None if document is None else view_codec.decode(SessionView, document)
        self._views[session] = view
        if view is None or document is None:
            return []
        self._view_bytes[session] = len(document)
        self._loaded_to = max(self._loaded_to, view.position)
        return [
            codec.key_bytes(compaction_name(chain.chain, chain.pending.number))
            for chain in view.chains.values()
            if chain.pending is not None
        ]

    def is_ahead(self, position: int) -> bool:
        """Return whether a view that was loaded has records from a position on."""
        return self._loaded_to > position

    def missing_compactions(self, records: Iterable[Record]) -> list[tuple[bytes, bytes]]:
        """Return complete compactions, by session and name, that records add to so late.

        Few get a duration or a check then; holding all that may get one would take much memory.
        """
        places = []
        for record in records:
            if isinstance(record.data, CompactionTiming | PinsChecked):
                session = codec.key_bytes(record.data.session_id)
                name = touched_compaction(self._views[session], record)
                place = None if name is None else (session, codec.key_bytes(name))
                if place is not None and place not in self._compactions:
                    places.append(place)
        return places

    def put_compaction(self, session: bytes, name: bytes, document: bytes | None) -> None:
        """Load a compaction. Raises LostError where there is none."""
        if document is not None:
            self._compactions[session, name] = view_codec.decode(Compaction, document)
        elif self._strict:
            raise LostError("a session's compaction is gone")

    def unexplained(self, placed: Iterable[LoggedRecord]) -> list[bytes]:
        """Return sessions that continue without a view: they left for idleness, or are lost."""
        first: dict[bytes, int] = {}
        for item in placed if self._strict else ():
            first.setdefault(item.session, item.record.sequence)
        return [
            session
            for session, sequence in first.items()
            if sequence > 1 and self._views[session] is None and session not in self._excused
        ]

    def excuse(self, sessions: Iterable[bytes]) -> None:
        """Note sessions that left for idleness: if one continues, its view starts over."""
        self._excused.update(sessions)

    def forget_sessions(self, beyond: int) -> None:
        """Drop the least recently used sessions from memory, beyond so many.

        And all complete compactions, also those that a later record may add to.
        """
        held = self._compactions.items()
        self._compactions = {place: each for place, each in held if not each.complete}
        excess = len(self._views) - beyond
        if excess > 0:
            gone = set(list(self._views)[:excess])
            self._views = {key: view for key, view in self._views.items() if key not in gone}
            for session in gone:
                self._view_bytes.pop(session, None)
            self._excused -= gone
            self._drop_compactions(gone)

    def leaving_before(self, placed: LoggedRecord) -> int | None:
        """Return the Kafka time that sessions must be idle since to leave before this record.

        None where none can leave: they do so from the log's first record of a day (UTC) on, and
        only until none is left.
        """
        before, now_ms = self._partition, placed.logged_ms or 0
        if not before.leaving and not project_stats.enters_day(before.logged_ms, now_ms):
            return None
        # Kafka's timestamps may go back: a day that was entered stays entered.
        return max(now_ms, before.logged_ms or 0) // DAY_MS * DAY_MS - self._idle_ms

    def leave(
        self, sessions: Collection[bytes], *, all_of_them: bool
    ) -> dict[tuple[bytes, bytes], None]:
        """Remove idle sessions before the next record; `all_of_them`: no more are idle.

        Their views must be in memory. Returns the agents that no longer have them.
        """
        agents: dict[tuple[bytes, bytes], None] = {}
        for session in sessions:
            view = self._views[session]
            if view is not None and view.identity.publisher_agent_id is not None:
                agents[codec.key_bytes(view.identity.publisher_agent_id), session] = None
            self._views[session] = None
            self._view_bytes.pop(session, None)
        self._excused.update(sessions)
        self._drop_compactions(sessions)
        self._all_left = all_of_them
        return agents

    def add(self, placed: LoggedRecord) -> Documents | None:
        """Fold the next record; None where its session's view has it already.

        Raises LostError where the session continues and its view is gone.
        """
        record, session, offset = placed.record, placed.session, placed.offset
        before = self._views.pop(session)
        # Inserted at the end: the views in memory are in the order of their last use.
        self._views[session] = before
        continues = before is None and record.sequence > 1
        if continues and self._strict and session not in self._excused:
            raise LostError(f"record {offset} goes on from a view that is gone")
        view = project(before, record, offset)
        if view is before:
            return None
        self._views[session] = view
        documents = Documents(placed, view)
        stream = entry_stream(record)
        if stream is None:
            growth, size = heartbeat_bytes(record), 0
            documents.entry = None
        else:
            event = codec.to_structured(record)
            growth = size = len(event)
            documents.entry = stream, Entry(offset, event)
        view_bytes = self._view_bytes.get(session, 0) + GROWTH * growth
        documents.view_bytes = self._view_bytes[session] = view_bytes
        documents.compaction = touched = self._compact(session, before, view, record)
        documents.stats = stats = self._count(placed, before)
        documents.partition = self._partition
        live = codec.dumps(live_entry(view, record))
        documents.live = Entry(offset, live)
        documents.agents = agents = _agents(session, before, view, documents.recent)
        size += len(live) + RANKS * len(session)
        if touched is not None:
            size += len(touched[1])
        if stats:
            size += sum(len(name) + most_bytes(stat) for name, stat in stats.items())
        if agents:
            size += sum(len(agent) + len(session) for agent, session in agents)
        documents.other_bytes = size
        return documents

    def encoded(self, views: Mapping[bytes, bytes]) -> None:
        """Note the sizes of views that were encoded."""
        for session, document in views.items():
            self._view_bytes[session] = len(document)

    def _compact(
        self, session: bytes, before: SessionView | None, view: SessionView, record: Record
    ) -> tuple[bytes, bytes] | None:
        name = touched_compaction(before, record)
        if name is None:
            return None
        place = (session, codec.key_bytes(name))
        after = compaction(self._compactions.get(place), record)
        if after is None:
            return None
        self._compactions[place] = after
        chain = record.data.chain
        former = None if before is None else before.chains.get(chain)
        touched = {name} if former is None else {name, *changeable_compactions(former)}
        for settled in touched - changeable_compactions(view.chains[chain]):
            self._compactions.pop((session, codec.key_bytes(settled)), None)
        return place[1], view_codec.encode(after)

    def _count(
        self, placed: LoggedRecord, view: SessionView | None
    ) -> Mapping[bytes, Aggregates | None]:
        """Count the record; return the aggregates that changed, but for the partition's own."""
        record, before = placed.record, self._partition
        after = project_stats.advance(before, record, placed.logged_ms)
        if self._all_left:
            after = replace(after, leaving=False)
        self._partition, self._all_left = after, False
        newest_ms = after.newest_ms
        enters_day = project_stats.enters_day(before.newest_ms, newest_ms)
        names = project_stats.fields(record, view, newest_ms)
        names = project_stats.models_capped(names, self._models)
        if not enters_day and not names:
            return _NOTHING_CHANGED
        changed: dict[bytes, Aggregates | None] = {}
        if enters_day:
            # Once a day, so that the hours are not looked through for each record.
            for name in project_stats.hours_too_old(self._aggregates, newest_ms):
                del self._aggregates[name]
                changed[codec.key_bytes(name)] = None
        for name in names:
            known = self._aggregates.get(name, _NOTHING_COUNTED)
            counted = self._aggregates[name] = project_stats.counted(known, record, view)
            if name.startswith(MODEL_FIELD):
                self._models.add(name)
            changed[codec.key_bytes(name)] = counted
        return changed

    def _drop_compactions(self, sessions: Collection[bytes]) -> None:
        gone = [place for place in self._compactions if place[0] in sessions]
        for place in gone:
            del self._compactions[place]


_NO_AGENTS: Mapping[tuple[bytes, bytes], int | None] = {}


def _agents(
    session: bytes, before: SessionView | None, after: SessionView, recent: int
) -> Mapping[tuple[bytes, bytes], int | None]:
    """Return the agent of the session after a record, and the one that no longer has it."""
    former = None if before is None else before.identity.publisher_agent_id
    agent = after.identity.publisher_agent_id
    if agent is None:
        return _NO_AGENTS
    if former is None or former == agent:
        return {(codec.key_bytes(agent), session): recent}
    return {
        (codec.key_bytes(former), session): None,
        (codec.key_bytes(agent), session): recent,
    }
