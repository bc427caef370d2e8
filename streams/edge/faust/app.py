"""Faust's app, consumer and thread, as a `FaustStream` has them: see there."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import faust
import structlog
from aiokafka import AIOKafkaConsumer
from faust.app.base import BootStrategy
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from contextgauge.errors import RetryError
from contextgauge.kafka.options import translated
from streams.edge.kafka.readers import consumer_arguments

if TYPE_CHECKING:
    from streams.edge.faust.stream import FaustStream

TAKEN: Final = 500
"""Records that are handed over at once: more take no less work each."""

logger = structlog.get_logger()

_QUIET = logging.getLogger("faust.contextgauge")
"""Faust's own talk: under its name, so that it can be told from what we say."""


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Faust's consumer, in a thread and an event loop of its own."""

    logger = _QUIET
    own: "FaustStream"

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:  # noqa: ARG002 -- Faust gives it
        return AIOKafkaConsumer(
            **consumer_arguments(self.own.options, self.own.group, self.own.instance_id),
            # We seek; where the log lost our place meanwhile, what is old alerts nobody.
            auto_offset_reset="earliest",
            max_poll_records=TAKEN,
        )

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to where each partition is to be read from."""
        return cast("Mapping[TP, int]", await self.call_thread(self._seek_to_begin))

    async def _seek_to_begin(self) -> Mapping[TP, int]:
        consumer = self._ensure_consumer()
        partitions = sorted(consumer.assignment())
        if not partitions:
            return {}
        own = self.own
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        recent = await consumer.offsets_for_times(dict.fromkeys(partitions, own.since_ms()))
        pending = await consumer.offsets_for_times(dict.fromkeys(partitions, own.pending_ms()))
        found = {}
        for at in partitions:
            committed = await consumer.committed(at)
            # A topic that was made anew has not what was acknowledged of the former one.
            known = committed is not None and first[at] <= committed <= end[at]
            by_time = pending.get(at) if known else recent.get(at)
            found[at] = end[at] if by_time is None else by_time.offset
            if known:
                if committed < found[at]:
                    logger.warning(
                        "records are too old to alert anybody: not read",
                        partition=at.partition,
                        records=found[at] - committed,
                    )
                found[at] = max(committed, found[at])
            consumer.seek(at, found[at])
        return found

    async def _fetch_records(
        self,
        consumer: AIOKafkaConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 -- Faust's
        max_records: int | None = None,
    ) -> Any:  # noqa: ANN401 -- Faust's
        """Fetch, and note how far that led before anybody else can see it."""
        own, generation = self.own, self.app.consumer_generation_id
        found = await super()._fetch_records(consumer, active_partitions, timeout, max_records)
        for at in consumer.assignment():
            state = consumer._subscription.subscription.assignment.state_value(at)  # noqa: SLF001 -- no public way
            if state is not None and state.has_valid_position:
                records = found.get(at)
                own.fetched(
                    generation,
                    at.partition,
                    state.position,
                    records[-1].offset if records else None,
                )
        return found

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit, where the broker can take it: what is not committed is read again, no more."""
        consumer = self._ensure_consumer()
        wanted = {at: offset for at, offset in offsets.items() if at in consumer.assignment()}
        try:
            with translated("telling what was acknowledged"):
                if wanted:
                    await consumer.commit(wanted)
        except RetryError:
            return False
        return True

    async def check(self) -> None:
        """Raise what went wrong with the group, which Faust never asks for."""
        self._ensure_consumer()._coordinator.check_errors()  # noqa: SLF001 -- no public way

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: health tells, and Faust's own rule takes a transaction's marker for work."""


class GroupConsumer(driver.Consumer):
    """Faust's consumer, which commits what the handler acknowledged, and no more."""

    logger = _QUIET
    own: "FaustStream"

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- Faust's
        self._handled: dict[TP, int] = {}
        """Positions that are not committed yet."""
        super().__init__(*arguments, **options)

    def _new_consumer_thread(self) -> ConsumerThread:
        thread = ConsumerThread(self, loop=self.loop, beacon=self.beacon)
        thread.own = cast("FaustApp", self.app).own
        return thread

    def ack(self, message: Any) -> bool:  # noqa: ANN401, ARG002 -- Faust's
        """Hear nothing: what Faust acknowledges by itself nobody has handled."""
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
        """Commit what is handled; where the broker does not take it now, with the next."""
        wanted = dict(self._handled)
        if not wanted or not await self._commit(wanted):
            return False
        for at, offset in wanted.items():
            if self._handled.get(at) == offset:
                del self._handled[at]
        return True

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Commit what is handled while that is still ours to do, and let go."""
        await self.commit()
        self._handled.clear()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(
        self,
        assigned: set[TP],
        generation_id: int = 0,  # noqa: ARG002 -- the group's, see below
    ) -> None:
        """Begin anew: what was acknowledged since the last commit is read again."""
        self._handled.clear()
        await super().on_partitions_assigned(assigned, self.app.consumer_generation_id)

    async def perform_seek(self) -> None:
        """Seek, and tell the handler where its partitions begin, once an assignment."""
        generation = self.app.consumer_generation_id
        await super().perform_seek()
        if generation == self.app.consumer_generation_id:  # else it was the former assignment's
            positions = {at.partition: offset or 0 for at, offset in self._read_offset.items()}
            cast("FaustApp", self.app).own.sought(generation, positions)


class _Transport(driver.Transport):
    Consumer = GroupConsumer


class _Boot(BootStrategy):
    enable_kafka_producer = False
    enable_web = False


class FaustApp(faust.App):
    """An app that reads, and makes nothing: no folder, no topic, no producer."""

    logger = _QUIET
    BootStrategy = _Boot
    own: "FaustStream"
    _assignments = 0

    @property
    def consumer_generation_id(self) -> int:
        """Return our own number of the assignment.

        A member that joins again may find the group's as it was, though it let go of all between.
        """
        return self._assignments

    @consumer_generation_id.setter
    def consumer_generation_id(self, generation: int) -> None:  # noqa: ARG002 -- as above
        self._assignments += 1

    def _create_directories(self) -> None:
        """Make none: there are no tables."""

    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self)
