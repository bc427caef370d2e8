"""What a process uses of the simulated broker: readers, members of groups, producers."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, overload
from uuid import UUID

from contextgauge.errors import RetryError
from schemas.topics import Topic
from streams.edge.memory.readers import MemoryPartitionReader
from streams.ports import Approval, AssignmentCallback, Batch, Ends, NewRecord
from tests.simulation.broker import Broker, Request, Target, empty
from tests.simulation.coordinator import Groups, Notice
from tests.simulation.process import Process, set_stop

COMMIT_S = 3.0
"""When a client gives a commit up; the product's default is 20 s."""

JOIN_AGAIN_S = 1.0
"""A lost request to join is repeated by the client's library."""


class ProcessLog:
    """The log as one process sees it."""

    def __init__(self, broker: Broker, groups: Groups, process: Process) -> None:
        self.broker, self.groups, self.process = broker, groups, process

    async def start(self) -> None:
        await self.ask(_nothing)

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    def ask(self, serve: Any, *args: Any) -> Coroutine[Any, Any, Any]:
        return self.broker.wire.call(self.process, serve, *args)

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        raise NotImplementedError

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        counts: dict[str, int | None] = await self.ask(self.broker.counts, names)
        return counts

    async def topic_ids(self, names: Sequence[str]) -> dict[str, UUID | None]:
        ids: dict[str, UUID | None] = await self.ask(self.broker.ids_of, names)
        return ids

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        return dict(self.groups.of(group, topic).offsets)

    def transactional_producer(self, transactional_id: str) -> "TransactionalProducer":
        return TransactionalProducer(self, transactional_id)

    def producer(self) -> "PlainProducer":
        return PlainProducer(self)

    def reader(self, topic: str, partitions: Sequence[int]) -> "Reader":
        return Reader(self, topic, partitions)

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> "GroupReader":  # noqa: ARG002 -- all members are dynamic
        return GroupReader(self, topic, group)

    def __getattr__(self, name: str) -> Any:
        """Give what the port has besides, without the wire."""
        return getattr(self.broker, name)


def _nothing() -> None:
    return None


class Reader(MemoryPartitionReader):
    """A reader whose requests go through the wire; a lost fetch is an empty poll."""

    def __init__(self, log: ProcessLog, topic: str, partitions: Sequence[int]) -> None:
        super().__init__(partial(log.broker.partition, topic), partitions)
        self.log, self.topic = log, topic
        self._ends: dict[int, Ends] = {}

    async def start(self) -> None:
        await self.log.ask(self._check)

    def _check(self) -> None:
        for partition in self._partitions:
            self._find(partition)

    async def bounds(self, partition: int) -> tuple[int, int]:
        bounds: tuple[int, int] = await self.log.ask(self.log.broker.bounds, self.topic, partition)
        return bounds

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        log, position = self.log, self._positions[partition]
        loop, broker = log.process.loop, log.broker
        reply: asyncio.Future[Any] = loop.create_future()
        timer = loop.call_later(timeout_s, _give, reply, None)
        until_s = loop.time() + timeout_s
        target = (self.topic, partition)
        fetch = partial(broker.fetch, target, position, max_records, until_s)
        try:
            arrives = broker.wire.send(log.process, fetch, partial(_give, reply))
            fetched = await reply
        finally:
            timer.cancel()
        if isinstance(fetched, Exception):
            raise fetched
        if fetched is None and arrives and (ends := broker.ends(target)) is not None:
            self._ends[partition] = ends  # of the empty reply
        if fetched is None or self._positions[partition] != position:
            return Batch([], self._positions[partition])
        batch: Batch
        batch, self._ends[partition] = fetched
        self._positions[partition] = batch.position
        return batch

    def ends(self, partition: int) -> Ends | None:
        return self._ends.get(partition)


def _give(reply: asyncio.Future[Any], result: Any) -> None:
    if not reply.done():
        reply.set_result(result)


