"""The view store: what readers may use, and what the projector writes with."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from schemas.views import EntryStream
from streams.ports.log import LogPlace

Ranking: TypeAlias = Literal["recent", "pressure"]
"""How a partition's sessions are ranked: by last activity (ms), by used percent."""

ApplyResult: TypeAlias = Literal["applied", "done", "mismatch", "damaged"]
"""What became of a batch: written; written already by the same call; the stored position is another
one; what is stored is not what such a position left behind. Only `applied` has written anything."""


class Generations(NamedTuple):
    """Which generation readers use, and which is being built, by which build; or neither."""

    active: int | None
    next: int | None
    build: str = ""


class ProjectorHeartbeat(NamedTuple):
    """What a projector reports of a partition about every second, changed or not.

    `at_ms` is when, by its own clock; `end` the offset after the last one that the log has, if
    known; `lag_ms` for how long it has been behind, or the records behind their messages, 0 where
    neither is. `rivals` is how often within
    the last minute another projector had written in its place.
    """

    at_ms: int
    end: int | None
    lag_ms: int
    rivals: int = 0


class ViewPosition(NamedTuple):
    """How far a partition of a generation has come.

    `offset` is the next one to read, `begin` the first one that was ever read, `partitions` the
    number of partitions that sessions are spread over.
    `caught_up`: it has reached the end that the log had when the generation was begun. `build`:
    of the generation, when the partition was begun. `heartbeat` is its projector's last one.
    `writer` names who wrote the position, `log` the last record in the views, by its id.
    """

    offset: int
    begin: int
    partitions: int
    caught_up: bool
    build: str = ""
    heartbeat: ProjectorHeartbeat | None = None
    writer: str = ""
    log: LogPlace = LogPlace()


class HeldCheck(NamedTuple):
    """Whether a partition holds what was written: what differs, and where to go on next time.

    `difference` is empty where nothing does. `cursor` is 0 once all sessions were looked at.
    """

    difference: str = ""
    cursor: int = 0


class Entry(NamedTuple):
    """One entry of a stream: the record's offset, and a document."""

    offset: int
    document: bytes


class LiveBounds(NamedTuple):
    """What a partition's live feed has: from `first` on, all that there ever was if `is_whole`.

    `first` is None where it has nothing.
    """

    first: int | None
    is_whole: bool

    def reaches(self, offset: int) -> bool:
        """Return whether it has every entry from this offset on; False if in doubt."""
        return self.is_whole or (self.first is not None and self.first <= offset)


class ViewChanges(NamedTuple):
    """Absolute values to write at once. Sessions are keys (`codec.key_bytes`), documents bytes.

    `leaving` are sessions that go with all their documents before anything else is written, and
    the Kafka time at which they go. A pressure of None takes a session out of that ranking; a
    field of the stats that is None is dropped. `idle` is each session's last Kafka timestamp.
    `agents` are agents and a session of theirs, with its last activity; None: it is no longer
    theirs. Entries ascend by offset.
    """

    leaving: Mapping[bytes, int]
    views: Mapping[bytes, bytes]
    compactions: Mapping[tuple[bytes, bytes], bytes]
    entries: Sequence[tuple[EntryStream, bytes, Entry]]
    recent: Mapping[bytes, int]
    pressure: Mapping[bytes, float | None]
    idle: Mapping[bytes, int]
    stats: Mapping[bytes, bytes | None]
    live: Sequence[Entry]
    agents: Mapping[tuple[bytes, bytes], int | None]


class PartitionDump(NamedTuple):
    """All documents of one partition of a generation; its position is not among them."""

    views: dict[bytes, bytes]
    compactions: dict[bytes, dict[bytes, bytes]]
    entries: dict[EntryStream, dict[bytes, list[Entry]]]
    rankings: dict[Ranking, dict[bytes, float]]
    idle: dict[bytes, float]
    left: dict[bytes, float]
    stats: dict[bytes, bytes]
    live: list[Entry]
    agents: dict[bytes, dict[bytes, float]]


class SessionDocuments(NamedTuple):
    """What is stored of a session, with its scores in the sets of sessions that it is in."""

    view: bytes | None
    compactions: Mapping[bytes, bytes]
    events: Sequence[Entry]
    readings: Sequence[Entry]
    scores: Mapping[str, float]

    @classmethod
    def of(cls, partition: PartitionDump, session: bytes) -> "SessionDocuments":
        """Return those of one session."""
        entries = partition.entries
        return cls(
            partition.views.get(session),
            dict(partition.compactions.get(session, {})),
            list(entries["events"].get(session, ())),
            list(entries["readings"].get(session, ())),
            {name: held[session] for name, held in _session_sets(partition) if session in held},
        )


