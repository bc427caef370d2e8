"""The logs that the contract is held against, and what only a test does to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import overload

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from contextgauge.clock import SystemClock
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.kafka.log import KafkaLog
from streams.ports import (
    Approval,
    GroupReader,
    Log,
    LogRecord,
    NewRecord,
    PartitionReader,
    TransactionalProducer,
    UnreadableBatch,
    started,
)
from tests.contract.simulated import SimulatedLog
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import until
from tests.hostile_batches import bomb, put
from tests.patience import PATIENCE_S

LeaveOpen = Callable[[str, Sequence[NewRecord]], Awaitable[None]]


class LogUnderTest:
    """A log, a topic of two partitions on it, and how to leave a transaction open."""

    def __init__(self, log: Log, prefix: str, leave_open: LeaveOpen) -> None:
        self.log = log
        self.prefix = prefix
        self.topic = prefix + "records"
        self.leave_open = leave_open

    async def create(self, name: str, partitions: int = 2) -> str:
        """Create a topic; return its full name."""
        topic = Topic(self.prefix + name, "any", "delete", -1, 9 * MIB)
        await self.log.create_topics([topic], partitions)
        return topic.name

    async def delete(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        if isinstance(self.log, FaultyLog | SimulatedLog):
            self.log.delete_topic(name)
        elif isinstance(self.log, KafkaLog):
            await delete_topics(self.log.options.bootstrap_servers, name)
        async with asyncio.timeout(PATIENCE_S):
            # The broker has no event that could be waited for.
            while (await self.log.partition_counts([name]))[name] is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def transactional(self, name: str) -> AsyncIterator[TransactionalProducer]:
        """Give a started producer of the transactional id of this name."""
        producer = self.log.transactional_producer(self.prefix + name)
        await producer.start()
        try:
            yield _VisibleCommits(self.log, producer)
        finally:
            await producer.stop()

    async def write(self, *values: bytes, partition: int = 0, topic: str | None = None) -> None:
        """Publish records without a transaction."""
        target = topic or self.topic
        await self.append(*[NewRecord(target, partition, b"key", value) for value in values])

    async def write_bomb(self, records: int, partition: int = 0, topic: str | None = None) -> None:
        """Write a batch that unpacks to more than readers of this log take."""
        target = topic or self.topic
        if isinstance(self.log, KafkaLog):
            batch = bomb("zstd", records, 2 * self.log.options.batch_limit_bytes // records)
            await put(self.log.options.bootstrap_servers, target, partition, batch)
        elif isinstance(self.log, FaultyLog | SimulatedLog):
            self.log.partition(target, partition).append_unreadable(unreadable(records, target))

    async def append(self, *records: NewRecord) -> None:
        """Publish records without a transaction."""
        producer = self.log.producer()
        await producer.start()
        try:
            for record in records:
                await producer.send(record)
            await producer.flush()
        finally:
            await producer.stop()

    @asynccontextmanager
    async def reading(
        self, *partitions: int, topic: str | None = None
    ) -> AsyncIterator[PartitionReader]:
        """Give a reader of the topic that stands at its begin."""
        reader = self.log.reader(topic or self.topic, partitions)
        await reader.start()
        try:
            for partition in partitions:
                reader.seek(partition, 0)
            yield reader
        finally:
            await reader.stop()

    async def committed_records(
        self, partition: int = 0, topic: str | None = None
    ) -> list[LogRecord]:
        """Read a partition to its committed end."""
        async with self.reading(partition, topic=topic) as reader:
            _, end = await reader.bounds(partition)
            records: list[LogRecord] = []
            async with asyncio.timeout(PATIENCE_S):
                position = 0
                while position < end:
                    batch = await reader.poll(partition, 1_000, 0.1)
                    records.extend(batch.records)
                    position = batch.position
            return records

    async def values(self, partition: int = 0, topic: str | None = None) -> list[bytes | None]:
        """Read the values of a partition to its committed end."""
        return [record.value for record in await self.committed_records(partition, topic)]


class _VisibleCommits:
    """A producer whose commits can be read when they return.

    A broker answers when the commit is decided, and writes the markers that show it after that.
    """

    def __init__(self, log: Log, producer: TransactionalProducer) -> None:
        self._log = log
        self._producer = producer
        self.start = producer.start
        self.stop = producer.stop

    @overload
    async def commit(self, records: Sequence[NewRecord]) -> Mapping[tuple[str, int], int]: ...

    @overload
    async def commit(
        self, records: Sequence[NewRecord], approve: Approval
    ) -> Mapping[tuple[str, int], int] | None: ...

    async def commit(
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        if approve is not None:
            ends = await self._producer.commit(records, approve)
        else:
            ends = await self._producer.commit(records)
        for (topic, partition), end in (ends or {}).items():
            async with started(self._log.reader(topic, [partition])) as reader:
                await until(partial(self._reaches, reader, partition, end))
        return ends

    async def _reaches(self, reader: PartitionReader, partition: int, end: int) -> bool:
        return (await reader.bounds(partition))[1] >= end


def unreadable(records: int, topic: str, partition: int = 0) -> UnreadableBatch:
    """Return a batch for a log in memory."""
    detail = "a batch in memory: it unpacks to more than 64 bytes"
    return UnreadableBatch(
        topic, partition, 0, 0, records, 1, b"content", "batch_too_large", detail
    )


async def delete_topics(address: str, *names: str) -> None:
    """Have a real broker delete topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.delete_topics(list(names))
    finally:
        await admin.close()


