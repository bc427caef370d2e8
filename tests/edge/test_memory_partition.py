"""A partition in memory: who waits for it."""

import asyncio

from streams.edge.memory.partition import MemoryTopicPartition
from streams.ports import LogRecord

_MANY = 200
"""So many are in order by chance in no set."""


async def test_who_waits_is_woken_in_the_order_of_waiting() -> None:
    partition = MemoryTopicPartition(1 << 20)
    woken: list[int] = []

    async def wait(number: int) -> None:
        await partition.wait(60.0)
        woken.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(_MANY)]
    await asyncio.sleep(0)
    partition.append(LogRecord(0, 0, None, b"", ()), None)
    await asyncio.gather(*waiting)
    assert woken == list(range(_MANY))
