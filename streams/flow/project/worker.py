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
from typing import Final

from contextgauge.errors import ConfigError
from streams.flow.common.generations import Watch
from streams.flow.common.membership import Membership, stay_member
from streams.flow.common.retry import Patience
from streams.flow.project.config import ProjectConfig
from streams.flow.project.partition_task import ProjectTask, Tools
from streams.flow.project.session_counts import SessionGauges
from streams.ports import Clock, Health, Log, Telemetry, ViewStore

_WORKER: Final = "project"

_CANCEL_TIMEOUT_S = 3.0
"""Closing a reader takes one round trip; the group waits for longer."""


async def run_project(
    *,
    log: Log,
    store: ViewStore,
    config: ProjectConfig,
    telemetry: Telemetry,
    health: Health,
    clock: Clock,
    stop: asyncio.Event,
) -> None:
    """Project until `stop` is set, then leave the group.

    A log or store that is away, at start or later, is waited for with a back-off. Raises
    StopError where going on would be wrong: a missing topic, views for another number of
    partitions, an unknown version, a position out of range.
    """
    patience = Patience(clock, telemetry, health, stop, "redis")
    watch = Watch(store, clock, config.instance_id)
    tools = Tools(log, store, config, telemetry, health, clock, patience, watch)
    # From 0 on: of a counter that begins with its first event nobody sees it rise.
    telemetry.count("worker_retries", 0, service="kafka")
    telemetry.count("worker_retries", 0, service="redis")
    await stay_member(
        lambda: _Member(tools, stop),
        telemetry=telemetry,
        health=health,
        clock=clock,
        stop=stop,
    )


class _Member(Membership):
    """Three tasks for each partition, and an eye on what other workers do."""

    def __init__(self, tools: Tools, stop: asyncio.Event) -> None:
        config = tools.config
        super().__init__(
            worker=_WORKER,
            topic=config.events_topic,
            group=config.group,
            instance_id=config.instance_id,
            log=tools.log,
            telemetry=tools.telemetry,
            health=tools.health,
            stop=stop,
        )
        self._tools = tools
        self._projecting: list[ProjectTask] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def _prepare(self) -> int:
        """Wait for the store. Raises ConfigError where the topic is missing."""
        tools = self._tools
        await tools.patience.until_done(tools.store.start)
        await self._look()
        topic = tools.config.events_topic
        count = (await tools.log.partition_counts([topic]))[topic]
        if count is None:
            raise ConfigError(f"no topic {topic}: create it with `contextgauge topics create`")
        return count

    def _beside(self) -> list[Coroutine[None, None, None]]:
        gauges = SessionGauges(self._tools.store, self._tools.telemetry, self._tools.clock)
        telling = gauges.run(
            lambda: [task.partition for task in self._projecting],
            lambda: self._tools.watch.seen.active,
        )
        return [self._watch(), telling]

    async def _watch(self) -> None:
        """See what other workers do to the generations."""
        tools = self._tools
        while True:
            await tools.clock.sleep(tools.config.watch_s)
            await self._look()

    async def _look(self) -> None:
        tools = self._tools
        await tools.patience.until_done(tools.watch.look)
        seen = tools.watch.seen
        tools.telemetry.gauge("project_generation_active", seen.active or 0)
        tools.telemetry.gauge("project_generation_next", seen.next or 0)

    def _take(self, partitions: frozenset[int]) -> None:
        telemetry = self._tools.telemetry
        for partition in sorted(partitions):
            telemetry.count("project_losses", 0, partition=str(partition))
            telemetry.count("project_mismatches", 0, partition=str(partition))
            task = ProjectTask(self._tools, self._reader, partition, self._partitions)
            self._projecting.append(task)
            works = (task.follow(), task.build(), task.clean())
            self._tasks += [self._spawn(work) for work in works]

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
