"""Waiting before trying again, longer each time, and no longer once a stop is requested."""

import asyncio
from collections.abc import Awaitable

from contextgauge.ports import Clock

FIRST_S = 0.25
"""First pause: a broker that restarts or moves a leader is often back by then."""

LONGEST_S = 10.0
"""Longest pause: a service that comes back after hours is found again within seconds."""

GROWTH = 2.0
"""Each pause is so many times the one before: six tries in the first 15 seconds."""


class Backoff:
    """Pauses that grow until `reset`. `stop` ends a pause early."""

    def __init__(
        self,
        clock: Clock,
        stop: asyncio.Event,
        first_s: float = FIRST_S,
        longest_s: float = LONGEST_S,
    ) -> None:
        self._clock, self._stop = clock, stop
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s = first_s

    @property
    def next_s(self) -> float:
        """The pause that `wait` would take now, seconds."""
        return self._next_s

    def reset(self) -> None:
        """Begin again with the first pause: what was tried has worked."""
        self._next_s = self._first_s

    async def wait(self) -> None:
        """Pause, and make the next pause longer."""
        pause_s, self._next_s = self._next_s, min(self._next_s * GROWTH, self._longest_s)
        await sleep_until(self._clock, self._stop, pause_s)


async def sleep_until(clock: Clock, stop: asyncio.Event, seconds: float) -> None:
    """Sleep so long, or until `stop` is set."""
    await first_of(clock.sleep(seconds), stop.wait())


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait until one of these has ended, and cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
