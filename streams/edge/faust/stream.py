"""Records for an agent of Faust: a `RecordStream` over its consumer, its agent and its acks.

What of Faust is used as it is, and what is not, is in docs/adr/0033:

- Its consumer would read what is not committed, connect with Faust's own credentials, and begin
  where its settings say: `ConsumerThread` makes it as all others here are made, and seeks.
- It acknowledges what it skips while it stops or rebalances, and takes the offsets of transaction
  markers for records to come: `GroupConsumer` hears none of its acknowledgements, only the
  handler's, which are in order, and only of the present assignment.
- It restarts an agent that raised: here that ends the stream, and nothing is acknowledged.
- It never asks its consumer what went wrong with the group: here that is asked each second.
- It would make topics, a folder, a web server and a producer: it is asked for none.
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
from streams.edge.faust.app import TAKEN, ConsumerThread, FaustApp, GroupConsumer
from streams.edge.faust.arrival import FaustArrival
from streams.ports import ArrivalHandler

_TAKEN_WITHIN_S: Final = 0.1
"""How long a record may wait for others."""
_STALE_MS: Final = 10_000
"""The broker answers a fetch in a fraction of this, also where there is nothing."""
_COMMIT_EVERY_S: Final = 1.0
"""How often acknowledged positions are told to the broker: what a crash has read again."""
_WATCH_S: Final = 1.0
"""How often it is asked whether we are still welcome in the group."""
_FIRST: Final = asyncio.FIRST_COMPLETED


class FaustStream:
    """Reads a topic as a member of `group`, by an agent of Faust.

    `since_ms` tells the time before which no record is of use where nothing was acknowledged yet,
    `pending_ms` that before which none is that was not acknowledged.

    Made and run in one event loop.
    """

    def __init__(
        self,
        options: KafkaOptions,
        topic: str,
        group: str,
        instance_id: str | None,
        since_ms: Callable[[], int],
        pending_ms: Callable[[], int],
    ) -> None:
        self.options, self.group, self.instance_id = options, group, instance_id
        self.since_ms, self.pending_ms = since_ms, pending_ms
        self._topic = topic
        self._app: FaustApp | None = None
        self._handler: ArrivalHandler | None = None
        self._told: tuple[object, frozenset[int]] | None = None
        self._current: object = None
        """The assignment that the handler has; None while it has none."""
        self._fetched: dict[int, tuple[object, int, int | None]] = {}
        """Of a partition the assignment, the position, and the last record before that."""
        self._handed: dict[int, int] = {}
        """The last record that the handler is done with."""
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

    async def _watch(self, app: FaustApp) -> None:
        """Raise what keeps us from being a member of the group; what passes is waited for."""
        while True:
            await asyncio.sleep(_WATCH_S)
            thread = cast("ConsumerThread", cast("GroupConsumer", app.consumer)._thread)  # noqa: SLF001 -- no public way
            if thread._consumer is None:  # noqa: SLF001 -- as above
                continue
            asked = asyncio.run_coroutine_threadsafe(thread.check(), thread.thread_loop)
            try:
                with translated(f"being a member of the group {self.group}"):
                    await asyncio.wrap_future(asked)
            except RetryError:
                continue

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet; None while no fetch tells it."""
        app = self._app
        if app is None or app.consumer is None:
            return None
        thread = cast("GroupConsumer", app.consumer)._thread  # noqa: SLF001 -- no public way
        consumer = thread._consumer  # noqa: SLF001 -- as above
        at = TopicPartition(self._topic, partition)
        if consumer is None or at not in consumer.assignment():
            return None
        end, told_ms = consumer.last_stable_offset(at), consumer.last_poll_timestamp(at)
        fetched = self._fetched.get(partition)
        if end is None or told_ms is None or fetched is None or not self.is_current(fetched[0]):
            return None
        if time.time() * 1_000 - told_ms > _STALE_MS:
            return None
        _, position, last = fetched
        if last is not None and self._handed.get(partition, -1) < last:
            position = min(position, last)  # Faust has it still
        behind: int = end - position
        if behind <= 0 and consumer.highwater(at) != end:
            return None  # a transaction is open: nobody can tell what is in it
        return max(0, behind)

    def fetched(self, generation: object, partition: int, position: int, last: int | None) -> None:
        """Hear how far was fetched, and the last record of that; in the consumer's thread."""
        former = self._fetched.get(partition)
        if last is None and former is not None and former[0] == generation:
            last = former[2]
        self._fetched[partition] = (generation, position, last)

    def sought(self, generation: object, positions: Mapping[int, int]) -> None:
        """Hear where the partitions of an assignment begin."""
        told = (generation, frozenset(positions))
        if told != self._told and self._handler is not None:
            self._told, self._current = told, generation
            self._handed.clear()
            self._handler.assigned(positions)

    def _made(self) -> FaustApp:
        app = FaustApp(
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
                async for events in stream.noack_take(TAKEN, within=_TAKEN_WITHIN_S):  # type: ignore[attr-defined]  # Faust's
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
            self._current = None
            if self._handler is not None:
                self._handler.revoked()

        app.on_partitions_revoked.connect(revoked)
        return app

    async def _take(self, events: Sequence[Any]) -> None:
        handler, app = self._handler, self._app
        if handler is not None and app is not None:
            arrivals = [FaustArrival(event.message, self) for event in events]
            await handler.take(arrivals)
            for arrival in arrivals:
                if arrival.is_current():
                    self._handed[arrival.partition] = arrival.record.offset

    def is_current(self, generation: object) -> bool:
        """Tell whether the handler was told of an assignment, and has it still."""
        return generation == self._current

    def acknowledge(self, generation: object, partition: int, offset: int) -> None:
        """Note that a record of an assignment and all before it are handled."""
        if self._app is not None and self.is_current(generation):
            at = cast("TP", TopicPartition(self._topic, partition))
            cast("GroupConsumer", self._app.consumer).acknowledge(generation, at, offset)


async def _crash_of(app: faust.App) -> BaseException:
    """Return what crashed the app, once it has."""
    await app._crashed.wait()  # noqa: SLF001 -- no public way to wait for it
    return app.crash_reason or RetryError("Faust's app crashed, and does not say why")
