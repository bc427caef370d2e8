"""Counts of the sessions at work, from the views of the partitions that a worker has."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.core.session_status import AT_WORK_MS
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryViews
from streams.flow.project.session_counts import SessionGauges, session_counts
from tests.cases.session_status import CASES, HALF, MINUTE, NOW_MS, attempt, chain, session
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


def test_each_case_is_counted_by_its_verdict() -> None:
    for case in CASES:
        counts = session_counts([case.view], NOW_MS)
        is_at_work = case.view.last_ms is not None and NOW_MS - case.view.last_ms <= AT_WORK_MS
        assert counts.thrashing == (case.thrashing and is_at_work), case.name
        assert counts.attempts == (case.state in {"compacting", "stalled"} and is_at_work), (
            case.name
        )
        assert sum(counts.bands.values()) == is_at_work, case.name
        if is_at_work:
            assert (counts.bands["unknown"] == 0) == (case.severity != "unknown"), case.name


def test_sessions_are_counted_by_how_full_their_leading_chain_is() -> None:
    counts = session_counts(
        [session(chain(20.0), chain(95.0, "sub")), session(chain(95.0, "sub"))], NOW_MS
    )
    assert {band: number for band, number in counts.bands.items() if number} == {
        "below_50": 1,
        "90_to_100": 1,
    }


def test_inactive_sessions_are_not_counted() -> None:
    views = [session(HALF, silent=silent) for silent in (AT_WORK_MS, AT_WORK_MS + 1, None)]
    assert sum(session_counts(views, NOW_MS).bands.values()) == 1


def test_attempts_and_the_longest_silence_are_counted() -> None:
    views = [
        session(HALF, attempt=attempt(5 * MINUTE, MINUTE)),
        session(HALF, attempt=attempt(3 * MINUTE)),
        session(HALF, attempt=attempt(None)),
        session(HALF),
    ]
    counts = session_counts(views, NOW_MS)
    assert (counts.attempts, counts.silent_ms) == (3, 3 * MINUTE)
    assert session_counts([], NOW_MS).silent_ms == 0


async def test_a_worker_reports_the_counts_of_its_partitions_and_forgets_them(
    kit: ProjectKit,
) -> None:
    records = Given().take(assistant("a", read=190_000, at=500), compacting(at=510))

    async def is_reported() -> bool:
        silent = [
            value
            for key, value in worker.figures.gauges.items()
            if key[0] == "project_silent_attempt_seconds"
        ]
        return 90.0 in silent

    async with kit.running() as worker:
        await kit.append(records)
        await until(is_reported)
        gauges = worker.figures.gauges
        assert sum(v for k, v in gauges.items() if k[0] == "project_open_attempts") == 1
        assert sum(v for k, v in gauges.items() if k[0] == "project_thrashing_sessions") == 0
        full = [v for k, v in gauges.items() if k[0] == "project_sessions" and "90_to_100" in k]
        assert sum(full) == 1
    assert [key for key in worker.figures.gauges if key[0].startswith("project_s")] == []


async def test_an_unavailable_store_does_not_stop_the_counting() -> None:
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


async def test_counts_that_cannot_be_renewed_are_withdrawn() -> None:
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
