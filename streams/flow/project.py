"""The project worker: folds context.events into views, as a member of a group.

Readers use the active generation; a worker follows it on every partition that it is given.
Where there is none (a new or an emptied store), or where documents were lost, the next one is
built from the log's beginning, on every partition by the worker that has it, and becomes active
once all have come to where the log ended when they began:

    no active generation ──begin──▶ next ──all partitions caught up──▶ active ──loss──▶ next …

A partition whose documents were lost is followed no further: its readers see it fall behind,
not wrong figures. What ends what, by the error's name:

    ReseekError      the partition drops what it has in memory and reads on from the stored position
    LostError        the next generation is begun
    RetryError       of the store: waited for; of the log: the worker joins the group anew
    StopError        ends the worker
"""

import asyncio
from collections.abc import Coroutine

import structlog

from streams.core.errors import ConfigError, RetryError
from streams.flow.backoff import Backoff
from streams.flow.generations import Watch
from streams.flow.project_config import ProjectConfig
from streams.flow.project_task import ProjectTask, Tools
from streams.flow.retry import Patience
from streams.ports import Clock, Log, Telemetry, ViewStore

_WORKER = "project"

_CANCEL_TIMEOUT_S = 3.0
"""Closing a reader takes one round trip; the group waits for longer."""

logger = structlog.get_logger()


async def run_project(
    *,
    log: Log,
    store: ViewStore,
    config: ProjectConfig,
    telemetry: Telemetry,
    clock: Clock,
    stop: asyncio.Event,
) -> None:
    """Project until `stop` is set, then leave the group.

    A log or store that is away, at start or later, is waited for with a back-off. Raises
    StopError where going on would be wrong: a missing topic, views for another number of
    partitions, an unknown version, a position out of range.
    """
    patience = Patience(clock, telemetry, stop, _WORKER)
    backoff = Backoff(clock, stop)
    watch = Watch(store, clock, config.instance_id)
    tools = Tools(log, store, config, telemetry, clock, patience, watch)
    while not stop.is_set():
        member = _Member(tools, stop)
        try:
            await patience.until_done(store.start)
            await patience.until_done(watch.look)
            await member.run()
        except RetryError as error:
            if stop.is_set():
                return
            if member.has_worked:
                backoff.reset()
            telemetry.count("worker_retries", worker=_WORKER)
            logger.warning("trying again", error=str(error), pause_s=backoff.next_s)
            await backoff.wait()


class _Member:
    """One membership of the group, from joining to leaving."""

    def __init__(self, tools: Tools, stop: asyncio.Event) -> None:
        self._tools = tools
        self._stop = stop
        self._projecting: list[ProjectTask] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._partitions = 0
        self._leaving = False
        self.has_worked = False
        """Whether any partition was read: then a failure is a new one."""
        config = tools.config
        self._reader = tools.log.group_reader(config.events_topic, config.group, config.instance_id)

    async def run(self) -> None:
        """Be a member until stopped. Raises RetryError where the log is away, StopError."""
        tools = self._tools
        await tools.log.start()
        counts = await tools.log.partition_counts([tools.config.events_topic])
        count = counts[tools.config.events_topic]
        if count is None:
            raise ConfigError(
                f"no topic {tools.config.events_topic}: create it with `contextgauge topics create`"
            )
        self._partitions = count
        stopping: asyncio.Future[object] = asyncio.ensure_future(self._stop.wait())
        watching = [asyncio.create_task(self._guard(self._watch()))]
        try:
            await self._reader.start()
            await self._reader.join(self._on_revoked, self._on_assigned)
            watching.append(asyncio.create_task(self._guard(self._reader.watch())))
            logger.info("joined the group", group=tools.config.group)
            await asyncio.wait({stopping, self._failure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leaving = True
            stopping.cancel()
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await self._release()
            await self._reader.stop()
            tools.telemetry.gauge("worker_partitions", 0, worker=_WORKER)
        if self._failure.done():
            self._failure.result()

    async def _watch(self) -> None:
        """See what other workers do to the generations."""
        tools = self._tools
        while True:
            await tools.clock.sleep(tools.config.watch_s)
            await tools.patience.until_done(tools.watch.look)

    async def _on_revoked(self, partitions: frozenset[int]) -> None:
        if partitions:
            logger.info("partitions revoked", partitions=sorted(partitions))
        await self._release()

    async def _on_assigned(self, partitions: frozenset[int]) -> None:
        if self._leaving:
            return
        logger.info("partitions assigned", partitions=sorted(partitions))
        self._tools.telemetry.gauge("worker_partitions", len(partitions), worker=_WORKER)
        for partition in sorted(partitions):
            if partition >= self._partitions:
                self._fail(
                    ConfigError(
                        f"{self._tools.config.events_topic} has got more partitions, and sessions "
                        "would be on others: create new topics under another "
                        "CONTEXTGAUGE_TOPIC_PREFIX"
                    )
                )
                return
            task = ProjectTask(self._tools, self._reader, partition, self._partitions)
            self._projecting.append(task)
            self._tasks += [
                asyncio.create_task(self._guard(work))
                for work in (task.follow(), task.build(), task.clean())
            ]

    async def _release(self) -> None:
        """End all partitions' work at once: a batch that was cut off is read again."""
        self.has_worked = self.has_worked or any(task.has_read for task in self._projecting)
        self._projecting.clear()
        tasks, self._tasks = set(self._tasks), []
        while tasks:
            # Again, if need be: a library may swallow a cancellation.
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)

    def _fail(self, error: Exception) -> None:
        """End the membership with an error; the first one counts."""
        if not self._failure.done():
            self._failure.set_exception(error)

    async def _guard(self, work: Coroutine[None, None, None]) -> None:
        """Do some work; what it raises ends the membership."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- told on by `run`, whatever it is
            self._fail(error)
