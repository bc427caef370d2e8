"""Reads the topics for the doctor: the newest messages and dead letters, and what waits.

Reads without a group and commits nothing, so no worker notices.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from contextgauge.errors import ConfigError
from streams import codec
from streams.flow.derive.intake import text_of
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.flow.doctor.facts import DeadLetters, Expected, Keying, Progress
from streams.flow.doctor.sample import KeyingSample
from streams.ports import Batch, Clock, Log, LogRecord, PartitionReader
from streams.ports.inspection import Cluster, Failure, Group, TopicFacts

_SAMPLE_S = 5.0
"""For a topic's newest messages: some hundred of them take milliseconds, of 9 MiB each, seconds."""

_SAMPLED_RECORDS = 2_000
_SAMPLED_OF_PARTITION = 200
"""Newest records that are looked at, in all and of a partition: a share is told to a percent."""

_AT_ONCE = 50
_POLL_S = 0.5

_LAST_OFFSETS = 32
"""Markers take offsets: the newest record is within so many of the end."""

_STATE_OFFSETS = (32, 500, 10_000)
"""Every transaction writes the position, as its last record, so it is just before the end, however
many sessions the topic holds. Only aborted transactions may lie behind it."""


class Topics:
    """Reads the topics, without a group. Raises the log's errors."""

    def __init__(
        self,
        log: Log | Failure,
        clock: Clock,
        partition_of: Callable[[str, int], int],
        expected: Expected,
        cluster: Cluster,
    ) -> None:
        self._log, self._clock, self._partition_of = log, clock, partition_of
        self._expected, self._cluster = expected, cluster

    async def keying(self) -> Keying | Failure:
        """Look at how the newest messages are keyed."""
        topic = self._expected.messages.name
        partitions = self._readable(topic)
        if isinstance(partitions, Failure):
            return partitions
        count = self._count(topic)
        sample = KeyingSample(
            count, self._partition_of, self._expected.message_limit_bytes, self._clock.now_ms()
        )
        async with self._reading(topic, partitions) as reader:
            each = min(_SAMPLED_OF_PARTITION, max(_SAMPLED_RECORDS // len(partitions), 1))

            async def look(partition: int) -> None:
                async for record in self._last(reader, partition, each):
                    sample.take(partition, record)

            await asyncio.gather(*map(look, partitions))
        return sample.result()

    async def dead(self) -> DeadLetters | Failure:
        """Look at the newest dead letters."""
        topic = self._expected.dead.name
        partitions = self._readable(topic)
        if isinstance(partitions, Failure):
            return partitions
        reasons: Counter[str] = Counter()
        times: list[int] = []
        kept = 0
        async with self._reading(topic, partitions) as reader:
            each = min(_SAMPLED_OF_PARTITION, max(_SAMPLED_RECORDS // len(partitions), 1))

            async def look(partition: int) -> None:
                nonlocal kept
                first, end = await reader.bounds(partition)
                kept += end - first
                async for record in self._last(reader, partition, each):
                    reason = dict(record.headers).get("dead_reason")
                    reasons[text_of(reason) or "unknown"] += 1
                    times.append(record.timestamp_ms)

            await asyncio.gather(*map(look, partitions))
        return DeadLetters(sum(reasons.values()), kept, dict(reasons), max(times, default=None))

    async def newest_record(self) -> int | Failure | None:
        """Return the time of the newest derived record."""
        topic = self._expected.events.name
        partitions = self._readable(topic)
        if isinstance(partitions, Failure):
            return partitions
        times: list[int] = []
        async with self._reading(topic, partitions) as reader:

            async def look(partition: int) -> None:
                async for record in self._last(reader, partition, _LAST_OFFSETS):
                    times.append(record.timestamp_ms)  # noqa: PERF401 -- shared by all partitions

            await asyncio.gather(*map(look, partitions))
        return max(times, default=None)

    async def derive(self, group: Group | Failure) -> Mapping[int, Progress] | Failure:
        """Return how far the messages are derived: the positions stored with the state."""
        topic, state = self._expected.messages.name, self._expected.state.name
        partitions, stored = self._readable(topic), self._readable(state)
        if isinstance(partitions, Failure):
            return partitions
        positions: dict[int, int | None] = {}
        if not isinstance(stored, Failure):
            async with self._reading(state, stored) as reader:
                found = await asyncio.gather(
                    *[self._stored_position(reader, partition) for partition in stored]
                )
            positions = dict(zip(stored, found, strict=True))
        committed = {} if isinstance(group, Failure) else group.committed
        if not isinstance(committed, Failure):
            # The same figure, committed beside the position, where the state does not tell it.
            for partition in partitions:
                if positions.get(partition) is None:
                    positions[partition] = committed.get((topic, partition))
        return await self.progress(topic, positions)

    async def progress(
        self, topic: str, positions: Mapping[int, int | None]
    ) -> Mapping[int, Progress] | Failure:
        """Return how far a topic is read, given the positions."""
        partitions = self._readable(topic)
        if isinstance(partitions, Failure):
            return partitions
        async with self._reading(topic, partitions) as reader:

            async def look(partition: int) -> Progress:
                first, end = await reader.bounds(partition)
                position = positions.get(partition)
                begin = first if position is None else max(position, first)
                waiting_ms = None
                if begin < end:
                    reader.seek(partition, begin)
                    batch = await reader.poll(partition, 1, _POLL_S)
                    waiting_ms = batch.records[0].timestamp_ms if batch.records else None
                    if not batch.records and batch.position >= end:
                        end = begin  # nothing but markers: nothing waits
                return Progress(first, end, position, waiting_ms)

            found = await asyncio.gather(*map(look, partitions))
        return dict(zip(partitions, found, strict=True))

    async def _stored_position(self, reader: PartitionReader, partition: int) -> int | None:
        until_s = self._clock.monotonic_s() + _SAMPLE_S
        for offsets in _STATE_OFFSETS:
            first, end = await reader.bounds(partition)
            value: bytes | None = None
            reached = first
            stretch = (max(first, end - offsets), end)
            async for batch in self._batches(reader, partition, stretch, until_s):
                reached = batch.position
                for record in batch.records:
                    if record.key == POSITION_KEY:
                        value = record.value
            if reached < end:
                return None  # what was found so far may be an old one
            if value is not None:
                document = codec.loads(value)
                position = document.get("position") if isinstance(document, dict) else None
                return position if isinstance(position, int) else None
        return None

    async def _last(
        self, reader: PartitionReader, partition: int, offsets: int
    ) -> AsyncIterator[LogRecord]:
        """Yield the records of the last so many offsets, as far as time allows."""
        first, end = await reader.bounds(partition)
        until_s = self._clock.monotonic_s() + _SAMPLE_S
        stretch = (max(first, end - offsets), end)
        async for batch in self._batches(reader, partition, stretch, until_s):
            for record in batch.records:
                yield record

    async def _batches(
        self, reader: PartitionReader, partition: int, stretch: tuple[int, int], until_s: float
    ) -> AsyncIterator[Batch]:
        """Yield what is from an offset to before another, as far as time allows."""
        position, end = stretch
        reader.seek(partition, position)
        while position < end and self._clock.monotonic_s() < until_s:
            batch = await reader.poll(partition, _AT_ONCE, _POLL_S)
            position = batch.position
            yield batch

    def _count(self, topic: str) -> int:
        facts = self._cluster.topics.get(topic)
        return len(facts.partitions) if isinstance(facts, TopicFacts) else 0

    def _readable(self, topic: str) -> Sequence[int] | Failure:
        """Return the partitions that have a leader."""
        facts = self._cluster.topics.get(topic)
        if isinstance(facts, Failure):
            return facts
        if facts is None:
            return Failure("away", f"there is no topic {topic}")
        found = [item.partition for item in facts.partitions if item.leader is not None]
        return found or Failure("away", f"no partition of {topic} has a leader")

    @asynccontextmanager
    async def _reading(
        self, topic: str, partitions: Sequence[int]
    ) -> AsyncIterator[PartitionReader]:
        if isinstance(self._log, Failure):
            raise ConfigError(self._log.text)
        reader = self._log.reader(topic, partitions)
        await reader.start()
        try:
            yield reader
        finally:
            await reader.stop()
