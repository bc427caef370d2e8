"""The log's twin in memory, for the embedded mode and for tests.

It keeps what the flows rely on: transactions whose markers take offsets, readers that see
nothing of an open or an aborted one, fencing by transactional id, and groups with eager rebalances.
One process, one event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import overload
from uuid import UUID

from contextgauge.errors import ConfigError, FencedError, RecordError, RetryError
from schemas.topics import Topic
from streams.edge.memory.partition import MemoryTopicPartition, Transaction
from streams.edge.memory.readers import MemoryGroup, MemoryGroupReader, MemoryPartitionReader
from streams.ports import Approval, Clock, LogRecord, NewRecord

_BATCH_BYTES = 61
"""What Kafka puts in front of a batch's records; they are counted into a message's size."""


class MemoryLog:
    """A broker in this process. `clock` gives the records' timestamps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._topics: dict[str, list[MemoryTopicPartition]] = {}
        self._ids: dict[str, UUID] = {}
        self._created = 0
        self._producers: dict[str, MemoryTransactionalProducer] = {}
        self._groups: dict[tuple[str, str], MemoryGroup] = {}

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        created = [topic.name for topic in topics if topic.name not in self._topics]
        limits = {topic.name: topic.max_message_bytes for topic in topics}
        for name in created:
            self._topics[name] = [MemoryTopicPartition(limits[name]) for _ in range(partitions)]
            # Counted, not random: a simulation has to give the same ids again.
            self._created += 1
            self._ids[name] = UUID(int=self._created)
        return created

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all that it holds."""
        del self._topics[name], self._ids[name]

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        return {name: len(self._topics[name]) if name in self._topics else None for name in names}

    async def topic_ids(self, names: Sequence[str]) -> dict[str, UUID | None]:
        return {name: self._ids.get(name) for name in names}

    def transactional_producer(self, transactional_id: str) -> "MemoryTransactionalProducer":
        return MemoryTransactionalProducer(self, transactional_id)

    def producer(self) -> "MemoryProducer":
        return MemoryProducer(self)

    def reader(self, topic: str, partitions: Sequence[int]) -> MemoryPartitionReader:
        return MemoryPartitionReader(partial(self.partition, topic), partitions)

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> MemoryGroupReader:
        find = partial(self.partition, topic)
        return MemoryGroupReader(self.group(group, topic), find, instance_id)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        return dict(self.group(group, topic).offsets)

    def group(self, name: str, topic: str) -> MemoryGroup:
        """Return a group on a topic, which is made when it is first asked for."""
        if (name, topic) not in self._groups:
            self._groups[name, topic] = MemoryGroup(lambda: len(self._topics.get(topic, ())))
        return self._groups[name, topic]

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
        size = _BATCH_BYTES + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers:
            size += len(name.encode()) + len(value or b"")
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

    @overload
    async def commit(self, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]: ...

    @overload
    async def commit(
        self, records: Sequence[NewRecord], approve: Approval
    ) -> Mapping[tuple[str, int], int] | None: ...

    async def commit(
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        if self._spent:
            raise RetryError(f"the producer {self._id} is not started, or spent by an error")
        self._spent = True
        await asyncio.sleep(0)
        if self._log.owner(self._id) is not self:
            raise FencedError(f"another producer took the transactional id {self._id} over")
        for record in records:
            self._log.check_size(record)
        transaction = self.running = Transaction()
        first: dict[tuple[str, int], int] = {}
        for record in records:
            at = record.topic, record.partition
            first.setdefault(at, self._log.partition(*at).next_offset)
            self._log.write(record, transaction)
        if approve is not None and not await self._approved(approve, first):
            transaction.end("aborted")
            self.running, self._spent = None, False
            return None
        self._end(transaction)
        self.running = None
        self._spent = False
        return {
            (record.topic, record.partition): self._log.partition(
                record.topic, record.partition
            ).next_offset
            for record in records
        }

    async def _approved(self, approve: Approval, first: Mapping[tuple[str, int], int]) -> bool:
        approved = await approve(first)
        if self._log.owner(self._id) is not self:
            raise FencedError(f"another producer took the transactional id {self._id} over")
        return approved

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
