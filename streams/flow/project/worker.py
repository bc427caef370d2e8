"""The project worker: folds context.events into views, as a member of a group.

Readers use the active generation; a worker follows it on every partition that it is given.
Where there is none (a new or an emptied store), or where documents were lost or have a former
format, the next one is built from the log's beginning, on every partition by the worker that has
it, and becomes active once all have come to where the log ended when they began, or near to where
it ends now if readers have another one meanwhile:

    no active generation ──begin──▶ next ──all partitions caught up──▶ active ──loss──▶ next …

A partition whose documents were lost is followed no further: its readers see it fall behind
rather than wrong figures. What ends what, by the error's name:

    ReseekError      the partition drops what it has in memory and reads on from the stored position
    LostError, FormerViewsError, PositionError  the next generation is begun
    RetryError       of the store: waited for; of the log: the worker rejoins the group
    StopError        ends the worker
"""

import asyncio
from collections.abc import Coroutine, Mapping

from streams.flow.common.membership import Membership, stay_member
from streams.flow.common.topic_watch import KnownTopic, known_topics, watch_topics
from streams.flow.project.background import GenerationBuild, clean_up
from streams.flow.project.derivation_lag import DerivationLag
from streams.flow.project.live import LiveProjection
from streams.flow.project.polling import PartitionPoller, ProjectPorts
from streams.flow.project.session_counts import SessionGauges

_CANCEL_TIMEOUT_S = 3.0
"""Closing a reader takes one round trip; the group waits for longer."""


async def run_project(ports: ProjectPorts) -> None:
    """Project until `stop` is set, then leave the group.

    A log or store that is away, at start or later, is waited for with a back-off. Raises
    StopError where going on would be wrong: a missing topic, views for another number of
    partitions, an unknown version.
    """
    # Initialised with 0: the first event of a new series would not show as an increase.
    ports.telemetry.count("worker_retries", 0, service="kafka")
    ports.telemetry.count("worker_retries", 0, service="redis")
    await stay_member(lambda: _ProjectMember(ports), ports)


class _ProjectMember(Membership):
    """Three tasks for each partition: live projection, the next generation's build, cleanup."""

    worker = "project"

    def __init__(self, ports: ProjectPorts) -> None:
        config = ports.config
        super().__init__(ports, ports.log, config.events_topic, config.group, config.instance_id)
        self._ports = ports
        self._topics: Mapping[str, KnownTopic] = {}
        self._pollers: list[PartitionPoller] = []
        self._derivation = DerivationLag(
            ports, lambda: [poller.partition for poller in self._pollers]
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def _prepare(self) -> int:
        """Wait for the store. Raises ConfigError where the topic is missing."""
        ports = self._ports
        await ports.retry.run(ports.store.start)
        await self._refresh()
        self._topics = await known_topics(ports.log, ports.clock, [self._topic])
        return self._topics[self._topic].partitions

    def _background(self) -> list[Coroutine[None, None, None]]:
        gauges = SessionGauges(self._ports.store, self._ports.telemetry, self._ports.clock)
        reporting = gauges.run(
            lambda: [poller.partition for poller in self._pollers],
            lambda: self._ports.generations.current.active,
        )
        watching = watch_topics(self._ports.log, self._ports.clock, self._topics)
        return [self._refresh_generations(), watching, reporting, self._derivation.run()]

    async def _refresh_generations(self) -> None:
        """Notice what other workers do to the generations."""
        ports = self._ports
        while True:
            await ports.clock.sleep(ports.config.watch_s)
            await self._refresh()

    async def _refresh(self) -> None:
        ports = self._ports
        await ports.retry.run(ports.generations.refresh)
        seen = ports.generations.current
        ports.telemetry.gauge("project_generation_active", seen.active or 0)
        ports.telemetry.gauge("project_generation_next", seen.next or 0)

    def _take(self, partitions: frozenset[int]) -> None:
        telemetry = self._ports.telemetry
        topic_id = self._topics[self._topic].id
        for partition in sorted(partitions):
            telemetry.count("project_losses", 0, partition=str(partition))
            telemetry.count("project_mismatches", 0, partition=str(partition))
            poller = PartitionPoller(self._ports, partition, self._partitions, topic_id)
            live = LiveProjection(self._ports, self._reader, poller, self._derivation)
            build = GenerationBuild(self._ports, poller)
            self._pollers.append(poller)
            works = (live.run(), build.run(), clean_up(self._ports, poller))
            self._tasks += [self._spawn(work) for work in works]

    async def _release(self) -> None:
        """End all partitions' work at once: a batch that was cut off is read again."""
        self.has_worked = self.has_worked or any(poller.has_written for poller in self._pollers)
        self._pollers.clear()
        tasks, self._tasks = set(self._tasks), []
        while tasks:
            # Repeated if needed: a library may swallow a cancellation.
            for task in tasks:
                task.cancel()
            _, tasks = await asyncio.wait(tasks, timeout=_CANCEL_TIMEOUT_S)
