"""Publishes lines read from files, and settles them once they are acknowledged.

A file's position is never ahead of the broker's acknowledgement: after a crash some lines are sent
again, which changes nothing (R4), and none is left out.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import TypeVar

from contextgauge.backoff import first_of
from streams.flow.publish.publish import LinePublisher, PublishCounts
from streams.ports import Clock, LineBatch

_SETTLE_S = 1.0
"""While much is read, acknowledgement is waited for so often: a crash sends a second again."""

Item = TypeVar("Item")


async def publish_pieces(
    sender: LinePublisher,
    pieces: AsyncIterator[LineBatch],
    clock: Clock,
    progress: Callable[[PublishCounts], None],
    *,
    is_live: bool | None = None,
) -> None:
    """Send all pieces, and settle each once it is acknowledged.

    `is_live` marks all of them so or so, whatever the reader saw. Raises what the producer
    raises; what was not settled then must be sent again.
    """
    waiting: list[Callable[[], None]] = []
    settled_s = clock.monotonic_s()

    async def settle() -> None:
        await sender.producer.flush()
        for done in waiting:
            done()
        waiting.clear()

    async for piece in pieces:
        mark = piece.live if is_live is None else is_live
        for line in piece.lines:
            await sender.send(line, is_live=mark)
        progress(sender.done)
        waiting.append(piece.settle)
        if not piece.lines or clock.monotonic_s() - settled_s >= _SETTLE_S:
            await settle()
            settled_s = clock.monotonic_s()
    await settle()


async def in_thread(
    items: Iterable[Item], stop: asyncio.Event | None = None
) -> AsyncGenerator[Item, None]:
    """Yield the items, each read in a thread when it is asked for, until `stop` is set.

    One that is being waited for then is given up: the thread does not keep the process, though it
    may wait for an idle pipe for ever.
    """
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    requests: queue.SimpleQueue[asyncio.Future[Item | None] | None] = queue.SimpleQueue()

    def read() -> None:
        reading = iter(items)
        while (future := requests.get()) is not None:
            item, failure = None, None
            try:
                item = next(reading, None)
            except BaseException as error:  # noqa: BLE001 -- raised where it was asked for
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: no one waits any more
                loop.call_soon_threadsafe(_answer, future, item, failure)

    threading.Thread(target=read, name="reading", daemon=True).start()
    try:
        while not stop.is_set():
            future: asyncio.Future[Item | None] = loop.create_future()
            requests.put(future)
            await first_of(future, stop.wait())
            item = None if future.cancelled() else future.result()
            if item is None:
                return
            yield item
    finally:
        requests.put(None)


def _answer(
    future: asyncio.Future[Item | None], item: Item | None, failure: BaseException | None
) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(item)
    else:
        future.set_exception(failure)
