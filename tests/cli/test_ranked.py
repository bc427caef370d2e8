"""Which sessions `sessions` and `top` read, where there are more than they show."""

import pytest

from contextgauge.clock import SystemClock
from schemas.records import Record
from streams.cli.listing import Order
from streams.cli.stored import ranked
from streams.serve.views.sessions import Sessions, active_sessions
from tests.core.history import START_MS, History
from tests.serve.kit import GrowingViews


def _session(name: str, used: int | None, *, minutes_ago: int) -> list[Record]:
    active_ms = SystemClock().now_ms() - minutes_ago * 60_000
    history = History(name, at=(active_ms - START_MS) / 1_000)
    return [history.info(cwd="/")] if used is None else [history.reading(used)]


async def _sessions(*many: list[Record]) -> Sessions:
    views = GrowingViews()
    for records in many:
        views.add(*records)
    return await active_sessions(views, SystemClock())


@pytest.fixture
async def reader() -> Sessions:
    """Four live sessions, of which the fullest is the least recent, and fuller ones before."""
    return await _sessions(
        _session("new", None, minutes_ago=0),
        _session("small", 20_000, minutes_ago=1),
        _session("middle", 40_000, minutes_ago=2),
        _session("full", 120_000, minutes_ago=20),
        *(_session(f"old-{used}", used * 1_000, minutes_ago=90 + used) for used in (150, 190, 180)),
        _session("old-new", None, minutes_ago=60),
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 8, 100])
async def test_the_fullest_live_sessions_are_never_beyond_the_limit(
    reader: Sessions, limit: int
) -> None:
    order = ["full", "middle", "small", "new", "old-190", "old-180", "old-150", "old-new"]
    views = await ranked(reader, Order.pressure, limit)
    assert [view.session_id for view in views] == order[:limit]


async def test_sorted_by_last_activity_the_recent_ones_are_read(reader: Sessions) -> None:
    views = await ranked(reader, Order.recent, 3)
    assert [view.session_id for view in views] == ["new", "small", "middle"]
