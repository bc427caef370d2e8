"""Sends what readers of files give, and tells them what was acknowledged.

A file's position is never ahead of the broker's acknowledgement: after a crash some lines are sent
again, which changes nothing (R4), and none is left out.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol, TypeVar

from contextgauge.containers import Line
from streams.flow.publish.publish import Published, Sender
from streams.ports import Clock

_SETTLE_S = 1.0
"""While much is read, acknowledgement is waited for so often: a crash sends a second again."""

Item = TypeVar("Item")


class Piece(Protocol):
    """Lines to send; one without lines says that there are no more for now."""

    @property
    def lines(self) -> Sequence[Line]:
        """The lines."""

    @property
    def live(self) -> bool:
        """Whether they were seen when they were written (R28)."""

    @property
    def settle(self) -> Callable[[], None]:
        """To be called once all lines are acknowledged."""


async def publish_pieces(
    sender: Sender,
    pieces: AsyncIterator[Piece],
    clock: Clock,
    progress: Callable[[Published], None],
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


async def until(stop: asyncio.Event, items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    """Yield the items until `stop` is set; one that is being waited for then is given up."""
    stopping = asyncio.ensure_future(stop.wait())
    try:
        while not stop.is_set():
            getting = asyncio.ensure_future(anext(items, None))
            await asyncio.wait({getting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                getting.cancel()
                await asyncio.wait({getting})
                return
            item = getting.result()
            if item is None:
                return
            yield item
    finally:
        stopping.cancel()
