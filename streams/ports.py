"""What the flows ask of the outside world, as Protocols.

Each port has a real adapter and an in-memory twin under `streams/edge`, and one contract suite
in `tests/contract` that both must pass. Offsets are never contiguous: transaction markers take
some, so the next offset of a partition is what `position` says, never `last offset + 1`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from schemas.topics import Topic
from schemas.views import EntryStream

Headers: TypeAlias = tuple[tuple[str, bytes], ...]


class LogRecord(NamedTuple):
    """One record read from a partition.

    `timestamp_ms` is the record's Kafka timestamp: the producer's clock (CreateTime) where
    `created` is true, else the broker's (LogAppendTime).
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    created: bool = True


class NewRecord(NamedTuple):
    """One record to append. A `value` of None is a tombstone."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Batch(NamedTuple):
    """What one poll of a partition gave: records, and the position after it.

    `position` lies beyond the last record where a transaction marker follows; a batch without
    records may still advance it.
    """

    records: Sequence[LogRecord]
    position: int


class TransactionalProducer(Protocol):
    """The one producer of an input partition, with a transactional id of its own."""

    async def start(self) -> None:
        """Initialise: fence an older producer of this id and settle its transaction."""

    async def commit(
        self,
        records: Sequence[NewRecord],
        group: str,
        group_offsets: Mapping[tuple[str, int], int],
    ) -> Mapping[tuple[str, int], int]:
        """Append all records and the group's offsets in one transaction, or nothing.

        Returns the end of each partition written to, the transaction's marker included: the
        partition's committed end as long as no one else has written since.
        Raises FencedError if another producer took the id over, RetryError if the broker is
        away or did not answer in time: then the transaction may have been committed or not, and
        only what a new producer finds once it has started tells. The producer is spent then.
        """

    async def stop(self) -> None:
        """Close. A transaction that was left running is settled by the id's next `start`."""


class Producer(Protocol):
    """An idempotent producer for publishing, in order within a partition."""

    async def start(self) -> None: ...

    async def send(self, record: NewRecord) -> None:
        """Queue a record; waits while the buffer is full (back-pressure)."""

    async def flush(self) -> None:
        """Wait until all that was queued is acknowledged; raises what failed."""

    async def stop(self) -> None: ...


class PartitionReader(Protocol):
    """Reads assigned partitions of one topic, `read_committed`, without a group."""

    async def start(self) -> None: ...

    async def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset kept and the end: one past the last committed offset."""

    def seek(self, partition: int, offset: int) -> None: ...

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        """Return what is there, at once if anything is; at most `timeout_s` seconds later.

        Raises PositionError if the position is out of the partition's range.
        """

    async def stop(self) -> None: ...


AssignmentCallback: TypeAlias = Callable[[frozenset[int]], Awaitable[None]]


class GroupReader(PartitionReader, Protocol):
    """Reads one topic as a member of a consumer group.

    An assigned partition stays paused until `resume`; `join` takes the two callbacks, which
    are awaited inside the rebalance: all of the former assignment is revoked before the new one
    is assigned (eager).
    """

    async def join(self, on_revoked: AssignmentCallback, on_assigned: AssignmentCallback) -> None:
        """Join the group; the callbacks get partition numbers."""

    def resume(self, partition: int) -> None:
        """Begin to fetch the partition, from where `seek` put it."""

    async def watch(self) -> None:
        """Run until cancelled, or until the membership fails: RetryError or ConfigError.

        A member without partitions polls none, and would not hear of it otherwise.
        """


class Log(Protocol):
    """A broker: makes readers and producers, and tells of topics."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        """Create those that are missing; return their names."""

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        """Return each topic's number of partitions, None where the topic is missing."""

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer: ...
    def producer(self) -> Producer: ...
    def reader(self, topic: str, partitions: Sequence[int]) -> PartitionReader: ...
    def group_reader(self, topic: str, group: str, instance_id: str | None) -> GroupReader: ...

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets, for lag tools only."""


class StateStore(Protocol):
    """The state of one input partition: a changelog, read back on assignment.

    Keys are opaque bytes; a value of None deletes. What is written goes through the partition's
    transaction, so the store itself only turns changes into records and reads them back.
    """

    def restore(self, partition: int) -> AsyncGenerator[Sequence[tuple[bytes, bytes | None]], None]:
        """Yield the changelog from its begin to its committed end, in batches, in order."""

    async def end(self, partition: int) -> int:
        """Return the changelog's committed end offset."""

    def to_records(self, partition: int, changes: Mapping[bytes, bytes | None]) -> list[NewRecord]:
        """Return the changelog records of these changes."""


