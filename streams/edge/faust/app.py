"""Faust's app, consumer and thread, as `stream.FaustStream` uses them: see there for why."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import faust
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.app.base import BootStrategy
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from contextgauge.errors import RetryError
from contextgauge.kafka.options import KafkaOptions, translated
from streams.edge.kafka.membership import GroupConfiguration
from streams.edge.kafka.readers import Consumer, consumer_arguments, known_in, succeeds
from streams.edge.kafka.unreadable import UnreadableError
from streams.ports import LogPlace, UnreadableBatchError

BATCH_RECORDS: Final = 500
"""Records handed over at once: more take no less work each."""

_LOOK_S: Final = 0.01

logger = structlog.get_logger()

_FAUST_LOGGER = logging.getLogger("faust.contextgauge")
"""Faust's own messages: under its name, apart from this project's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How the consumer connects, where it begins to read, and what it reports.

    `since_ms` returns the time before which no record is of use where nothing was acknowledged
    yet; `pending_ms` the time before which none can be that was not acknowledged.
    `topic_id` is the topic's identity in Kafka, committed with each position; empty if not known.
    `fetched` is called in the consumer's thread with an assignment, a partition, the position
    after a fetch and the last record's offset; `sought` with an assignment and its positions.
    """

    options: KafkaOptions
    group: str
    instance_id: str | None
    since_ms: Callable[[], int]
    pending_ms: Callable[[], int]
    fetched: Callable[[object, int, int, int | None], None]
    sought: Callable[[object, Mapping[int, int]], None]
    topic_id: str = ""
    membership: GroupConfiguration | None = None


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Faust's consumer, in a thread and an event loop of its own."""

    logger = _FAUST_LOGGER
    settings: ConsumerSettings

    @cached_property
    def _damaged(self) -> dict[TopicPartition, int]:
        """By partition, where a batch was damaged that was fetched once."""
        return {}

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:  # noqa: ARG002 -- Faust gives it
        return Consumer(
            self.settings.options,
            as_log_records=False,
            **consumer_arguments(
                self.settings.options,
                self.settings.group,
                self.settings.instance_id,
                self.settings.membership,
            ),
            # Only for a position that the log has deleted: old records raise no alert.
            auto_offset_reset="earliest",
            max_poll_records=BATCH_RECORDS,
        )

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to where each partition is to be read from."""
        return cast("Mapping[TP, int]", await self.call_thread(self._seek_to_begin))

    async def _seek_to_begin(self) -> Mapping[TP, int]:
        consumer = self._ensure_consumer()
        partitions = sorted(consumer.assignment())
        if not partitions:
            return {}
        settings = self.settings
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        recent = await consumer.offsets_for_times(dict.fromkeys(partitions, settings.since_ms()))
        pending = await consumer.offsets_for_times(dict.fromkeys(partitions, settings.pending_ms()))
        positions, begun = {}, {}
        for topic_partition in partitions:
            committed = await self._committed(consumer, topic_partition)
            # Of a topic that lost its end, an offset may be beyond it.
            is_valid = (
                committed is not None
                and first[topic_partition] <= committed <= end[topic_partition]
            )
            by_time = pending.get(topic_partition) if is_valid else recent.get(topic_partition)
            position = end[topic_partition] if by_time is None else by_time.offset
            if is_valid:
                if committed < position:
                    logger.warning(
                        "records are too old to be of use: skipped",
                        partition=topic_partition.partition,
                        records=position - committed,
                    )
                position = max(committed, position)
            else:
                begun[topic_partition] = position
            positions[topic_partition] = position
            consumer.seek(topic_partition, position)
        # Or the next owner, before anything is acknowledged, would begin at a later time.
        await self._commit(begun)
        return positions

    async def _committed(self, consumer: AIOKafkaConsumer, at: TopicPartition) -> int | None:
        """Return the offset that was committed for this topic, and not for a former one."""
        committed = await consumer._coordinator.fetch_committed_offsets([at])  # noqa: SLF001 -- no public way
        offset, former = committed.get(at, (-1, ""))
        if offset < 0:
            return None
        if not LogPlace(former).is_of(self.settings.topic_id):
            logger.warning(
                "the topic was deleted and created again: only recent records are read",
                topic=at.topic,
                partition=at.partition,
            )
            return None
        return cast("int", offset)

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 -- Faust's
        max_records: int | None = None,
    ) -> Any:  # noqa: ANN401 -- Faust's
        """Fetch, and report the position before the records are handed over."""
        settings, generation = self.settings, self.app.consumer_generation_id
        try:
            fetched = await super()._fetch_records(
                consumer, active_partitions, timeout, max_records
            )
        except UnreadableError as error:
            fetched = await self._pass(consumer, error)
        for topic_partition in consumer.assignment():
            state = consumer._subscription.subscription.assignment.state_value(topic_partition)  # noqa: SLF001 -- no public way
            if state is not None and state.has_valid_position:
                records = fetched.get(topic_partition)
                settings.fetched(
                    generation,
                    topic_partition.partition,
                    state.position,
                    records[-1].offset if records else None,
                )
        return fetched

    async def _pass(self, consumer: AIOKafkaConsumer, error: UnreadableError) -> Any:  # noqa: ANN401 -- as above
        """Seek to what comes after a batch that cannot be read. Raises UnreadableBatchError."""
        topic_partition = TopicPartition(error.batch.topic, error.batch.partition)
        position = await consumer.position(topic_partition)
        if not error.is_final and self._damaged.get(topic_partition) != position:
            self._damaged[topic_partition] = position
            return {}  # it is fetched once more
        unreadable = UnreadableBatchError(known_in(consumer, topic_partition, error, position))
        if unreadable.batch.next_offset is None:
            raise unreadable
        logger.warning("records are passed over", error=str(unreadable))
        consumer.seek(topic_partition, unreadable.batch.next_offset)
        return {}

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit; ignore a broker that is away: what is not committed is read again."""
        consumer = self._ensure_consumer()
        acknowledged = {
            topic_partition: (offset, self.settings.topic_id)
            for topic_partition, offset in offsets.items()
            if topic_partition in consumer.assignment()
        }
        try:
            with translated("committing acknowledged positions"):
                if acknowledged:
                    await consumer.commit(acknowledged)
        except RetryError:
            return False
        return True

    async def stop(self) -> None:
        """Stop, also where the thread has only just begun: mode would leave it, and its member."""
        thread = self._thread
        # The event is the thread's: another loop cannot wait for it.
        while thread is not None and thread.is_alive() and not self._started.is_set():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        await super().stop()

    async def on_thread_stop(self) -> None:
        """Leave the group; a broker that is away must not hold the worker."""
        if not await succeeds(super().on_thread_stop()) and self._consumer is not None:
            await succeeds(self._consumer._client.close())  # noqa: SLF001 -- as our own readers do

    async def _gather_remaining_tasks(self) -> None:
        """Cancel what is left, until it ends: mode does it once, which some take no notice of."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        while rest:
            for task in rest:
                task.cancel()
            _, rest = await asyncio.wait(rest, timeout=_LOOK_S)

    async def check(self) -> None:
        """Raise the group's errors, which Faust never checks."""
        coordinator = self._ensure_consumer()._coordinator  # noqa: SLF001 -- no public way
        if coordinator is not None:  # none yet while it connects
            coordinator.check_errors()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Do nothing: health reports this, and Faust's rule takes transaction markers for work."""


