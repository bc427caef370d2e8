"""The log in memory as a worker sees it that dies at a step: nothing it does reaches the log then.

A dead worker's calls never return, and its transaction stays open until its id starts again.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from streams.edge.memory.log import MemoryLog, MemoryTransactionalProducer
from streams.edge.memory.partition import Transaction
from streams.ports import Approval, NewRecord


class Life:
    """Counts a worker's steps, and ends at one of them."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.steps: list[str] = []
        self.dies_at = dies_at
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        """What happens right before a step."""
        self.is_over = False
        self.over = asyncio.Event()
        self._lock = threading.Lock()
        self._hanging: list[asyncio.Future[None]] = []
        self._loop = asyncio.get_running_loop()

    def step(self, name: str) -> bool:
        """Count a step; return whether the worker lives on."""
        with self._lock:
            if not self.is_over:
                self.steps.append(name)
                if len(self.steps) == self.dies_at:
                    self.end()
            return not self.is_over

    def end(self) -> None:
        """Kill it."""
        self.is_over = True
        self._loop.call_soon_threadsafe(self.over.set)

    async def live(self, name: str) -> None:
        """Count a step; never return where the worker is dead."""
        if (act := self.before.get(name)) is not None:
            await act()
        if not self.step(name):
            await self.hang()

    async def hang(self) -> None:
        """Never return, until the test lets go."""
        self._hanging.append(asyncio.get_running_loop().create_future())
        await self._hanging[-1]

    def let_go(self) -> None:
        """Free what hangs: a dead process would not have it any more."""
        self.is_over = True
        for hanging in self._hanging:
            hanging.cancel()


class MortalLog:
    """A worker's view of the log."""

    def __init__(self, log: MemoryLog, life: Life) -> None:
        self._log, self._life = log, life

    def transactional_producer(self, transactional_id: str) -> MemoryTransactionalProducer:
        producer = _Producer(self._log, transactional_id)
        producer.life = self._life
        return producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class DeadError(Exception):
    """The worker is dead: its transaction stays open."""


class _Producer(MemoryTransactionalProducer):
    life: Life

    async def start(self) -> None:
        await self.life.live("start")
        await super().start()

    async def commit(  # type: ignore[override]  # one signature for both overloads
        self, records: Sequence[NewRecord], approve: Approval | None = None
    ) -> Mapping[tuple[str, int], int] | None:
        await self.life.live("commit" if approve is None else "swap")
        ends: Mapping[tuple[str, int], int] | None
        try:
            if approve is None:
                ends = await super().commit(records)
            else:

                async def approved(first: Mapping[tuple[str, int], int]) -> bool:
                    await self.life.live("check")
                    result = await approve(first)
                    await self.life.live("checked")
                    return result

                ends = await super().commit(records, approved)
        except DeadError:
            await self.life.hang()
            raise
        await self.life.live("committed")
        return ends

    def _end(self, transaction: Transaction) -> None:
        if not self.life.step("written"):
            raise DeadError
        super()._end(transaction)
