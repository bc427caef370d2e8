"""The log's twin in memory, for the embedded mode and for tests.

It keeps what the flows rely on: transactions whose markers take offsets, readers that see
nothing of an open or an aborted one, fencing by transactional id, and groups with eager rebalances.
One process, one event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from contextgauge.errors import ConfigError, FencedError, PositionError, RecordError, RetryError
from schemas.topics import Topic
from streams.edge.memory.group import MemoryGroup, MemoryGroupReader
from streams.ports import Batch, Clock, Ends, LogRecord, NewRecord

_BATCH_BYTES = 61
"""What Kafka puts in front of a batch's records; they are counted into a message's size."""

Fate: TypeAlias = Literal["open", "committed", "aborted"]


@dataclass(slots=True)
class Transaction:
    """One transaction: its records are read once it is committed."""

    fate: Fate = "open"
    partitions: list["MemoryTopicPartition"] = field(default_factory=list)

    def end(self, fate: Fate) -> None:
        self.fate = fate
        for partition in self.partitions:
            partition.append(None, None)


@dataclass(slots=True)
class _Entry:
    """What one offset holds: a record, or (None) a marker or a compacted record."""

    record: LogRecord | None
    transaction: Transaction | None


class MemoryTopicPartition:
    """One partition. An offset is an index; those before `first` are no longer kept."""

    def __init__(self, max_message_bytes: int) -> None:
        self.first = 0
        self.max_message_bytes = max_message_bytes
        self.entries: list[_Entry] = []
        self._waiting: set[asyncio.Future[None]] = set()
        self._stable = 0

    def append(self, record: LogRecord | None, transaction: Transaction | None) -> None:
        """Append a record, or a marker, and wake who waits for it."""
        self.entries.append(_Entry(record, transaction))
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    @property
    def next_offset(self) -> int:
        """The offset that the next record will have."""
        return len(self.entries)

    def stable_end(self) -> int:
        """Return the committed end: the first record of an open transaction, else the end."""
        entries = self.entries
        while self._stable < len(entries):
            transaction = entries[self._stable].transaction
            if transaction is not None and transaction.fate == "open":
                break
            self._stable += 1
        return self._stable

    def read(self, offset: int, max_records: int) -> Batch:
        """Return committed records from an offset, and the position after them."""
        if not self.first <= offset <= len(self.entries):
            raise PositionError(
                f"the position {offset} is out of the log's range {self.first} to "
                f"{len(self.entries)}"
            )
        records: list[LogRecord] = []
        end = self.stable_end()
        while offset < end and len(records) < max_records:
            entry = self.entries[offset]
            transaction = entry.transaction
            if entry.record is not None and (
                transaction is None or transaction.fate == "committed"
            ):
                records.append(entry.record)
            offset += 1
        return Batch(records, offset)

    def offset_at(self, timestamp_ms: int) -> int:
        """Return the offset of the first record of a time or later, else the committed end."""
        end = self.stable_end()
        for offset in range(self.first, end):
            record = self.entries[offset].record
            if record is not None and record.timestamp_ms >= timestamp_ms:
                return offset
        return end

    async def wait(self, timeout_s: float) -> None:
        """Wait for the next append, at most so long."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await asyncio.wait([waiting], timeout=timeout_s)
        finally:
            self._waiting.discard(waiting)


