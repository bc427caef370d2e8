"""Working out compactions in threads, a bounded number at a time.

Counting and searching a long conversation takes seconds of CPU time: in a thread the event loop
goes on meanwhile. Each plan has an event loop of its own, in which its summariser is called.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from contextgauge.compaction.engine.plan import Plan
from contextgauge.compaction.ports import Summariser, SummaryAnswer, SummaryRequest
from schemas.records import Json
from streams.core.control.messages import Compacted
from streams.flow.control.commands.command_job import receipt_json

Work: TypeAlias = Callable[[], Coroutine[Any, Any, Plan | None]]


class ReadyPlan(NamedTuple):
    """A plan, and its edit as JSON; made in the planner's thread."""

    plan: Plan
    edit: Json

    def compacted(self, duration_ms: int | None) -> Compacted:
        """Return what a boundary says of it."""
        plan, receipt = self.plan, self.plan.receipt
        summaries = (
            message.compaction.summary
            for message in plan.replacement
            if message.compaction is not None and message.compaction.number == receipt.number
        )
        return Compacted(
            tokens_before=receipt.tokens_before,
            tokens_after=receipt.tokens_after,
            duration_ms=duration_ms,
            plan={
                "covers": plan.covers,
                "last_id": plan.last_id,
                "prefix_hash": plan.prefix_hash,
            },
            edit=self.edit,
            receipt=receipt_json(replace(receipt, duration_ms=duration_ms)),
            summary=None if receipt.number is None else next(summaries, None),
        )


class Planner:
    """Runs what works out plans."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="planning")

    async def plan(self, work: Work) -> Plan | None:
        """Return what `work` returns, or raise what it raises; a cancellation reaches it, too."""
        running = _Running(work)
        future = asyncio.get_running_loop().run_in_executor(self._threads, running.run)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            running.cancel()
            future.add_done_callback(_ignore)
            raise

    def close(self) -> None:
        """Take no more work; what runs is left to end by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Running:
    """Work in a thread, which another thread may cancel."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Plan | None] | None = None
        self._cancelled = False

    def run(self) -> Plan | None:
        return asyncio.run(self._run())

    async def _run(self) -> Plan | None:
        with self._lock:
            if self._cancelled:
                return None
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(self._work())
        try:
            return await self._task
        except asyncio.CancelledError:
            return None  # no one waits for it
        finally:
            with self._lock:
                self._loop = None

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)


class AnnouncedSummariser:
    """A summariser that has its call announced first, in the event loop that it was made in."""

    def __init__(self, summariser: Summariser, announce: Callable[[], Awaitable[None]]) -> None:
        self._summariser, self._announce = summariser, announce
        self._loop = asyncio.get_running_loop()
        self.name = summariser.name

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        """Announce the call, and make it."""
        asked = asyncio.run_coroutine_threadsafe(self._announced(), self._loop)
        await asyncio.wrap_future(asked)
        return await self._summariser.summarise(request)

    async def _announced(self) -> None:
        await self._announce()


def _ignore(future: "asyncio.Future[Plan | None]") -> None:
    if not future.cancelled():
        future.exception()
