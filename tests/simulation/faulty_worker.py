"""A control worker that is slow, hangs, dies and loses replies, as its seed wants it."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from contextgauge.compaction.engine.plan import Plan
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.errors import RetryError
from schemas.topics import CONTEXT_COMMANDS
from streams.edge.memory.log import MemoryLog, MemoryTransactionalProducer
from streams.edge.memory.partition import Transaction
from streams.flow.control.commands.command_ports import CommandPorts
from streams.flow.control.commands.command_worker import CommandWorker
from streams.ports import Approval, Batch, NewRecord, RecordHandler

HANG_S = 6.0


class Faults:
    """What befalls everyone; all of it ends when the world heals."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.cut = self.lost = self.hang = self.slow = 0.0
        self.late = chance.choice((1, 20))
        """How many times longer reading commands takes than reading messages."""
        self.summary_s = 0.3
        self.summary_fails = 0.0
        self.at_swap = 0.1
        """How often `before_swap` is done right before a swap is written."""
        self.before_swap: Callable[[], Coroutine[Any, Any, None]] | None = None

    def heal(self) -> None:
        self.cut = self.lost = self.hang = self.slow = self.summary_fails = self.at_swap = 0.0
        self.summary_s = 0.1

    def strikes(self, probability: float) -> bool:
        return self.chance.random() < probability


class SlowSummaries:
    """A summariser that takes its time, fails, and answers late."""

    name = "simulated"

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        await asyncio.sleep(self._faults.chance.random() * self._faults.summary_s)
        if self._faults.strikes(self._faults.summary_fails):
            raise SummaryError("the provider is away")
        return SummaryAnswer(f"{len(request.messages)} messages of work")


class InlinePlanner:
    """Works plans out in the loop itself, with the planner's promises on cancellation."""

    def __init__(self, most: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._tasks: set[asyncio.Task[Plan | None]] = set()

    async def plan(self, work: Callable[[], Coroutine[Any, Any, Plan | None]]) -> Plan | None:
        async with self._places:
            task = asyncio.ensure_future(work())
            self._tasks.add(task)
            task.add_done_callback(self._over)
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                task.cancel()
                raise

    def _over(self, task: asyncio.Task[Plan | None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


class AssigningStream:
    """Assigns all partitions, and takes them away again: records are read by their owners."""

    def __init__(self, partitions: int) -> None:
        self._positions = dict.fromkeys(range(partitions), 0)
        self._handler: RecordHandler | None = None

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        self._handler = handler
        handler.assigned(self._positions)
        try:
            await stop.wait()
        finally:
            handler.revoked()

    def behind(self, partition: int) -> int | None:  # noqa: ARG002 -- the port's
        return None

    def rebalance(self) -> None:
        """Take the partitions, and give them again."""
        if self._handler is not None:
            self._handler.revoked()
            self._handler.assigned(self._positions)


class _DeadError(Exception):
    pass


class SimulatedWorker:
    """One process. Once it is dead nothing it does reaches the log; its transaction stays open."""

    def __init__(self, ports: CommandPorts, faults: Faults) -> None:
        self._faults = faults
        self.steps_left: int | None = None
        self.is_dead = False
        self._hanging: list[asyncio.Future[None]] = []
        own = type(ports)(**{**vars(ports), "log": _Log(ports.log, self)})
        self.stream: AssigningStream = ports.stream  # type: ignore[assignment]  # of the world
        self.worker = CommandWorker(own)
        self.worker._planner.close()  # noqa: SLF001 -- threads have a time of their own
        self.worker._planner = InlinePlanner(2)  # type: ignore[assignment]  # noqa: SLF001
        self.running = asyncio.create_task(self.worker.run())

    @property
    def faults(self) -> Faults:
        return self._faults

    async def live(self) -> None:
        """Take a step; it may take long, or be the last one."""
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left <= 0:
                self.is_dead = True
        if self.is_dead:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._hanging.append(future)
            await future
        if self._faults.strikes(self._faults.hang):
            await asyncio.sleep(self._faults.chance.random() * HANG_S)
        elif self._faults.slow:
            await asyncio.sleep(self._faults.chance.random() * self._faults.slow)
        if self.is_dead:
            raise _DeadError

    async def kill(self) -> None:
        """End it without any clean-up that could be seen."""
        self.is_dead = True
        self.running.cancel()
        while not self.running.done():
            for future in self._hanging:
                future.cancel()
            await asyncio.wait([self.running], timeout=0.01)
        if not self.running.cancelled():
            self.running.exception()


class _Log:
    def __init__(self, log: Any, worker: SimulatedWorker) -> None:
        self._log, self._worker = log, worker

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        producer = _Producer(self._log, transactional_id)
        producer.worker = self._worker
        return producer

    def reader(self, topic: str, partitions: Sequence[int]) -> Any:
        return _Reader(self._log.reader(topic, partitions), self._worker.faults, topic)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class _Reader:
    """A reader whose fetches take their time."""

    def __init__(self, reader: Any, faults: Faults, topic: str) -> None:
        self._reader, self._faults, self._topic = reader, faults, topic

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        batch: Batch = await self._reader.poll(partition, max_records, timeout_s)
        if self._faults.slow:
            # Commands may come long after messages that were written later.
            late = (
                self._faults.late if self._topic == CONTEXT_COMMANDS.name and batch.records else 1
            )
            await asyncio.sleep(self._faults.chance.random() * self._faults.slow * late)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class _Producer(MemoryTransactionalProducer):
    worker: SimulatedWorker
    _log: MemoryLog

    async def start(self) -> None:
        await self.worker.live()
        await super().start()

    async def commit(  # type: ignore[override]  # one signature for both overloads
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        await self.worker.live()
        faults = self.worker.faults
        if approve is not None and faults.before_swap and faults.strikes(faults.at_swap):
            await faults.before_swap()

        async def approved(first: Mapping[tuple[str, int], int]) -> bool:
            await self.worker.live()
            result = True if approve is None else await approve(first)
            await self.worker.live()
            return result

        ends = await super().commit(records, approved)
        await self.worker.live()
        if self.worker.faults.strikes(self.worker.faults.lost):
            self._spent = True
            raise RetryError("the reply was lost")
        return ends

    def _end(self, transaction: Transaction) -> None:
        if self.worker.is_dead:
            raise _DeadError
        if self.worker.faults.strikes(self.worker.faults.cut):
            raise RetryError("the commit was cut off")
        super()._end(transaction)
