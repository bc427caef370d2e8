"""The derive worker: a member of the group that runs a task for each partition it is given.

A partition's records, dead letters, state and position are committed in one transaction of that
partition's own producer, so a worker may die anywhere: the next one finds a batch completely or
not at all. What ends what, by the error's name:

    FencedError      ends the partition's task at once; a partition that is still assigned
                     after a pause is taken over again
    RetryError       the partition is taken over again after a back-off
    ReaderLostError  the worker rejoins the group after a back-off
    StopError        ends the worker, in good order
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import get_args

import structlog

from contextgauge.backoff import Backoff, sleep_until
from contextgauge.errors import ConfigError, FencedError, RetryError
from schemas.messages import DeadReason
from schemas.records import DATA_CLASS_BY_KIND
from streams.flow.common.membership import Membership, pause, stay_member
from streams.flow.common.topic_watch import KnownTopic, TopicLooks, known_topics, watch_topics
from streams.flow.derive.batch_sizes import BatchSizes
from streams.flow.derive.group_offsets import GroupOffsets
from streams.flow.derive.partition_state import InputPartition
from streams.flow.derive.partition_task import (
    DerivePorts,
    PartitionTask,
    ReaderLostError,
    ReleasedState,
)

logger = structlog.get_logger()


async def run_derive(ports: DerivePorts) -> None:
    """Derive until `stop` is set; then finish the running batches and leave the group.

    A log that is away, at start or later, is waited for with a back-off. Raises StopError where
    going on would be wrong: missing or unequal topics, an unknown version, a position out of
    range, a flood of dead letters.
    """
    telemetry = ports.telemetry
    # Initialised with 0: the first event of a new series would not show as an increase.
    telemetry.count("worker_retries", 0, service="kafka")
    for outcome in ("committed", "failed", "fenced"):
        telemetry.count("worker_transactions", 0, outcome=outcome)
    for kind in DATA_CLASS_BY_KIND:
        telemetry.count("derive_records", 0, kind=kind)
    for reason in get_args(DeadReason):
        telemetry.count("derive_dead_letters", 0, reason=reason)
    released: dict[int, ReleasedState] = {}
    sizes = BatchSizes(ports.config.batch_messages, ports.config.commit_timeout_s)
    await stay_member(lambda: _DeriveMember(ports, released, sizes), ports)


class _Ownership:
    """One partition while it is assigned: its task, and the signal to release it."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.current: PartitionTask | None = None
        self.task: asyncio.Task[None] | None = None

    def release(self) -> None:
        """Ask it to end: at once while it restores, else after its running batch."""
        self.released.set()
        if self.current is not None and self.current.running:
            self.current.stop()
        elif self.task is not None:
            self.task.cancel()


class _DeriveMember(Membership):
    """A task for each partition.

    `released` are the states of former memberships' partitions, `sizes` those of their batches.
    """

    worker = "derive"

    def __init__(
        self, ports: DerivePorts, released: dict[int, ReleasedState], sizes: BatchSizes
    ) -> None:
        config = ports.config
        topic, group = config.messages_topic, config.group
        super().__init__(ports, ports.log, topic, group, config.instance_id)
        self._ports = ports
        self._released, self._sizes = released, sizes
        self._owned: dict[int, _Ownership] = {}
        self._dead_partitions = 0
        self._topics: Mapping[str, KnownTopic] = {}
        self._offsets = GroupOffsets(self._reader)
        self._looks = TopicLooks()

    async def _prepare(self) -> int:
        """Raise ConfigError where a topic is missing or the partition counts differ."""
        config = self._ports.config
        equal = (config.messages_topic, config.events_topic, config.state_topic)
        log, clock = self._ports.log, self._ports.clock
        topics = self._topics = await known_topics(log, clock, [*equal, config.dead_topic])
        if len({topics[name].partitions for name in equal}) != 1:
            counted = ", ".join(f"{name} has {topics[name].partitions}" for name in equal)
            raise ConfigError(
                f"partition counts differ: {counted}. They must be equal: let `contextgauge topics "
                "create` make them under another CONTEXTGAUGE_TOPIC_PREFIX, or delete the odd one "
                "and recreate it"
            )
        self._dead_partitions = topics[config.dead_topic].partitions
        partitions = topics[config.messages_topic].partitions
        if config.processes > partitions:
            logger.warning(
                "more processes than partitions: some have nothing to do",
                processes=config.processes,
                partitions=partitions,
            )
        return partitions

    def _background(self) -> list[Coroutine[None, None, None]]:
        log, clock = self._ports.log, self._ports.clock
        return [self._offsets.run(), watch_topics(log, clock, self._topics, self._looks)]

    def _take(self, partitions: frozenset[int]) -> None:
        self._offsets.begin()
        self._sizes.share(len(partitions))
        for gone in self._released.keys() - partitions:
            # Another worker writes there now: the state is outdated.
            del self._released[gone]
        for partition in sorted(partitions):
            # Initialised with 0: the first event of a new series would not show as an increase.
            self._ports.telemetry.count("worker_fenced", 0, partition=str(partition))
            ownership = self._owned[partition] = _Ownership()
            ownership.task = self._spawn(self._own(partition, ownership))

    async def _release(self) -> None:
        """Release all partitions: give running batches time, then cancel them."""
        ownerships = list(self._owned.values())
        number_of = {each.task: number for number, each in self._owned.items()}
        self._owned.clear()
        for ownership in ownerships:
            ownership.release()
        tasks = [ownership.task for ownership in ownerships if ownership.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._ports.config.revoke_timeout_s)
            for task in late:
                self._sizes.failed(number_of[task])
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._offsets.end()

    async def _own(self, partition: int, ownership: _Ownership) -> None:
        """Run a partition, again after failures, until it is released."""
        ports = self._ports
        place = InputPartition(partition, self._partitions, self._dead_partitions)
        backoff = Backoff(ports.clock, ownership.released)
        released = self._released.pop(partition, None)
        while not ownership.released.is_set():
            task = ownership.current = PartitionTask(
                ports, place, self._reader, self._offsets, self._looks, self._sizes
            )
            try:
                self._released[partition] = await task.run(released)
            except asyncio.CancelledError:
                if released is not None and released.state is not None and not task.running:
                    # It was not used yet, so it is still valid.
                    self._released[partition] = released
                raise
            except FencedError as error:
                self._sizes.failed(partition)
                ports.telemetry.count("worker_fenced", partition=str(partition))
                ports.telemetry.count("worker_transactions", outcome="fenced")
                ports.health.partition(partition, "waiting", str(error))
                logger.warning("fenced", partition=partition, error=str(error))
                await sleep_until(ports.clock, ownership.released, ports.config.fenced_pause_s)
            except ReaderLostError:
                self._sizes.failed(partition)  # too busy to remain a member, or the broker is away
                raise
            except RetryError as error:
                self._sizes.failed(partition)
                ports.telemetry.count("worker_transactions", outcome="failed")
                if task.committed:
                    backoff.reset()
                ports.health.partition(partition, "waiting", str(error))
                await pause(error, backoff, ports, partition=partition)
            finally:
                self.has_worked = self.has_worked or task.committed
                ownership.current = None
            released = None