class MemoryLog:
    """A broker in this process. `clock` gives the records' timestamps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._topics: dict[str, list[MemoryTopicPartition]] = {}
        self._producers: dict[str, MemoryTransactionalProducer] = {}
        self._groups: dict[tuple[str, str], MemoryGroup] = {}
        self._committed: dict[tuple[str, str], dict[int, int]] = {}

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        created = [topic.name for topic in topics if topic.name not in self._topics]
        limits = {topic.name: topic.max_message_bytes for topic in topics}
        for name in created:
            self._topics[name] = [MemoryTopicPartition(limits[name]) for _ in range(partitions)]
        return created

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        return {name: len(self._topics[name]) if name in self._topics else None for name in names}

    def transactional_producer(self, transactional_id: str) -> "MemoryTransactionalProducer":
        return MemoryTransactionalProducer(self, transactional_id)

    def producer(self) -> "MemoryProducer":
        return MemoryProducer(self)

    def reader(self, topic: str, partitions: Sequence[int]) -> "MemoryPartitionReader":
        return MemoryPartitionReader(self, topic, partitions)

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> MemoryGroupReader:
        key = (group, topic)
        if key not in self._groups:
            self._groups[key] = MemoryGroup(lambda: len(self._topics.get(topic, ())))
        reader = MemoryPartitionReader(self, topic, ())
        offsets = self._committed.setdefault((group, topic), {})
        return MemoryGroupReader(self._groups[key], reader, instance_id, offsets)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        return dict(self._committed.get((group, topic), {}))

    def partition(self, topic: str, partition: int) -> MemoryTopicPartition:
        """Return a partition. Raises ConfigError where there is none such."""
        partitions = self._topics.get(topic, [])
        if partition >= len(partitions):
            raise ConfigError(f"no partition {partition} of topic {topic!r}: create the topics")
        return partitions[partition]

    def check_size(self, record: NewRecord) -> None:
        """Raise RecordError for a record that its topic does not take, as a broker answers.

        It is measured in a batch of its own and not compressed: no broker is stricter.
        """
        limit = self.partition(record.topic, record.partition).max_message_bytes
        headers = sum(len(name.encode()) + len(value) for name, value in record.headers)
        size = _BATCH_BYTES + len(record.key or b"") + len(record.value or b"") + headers
        if size > limit:
            raise RecordError(
                f"a record of {size} bytes for {record.topic} is larger than the topic's "
                f"max.message.bytes, {limit}: raise it to what `contextgauge topics create` sets"
            )

    def write(self, record: NewRecord, transaction: Transaction | None) -> None:
        """Append a record, as part of a transaction or on its own."""
        partition = self.partition(record.topic, record.partition)
        if transaction is not None and partition not in transaction.partitions:
            transaction.partitions.append(partition)
        partition.append(
            LogRecord(
                partition.next_offset,
                self._clock.now_ms() if record.timestamp_ms is None else record.timestamp_ms,
                record.key,
                record.value,
                tuple(record.headers),
            ),
            transaction,
        )

    def take_over(self, transactional_id: str, producer: "MemoryTransactionalProducer") -> None:
        """Make a producer the one of its id: an older one is fenced, its transaction aborted."""
        older = self._producers.get(transactional_id)
        if older is not None and older.running is not None:
            older.running.end("aborted")
            older.running = None
        self._producers[transactional_id] = producer

    def owner(self, transactional_id: str) -> "MemoryTransactionalProducer | None":
        """Return the producer that started last with this id."""
        return self._producers.get(transactional_id)


class MemoryTransactionalProducer:
    """One producer epoch of a transactional id. After an error of `commit` it is spent."""

    def __init__(self, log: MemoryLog, transactional_id: str) -> None:
        self._log = log
        self._id = transactional_id
        self._spent = True
        self.running: Transaction | None = None

    async def start(self) -> None:
        await asyncio.sleep(0)
        self._log.take_over(self._id, self)
        self._spent = False

    async def commit(self, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]:
        if self._spent:
            raise RetryError(f"the producer {self._id} is not started, or spent by an error")
        self._spent = True
        await asyncio.sleep(0)
        if self._log.owner(self._id) is not self:
            raise FencedError(f"another producer took the transactional id {self._id} over")
        for record in records:
            self._log.check_size(record)
        transaction = self.running = Transaction()
        for record in records:
            self._log.write(record, transaction)
        self._end(transaction)
        self.running = None
        self._spent = False
        return {
            (record.topic, record.partition): self._log.partition(
                record.topic, record.partition
            ).next_offset
            for record in records
        }

    def _end(self, transaction: Transaction) -> None:
        transaction.end("committed")

    async def stop(self) -> None:
        self._spent = True


class MemoryProducer:
    """Publishes records, each at once."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def send(self, record: NewRecord) -> None:
        """Append a record. Raises RecordError where it is too large for its topic."""
        self._log.check_size(record)
        self._log.write(record, None)

    async def flush(self) -> None:
        await asyncio.sleep(0)

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""


class MemoryPartitionReader:
    """Reads the given partitions, without a group."""

    def __init__(self, log: MemoryLog, topic: str, partitions: Sequence[int]) -> None:
        self._log = log
        self._topic = topic
        self._partitions = partitions
        self._positions: dict[int, int] = {}

    async def start(self) -> None:
        for partition in self._partitions:
            self._log.partition(self._topic, partition)

    async def bounds(self, partition: int) -> tuple[int, int]:
        log = self._log.partition(self._topic, partition)
        return log.first, log.stable_end()

    async def offset_at(self, partition: int, timestamp_ms: int) -> int:
        return self._log.partition(self._topic, partition).offset_at(timestamp_ms)

    def seek(self, partition: int, offset: int) -> None:
        self._positions[partition] = offset

    def position(self, partition: int) -> int:
        return self._positions.get(partition, 0)

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        # A reader that always finds something must still let the others run.
        await asyncio.sleep(0)
        log = self._log.partition(self._topic, partition)
        batch = log.read(self._positions[partition], max_records)
        if not batch.records and timeout_s > 0:
            await log.wait(timeout_s)
            batch = log.read(self._positions[partition], max_records)
        self._positions[partition] = batch.position
        return batch

    def ends(self, partition: int) -> Ends | None:
        if partition not in self._positions:
            return None
        log = self._log.partition(self._topic, partition)
        return Ends(log.stable_end(), log.next_offset)

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""
