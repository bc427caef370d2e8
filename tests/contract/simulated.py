"""The simulation's broker in real time, so that it is held against the same contract as Kafka."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from contextgauge.clock import SystemClock
from schemas.topics import Topic
from streams.ports import NewRecord
from tests.simulation.broker import Broker, Request
from tests.simulation.broker_clients import ProcessLog
from tests.simulation.coordinator import Groups
from tests.simulation.virtual_loop import Scheduler


class _RealTime(Scheduler):
    """Has the test's own loop do what is due."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))  # noqa: S311 -- no secret

    @property
    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    @now_s.setter
    def now_s(self, _seconds: float) -> None:
        """Take no time but the real one."""

    def now_ms(self) -> int:
        return SystemClock().now_ms()

    def after(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Any:
        return asyncio.get_running_loop().call_later(seconds, callback, *args)


class _Process:
    """The process of a test: it runs on the test's loop and never dies."""

    name = "test"
    producers = 0

    def __init__(self) -> None:
        self.chance, self.clock = random.Random(1), SystemClock()  # noqa: S311 -- no secret

    @property
    def loop(self) -> Any:
        loop: Any = asyncio.get_running_loop()
        loop.is_dead = False
        return loop


class SimulatedLog(ProcessLog):
    """The log of a simulated process, which may create topics here."""

    def __init__(self) -> None:
        scheduler = _RealTime()
        broker = Broker(scheduler, random.Random(1))  # noqa: S311 -- no secret
        process: Any = _Process()
        super().__init__(broker, Groups(broker, random.Random(1)), process)  # noqa: S311 -- no secret

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        return await self.broker.create_topics(topics, partitions)

    async def leave_open(self, transactional_id: str, records: Sequence[NewRecord]) -> None:
        """Write records into a transaction, and die."""
        epoch = asyncio.get_running_loop().create_future()
        self.broker.init(transactional_id, "dead", epoch.set_result)
        request = Request(await epoch, 1, 0)
        now_ms = self.process.clock.now_ms()
        self.broker.produce(transactional_id, request, records, now_ms, lambda _places: None)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all that it holds."""
        self.broker.delete_topic(name)
