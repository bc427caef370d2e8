"""The figures of sessions at work, told from the views of the partitions that a worker has."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.views import MemoryViews
from streams.flow.project.session_counts import SessionGauges
from tests.core.given import START_MS, Given, assistant, compacting
from tests.flow.derive_kit import Figures, until
from tests.flow.project_kit import ProjectKit


class Noon(SystemClock):
    """The time of the records, ten minutes later; pauses are over at once."""

    def now_ms(self) -> int:
        return START_MS + 600_000

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 -- whatever it is
        await asyncio.sleep(0.001)


@pytest.fixture
async def kit() -> ProjectKit:
    kit = ProjectKit(MemoryLog(SystemClock()), MemoryViews(), clock=Noon())
    await kit.create_topic()
    return kit


async def test_a_worker_tells_the_figures_of_its_partitions_and_forgets_them(
    kit: ProjectKit,
) -> None:
    records = Given().take(assistant("a", read=190_000, at=500), compacting(at=510))

    async def told() -> bool:
        silent = [
            value
            for key, value in worker.figures.gauges.items()
            if key[0] == "project_silent_attempt_seconds"
        ]
        return 90.0 in silent

    async with kit.running() as worker:
        await kit.append(records)
        await until(told)
        gauges = worker.figures.gauges
        assert sum(v for k, v in gauges.items() if k[0] == "project_open_attempts") == 1
        assert sum(v for k, v in gauges.items() if k[0] == "project_thrashing_sessions") == 0
        full = [v for k, v in gauges.items() if k[0] == "project_sessions" and "90_to_100" in k]
        assert sum(full) == 1
    assert [key for key in worker.figures.gauges if key[0].startswith("project_s")] == []


async def test_a_store_that_is_away_is_another_ones_to_tell() -> None:
    class Away(MemoryViews):
        async def ranked(self, *_: object, **__: object) -> list[tuple[bytes, float]]:
            raise RetryError("away")

    figures, asked = Figures(), asyncio.Event()

    def partitions() -> list[int]:
        asked.set()
        return [0]

    gauges = SessionGauges(Away(), figures, Noon())
    running = asyncio.create_task(gauges.run(partitions, lambda: 1))
    await asked.wait()
    await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert figures.gauges == {}


async def test_figures_that_cannot_be_renewed_are_told_no_more() -> None:
    class Going(MemoryViews):
        is_away = False

        async def ranked(self, *_: object, **__: object) -> list[tuple[bytes, float]]:
            if self.is_away:
                raise RetryError("away")
            return []

    figures, views = Figures(), Going()
    gauges = SessionGauges(views, figures, Noon())
    running = asyncio.create_task(gauges.run(lambda: [0], lambda: 1))
    await until(lambda: bool(figures.gauges))
    views.is_away = True
    await until(lambda: not figures.gauges)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert figures.gauges == {}
