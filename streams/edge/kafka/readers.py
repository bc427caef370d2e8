"""Reading from Kafka, `read_committed`: assigned partitions, or as a member of a group.

aiokafka fetches in the background, one fetch for all partitions of a broker; `poll` takes what
has come. Positions are stored by the flows, so nothing is ever reset to an end or to the group's
offsets: `auto_offset_reset` is none.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition

from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions, translated
from streams.edge.kafka.fetched_bytes import parts
from streams.edge.kafka.fetching import Fetched
from streams.edge.kafka.membership import GroupConfiguration, assignor_of
from streams.edge.kafka.unreadable import UnreadableError
from streams.ports import (
    AssignmentCallback,
    Batch,
    Ends,
    LogRecord,
    UnreadableBatch,
    UnreadableBatchError,
)

_NEVER_MS = 2**31 - 1
"""aiokafka drops a member that has not polled for so long. A partition is not polled while it is
restored, nor by a worker that stands by without one; a task that fails ends its worker itself."""

_UNREAD_PAUSE_S = 0.005
"""aiokafka fetches for no partition while one has not taken what came, for so long at most. Its
100 ms would make all partitions wait for the one whose transaction is under way."""

_HEARTBEATS_PER_SESSION = 10
"""A member may miss some, and by its next one it learns of a rebalance: one every second."""

_WATCH_S = 1.0
"""How often a member looks whether it still is one; far below what people notice."""

_LOOKS = 3
"""How often a batch is fetched whose checksum is wrong: what a wire did to it, it does once."""

_STOP_LOOK_S = 1.0
"""How often a fetcher that does not end is cancelled again."""

_STOP_TIMEOUT_S = 5.0
"""Leaving the group takes one round trip; a broker that is away must not hold the worker."""


class KafkaPartitionReader:
    """Reads the given partitions, without a group."""

    def __init__(self, options: KafkaOptions, topic: str, partitions: Sequence[int]) -> None:
        self._options = options
        self._topic = topic
        self._partitions = partitions
        self._group: str | None = None
        self._instance_id: str | None = None
        self._positions: dict[int, int] = {}
        self._looks: dict[int, int] = {}
        """By partition, how often its next batch was found to be damaged."""
        self._made: AIOKafkaConsumer | None = None

    async def start(self) -> None:
        consumer = self._made = Consumer(
            self._options,
            **consumer_arguments(self._options, self._group, self._instance_id),
            auto_offset_reset="none",
        )
        if self._group is None:
            consumer.assign([self._at(partition) for partition in self._partitions])
        try:
            async with connecting(self._options, f"connecting to read {self._topic}"):
                await consumer.start()
            consumer._fetcher._prefetch_backoff = _UNREAD_PAUSE_S  # noqa: SLF001 -- no option
        except BaseException:
            await self.stop()
            raise

    async def bounds(self, partition: int) -> tuple[int, int]:
        topic_partition = self._at(partition)
        with translated(f"asking for the bounds of {self._topic}-{partition}"):
            first, end = await asyncio.gather(
                self._connected().beginning_offsets([topic_partition]),
                self._connected().end_offsets([topic_partition]),
            )
        return first[topic_partition], end[topic_partition]

    async def offset_at(self, partition: int, timestamp_ms: int) -> int:
        topic_partition = self._at(partition)
        with translated(f"asking for a time's offset in {self._topic}-{partition}"):
            # Negative times have meanings of their own in Kafka: -1 is the end, -2 the beginning.
            request = self._connected().offsets_for_times({topic_partition: max(timestamp_ms, 0)})
            offsets, end = await asyncio.gather(
                request, self._connected().end_offsets([topic_partition])
            )
        first = offsets[topic_partition]
        # A time may lead into an open transaction, beyond the committed end.
        return int(
            end[topic_partition] if first is None else min(first.offset, end[topic_partition])
        )

    def seek(self, partition: int, offset: int) -> None:
        self._connected().seek(self._at(partition), offset)
        self._positions[partition] = offset

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        consumer, topic_partition = self._connected(), self._at(partition)
        with translated(f"reading {self._topic}-{partition}"):
            try:
                fetched = await consumer.getmany(
                    topic_partition, timeout_ms=int(timeout_s * 1000), max_records=max_records
                )
            except UnreadableError as error:
                return await self._look_again(partition, error)
            self._looks.pop(partition, None)
            records: Sequence[LogRecord] = fetched.get(topic_partition, [])
            # Nothing is awaited in between: the position is the one after just these records,
            # beyond markers and aborted records that follow them in what was fetched.
            position = self._positions[partition] = await consumer.position(topic_partition)
        return Batch(records, position)

    async def _look_again(self, partition: int, error: UnreadableError) -> Batch:
        """Return nothing, to fetch a damaged batch once more. Raises UnreadableBatchError."""
        consumer, topic_partition = self._connected(), self._at(partition)
        position = await consumer.position(topic_partition)
        looks = self._looks[partition] = self._looks.get(partition, 0) + 1
        if looks < _LOOKS and not error.is_final:
            return Batch((), position)
        raise UnreadableBatchError(known_in(consumer, topic_partition, error, position))

    def ends(self, partition: int) -> Ends | None:
        consumer, topic_partition = self._connected(), self._at(partition)
        if topic_partition not in consumer.assignment():
            return None
        stable, high = (
            consumer.last_stable_offset(topic_partition),
            consumer.highwater(topic_partition),
        )
        return None if stable is None or high is None else Ends(stable, high)

    async def stop(self) -> None:
        consumer, self._made = self._made, None
        if consumer is None:
            return
        if not await succeeds(consumer.stop()):
            # Away, or it had failed before, which its reads have raised. The rest of `stop` was not
            # reached: at least let go of the connections.
            await succeeds(consumer._client.close())  # noqa: SLF001 -- no public way after that

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def _connected(self) -> AIOKafkaConsumer:
        if self._made is None:
            raise RuntimeError(f"the reader of {self._topic} is not started")
        return self._made


class KafkaGroupReader(KafkaPartitionReader, ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is not typed
    """Reads as a member of a group, and listens to its rebalances: eager, the sticky assignor."""

    _on_revoked: AssignmentCallback
    _on_assigned: AssignmentCallback

    def __init__(
        self, options: KafkaOptions, topic: str, group: str, instance_id: str | None
    ) -> None:
        super().__init__(options, topic, ())
        self._group = group
        self._instance_id = instance_id
        self._assigned: frozenset[int] = frozenset()
        self._polls: dict[int, asyncio.Task[Batch]] = {}

    async def join(self, on_revoked: AssignmentCallback, on_assigned: AssignmentCallback) -> None:
        """Join the group; the callbacks get partition numbers, within a rebalance.

        No heartbeat is sent while `on_assigned` runs, so it must be over at once; while
        `on_revoked` runs the group waits, at most for the rebalance time-out.
        """
        self._on_revoked, self._on_assigned = on_revoked, on_assigned
        self._connected().subscribe([self._topic], listener=self)

    def resume(self, partition: int) -> None:
        if partition in self._assigned:
            self._connected().resume(self._at(partition))

    def seek(self, partition: int, offset: int) -> None:
        if partition in self._assigned:
            super().seek(partition, offset)
        self._positions[partition] = offset

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        if partition not in self._assigned:
            await asyncio.sleep(0)
            return self._nothing(partition)
        # A task of its own, for the rebalance to end: aiokafka's poll waits for the end of a
        # rebalance, which waits for the partition's task, which waits for the poll.
        task = self._polls[partition] = asyncio.create_task(
            super().poll(partition, max_records, timeout_s)
        )
        try:
            await asyncio.wait([task])
        finally:
            del self._polls[partition]
            task.cancel()
        if task.cancelled():
            return self._nothing(partition)
        try:
            return task.result()
        finally:
            del task  # its error holds this frame: a cycle, and workers collect none

    async def commit_offsets(self, positions: Mapping[int, int]) -> None:
        offsets = {self._at(partition): offset for partition, offset in positions.items()}
        with translated(f"committing positions of the group {self._group}"):
            await self._connected().commit(offsets)

    async def watch(self) -> None:
        nowhere = self._at(-1)
        with translated(f"being a member of the group {self._group}"):
            while True:
                # Polling any partition raises the group's errors; this one takes no records.
                await self._connected().getmany(nowhere, timeout_ms=0)
                await asyncio.sleep(_WATCH_S)

    def _nothing(self, partition: int) -> Batch:
        return Batch((), self._positions.get(partition, 0))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002 -- the base names it
        """End all polls and forget the assignment."""
        for task in self._polls.values():
            task.cancel()
        former, self._assigned = self._assigned, frozenset()
        await self._on_revoked(former)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Take a new assignment over, paused."""
        self._assigned = frozenset(topic_partition.partition for topic_partition in assigned)
        self._connected().pause(*assigned)
        await self._on_assigned(self._assigned)


