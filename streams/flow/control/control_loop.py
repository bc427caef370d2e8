"""The one loop over an assignment: partitions come and go, and records are handed to handlers.

    assigned ─▶ each handler opens the partition, and prepares in a task
    records  ─▶ each handler takes them, in order, once it is ready
             ─▶ acknowledged when nothing holds a record, nor any before it
    revoked  ─▶ the partition's tasks end

A worker that dies has lost nothing: what was not acknowledged is read again by the next owner.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

import structlog

from contextgauge.errors import RetryError
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.together import together
from streams.ports import ReceivedRecord, RecordStream

Work: TypeAlias = Coroutine[Any, Any, None]

logger = structlog.get_logger()


class PendingRecord:
    """A record that is not acknowledged yet."""

    __slots__ = ("_holds", "arrival", "partition")

    def __init__(self, arrival: ReceivedRecord, partition: "AssignedPartition", holds: int) -> None:
        self.arrival, self.partition, self._holds = arrival, partition, holds

    def is_ours(self) -> bool:
        """Return whether this worker still has to handle it."""
        return self.partition.is_ours and self.arrival.is_current()

    def is_done(self) -> bool:
        """Return whether nothing holds it any more."""
        return not self._holds

    def hold(self) -> None:
        """Keep it from being acknowledged, until `done` is called once more."""
        self._holds += 1

    def done(self) -> None:
        """Take one hold off: with the last one it may be acknowledged."""
        self._holds -= 1
        self.partition.advance()


class AssignedPartition:
    """A partition, from its assignment until it is revoked."""

    def __init__(self, number: int, position: int, fail: Callable[[Exception], None]) -> None:
        self.number, self.position = number, position
        """The position is the next offset to be handed over."""
        self.is_ours = True
        self.pending: deque[PendingRecord] = deque()
        self.handlers: list[PartitionHandler] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self._fail = fail

    def spawn(self, work: Work) -> None:
        """Run something until the partition is revoked; what it raises ends the worker."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
        elif self.is_ours:  # by a client: what it did would be missing
            error = RetryError(f"work on partition {self.number} was cut off")
        else:
            return
        if isinstance(error, Exception):
            self._fail(error)

    def advance(self) -> None:
        """Acknowledge what is done with, in order."""
        while self.is_ours and self.pending and self.pending[0].is_done():
            self.pending.popleft().arrival.acknowledge()

    def revoke(self) -> None:
        """End all that is done with it."""
        self.is_ours = False
        for task in self.tasks:
            task.cancel()
        for handler in self.handlers:
            handler.is_ready.set()
            handler.close()


class PartitionHandler:
    """What one handler does with one partition, from its assignment until it is revoked.

    `is_ready` is set once it can take records; by the loop where the partition is revoked.
    """

    def __init__(self, partition: AssignedPartition) -> None:
        self.partition = partition
        self.is_ready = asyncio.Event()

    async def run(self) -> None:
        """Prepare, and do what no record causes; cancelled where the partition is revoked."""
        self.is_ready.set()

    async def handle(self, pending: PendingRecord) -> None:
        """Take a record. Raises what ends the worker."""

    def close(self) -> None:
        """Leave the partition to its next owner, which handles what was not acknowledged."""


Opener: TypeAlias = Callable[[AssignedPartition], PartitionHandler]
"""Begins on a partition."""


class ControlLoop:
    """Runs handlers over the records of one stream.

    `name` is the worker's in metrics; each of `openers` opens a partition for one handler.
    """

    def __init__(
        self,
        name: str,
        stream: RecordStream,
        openers: Sequence[Opener],
        ports: WorkerPorts,
    ) -> None:
        self._name, self._stream, self._openers, self._ports = name, stream, openers, ports
        self.partitions: dict[int, AssignedPartition] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None

    async def run(self, *until_stopped: Work) -> None:
        """Run until stopped, together with what ends once it has completed what it began.

        Raises StopError, RetryError, or the error of any task.
        """
        failed = self._failed = asyncio.get_running_loop().create_future()
        end = asyncio.Event()
        streaming = asyncio.create_task(self._stream.run(self, end))
        stopping = asyncio.create_task(self._until_stopped(until_stopped))
        tasks: list[asyncio.Future[None]] = [streaming, stopping, failed]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and not stopping.exception():
                # What is being written is written to its end; the rest is the next owner's.
                self.revoked()
                await asyncio.gather(*self._ending, return_exceptions=True)
                end.set()
                await streaming
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self.revoked()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, *self._ending, return_exceptions=True)

    async def _until_stopped(self, works: Sequence[Work]) -> None:
        await together(works)
        await self._ports.stop.wait()

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Take partitions over, and no others."""
        self.revoked()
        self._ports.telemetry.count("worker_rebalances", worker=self._name)
        self._ports.telemetry.gauge("worker_partitions", len(positions), worker=self._name)
        self._ports.health.worker("member")
        logger.info("assigned", worker=self._name, partitions=sorted(positions))
        for number, position in positions.items():
            partition = AssignedPartition(number, position, self._fail)
            self.partitions[number] = partition
            partition.handlers = [opener(partition) for opener in self._openers]
            for handler in partition.handlers:
                partition.spawn(handler.run())

    def revoked(self) -> None:
        """Release all partitions."""
        for partition in self.partitions.values():
            for task in partition.tasks:
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
            partition.revoke()
        self.partitions.clear()
        self._ports.health.released()
        self._ports.telemetry.gauge("worker_partitions", 0, worker=self._name)

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Hand records to all handlers; the first error of any is raised."""
        batch: list[PendingRecord] = []
        for arrival in arrivals:
            partition = self.partitions.get(arrival.partition)
            # Of a former assignment, or handed over before: it is read again, or known.
            if (
                partition is not None
                and arrival.is_current()
                and arrival.record.offset >= partition.position
            ):
                partition.position = arrival.record.offset + 1
                batch.append(PendingRecord(arrival, partition, len(self._openers)))
                partition.pending.append(batch[-1])
        await together(self._hand_over(place, batch) for place in range(len(self._openers)))
        for pending in batch:
            pending.arrival.release()

    async def _hand_over(self, place: int, batch: Sequence[PendingRecord]) -> None:
        for pending in batch:
            handler = pending.partition.handlers[place]
            await handler.is_ready.wait()
            if not pending.is_ours():
                continue
            try:
                await handler.handle(pending)
            except RetryError:
                if self._ports.stop.is_set():
                    return  # it is not acknowledged, and so handled again
                raise
            pending.done()

    def _fail(self, error: Exception) -> None:
        is_giving_up = isinstance(error, RetryError) and self._ports.stop.is_set()
        if self._failed is not None and not self._failed.done() and not is_giving_up:
            self._failed.set_exception(error)
