"""Records for an agent of Faust: a `RecordStream` over its consumer, its agent and its acks.

Which parts of Faust are used and which are replaced (docs/adr/0033):

- Its consumer would read uncommitted records, connect with Faust's own credentials, and begin
  where its settings say: `ConsumerThread` creates it like every other consumer here, and seeks.
- It acknowledges what it skips while it stops or rebalances, and waits for the offsets of
  transaction markers as if they were records: `GroupConsumer` ignores its acknowledgements and
  takes only the handler's, which are in order, and only of the current assignment.
- It restarts an agent that raised: here that ends the stream, and nothing is acknowledged.
- It never checks its consumer for errors of the group: here that is done each second.
- It would create topics, a folder, a web server and a producer: all are disabled.
"""

import asyncio
import time
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import Any, Final, cast

import faust
from aiokafka import TopicPartition
from faust.types import TP
from mode.supervisors import CrashingSupervisor

from contextgauge.errors import RetryError
from contextgauge.kafka.options import KafkaOptions, translated
from streams.edge.faust.app import (
    BATCH_RECORDS,
    ConsumerSettings,
    ConsumerThread,
    FaustApp,
    GroupConsumer,
)
from streams.edge.kafka.membership import GroupConfiguration
from streams.ports import LogRecord, RecordHandler

_CREATE_TIME: Final = 0
"""Kafka's timestamp type of a record that carries the producer's clock."""
_BATCH_WITHIN_S: Final = 0.1
"""How long a record may wait for others of its batch."""
_STALE_MS: Final = 10_000
"""The broker answers a fetch in a fraction of this, also where there is nothing."""
_COMMIT_EVERY_S: Final = 1.0
"""How often acknowledged positions are committed: what a crash has read again."""
_WATCH_S: Final = 1.0
"""How often the membership of the group is checked for errors."""
_FIRST: Final = asyncio.FIRST_COMPLETED


class FaustRecord:
    """One of Faust's messages, which knows the assignment that it was read in."""

    __slots__ = ("_generation", "_stream", "partition", "record")

    def __init__(self, message: Any, stream: "FaustStream") -> None:  # noqa: ANN401 -- Faust's
        self._stream, self._generation = stream, message.generation_id
        self.partition: int = message.partition
        self.record = LogRecord(
            message.offset,
            round(message.timestamp * 1_000),
            message.key,
            message.value,
            tuple(message.headers or ()),
            message.timestamp_type == _CREATE_TIME,
        )

    def is_current(self) -> bool:
        return self._stream.is_current(self._generation)

    def release(self) -> None:
        self.record = self.record._replace(key=None, value=None, headers=())

    def acknowledge(self) -> None:
        self._stream.acknowledge(self._generation, self.partition, self.record.offset)