class GroupConsumer(driver.Consumer):
    """Faust's consumer, which commits what the handler acknowledged, and no more."""

    logger = _FAUST_LOGGER
    settings: ConsumerSettings

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- Faust's
        self._handled: dict[TP, int] = {}
        """Positions that are not committed yet."""
        super().__init__(*arguments, **options)

    def _new_consumer_thread(self) -> ConsumerThread:
        thread = ConsumerThread(self, loop=self.loop, beacon=self.beacon)
        thread.settings = cast("FaustApp", self.app).settings
        return thread

    def ack(self, message: Any) -> bool:  # noqa: ANN401, ARG002 -- Faust's
        """Ignore it: Faust acknowledges records that the handler has not handled."""
        return False

    def acknowledge(self, generation: object, at: TP, offset: int) -> None:
        """Note that a record and all before it are handled."""
        if generation == self.app.consumer_generation_id:
            self._handled[at] = offset + 1

    async def force_commit(
        self,
        topics: object = None,  # noqa: ARG002 -- there is one
        start_new_transaction: bool = True,  # noqa: ARG002, FBT001, FBT002 -- there are none
    ) -> bool:
        """Commit what is handled; on failure it is committed with the next."""
        handled = dict(self._handled)
        if not handled or not await self._commit(handled):
            return False
        for topic_partition, offset in handled.items():
            if self._handled.get(topic_partition) == offset:
                del self._handled[topic_partition]
        return True

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Commit what is handled while the partitions are still this member's."""
        await self.commit()
        self._handled.clear()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(
        self,
        assigned: set[TP],
        generation_id: int = 0,  # noqa: ARG002 -- the group's, see below
    ) -> None:
        """Start over: what was acknowledged since the last commit is read again."""
        self._handled.clear()
        await super().on_partitions_assigned(assigned, self.app.consumer_generation_id)

    async def perform_seek(self) -> None:
        """Seek, and report where the partitions begin, once for each assignment."""
        generation = self.app.consumer_generation_id
        await super().perform_seek()
        if generation == self.app.consumer_generation_id:  # else it was the former assignment's
            positions = {
                topic_partition.partition: offset or 0
                for topic_partition, offset in self._read_offset.items()
            }
            cast("FaustApp", self.app).settings.sought(generation, positions)


class _FaustTransport(driver.Transport):
    Consumer = GroupConsumer


class _Boot(BootStrategy):
    enable_kafka_producer = False
    enable_web = False


class FaustApp(faust.App):
    """An app that only reads: it creates no folder, topic or producer."""

    logger = _FAUST_LOGGER
    BootStrategy = _Boot
    settings: ConsumerSettings
    _assignments = 0

    @property
    def consumer_generation_id(self) -> int:
        """Return this project's number of the assignment.

        The group's own may be the same after a member has left and joined again.
        """
        return self._assignments

    @consumer_generation_id.setter
    def consumer_generation_id(self, generation: int) -> None:  # noqa: ARG002 -- as above
        self._assignments += 1

    def _create_directories(self) -> None:
        """Create none: there are no tables."""

    def _new_transport(self) -> _FaustTransport:
        return _FaustTransport(self.conf.broker_consumer, self)
