"""Being a member of a consumer group: what the workers have in common.

    prepare ──join──▶ member ◀──assigned / revoked──▶ … ──stop or failure──▶ release ──▶ leave

A membership ends when the worker is stopped or when any of its tasks fails; the first failure
counts. After a RetryError the worker rejoins after a back-off; anything else ends the worker.
"""

import asyncio
import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from typing import ClassVar, Literal, TypeAlias

import structlog

from contextgauge.backoff import Backoff
from contextgauge.errors import ConfigError, RetryError
from streams.flow.common.ports import WorkerPorts
from streams.ports import GroupReader, Log

Worker: TypeAlias = Literal["derive", "project", "conversations"]

logger = structlog.get_logger()


class Membership(ABC):
    """One membership of a group, from joining to leaving; what it does is its subclass's.

    `stop` ends it. Nothing is asked of `log` before `run`.
    """

    worker: ClassVar[Worker]

    def __init__(
        self, ports: WorkerPorts, log: Log, topic: str, group: str, instance_id: str | None
    ) -> None:
        self._health, self._telemetry, self._stop = ports.health, ports.telemetry, ports.stop
        self._log, self._topic, self._group = log, topic, group
        self._failure: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._leaving = False
        self._releasing = asyncio.Lock()
        self._reader: GroupReader = log.group_reader(topic, group, instance_id)
        self._partitions = 0
        """Of the topic, when the membership began."""
        self.has_worked = False
        """Whether any partition made progress: then a failure is a new one."""

    @abstractmethod
    async def _prepare(self) -> int:
        """Check the preconditions; return the topic's number of partitions."""

    @abstractmethod
    def _take(self, partitions: frozenset[int]) -> None:
        """Begin to work on these partitions, and only on these."""

    @abstractmethod
    async def _release(self) -> None:
        """End the work on all partitions."""

    def _background(self) -> list[Coroutine[None, None, None]]:
        """Return background tasks that run as long as the membership."""
        return []

    async def run(self) -> None:
        """Be a member until stopped. Raises RetryError or StopError."""
        self._health.worker("joining")
        stopping: asyncio.Future[object] = asyncio.ensure_future(self._stop.wait())
        # A stop must end this even while a service does not answer.
        entering: asyncio.Future[object] = asyncio.ensure_future(self._enter())
        background: list[asyncio.Task[None]] = []
        try:
            await asyncio.wait({stopping, entering}, return_when=asyncio.FIRST_COMPLETED)
            if not entering.done():
                return
            entering.result()
            logger.info("joined the group", group=self._group)
            works = (self._reader.watch(), *self._background())
            background += [self._spawn(work) for work in works]
            await asyncio.wait({stopping, self._failure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leaving = True
            stopping.cancel()
            entering.cancel()
            for task in background:
                task.cancel()
            await asyncio.gather(stopping, entering, *background, return_exceptions=True)
            await self._end_work()
            await self._reader.stop()
            self._health.released()
            self._telemetry.gauge("worker_partitions", 0, worker=self.worker)
        if self._failure.done():
            self._failure.result()

    async def _enter(self) -> None:
        await self._log.start()
        self._partitions = await self._prepare()
        await self._reader.start()
        await self._reader.join(self._on_revoked, self._on_assigned)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Begin some work of the membership; what it raises ends the membership."""
        return asyncio.create_task(self._guard(work))

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- `run` raises it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the membership with an error; the first one counts."""
        if not self._failure.done():
            self._failure.set_exception(error)

    async def _on_revoked(self, partitions: frozenset[int]) -> None:
        if partitions:
            logger.info("partitions revoked", partitions=sorted(partitions))
        self._health.worker("joining", "the group reassigns its partitions")
        await self._end_work()
        self._health.released()

    async def _end_work(self) -> None:
        # In turns: a stop within a rebalance waits for what the rebalance has begun to release, for
        # partitions that end their running batch still use the reader.
        async with self._releasing:
            await self._release()

    async def _on_assigned(self, partitions: frozenset[int]) -> None:
        if self._leaving:
            return
        logger.info("partitions assigned", partitions=sorted(partitions))
        self._telemetry.count("worker_rebalances", worker=self.worker)
        self._telemetry.gauge("worker_partitions", len(partitions), worker=self.worker)
        if any(partition >= self._partitions for partition in partitions):
            self._fail(
                ConfigError(
                    f"{self._topic} has more partitions now, and sessions would map to others: "
                    "create new topics under another CONTEXTGAUGE_TOPIC_PREFIX"
                )
            )
            return
        for partition in partitions:
            self._health.partition(partition, "restoring")
        self._take(partitions)
        self._health.worker("member")


async def stay_member(join: Callable[[], Membership], ports: WorkerPorts) -> None:
    """Be a member until `stop` is set; rejoin after a back-off where a service was away.

    Raises StopError.
    """
    stop = ports.stop
    backoff = Backoff(ports.clock, stop)
    while not stop.is_set():
        member = join()
        try:
            await member.run()
        except RetryError as error:
            if stop.is_set():
                return
            if member.has_worked:
                backoff.reset()
            ports.health.worker("waiting", str(error))
            await pause(error, backoff, ports)
        del member
        if not stop.is_set():
            # The member holds its error, whose frames hold the partitions' states; worker processes
            # run without automatic collection.
            gc.collect()


async def pause(error: RetryError, backoff: Backoff, ports: WorkerPorts, **context: object) -> None:
    """Log Kafka's failure and the pause before the next attempt, and wait for it."""
    ports.telemetry.count("worker_retries", service="kafka")
    logger.warning("trying again", error=str(error), pause_s=backoff.next_s, **context)
    await backoff.wait()
