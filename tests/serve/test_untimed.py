"""Sessions whose records have no times: they are as old as their last record's arrival."""

from typing import Any

import pytest

from streams.core.session_status import THRESHOLDS
from streams.serve.views import snapshot
from tests.cases.session_status import NOW_MS
from tests.core.history import START_MS, History
from tests.serve.kit import Api, GrowingViews, api_over
from tests.serve.test_statuses import FixedTime

MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the positions for every question."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)


@pytest.fixture
def clock() -> FixedTime:
    """The server's clock."""
    return FixedTime()


async def _listed(api: Api, query: str = "") -> dict[str, Any]:
    answer: dict[str, Any] = await api.json(f"/v1/sessions?live_first=true{query}")
    return answer


def _ids(answer: dict[str, Any]) -> list[str]:
    return [view["session_id"] for view in answer["sessions"]]


async def test_a_session_without_times_becomes_stale(clock: FixedTime) -> None:
    views = GrowingViews()
    arrived_ms = NOW_MS - 10 * MINUTE_MS
    views.add(History("untimed", at=None).reading(50_000), logged_ms=arrived_ms)
    api = api_over(views, clock=clock)
    fresh = await _listed(api)
    (view,) = fresh["sessions"]
    assert (fresh["live"], view["status"]["state"]) == (1, "measured")
    assert view["last_ms"] is None
    assert view["status"]["last_active_ms"] == arrived_ms
    assert view["status"]["stale_from_ms"] == arrived_ms + THRESHOLDS.stale_after_ms
    assert (await api.json("/v1/sessions/untimed"))["session"] == view
    assert (await api.json("/v1/sessions?id=untimed"))["sessions"] == [view]
    clock.time_ms += 21 * MINUTE_MS
    old = await _listed(api)
    assert (old["live"], old["sessions"][0]["status"]["state"]) == (0, "stale")
    assert (await api.json("/v1/sessions/untimed"))["session"]["status"]["state"] == "stale"


async def test_sessions_with_times_are_as_old_as_their_last_record(clock: FixedTime) -> None:
    views = GrowingViews()
    views.add(History("timed").reading(50_000), logged_ms=NOW_MS)
    (view,) = (await _listed(api_over(views, clock=clock)))["sessions"]
    assert view["last_ms"] == view["status"]["last_active_ms"] == START_MS + 1_000


async def test_a_list_that_follows_the_feed_ranks_them_by_arrival(clock: FixedTime) -> None:
    views = GrowingViews()
    old, new = History("old", at=None), History("new", at=None)
    timed = History("timed", at=(NOW_MS - START_MS) / 1_000 - 300)
    views.add(timed.reading(50_000))
    views.add(old.reading(50_000), logged_ms=NOW_MS - 50 * MINUTE_MS)
    api = api_over(views, clock=clock)
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["timed", "old"], 1)
    views.add(new.reading(50_000), logged_ms=NOW_MS - 2 * MINUTE_MS)
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["new", "timed", "old"], 2)
    views.add(old.reading(60_000), logged_ms=NOW_MS - MINUTE_MS)
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["old", "new", "timed"], 3)