class Member:
    """A member of a group that notes what it is given."""

    def __init__(self, reader: GroupReader) -> None:
        self.reader = reader
        self.partitions: frozenset[int] = frozenset()
        self.revoked: list[frozenset[int]] = []
        self._changed = asyncio.Condition()

    async def on_revoked(self, partitions: frozenset[int]) -> None:
        self.revoked.append(partitions)
        self.partitions = frozenset()

    async def on_assigned(self, partitions: frozenset[int]) -> None:
        self.partitions = partitions
        async with self._changed:
            self._changed.notify_all()

    async def until(self, count: int) -> frozenset[int]:
        """Wait until it has so many partitions."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: len(self.partitions) == count)
        return self.partitions


@pytest.fixture(params=["memory", "simulated", pytest.param("kafka", marks=pytest.mark.service)])
def plain_log(request: pytest.FixtureRequest, prefix: str) -> LogUnderTest:
    """Each log in turn, not started."""
    if request.param == "memory":
        memory = FaultyLog(SystemClock())

        async def cut(transactional_id: str, records: Sequence[NewRecord]) -> None:
            producer = memory.transactional_producer(transactional_id)
            await producer.start()
            memory.cut_commits = 1
            with pytest.raises(Exception, match="cut"):
                await producer.commit(records)

        return LogUnderTest(memory, prefix, cut)
    if request.param == "simulated":
        simulated = SimulatedLog()
        return LogUnderTest(simulated, prefix, simulated.leave_open)
    address: str = request.getfixturevalue("kafka")
    # Small batches, so that many of a partition are under way at once.
    options = KafkaOptions(
        address, session_timeout_ms=6_000, batch_bytes=16 * 1024, batch_limit_bytes=MIB
    )

    async def abandon(transactional_id: str, records: Sequence[NewRecord]) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address, transactional_id=transactional_id, enable_idempotence=True
        )
        await producer.start()
        await producer.begin_transaction()
        for record in records:
            await producer.send_and_wait(
                record.topic, record.value, record.key, partition=record.partition
            )
        await producer.stop()

    return LogUnderTest(KafkaLog(options), prefix, abandon)


@pytest.fixture
async def under_test(plain_log: LogUnderTest) -> AsyncIterator[LogUnderTest]:
    """Each log in turn, started, with its topic created."""
    await plain_log.log.start()
    await plain_log.create("records")
    yield plain_log
    await plain_log.log.stop()