class GroupReader(Reader):
    """A member of a group: what its coordinator sends is done one after the other."""

    def __init__(self, log: ProcessLog, topic: str, group: str) -> None:
        super().__init__(log, topic, ())
        self.group = log.groups.of(group, topic)
        self.assigned: frozenset[int] = frozenset()
        self._revoking: frozenset[int] = frozenset()
        self._paused: set[int] = set()
        self._polls: dict[asyncio.Task[Batch], None] = {}
        self._watches: list[asyncio.Future[None]] = []
        self._notices: deque[Notice] = deque()
        self._noticed: asyncio.Future[None] | None = None
        self._coordinating: asyncio.Task[None] | None = None
        self._stopped = False
        self.stops_after_s: float | None = None
        """How long after its next rebalance begins its process is stopped, if it is to be."""
        self.requests = self.arrived = 0
        """Requests to join: how many were made, and which the coordinator had last."""

    async def start(self) -> None:
        await self.log.ask(_nothing)

    async def join(self, on_revoked: AssignmentCallback, on_assigned: AssignmentCallback) -> None:
        self._on_revoked, self._on_assigned = on_revoked, on_assigned
        self.notify(Notice(None))
        self._coordinating = asyncio.create_task(self._coordinate())

    def notify(self, notice: Notice) -> None:
        """Take a notice of the coordinator."""
        self._notices.append(notice)
        if self._noticed is not None and not self._noticed.done():
            self._noticed.set_result(None)

    async def _coordinate(self) -> None:
        while True:
            while not self._notices:
                self._noticed = self.log.process.loop.create_future()
                await self._noticed
            notice = self._notices.popleft()
            if notice.partitions is None:
                await self._revoke()
                self.requests += 1
                self._ask_to_join(self.requests)
            elif self.group.is_current(self, notice):
                self.assigned = notice.partitions
                self._paused = set(notice.partitions)
                await self._on_assigned(notice.partitions)

    async def _revoke(self) -> None:
        revoked, self.assigned = self.assigned, frozenset()
        if revoked and self.stops_after_s is not None:
            process = self.log.process
            self.log.broker.scheduler.after(
                self.stops_after_s, process.loop.call_soon, set_stop, process.stop
            )
        for poll in list(self._polls):
            poll.cancel()
        self._revoking = revoked
        await self._on_revoked(revoked)
        self._revoking = frozenset()

    def _ask_to_join(self, number: int) -> None:
        """Ask to join, until that has arrived; it counts once."""
        if self._stopped or self.arrived >= number:
            return
        process = self.log.process

        def arrive(answer: Any) -> None:
            if not self._stopped and not process.loop.is_dead and self.arrived < number:
                self.arrived = number
                self.group.join(self)
            answer(None)

        if not self.log.broker.wire.send(process, arrive, lambda _result: None):
            process.loop.call_later(JOIN_AGAIN_S, self._ask_to_join, number)

    def resume(self, partition: int) -> None:
        self._check_running()
        self._paused.discard(partition)

    def seek(self, partition: int, offset: int) -> None:
        self._check_running()
        super().seek(partition, offset)

    async def commit_offsets(self, positions: Mapping[int, int]) -> None:
        if not positions.keys() <= self.assigned | self._revoking:
            raise RetryError("the partitions are another member's now")
        await self.log.ask(self.group.offsets.update, dict(positions))

    async def watch(self) -> None:
        failing: asyncio.Future[None] = self.log.process.loop.create_future()
        self._watches.append(failing)
        await failing

    def fail(self) -> None:
        """End the membership with an error, as where the coordinator refuses it."""
        for failing in self._watches:
            if not failing.done():
                failing.set_exception(RetryError("the group does not answer"))

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        self._check_running()
        if partition not in self.assigned:
            await asyncio.sleep(0)
            return empty(self.position(partition))
        if partition in self._paused:
            await asyncio.sleep(timeout_s)
            return empty(self.position(partition))
        task = asyncio.create_task(super().poll(partition, max_records, timeout_s))
        self._polls[task] = None
        try:
            await asyncio.wait([task])
        finally:
            self._polls.pop(task, None)
            task.cancel()
        return empty(self.position(partition)) if task.cancelled() else task.result()

    def ends(self, partition: int) -> Ends | None:
        self._check_running()
        return super().ends(partition) if partition in self.assigned else None

    def _check_running(self) -> None:
        # As Kafka's: nothing may still use the reader of a membership that has ended.
        if self._stopped and not self.log.process.loop.is_dead:
            self.log.broker.on_misuse(f"{self.log.process.name} ended, and uses its reader")
            raise RuntimeError("the reader was stopped")

    async def stop(self) -> None:
        if self._stopped or self.log.process.loop.is_dead:
            return
        self._stopped = True
        self.assigned = frozenset()
        if self._coordinating is not None:
            self._coordinating.cancel()
        self.log.broker.scheduler.after(
            self.log.process.chance.random() * 0.01, self.group.leave, self
        )


