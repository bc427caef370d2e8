"""Brings what blocks while it is read, such as a pipe, to an event loop that must not wait."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


async def in_thread(items: Iterable[Item]) -> AsyncGenerator[Item, None]:
    """Yield the items, each read in a thread when it is asked for.

    The thread does not keep the process: one that waits for an idle pipe would for ever.
    """
    loop = asyncio.get_running_loop()
    asked: queue.SimpleQueue[asyncio.Future[Item | None] | None] = queue.SimpleQueue()

    def answer(act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(act)

    def read() -> None:
        reading = iter(items)
        while (future := asked.get()) is not None:
            try:
                item = next(reading, None)
            except BaseException as error:  # noqa: BLE001 -- raised where it was asked for
                answer(_failing(future, error))
            else:
                answer(_giving(future, item))

    threading.Thread(target=read, name="reading", daemon=True).start()
    try:
        while True:
            future: asyncio.Future[Item | None] = loop.create_future()
            asked.put(future)
            item = await future
            if item is None:
                return
            yield item
    finally:
        asked.put(None)


def _giving(future: asyncio.Future[Item | None], item: Item | None) -> Callable[[], None]:
    def give() -> None:
        if not future.done():
            future.set_result(item)

    return give


def _failing(future: asyncio.Future[Item | None], error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        if not future.done():
            future.set_exception(error)

    return fail
