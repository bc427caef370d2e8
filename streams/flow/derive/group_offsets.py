"""Commits a worker's positions to its consumer group: for lag tools only.

Outside the transactions (ADR 0005): nothing is ever read from a group's offsets, so they may be
slightly old, and what the broker rejects is committed again later.
"""

import asyncio
from typing import Final

from contextgauge.errors import ContextgaugeError
from streams.ports import GroupReader

COMMIT_EVERY_S: Final = 0.1
"""How often changes are committed: one request for all partitions and transactions."""

_RETRY_S: Final = 0.4
"""After a rejected commit: a broker in trouble gets fewer requests."""

_LAST_S: Final = 1.0
"""Time limit of the last commit, while the group or an operator waits for the worker."""


class GroupOffsets:
    """The positions of one membership's partitions, and which of them the group has."""

    def __init__(self, reader: GroupReader) -> None:
        self._reader = reader
        self._positions: dict[int, int] = {}
        self._committed: dict[int, int] = {}

    def begin(self) -> None:
        """Begin an assignment: only positions noted from here on are this member's to commit."""
        # New dictionaries: a commit of the former assignment under way must not count for this one.
        self._positions, self._committed = {}, {}

    def note(self, partition: int, position: int) -> None:
        """Note a position that was read from the state, or committed to it."""
        self._positions[partition] = position

    async def run(self) -> None:
        """Commit what changes, until cancelled."""
        while True:
            await asyncio.sleep(COMMIT_EVERY_S)
            if not await self._commit():
                await asyncio.sleep(_RETRY_S)

    async def end(self) -> None:
        """Commit the last positions while the partitions are still this member's."""
        try:
            async with asyncio.timeout(_LAST_S):
                await self._commit()
        except TimeoutError:
            return

    async def _commit(self) -> bool:
        """Commit what has changed; return False if the broker rejected it."""
        committed = self._committed
        changed = {
            partition: position
            for partition, position in self._positions.items()
            if committed.get(partition) != position
        }
        if not changed:
            return True
        try:
            await self._reader.commit_offsets(changed)
        except ContextgaugeError:
            # Away, or no longer a member: the partition tasks find out by themselves.
            return False
        committed |= changed
        return True
