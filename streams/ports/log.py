"""The broker: records, readers, producers, topics.

Offsets are never contiguous: transaction markers take some, so the next offset of a partition is
in `position`, never `last offset + 1`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, overload
from uuid import UUID

from contextgauge.containers import Line
from contextgauge.errors import StopError
from contextgauge.ports import Cluster, Headers, NewRecord
from schemas.topics import Topic


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


UnreadableReason: TypeAlias = Literal["batch_too_large", "batch_damaged"]
"""Why a batch cannot be read: it unpacks to too much, or is not what a producer writes."""


class UnreadableBatch(NamedTuple):
    """A batch of a partition whose records cannot be read, with its bytes as the broker has them.

    It takes the offsets from `first_offset`, where the reader stands, to before `next_offset`; None
    where the damage leaves open where it ends. `records` is how many it claims to have.
    """

    topic: str
    partition: int
    first_offset: int
    next_offset: int | None
    records: int
    timestamp_ms: int
    content: bytes
    reason: UnreadableReason
    detail: str


class UnreadableBatchError(StopError):
    """The next records cannot be read. Who can do without them seeks to `batch.next_offset`."""

    def __init__(self, batch: UnreadableBatch) -> None:
        self.batch = batch
        end, where = batch.next_offset, f"{batch.topic}-{batch.partition}"
        offsets = (
            f"from {batch.first_offset} on" if end is None else f"{batch.first_offset} to {end - 1}"
        )
        super().__init__(
            f"{where}: the records at offsets {offsets} cannot be read: {batch.detail}"
        )


class Batch(NamedTuple):
    """The result of polling a partition: records, and the position after them.

    `position` lies beyond the last record where a transaction marker follows; a batch without
    records may still advance it.
    """

    records: Sequence[LogRecord]
    position: int


class LineBatch(NamedTuple):
    """Lines read from files, to publish; one without lines: there are no more for now.

    `live`: they were read when they were written (R28). `settle` is to be called once all lines
    are acknowledged.
    """

    lines: Sequence[Line]
    live: bool
    settle: Callable[[], None] = lambda: None


NO_ID: Final = UUID(int=0)
"""Kafka's id of a topic that has none."""


def id_text(topic_id: UUID | None) -> str:
    """Return a topic's id as it is stored with positions, empty if it is not known."""
    return "" if topic_id is None or topic_id == NO_ID else topic_id.hex


class LogPlace(NamedTuple):
    """A place in a partition, and what shows whether a log is still the one that it is in.

    An offset means nothing in another log: a topic may have been deleted and created again,
    restored from a backup, or have lost its end with a broker. `topic_id` is the topic's, empty
    if not known; `digest` identifies the record at `offset`, where there was one.
    """

    topic_id: str = ""
    offset: int | None = None
    digest: str | None = None

    def is_of(self, topic_id: str) -> bool:
        """Return whether it is in the topic of this id, as far as both ids are known."""
        return not self.topic_id or not topic_id or self.topic_id == topic_id


SCATTERED: Final = -1
"""In place of a first offset: others wrote between the transaction's records."""

Approval: TypeAlias = Callable[[Mapping[tuple[str, int], int]], Awaitable[bool]]
"""Whether a transaction is to be committed, by the first offset in each partition."""


class TransactionalProducer(Protocol):
    """The one producer of an input partition, with a transactional id of its own."""

    async def start(self) -> None:
        """Initialise: fence an older producer of this id and settle its transaction."""

    @overload
    async def commit(self, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]: ...

    @overload
    async def commit(
        self, records: Sequence[NewRecord], approve: Approval
    ) -> Mapping[tuple[str, int], int] | None: ...

    async def commit(
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        """Append all records in one transaction, or nothing.

        Returns the end of each partition written to, the transaction's marker included: the
        partition's committed end as long as no one else has written since. A reader may find it a
        moment later: a broker answers when the commit is decided, and writes the markers then.
        `approve` is awaited once the records are written and before they are committed, with the
        offset of the first one of each partition. A reader has everything before these offsets
        by then, and nothing from them on; the offset is SCATTERED where others' records are among
        them. Where it returns False the transaction is aborted: this returns None, and the producer
        can be used again. What it raises is raised, and the producer is spent; it has to return
        within the transaction's timeout.
        Raises FencedError if another producer took the id over, RetryError if the broker is
        away or did not answer in time: then the transaction may have been committed or not, and
        only what a new producer reads after its start is certain. The producer is spent then.
        """

    async def stop(self) -> None:
        """Close. A transaction that was left running is settled by the id's next `start`."""


class Ends(NamedTuple):
    """Where a partition ended when it was last fetched from.

    `stable` is one past the last settled offset, `high` the end with what is not settled yet:
    between the two lie open transactions, and what waits behind them.
    """

    stable: int
    high: int


class PartitionReader(Protocol):
    """Reads assigned partitions of one topic, `read_committed`, without a group."""

    async def start(self) -> None: ...

    async def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset kept and the end: one past the last committed offset."""

    async def offset_at(self, partition: int, timestamp_ms: int) -> int:
        """Return an offset before which all records are older than a time; at most the end.

        It is that of the first record of that time or later, or of a transaction marker before
        it: a marker has the time of its writing. Where producers' clocks differ, records after
        the offset may be older again.
        """

    def seek(self, partition: int, offset: int) -> None: ...

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        """Return what is there, at once if anything is; at most `timeout_s` seconds later.

        Raises PositionError if the position is out of the partition's range, and
        UnreadableBatchError where it is that of a batch that cannot be read: what comes before one
        is returned first. The position stays, so the next poll raises it again.
        """

    def ends(self, partition: int) -> Ends | None:
        """Return where the partition ended by the last fetch; None before there was one.

        Nothing is asked of the broker, so it may be as old as that fetch.
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

    async def commit_offsets(self, positions: Mapping[int, int]) -> None:
        """Commit positions of assigned partitions as the group's offsets, for lag tools only.

        Raises RetryError where the broker does not take them, as from one that is no longer a
        member: nothing depends on it.
        """

    async def watch(self) -> None:
        """Run until cancelled, or until the membership fails: RetryError or ConfigError.

        A member without partitions polls none, and would not hear of it otherwise.
        """


class Log(Cluster, Protocol):
    """A broker: makes readers and producers, and creates topics."""

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        """Create those that are missing; return their names."""

    async def topic_ids(self, names: Sequence[str]) -> Mapping[str, UUID | None]:
        """Return each topic's id, which it gets when it is created.

        None where the broker that is asked does not know the topic, which may be new; NO_ID where
        it is too old to have ids.
        """

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer: ...
    def reader(self, topic: str, partitions: Sequence[int]) -> PartitionReader: ...
    def group_reader(self, topic: str, group: str, instance_id: str | None) -> GroupReader: ...

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets, for lag tools only."""
