"""Records for an agent of Faust: a `RecordStream` over its consumer, its agent and its acks.

What of Faust is used as it is, and what is not, is in docs/adr/0033:

- Its consumer would read what is not committed, connect with Faust's own credentials, and begin
  where its settings say: `_Thread` makes the consumer as all others here are made, and seeks.
- It acknowledges what it skips while it stops or rebalances, and takes the offsets of transaction
  markers for records to come: `_Consumer` hears none of its acknowledgements, only the handler's,
  which are in order, and only of the present assignment.
- It restarts an agent that raised: here that ends the stream, and nothing is acknowledged.
- It never asks its consumer what went wrong with the group: here that is asked each second.
- It would make topics, a folder, a web server and a producer: it is asked for none.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.app.base import BootStrategy
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.supervisors import CrashingSupervisor

from streams.core.errors import RetryError
from streams.edge.kafka_common import KafkaOptions, translated
from streams.edge.kafka_readers import consumer_arguments
from streams.ports import ArrivalHandler, LogRecord

_TAKEN: Final = 500
"""Records that are handed over at once: more take no less work each."""
_TAKEN_WITHIN_S: Final = 0.1
"""How long a record may wait for others."""
_COMMIT_EVERY_S: Final = 1.0
"""How often acknowledged positions are told to the broker: what a crash has read again."""
_WATCH_S: Final = 1.0
"""How often it is asked whether we are still welcome in the group."""
_CREATE_TIME: Final = 0
_FIRST: Final = asyncio.FIRST_COMPLETED


_QUIET = logging.getLogger("faust.contextgauge")
"""Faust's own talk: under its name, so that it can be told from what we say."""


class _Arrival:
    """One record, of one assignment."""

    __slots__ = ("_acknowledge", "_generation", "partition", "record")

    def __init__(self, message: Any, acknowledge: "_Acknowledge") -> None:  # noqa: ANN401 -- Faust's
        self._acknowledge, self._generation = acknowledge, message.generation_id
        self.partition: int = message.partition
        self.record = LogRecord(
            message.offset,
            round(message.timestamp * 1_000),
            message.key,
            message.value,
            tuple(message.headers or ()),
            message.timestamp_type == _CREATE_TIME,
        )

    def release(self) -> None:
        """Drop the bytes."""
        self.record = self.record._replace(key=None, value=None, headers=())

    def acknowledge(self) -> None:
        """Tell the consumer, which commits every second."""
        self._acknowledge(self._generation, self.partition, self.record.offset)


_Acknowledge = Callable[[object, int, int], None]


