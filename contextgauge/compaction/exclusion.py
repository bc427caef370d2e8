"""One compaction of a conversation at a time, whichever compactors and tasks ask for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

from contextgauge.compaction.history import History

_RUNNING: Final = WeakKeyDictionary[History, tuple[asyncio.Event, "asyncio.Task[Any] | None"]]()
"""Conversations that are being compacted: what is set when that ends, and the task that does it."""


@asynccontextmanager
async def alone(history: History) -> AsyncIterator[None]:
    """Wait until no other task compacts the conversation; a hook may do so within its own."""
    task = asyncio.current_task()
    while (running := _RUNNING.get(history)) is not None and running[1] is not task:
        await running[0].wait()
    if running is not None:
        yield
        return
    ended = asyncio.Event()
    _RUNNING[history] = (ended, task)
    try:
        yield
    finally:
        del _RUNNING[history]
        ended.set()