class TransactionalProducer:
    """One producer epoch of a transactional id. After an error of `commit` it is spent."""

    def __init__(self, log: ProcessLog, name: str) -> None:
        self._log, self._name = log, name
        self._epoch = self._number = 0
        self._spent = True

    async def start(self) -> None:
        broker, process = self._log.broker, self._log.process
        serve = partial(broker.init, self._name, process.name)
        self._epoch = await broker.wire.ask(process, serve, COMMIT_S)
        self._spent = False

    @overload
    async def commit(self, records: Sequence[NewRecord]) -> Mapping[Target, int]: ...

    @overload
    async def commit(
        self, records: Sequence[NewRecord], approve: Approval
    ) -> Mapping[Target, int] | None: ...

    async def commit(
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[Target, int] | None:
        if self._spent:
            raise RetryError(f"the producer {self._name} is not started, or spent by an error")
        self._spent = True
        broker, process = self._log.broker, self._log.process
        self._number += 1
        me = (self._name, self._epoch, self._number)
        places: dict[Target, tuple[int, int]] = {}
        for place, some in enumerate(self._requests(records)):
            request = Request(self._epoch, self._number, place)
            produce = partial(broker.produce, self._name, request, some, process.clock.now_ms())
            for target, (first, end) in (await broker.wire.ask(process, produce, COMMIT_S)).items():
                places[target] = (places.get(target, (first, 0))[0], end)
        if approve is not None and not await approve(
            {target: first for target, (first, _) in places.items()}
        ):
            await broker.wire.ask(process, partial(broker.end, *me, "aborted"), COMMIT_S)
            self._spent = False
            return None
        await broker.wire.ask(process, partial(broker.end, *me, "committed"), COMMIT_S)
        self._spent = False
        return {target: end + 1 for target, (_, end) in places.items()}

    def _requests(self, records: Sequence[NewRecord]) -> Sequence[Sequence[NewRecord]]:
        """Return the records of each request: now and then each topic's go by themselves."""
        if self._log.process.chance.random() < 0.75:
            return [records]
        apart: dict[str, list[NewRecord]] = {}
        for record in records:
            apart.setdefault(record.topic, []).append(record)
        return list(apart.values())

    async def stop(self) -> None:
        self._spent = True


class PlainProducer:
    """An idempotent producer: what it repeats is written once."""

    _number = 0

    def __init__(self, log: ProcessLog) -> None:
        self._log = log
        log.process.producers += 1
        self._name = f"{log.process.name} {log.process.producers}"
        self._queued: dict[Target, list[NewRecord]] = {}
        self._sequence = 0

    async def start(self) -> None:
        await self._log.ask(_nothing)

    async def send(self, record: NewRecord) -> None:
        self._log.broker.check_size(record)
        self._queued.setdefault((record.topic, record.partition), []).append(record)

    async def flush(self) -> None:
        queued, self._queued = self._queued, {}
        for records in queued.values():
            self._sequence += 1
            await self._deliver(records, self._sequence)

    async def _deliver(self, records: Sequence[NewRecord], sequence: int) -> None:
        log, sender = self._log, (self._name, sequence)
        for last in (False, False, True):
            try:
                await log.ask(log.broker.publish, records, log.process.clock.now_ms(), sender)
            except RetryError:
                if last:
                    raise
            else:
                return

    async def stop(self) -> None:
        self._queued.clear()
