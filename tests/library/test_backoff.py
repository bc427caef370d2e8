"""Pauses between tries."""

import asyncio

from contextgauge.backoff import Backoff
from contextgauge.clock import SystemClock
from tests.patience import PATIENCE_S


class Pauses(SystemClock):
    def __init__(self) -> None:
        self.taken: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)


async def test_pauses_grow_up_to_the_longest_and_begin_again() -> None:
    clock = Pauses()
    backoff = Backoff(clock, asyncio.Event(), first_s=1, longest_s=5)
    for _ in range(5):
        await backoff.wait()
    backoff.reset()
    assert backoff.next_s == 1
    await backoff.wait()
    assert clock.taken == [1, 2, 4, 5, 5, 1]


async def test_a_stop_ends_a_pause() -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(Backoff(SystemClock(), stop, first_s=3600).wait())
    await asyncio.sleep(0)
    stop.set()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    assert stop.is_set()