class PartitionDocuments(NamedTuple):
    """What is stored of a partition but for its sessions, and how many of them each set has."""

    stats: Mapping[bytes, bytes]
    live: Sequence[Entry]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, partition: PartitionDump) -> "PartitionDocuments":
        """Return those of a partition."""
        return cls(
            dict(partition.stats),
            list(partition.live),
            {name: len(held) for name, held in _session_sets(partition)},
        )


def _session_sets(partition: PartitionDump) -> list[tuple[str, Mapping[bytes, float]]]:
    return [*partition.rankings.items(), ("idle", partition.idle), ("left", partition.left)]


class ViewReader(Protocol):
    """The reading half of the view store: all that readers may use.

    Every method but `generations` names a generation, so no answer mixes two.
    Raises RetryError while the store is away, VersionError where its format is not known.
    """

    async def start(self) -> None: ...
    async def stop(self) -> None: ...

    async def generations(self) -> Generations: ...

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        """Return a partition's position; None where it is not there or is being dropped.

        Raises FormerViewsError where the views have a former format.
        """

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        """Return the sessions' views, None where there is none."""

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return the first sessions of a ranking with their scores, the highest first."""

    async def scores(
        self, generation: int, partition: int, sessions: Sequence[bytes], ranking: Ranking
    ) -> list[float | None]:
        """Return the sessions' scores in a ranking, None for those that are not in it."""

    async def session_count(self, generation: int, partition: int) -> int: ...

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return an agent's first sessions by last activity, the latest first."""

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        """Return a session's compactions by name."""

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        """Return the entries of offsets above `after`, oldest first."""

    async def stats(
        self, generation: int, partition: int, fields: Sequence[bytes] | None = None
    ) -> dict[bytes, bytes]:
        """Return the aggregates by field: all of them, or of these fields those that are there."""

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        """Return the live feed's first entries of offsets above `after`, `limit` at most.

        Where there are none yet it waits for some, up to `wait_s`, at most 2 seconds.
        """

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        """Return what the live feed has."""


class ViewStore(ViewReader, Protocol):
    """The views of all generations.

    A generation's partition has one position, moved with its documents by compare-and-set: of
    two writers one gets `mismatch`.
    """

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        """Write all changes and the position, or nothing.

        `expected` is the offset that the stored position must have; None begins the partition,
        which must not be there. RetryError leaves open whether it was written: the same call
        again settles it, by the position's `writer`, a name that no one else writes under.
        What the partition holds is counted with it, for `check`.
        """

    async def check(self, generation: int, partition: int, cursor: int = 0) -> HeldCheck:
        """Compare what a partition holds with what was counted, at one moment.

        Totals are compared each time, sessions some at a time, from `cursor` on.
        """

    async def pick_compactions(
        self, generation: int, partition: int, names: Sequence[tuple[bytes, bytes]]
    ) -> list[bytes | None]:
        """Return single compactions by session and name."""

    async def idle(
        self, generation: int, partition: int, before_ms: int, limit: int
    ) -> list[bytes]:
        """Return sessions whose last Kafka timestamp lies before, the longest idle first."""

    async def left(self, generation: int, partition: int, sessions: Sequence[bytes]) -> list[bool]:
        """Return for each session whether it left for idleness and has not come back.

        Then it has no view, which is no loss.
        """

    async def session_documents(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> tuple[int | None, list[SessionDocuments]]:
        """Return the position, and what is stored of these sessions at that moment.

        Few at a time: Redis serves no one else meanwhile. The position is None where the partition
        is not there.
        """

    async def partition_documents(
        self, generation: int, partition: int
    ) -> tuple[int | None, PartitionDocuments]:
        """Return the position, and what is stored of the partition at that moment."""

    async def session_names(
        self, generation: int, partition: int, cursor: int = 0
    ) -> tuple[int, list[bytes]]:
        """Return some of the sessions that have views, and where to go on: 0 after the last ones.

        Those that come or leave meanwhile may be missing.
        """

    async def begin_next(self, generation: int, build: str) -> None:
        """Set the generation to be built, and its build, unless there is one."""

    async def is_there(self, generation: int, partition: int) -> bool:
        """Return whether there is anything to drop, even half dropped or of another format."""

    async def caught_up(self, generation: int, partition: int, build: str) -> None:
        """Mark a partition of the next generation, if it was begun for this build."""

    async def report_heartbeat(
        self, generation: int, partition: int, build: str, heartbeat: ProjectorHeartbeat
    ) -> None:
        """Store a heartbeat next to the position, if that is of this build."""

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        """Make readers use a generation, if this build of it is what is being built.

        In one step with the end of the build: one that is not built any more never becomes active,
        nor one of which any of so many partitions has not caught up
        or was dropped. Where a later one is active only the build ends.
        """

    async def drop(self, generation: int, partition: int, build: str | None = None) -> bool:
        """Delete a partition, whatever is in it. No one can write to it before that is done.

        Return False, and delete nothing, where readers use the generation, or where it is the
        next one and not this build of it; with a `build`, where it is not the next one either.
        """
