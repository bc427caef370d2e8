"""Sessions whose records have no times: when they were active is unknown, so they are not live."""

from typing import Any

import pytest

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


async def test_a_session_without_times_is_neither_live_nor_stale(clock: FixedTime) -> None:
    views = GrowingViews()
    views.add(History("untimed", at=None).reading(50_000), logged_ms=NOW_MS - MINUTE_MS)
    api = api_over(views, clock=clock)
    listed = await _listed(api)
    (view,) = listed["sessions"]
    assert (listed["live"], view["status"]["state"]) == (0, "measured")
    assert view["last_ms"] is view["status"]["last_active_ms"] is None
    assert view["status"]["stale_from_ms"] is None
    assert (await api.json("/v1/sessions/untimed"))["session"] == view
    assert (await api.json("/v1/sessions?id=untimed"))["sessions"] == [view]


async def test_sessions_with_times_are_as_old_as_their_last_record(clock: FixedTime) -> None:
    views = GrowingViews()
    views.add(History("timed").reading(50_000), logged_ms=NOW_MS)
    (view,) = (await _listed(api_over(views, clock=clock)))["sessions"]
    assert view["last_ms"] == view["status"]["last_active_ms"] == START_MS + 1_000


async def test_a_list_that_follows_the_feed_has_them_last(clock: FixedTime) -> None:
    views = GrowingViews()
    untimed = History("untimed", at=None)
    timed = History("timed", at=(NOW_MS - START_MS) / 1_000 - 300)
    views.add(untimed.reading(50_000), logged_ms=NOW_MS - 50 * MINUTE_MS)
    api = api_over(views, clock=clock)
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["untimed"], 0)
    views.add(timed.reading(50_000))
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["timed", "untimed"], 1)
    views.add(untimed.reading(60_000), logged_ms=NOW_MS)
    listed = await _listed(api, "&sort=recent")
    assert (_ids(listed), listed["live"]) == (["timed", "untimed"], 1)