class FaustStream:
    """Reads a topic as a member of `group`, by an agent of Faust.

    `since_ms`, `pending_ms` and `topic_id` as in `ConsumerSettings`; with a `membership`, members
    of another configuration get no partitions. Created and run in one event loop.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topic: str,
        group: str,
        instance_id: str | None,
        since_ms: Callable[[], int],
        pending_ms: Callable[[], int],
        *,
        topic_id: str = "",
        membership: GroupConfiguration | None = None,
    ) -> None:
        self._settings = ConsumerSettings(
            options=options,
            group=group,
            instance_id=instance_id,
            since_ms=since_ms,
            pending_ms=pending_ms,
            topic_id=topic_id,
            membership=membership,
            fetched=self._note_fetch,
            sought=self.assign,
        )
        self._topic = topic
        self._app: FaustApp | None = None
        self._handler: RecordHandler | None = None
        self._assigned: tuple[object, frozenset[int]] | None = None
        self._current: object = None
        """The assignment that the handler has; None while it has none."""
        self._fetched: dict[int, tuple[object, int, int | None]] = {}
        """By partition: the assignment, the position, and the last record before it."""
        self._handled: dict[int, int] = {}
        """By partition: the last record that the handler is done with."""
        self._failed: asyncio.Future[None] | None = None

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        self._handler = handler
        self._failed = asyncio.get_running_loop().create_future()
        app = self._app = self._create_app()
        stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        # The start ends with the first assignment, which may never come.
        starting: asyncio.Future[Any] = asyncio.ensure_future(app.start())
        crashed: asyncio.Future[Any] = asyncio.ensure_future(_crash_of(app))
        watching: asyncio.Future[Any] = asyncio.ensure_future(self._watch(app))
        tasks = (stopping, starting, crashed, watching)
        try:
            with translated(f"reading {self._topic}"):
                await asyncio.wait({starting, *tasks, self._failed}, return_when=_FIRST)
                if starting.done() and not starting.exception():
                    await asyncio.wait(
                        {stopping, crashed, watching, self._failed}, return_when=_FIRST
                    )
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

    async def _watch(self, app: FaustApp) -> None:
        """Raise what ends the membership of the group; temporary errors are waited out."""
        while True:
            await asyncio.sleep(_WATCH_S)
            thread = cast("ConsumerThread", cast("GroupConsumer", app.consumer)._thread)  # noqa: SLF001 -- no public way
            if thread._consumer is None:  # noqa: SLF001 -- as above
                continue
            asked = asyncio.run_coroutine_threadsafe(thread.check(), thread.thread_loop)
            try:
                with translated(f"being a member of the group {self._settings.group}"):
                    await asyncio.wrap_future(asked)
            except RetryError:
                continue

    def behind(self, partition: int) -> int | None:
        app = self._app
        if app is None or app.consumer is None:
            return None
        thread = cast("GroupConsumer", app.consumer)._thread  # noqa: SLF001 -- no public way
        consumer = thread._consumer  # noqa: SLF001 -- as above
        topic_partition = TopicPartition(self._topic, partition)
        if consumer is None or topic_partition not in consumer.assignment():
            return None
        end, polled_ms = (
            consumer.last_stable_offset(topic_partition),
            consumer.last_poll_timestamp(topic_partition),
        )
        fetched = self._fetched.get(partition)
        if end is None or polled_ms is None or fetched is None or not self.is_current(fetched[0]):
            return None
        if time.time() * 1_000 - polled_ms > _STALE_MS:
            return None
        _, position, last = fetched
        if last is not None and self._handled.get(partition, -1) < last:
            position = min(position, last)  # Faust still holds it
        behind: int = end - position
        if behind <= 0 and consumer.highwater(topic_partition) != end:
            return None  # an open transaction: its records are not visible
        return max(0, behind)

    def _note_fetch(
        self, generation: object, partition: int, position: int, last: int | None
    ) -> None:
        """Note the position after a fetch and its last record; in the consumer's thread."""
        former = self._fetched.get(partition)
        if last is None and former is not None and former[0] == generation:
            last = former[2]
        self._fetched[partition] = (generation, position, last)

    def assign(self, generation: object, positions: Mapping[int, int]) -> None:
        """Give the handler the partitions of an assignment."""
        assigned = (generation, frozenset(positions))
        if assigned != self._assigned and self._handler is not None:
            self._assigned, self._current = assigned, generation
            self._handled.clear()
            self._handler.assigned(positions)

    def _create_app(self) -> FaustApp:
        options = self._settings.options
        app = FaustApp(
            self._settings.group,
            broker="kafka://",  # the consumer is created from the settings' options
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
            broker_session_timeout=options.session_timeout_ms / 1_000,
            broker_rebalance_timeout=options.rebalance_timeout_ms / 1_000,
            broker_request_timeout=options.request_timeout_ms / 1_000,
        )
        app.settings = self._settings
        topic = app.topic(
            self._topic,
            key_type=bytes,
            value_type=bytes,
            key_serializer="raw",
            value_serializer="raw",
        )

        async def control(stream: AsyncIterable[Any]) -> None:
            try:
                async for events in stream.noack_take(BATCH_RECORDS, within=_BATCH_WITHIN_S):  # type: ignore[attr-defined]  # Faust's
                    await self._take(events)
            except Exception as error:
                failed = self._failed
                if failed is not None and not failed.done():
                    failed.set_exception(error)
                raise

        app.agent(topic, name="control", concurrency=1, supervisor_strategy=CrashingSupervisor)(
            control
        )

        async def revoked(*_partitions: object, **_others: object) -> None:
            self._current = None
            if self._handler is not None:
                self._handler.revoked()

        app.on_partitions_revoked.connect(revoked)
        return app

    async def _take(self, events: Sequence[Any]) -> None:
        handler, app = self._handler, self._app
        if handler is not None and app is not None:
            arrivals = [FaustRecord(event.message, self) for event in events]
            await handler.handle(arrivals)
            for arrival in arrivals:
                if arrival.is_current():
                    self._handled[arrival.partition] = arrival.record.offset

    def is_current(self, generation: object) -> bool:
        return generation == self._current

    def acknowledge(self, generation: object, partition: int, offset: int) -> None:
        if self._app is not None and self.is_current(generation):
            topic_partition = cast("TP", TopicPartition(self._topic, partition))
            cast("GroupConsumer", self._app.consumer).acknowledge(
                generation, topic_partition, offset
            )


async def _crash_of(app: faust.App) -> BaseException:
    """Return what crashed the app, once it has."""
    await app._crashed.wait()  # noqa: SLF001 -- no public way to wait for it
    return app.crash_reason or RetryError("Faust's app crashed without a reason")
