"""The log in memory with faults: a broker that is away, commits that are cut, deleted records."""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from contextgauge.errors import RetryError
from schemas.topics import Topic
from streams.edge.memory.log import MemoryLog, MemoryProducer, MemoryTransactionalProducer
from streams.edge.memory.partition import MemoryTopicPartition, Transaction
from streams.edge.memory.readers import MemoryGroupReader, MemoryPartitionReader
from streams.ports import Approval, Clock, NewRecord


class FaultyLog(MemoryLog):
    """A log whose faults a test switches on."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.away = False
        """While true nothing is written and no reader or producer starts: RetryError."""
        self.cut_commits = 0
        """So many of the next commits fail after their records were written, as with a worker
        that dies: the transaction stays open until its id starts again."""

    def check(self) -> None:
        """Raise RetryError while the broker is away."""
        if self.away:
            raise RetryError("the broker in memory is away")

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Drop the records before an offset, as retention does."""
        self.partition(topic, partition).first = offset

    def truncate(self, topic: str, partition: int, end: int) -> None:
        """Drop the records from an offset on, as a broker that lost its last ones."""
        target = self.partition(topic, partition)
        del target.entries[end:]
        target._stable = min(target._stable, end)  # noqa: SLF001 -- no other has a use for it

    def add_partitions(self, topic: str, count: int) -> None:
        """Give a topic so many partitions, which cannot be taken back."""
        parts = self._topics[topic]
        limit = parts[0].max_message_bytes
        parts += [MemoryTopicPartition(limit) for _ in range(count - len(parts))]

    def create_again(self, topic: str) -> None:
        """Delete a topic, and create it again at once."""
        parts = self._topics[topic]
        self._topics[topic] = [MemoryTopicPartition(each.max_message_bytes) for each in parts]
        self._created += 1
        self._ids[topic] = UUID(int=self._created)

    def compact(self, topic: str, partition: int) -> None:
        """Drop every committed value that a later one of its key replaced, as a broker may."""
        target = self.partition(topic, partition)
        newer: set[bytes | None] = set()
        for entry in reversed(target.entries[: target.stable_end()]):
            if entry.record is None:
                continue
            aborted = entry.transaction is not None and entry.transaction.fate == "aborted"
            if aborted or entry.record.key in newer:
                entry.record = None
            else:
                newer.add(entry.record.key)

    async def start(self) -> None:
        self.check()

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        self.check()
        return await super().create_topics(topics, partitions)

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        self.check()
        return await super().partition_counts(names)

    async def topic_ids(self, names: Sequence[str]) -> dict[str, UUID | None]:
        self.check()
        return await super().topic_ids(names)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        self.check()
        return await super().committed(group, topic)

    def take_over(self, transactional_id: str, producer: MemoryTransactionalProducer) -> None:
        self.check()
        super().take_over(transactional_id, producer)

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        return _TransactionalProducer(self, transactional_id)

    def producer(self) -> MemoryProducer:
        return _Producer(self)

    def reader(self, topic: str, partitions: Sequence[int]) -> MemoryPartitionReader:
        reader = _PartitionReader(partial(self.partition, topic), partitions)
        reader.log = self
        return reader

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> MemoryGroupReader:
        find = partial(self.partition, topic)
        reader = _GroupReader(self.group(group, topic), find, instance_id)
        reader.log = self
        return reader


class _TransactionalProducer(MemoryTransactionalProducer):
    _log: FaultyLog

    async def commit(  # type: ignore[override]  # one signature for both overloads
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        if self._log.away:
            self._spent = True
        self._log.check()
        if approve is None:
            return await super().commit(records)
        return await super().commit(records, approve)

    def _end(self, transaction: Transaction) -> None:
        if self._log.cut_commits:
            self._log.cut_commits -= 1
            raise RetryError("the broker in memory cuts this commit")
        super()._end(transaction)


class _Producer(MemoryProducer):
    _log: FaultyLog

    async def start(self) -> None:
        self._log.check()

    async def send(self, record: NewRecord) -> None:
        self._log.check()
        await super().send(record)


class _PartitionReader(MemoryPartitionReader):
    log: FaultyLog

    async def start(self) -> None:
        self.log.check()
        await super().start()

    async def bounds(self, partition: int) -> tuple[int, int]:
        self.log.check()
        return await super().bounds(partition)

    async def offset_at(self, partition: int, timestamp_ms: int) -> int:
        self.log.check()
        return await super().offset_at(partition, timestamp_ms)


class _GroupReader(_PartitionReader, MemoryGroupReader):
    pass
