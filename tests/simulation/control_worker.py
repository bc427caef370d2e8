"""What a simulated control worker has in place of the real stream, planner and provider."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from contextgauge.compaction.engine.plan import Plan
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from schemas.topics import CONTEXT_COMMANDS
from streams.ports import Approval, Batch, NewRecord, RecordHandler
from tests.simulation.broker_clients import ProcessLog, Reader, TransactionalProducer


class Provider:
    """A summariser that takes its time, fails, and answers late."""

    name = "simulated"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.seconds, self.fails = 0.3, 0.0

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        await asyncio.sleep(self._chance.random() * self.seconds)
        if self._chance.random() < self.fails:
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


class ControlLog(ProcessLog):
    """The log, with commands that may come long after messages that were written later."""

    commands_late_s = 0.0
    before_swap: Callable[[], None]
    """Called when a swap is about to be approved, which is when a cancellation may come."""

    def reader(self, topic: str, partitions: Sequence[int]) -> Reader:
        kind = _LateReader if topic == CONTEXT_COMMANDS.name else Reader
        return kind(self, topic, partitions)

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer:
        return ControlProducer(self, transactional_id)


class _LateReader(Reader):
    log: ControlLog

    async def poll(self, partition: int, max_records: int, timeout_s: float) -> Batch:
        batch = await super().poll(partition, max_records, timeout_s)
        if batch.records and self.log.commands_late_s:
            await asyncio.sleep(self.log.process.chance.random() * self.log.commands_late_s)
        return batch


class ControlProducer(TransactionalProducer):
    """Commits as any; someone may ask for something else right before a swap is approved."""

    _log: ControlLog

    async def commit(  # type: ignore[override]  # one signature for both overloads
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        if approve is None:
            return await super().commit(records)
        self._log.before_swap()
        return await super().commit(records, approve)