async def succeeds(closing: Coroutine[None, None, None]) -> bool:
    """Return whether something closes, in time and without an error.

    In a task of its own: what the client raises while a broker is away may be anything, even the
    cancellation of a task of its own, which must not be taken for this task's.
    """
    task = asyncio.ensure_future(closing)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait([task], timeout=_STOP_TIMEOUT_S)
    finally:
        task.cancel()
    return task.done() and not task.cancelled() and task.exception() is None


class Consumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka is not typed
    """aiokafka's consumer, with what it takes at once bounded by the options."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        as_log_records: bool = True,
        **arguments: Any,  # noqa: ANN401 -- aiokafka's
    ) -> None:
        super().__init__(**arguments)
        self._options, self._as_log_records = options, as_log_records
        self._has_parts = False

    async def start(self) -> None:
        """Connect. Raises ConfigError on a version of aiokafka that was not tested."""
        parts.take()
        self._has_parts = True
        await super().start()
        fetcher = self._fetcher
        fetcher._records = Fetched(  # noqa: SLF001 -- no option
            fetcher._records,  # noqa: SLF001 -- as above
            self._options.batch_limit_bytes,
            self._options.fetch_bytes,
            as_log_records=self._as_log_records,
        )

    async def stop(self) -> None:
        """Disconnect, and cancel the fetcher until it ends.

        It takes no notice where it has just lost its assignment, and would then wait for ever for
        a position that the coordinator, which is closed before it, no longer fetches.
        """
        stopping = asyncio.ensure_future(super().stop())
        try:
            while not (await asyncio.wait([stopping], timeout=_STOP_LOOK_S))[0]:
                if self._fetcher is not None:
                    self._fetcher._fetch_task.cancel()  # noqa: SLF001 -- no public way
            stopping.result()
        finally:
            stopping.cancel()
            if self._has_parts:
                self._has_parts = False
                parts.leave()


def known_in(
    consumer: AIOKafkaConsumer, at: TopicPartition, error: UnreadableError, position: int
) -> UnreadableBatch:
    """Return the batch that cannot be read, as it is for who reads at a position."""
    batch, high = error.batch, consumer.highwater(at)
    if batch.next_offset is not None and high is not None and batch.next_offset > high:
        batch = batch._replace(next_offset=None)  # of a damaged header
    return batch._replace(first_offset=max(batch.first_offset, position))


def consumer_arguments(
    options: KafkaOptions,
    group: str | None,
    instance_id: str | None,
    membership: GroupConfiguration | None = None,
) -> dict[str, Any]:
    """Return what every consumer of ours is made with; where it begins to read is its own."""
    return {
        **options.connection(),
        "client_id": options.client_id,
        "group_id": group,
        "group_instance_id": instance_id,
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": options.fetch_wait_ms,
        # The broker sends a first batch that is larger, so a greater message is no trap.
        "max_partition_fetch_bytes": options.fetch_bytes,
        "session_timeout_ms": options.session_timeout_ms,
        "rebalance_timeout_ms": options.rebalance_timeout_ms,
        "heartbeat_interval_ms": options.session_timeout_ms // _HEARTBEATS_PER_SESSION,
        "max_poll_interval_ms": _NEVER_MS,
        "partition_assignment_strategy": (assignor_of(membership),),
    }