class Clock(Protocol):
    """Time, passed in: the flows' only source of it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""

    def monotonic_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


CounterName: TypeAlias = Literal[
    "derive_messages",
    "derive_records",
    "derive_dead_letters",
    "derive_evictions",
    "derive_restores",
    "derive_restored_entries",
    "project_records",
    "project_writes",
    "project_mismatches",
    "worker_transactions",
    "worker_retries",
    "worker_fenced",
]
GaugeName: TypeAlias = Literal[
    "derive_sessions",
    "derive_position",
    "project_position",
    "worker_partitions",
]
HistogramName: TypeAlias = Literal[
    "derive_commit_seconds",
    "derive_batch_messages",
    "derive_restore_seconds",
    "derive_delay_seconds",
    "project_write_seconds",
    "project_batch_records",
    "project_delay_seconds",
]


class Telemetry(Protocol):
    """Figures of a running worker, under names of a closed catalogue.

    `edge/metrics.py` tells what each name means and which labels it takes.
    """

    def count(self, name: CounterName, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""

    def gauge(self, name: GaugeName, value: float, **labels: str) -> None:
        """Set a gauge."""

    def forget(self, name: GaugeName, **labels: str) -> None:
        """Drop a gauge that is no longer this worker's to tell, as of a revoked partition."""

    def observe(self, name: HistogramName, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""


Ranking: TypeAlias = Literal["recent", "pressure"]
"""How a partition's sessions are ranked: by last activity (ms), by used percent."""

ApplyResult: TypeAlias = Literal["applied", "done", "mismatch", "damaged"]
"""What became of a batch: written; there already; the stored position is another one; what is
stored is not what such a position left behind. Nothing was written but with `applied`."""


class Generations(NamedTuple):
    """Which generation readers use, and which is being built, by which build; or neither."""

    active: int | None
    next: int | None
    build: str = ""


class ViewPosition(NamedTuple):
    """How far a partition of a generation has come.

    `offset` is the next one to read, `begin` the first one that was ever read, `partitions` the
    number of partitions that sessions are spread over.
    `caught_up`: it has reached the end that the log had when the generation was begun. `build`:
    of the generation, when the partition was begun.
    """

    offset: int
    begin: int
    partitions: int
    caught_up: bool
    build: str = ""


class Entry(NamedTuple):
    """One entry of a stream: the record's offset, and a document."""

    offset: int
    document: bytes


class ViewChanges(NamedTuple):
    """Absolute values to write at once. Sessions are keys (`codec.key_bytes`), documents bytes.

    `leaving` are sessions that go with all their documents before anything else is written, and
    the Kafka time at which they go. A pressure of None takes a session out of that ranking; a
    field of the stats that is None is dropped. `idle` is each session's last Kafka timestamp.
    Entries ascend by offset.
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


class ViewReader(Protocol):
    """The reading half of the view store: all that readers may use.

    Every method but `generations` names a generation, so no answer is put together of two.
    Raises RetryError while the store is away, VersionError where its format is not known.
    """

    async def start(self) -> None: ...
    async def stop(self) -> None: ...

    async def generations(self) -> Generations: ...

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        """Return a partition's position; None where it is not there or is being dropped."""

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        """Return the sessions' views, None where there is none."""

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return the first sessions of a ranking with their scores, the highest first."""

    async def session_count(self, generation: int, partition: int) -> int: ...

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        """Return a session's compactions by name."""

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        """Return the entries of offsets above `after`, oldest first."""

    async def stats(self, generation: int, partition: int) -> dict[bytes, bytes]: ...

    async def dump(self, generation: int, partition: int) -> PartitionDump:
        """Return everything, for checks: not for a partition that is being served."""


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
        again settles it.
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
        """Tell of each session whether it left for idleness, which is no loss."""

    async def begin_next(self, generation: int, build: str) -> None:
        """Set the generation to be built, and its build, unless there is one."""

    async def is_there(self, generation: int, partition: int) -> bool:
        """Tell whether there is something to drop: half dropped, or of any format, too."""

    async def caught_up(self, generation: int, partition: int, build: str) -> None:
        """Mark a partition of the next generation, if it was begun for this build."""

    async def activate(self, generation: int, build: str) -> None:
        """Make readers use a generation, unless they use this or a later one already."""

    async def drop(self, generation: int, partition: int) -> None:
        """Delete a partition, whatever is in it. No one can write to it before that is done."""
