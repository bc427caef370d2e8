"""How far a worker's partitions are, told to its consumer group: for lag tools only.

Beside the transactions, not in them (ADR 0027): nothing is ever read from a group's offsets, so
they may be a moment old, and what the broker does not take is told again.
"""

import asyncio
from typing import Final

from contextgauge.errors import ContextgaugeError
from streams.ports import GroupReader

TELL_S: Final = 0.1
"""How often what has changed is told: one request for all partitions, however many commits."""

_AGAIN_S: Final = 0.4
"""After what was not taken: a broker in trouble is not asked as often."""

_LAST_S: Final = 1.0
"""Patience with the last one, while a group or a person waits for the worker to let go."""


class GroupOffsets:
    """The positions of one membership's partitions, and what of them the group knows."""

    def __init__(self, reader: GroupReader) -> None:
        self._reader = reader
        self._positions: dict[int, int] = {}
        self._told: dict[int, int] = {}

    def begin(self) -> None:
        """Begin an assignment: only what is noted from here on is this member's to tell."""
        # New ones: what is still being told of the assignment before must not count for this one.
        self._positions, self._told = {}, {}

    def note(self, partition: int, position: int) -> None:
        """Note a position that was read from the state, or committed to it."""
        self._positions[partition] = position

    async def run(self) -> None:
        """Tell what changes, until cancelled."""
        while True:
            await asyncio.sleep(TELL_S)
            if not await self._tell():
                await asyncio.sleep(_AGAIN_S)

    async def end(self) -> None:
        """Tell the last positions, as long as the partitions are still this member's."""
        try:
            async with asyncio.timeout(_LAST_S):
                await self._tell()
        except TimeoutError:
            return

    async def _tell(self) -> bool:
        """Tell what is news; return whether there was none or it was taken."""
        told = self._told
        news = {
            partition: position
            for partition, position in self._positions.items()
            if told.get(partition) != position
        }
        if not news:
            return True
        try:
            await self._reader.tell(news)
        except ContextgaugeError:
            # Away, or no longer a member: whatever it is, those who need the broker find out.
            return False
        told |= news
        return True
