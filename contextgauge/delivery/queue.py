"""The bounded queue between an agent and the broker, and what is done when it is full."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

from contextgauge.delivery.outgoing import OutgoingMessage
from contextgauge.errors import ClosedError
from contextgauge.units import MIB

WhenFull: TypeAlias = Literal["wait", "drop_new", "drop_oldest"]
"""What happens to a message that finds the queue full: it waits for room, it is dropped, or the
oldest ones are dropped until it fits."""

BATCH_MESSAGES = 1_000
"""Most messages that are with the broker at a time: with a round trip of 10 ms 100 000 a second."""

BATCH_BYTES = 4 * MIB
"""Most bytes that are with the broker at a time, or one message; they come on top of the queue."""


class SendQueue:
    """Messages in their order. At most `max_messages` and `max_bytes` wait, or a single larger one.

    What was taken and is not acknowledged yet is no longer in it.
    """

    def __init__(self, when_full: WhenFull, max_messages: int, max_bytes: int) -> None:
        self._when_full = when_full
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._queue: deque[OutgoingMessage] = deque()
        self._turn = asyncio.Lock()
        self._room, self._filled = asyncio.Event(), asyncio.Event()
        self._closed = False
        self.bytes = 0
        self.dropped = 0
        """Messages that were dropped for lack of room."""

    def __len__(self) -> int:
        return len(self._queue)

    async def put(self, item: OutgoingMessage) -> bool:
        """Queue a message; false where it was dropped itself. Waits only with `when_full="wait"`.

        Raises ClosedError where the publisher closes meanwhile. A cancelled call queues nothing.
        """
        size = len(item.value)
        if self._turn.locked() or not self._fits(size):
            if self._when_full == "drop_new":
                self.dropped += 1
                return False
            await self._make_room(size)
        self._queue.append(item)
        self.bytes += size
        self._filled.set()
        return True

    def put_all(self, items: Sequence[OutgoingMessage]) -> bool:
        """Queue messages, all of them or none; false where there is no room for all."""
        size = sum(len(item.value) for item in items)
        if self._queue and not (
            len(self._queue) + len(items) <= self._max_messages
            and self.bytes + size <= self._max_bytes
        ):
            return False
        self._queue.extend(items)
        self.bytes += size
        self._filled.set()
        return True

    async def take(self) -> Sequence[OutgoingMessage]:
        """Take the oldest messages, as soon as there are any; none where it is closed and empty."""
        while not self._queue and not self._closed:
            self._filled.clear()
            await self._filled.wait()
        taken: list[OutgoingMessage] = []
        room = BATCH_BYTES
        while self._queue and len(taken) < BATCH_MESSAGES:
            size = len(self._queue[0].value)
            if taken and size > room:
                break
            room -= size
            taken.append(self._queue.popleft())
        self.bytes -= BATCH_BYTES - room
        self._room.set()
        return taken

    def close(self) -> None:
        """Take no more; what is in it can still be taken."""
        self._closed = True
        self._room.set()
        self._filled.set()

    def _fits(self, size: int) -> bool:
        if not self._queue:
            return True
        return len(self._queue) < self._max_messages and self.bytes + size <= self._max_bytes

    async def _make_room(self, size: int) -> None:
        """Wait for room, or drop the oldest messages. Raises ClosedError."""
        if self._when_full == "drop_oldest":
            while not self._fits(size):
                self.bytes -= len(self._queue.popleft().value)
                self.dropped += 1
            return
        # The lock is fair: those that wait go in their order.
        async with self._turn:
            while not self._fits(size) and not self._closed:
                self._room.clear()
                await self._room.wait()
            if self._closed:
                raise ClosedError("the publisher closed while a message waited for room")
