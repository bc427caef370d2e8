"""Parts of lists fit together, and an unchanged list has unchanged estimates."""

from typing import Any

import pytest

from streams.ports import ProjectorHeartbeat
from streams.serve.views import snapshot
from tests.cases.session_status import NOW_MS
from tests.core.history import START_MS, History
from tests.serve.kit import Api, GrowingViews, api_over
from tests.serve.test_statuses import FixedTime

MINUTE_MS = 60_000


class PassingTime(FixedTime):
    """A clock that a test moves, all of it."""

    def monotonic_s(self) -> float:
        return self.time_ms / 1_000


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the positions for every question."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)


@pytest.fixture
def clock() -> PassingTime:
    """The server's clock."""
    return PassingTime()


def _active(name: str, minutes_ago: float) -> History:
    return History(name, at=(NOW_MS - START_MS) / 1_000 - minutes_ago * 60)


async def _rest(api: Api, path: str, cursor: str | None) -> list[str]:
    """Return the sessions of all parts after a cursor, one at a time."""
    names: list[str] = []
    while cursor is not None:
        part: dict[str, Any] = await api.json(f"{path}&limit=1&cursor={cursor}")
        names += [view["session_id"] for view in part["sessions"]]
        cursor = part["next"]
    return names


async def test_sessions_that_become_stale_between_two_parts_are_not_repeated(
    clock: PassingTime,
) -> None:
    views = GrowingViews()
    views.add(
        _active("fullest", 29).reading(180_000),
        _active("full", 1).reading(160_000),
        _active("half", 1).reading(100_000),
    )
    api = api_over(views, clock=clock)
    path = "/v1/sessions?sort=pressure&live_first=true"
    first = await api.json(f"{path}&limit=1")
    assert [view["session_id"] for view in first["sessions"]] == ["fullest"]
    clock.time_ms += 2 * MINUTE_MS
    assert await _rest(api, path, first["next"]) == ["full", "half"]
    other = await api.get(f"/v1/sessions?sort=pressure&cursor={first['next']}")
    assert other.status_code == 400


async def test_estimates_that_change_between_two_parts_repeat_no_session(
    clock: PassingTime,
) -> None:
    views = GrowingViews()
    moved, other = _active("moved", 9), _active("other", 9)
    near, far = _active("near", 9), _active("far", 9)
    boundary = other.boundary("auto", pre=120_000)
    views.add(
        *(boundary, other.complete(boundary, after=1_000), other.reading(1_000)),
        moved.reading(100_000),
        *(near.limits(threshold=150_000), near.reading(100_000)),
        *(far.limits(threshold=190_000), far.reading(100_000)),
    )
    api = api_over(views, clock=clock)
    path = "/v1/sessions?sort=until"
    first = await api.json(f"{path}&limit=1")
    assert [view["session_id"] for view in first["sessions"]] == ["moved"]
    for _ in range(3):
        boundary = other.boundary("auto", pre=180_000)
        views.add(boundary, other.complete(boundary, after=1_000), other.reading(1_000))
    clock.time_ms += MINUTE_MS
    assert await _rest(api, path, first["next"]) == ["near", "far", "other"]
    again = await api.json(path)
    assert [view["session_id"] for view in again["sessions"]] == ["near", "moved", "far", "other"]


@pytest.mark.parametrize("query", ["", "?sort=until"])
async def test_a_list_whose_estimates_changed_is_sent_again(clock: PassingTime, query: str) -> None:
    views = GrowingViews()
    one, two = _active("one", 9), _active("two", 9)
    boundary = one.boundary("auto", pre=120_000)
    views.add(boundary, one.complete(boundary, after=1_000), two.reading(100_000))
    api = api_over(views, clock=clock)
    path = f"/v1/sessions{query}"
    await api.json(path)
    for _ in range(3):
        boundary = one.boundary("auto", pre=180_000)
        views.add(boundary, one.complete(boundary, after=1_000))
    clock.time_ms += 1_000
    views.report_heartbeat(ProjectorHeartbeat(clock.time_ms, None, 0))
    soon = await api.get(path)  # what is usual of a model is looked up twice a minute
    assert (await api.get(path, if_none_match=soon.headers["etag"])).status_code == 304
    clock.time_ms += MINUTE_MS
    views.report_heartbeat(ProjectorHeartbeat(clock.time_ms, None, 0))
    later = await api.get(path, if_none_match=soon.headers["etag"])
    assert later.status_code == 200
    left = {
        view["session_id"]: view["status"]["until_compaction"]["main"]["tokens"]
        for view in later.json()["sessions"]
    }
    assert left["two"] == pytest.approx(80_000, rel=0.05)
    same = await api.get(path, if_none_match=later.headers["etag"])
    assert same.status_code == 304


@pytest.mark.parametrize("sort", ["recent", "folder"])
async def test_long_ids_and_folders_hide_no_session_behind_them(
    clock: PassingTime, sort: str
) -> None:
    names = ["a", *("x" * 6_000 + str(number) for number in range(3)), "z"]
    views = GrowingViews()
    for name in names:
        history = _active(name, 1)
        views.add(history.info(cwd="/" + "y" * 7_000), history.reading(100_000))
    api = api_over(views, clock=clock)
    path = f"/v1/sessions?sort={sort}"
    first = await api.json(f"{path}&limit=1")
    listed = [first["sessions"][0]["session_id"], *await _rest(api, path, first["next"])]
    assert sorted(listed) == sorted(names)