class _Thread(driver.AIOKafkaConsumerThread):
    """Faust's consumer, in a thread and an event loop of its own."""

    logger = _QUIET
    own: "FaustStream"

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:  # noqa: ARG002 -- Faust gives it
        return AIOKafkaConsumer(
            **consumer_arguments(self.own.options, self.own.group, self.own.instance_id),
            # We seek; where the log lost our place meanwhile, what is old alerts nobody.
            auto_offset_reset="earliest",
            max_poll_records=_TAKEN,
        )

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to where each partition is to be read from."""
        return cast("Mapping[TP, int]", await self.call_thread(self._seek_to_begin))

    async def _seek_to_begin(self) -> Mapping[TP, int]:
        consumer = self._ensure_consumer()
        partitions = sorted(consumer.assignment())
        if not partitions:
            return {}
        since_ms = self.own.since_ms()
        first = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
        by_time = await consumer.offsets_for_times(dict.fromkeys(partitions, since_ms))
        found = {}
        for at in partitions:
            recent = by_time[at].offset if by_time.get(at) is not None else end[at]
            committed = await consumer.committed(at)
            # A topic that was made anew has not what was acknowledged of the former one.
            known = committed is not None and first[at] <= committed <= end[at]
            found[at] = max(committed, recent) if known else recent
            consumer.seek(at, found[at])
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


class _Consumer(driver.Consumer):
    logger = _QUIET
    own: "FaustStream"

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 -- Faust's
        self._handled: dict[TP, int] = {}
        """Positions that are not committed yet."""
        super().__init__(*arguments, **options)

    def _new_consumer_thread(self) -> _Thread:
        thread = _Thread(self, loop=self.loop, beacon=self.beacon)
        thread.own = cast("_App", self.app).own
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

    async def perform_seek(self) -> None:
        """Seek, and tell the handler where its partitions begin, once an assignment."""
        generation = self.app.consumer_generation_id
        await super().perform_seek()
        if generation == self.app.consumer_generation_id:  # else it was the former assignment's
            positions = {at.partition: offset or 0 for at, offset in self._read_offset.items()}
            cast("_App", self.app).own.sought(generation, positions)


class _Transport(driver.Transport):
    Consumer = _Consumer


class _Boot(BootStrategy):
    enable_kafka_producer = False
    enable_web = False


class _App(faust.App):
    """An app that reads, and makes nothing: no folder, no topic, no producer."""

    logger = _QUIET
    BootStrategy = _Boot
    own: "FaustStream"

    def _create_directories(self) -> None:
        """Make none: there are no tables."""

    def _new_transport(self) -> _Transport:
        return _Transport(self.conf.broker_consumer, self)


class FaustStream:
    """Reads a topic as a member of `group`, by an agent of Faust.

    `since_ms` tells the time before which no record is of use. Made and run in one event loop.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topic: str,
        group: str,
        instance_id: str | None,
        since_ms: Callable[[], int],
    ) -> None:
        self.options, self.group, self.instance_id = options, group, instance_id
        self.since_ms = since_ms
        self._topic = topic
        self._app: _App | None = None
        self._handler: ArrivalHandler | None = None
        self._told: tuple[object, frozenset[int]] | None = None
        self._failed: asyncio.Future[None] | None = None

    async def run(self, handler: ArrivalHandler, stop: asyncio.Event) -> None:
        """Hand records over until `stop` is set; see the port."""
        self._handler = handler
        self._failed = asyncio.get_running_loop().create_future()
        app = self._app = self._made()
        told: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        # The start ends with the first assignment, which may never come.
        starting: asyncio.Future[Any] = asyncio.ensure_future(app.start())
        crashed: asyncio.Future[Any] = asyncio.ensure_future(_crash_of(app))
        watching: asyncio.Future[Any] = asyncio.ensure_future(self._watch(app))
        tasks = (told, starting, crashed, watching)
        try:
            with translated(f"reading {self._topic}"):
                await asyncio.wait({starting, *tasks, self._failed}, return_when=_FIRST)
                if starting.done() and not starting.exception():
                    await asyncio.wait({told, crashed, watching, self._failed}, return_when=_FIRST)
                for ended in (self._failed, watching, starting):
                    if ended.done():
                        ended.result()
                if crashed.done():
                    raise crashed.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await app.stop()

    async def _watch(self, app: _App) -> None:
        """Raise what keeps us from being a member of the group; what passes is waited for."""
        while True:
            await asyncio.sleep(_WATCH_S)
            thread = cast("_Thread", cast("_Consumer", app.consumer)._thread)  # noqa: SLF001 -- no public way
            if thread._consumer is None:  # noqa: SLF001 -- as above
                continue
            asked = asyncio.run_coroutine_threadsafe(thread.check(), thread.thread_loop)
            try:
                with translated(f"being a member of the group {self.group}"):
                    await asyncio.wrap_future(asked)
            except RetryError:
                continue

    def behind(self, partition: int) -> int | None:
        """Return how many offsets were not fetched yet, by the last fetch."""
        app = self._app
        if app is None or app.consumer is None:
            return None
        thread = cast("_Consumer", app.consumer)._thread  # noqa: SLF001 -- no public way
        consumer = thread._consumer  # noqa: SLF001 -- as above
        at = TopicPartition(self._topic, partition)
        if consumer is None or at not in consumer.assignment():
            return None
        end = consumer.last_stable_offset(at)
        state = consumer._subscription.subscription.assignment.state_value(at)  # noqa: SLF001 -- as above
        if end is None or state is None or not state.has_valid_position:
            return None
        behind: int = end - state.position
        return max(0, behind)

    def sought(self, generation: object, positions: Mapping[int, int]) -> None:
        """Hear where the partitions of an assignment begin."""
        told = (generation, frozenset(positions))
        if told != self._told and self._handler is not None:
            self._told = told
            self._handler.assigned(positions)

    def _made(self) -> _App:
        app = _App(
            self.group,
            broker="kafka://",  # the consumer is made from our own options
            loop=asyncio.get_running_loop(),
            store="memory://",
            autodiscover=False,
            topic_allow_declare=False,
            topic_disable_leader=True,
            web_enabled=False,
            key_serializer="raw",
            value_serializer="raw",
            stream_wait_empty=False,
            stream_recovery_delay=0.0,
            broker_commit_interval=_COMMIT_EVERY_S,
            broker_session_timeout=self.options.session_timeout_ms / 1_000,
            broker_rebalance_timeout=self.options.rebalance_timeout_ms / 1_000,
            broker_request_timeout=self.options.request_timeout_ms / 1_000,
        )
        app.own = self
        topic = app.topic(
            self._topic,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )

        async def control(stream: AsyncIterable[Any]) -> None:
            try:
                async for events in stream.noack_take(_TAKEN, within=_TAKEN_WITHIN_S):  # type: ignore[attr-defined]  # Faust's
                    await self._take(events)
            except Exception as error:
                failed = self._failed
                if failed is not None and not failed.done():
                    failed.set_exception(error)
                raise

        app.agent(topic, name="control", concurrency=1, supervisor_strategy=CrashingSupervisor)(
            control
        )

        async def revoked(*_told: object, **_more: object) -> None:
            if self._handler is not None:
                self._handler.revoked()

        app.on_partitions_revoked.connect(revoked)
        return app

    async def _take(self, events: Sequence[Any]) -> None:
        handler, app = self._handler, self._app
        if handler is not None and app is not None:
            await handler.take([_Arrival(event.message, self._acknowledge) for event in events])

    def _acknowledge(self, generation: object, partition: int, offset: int) -> None:
        if self._app is not None:
            at = cast("TP", TopicPartition(self._topic, partition))
            cast("_Consumer", self._app.consumer).acknowledge(generation, at, offset)


async def _crash_of(app: faust.App) -> BaseException:
    """Return what crashed the app, once it has."""
    await app._crashed.wait()  # noqa: SLF001 -- no public way to wait for it
    return app.crash_reason or RetryError("Faust's app crashed, and does not say why")
