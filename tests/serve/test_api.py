"""The routes under /v1: what they answer, in parts, again, and of which generation."""

import asyncio
import re
from collections.abc import AsyncIterator
from statistics import median

import pytest

from contextgauge.clock import SystemClock
from schemas.records import CompactBoundary, Record
from streams import codec
from streams.edge.memory.view_store import MemoryPartition
from streams.ports import Generations, ProjectorHeartbeat
from streams.serve.api import reading, totals
from streams.serve.api.reading import Cursor
from streams.serve.views import session_index, snapshot
from tests.serve.kit import Api, GrowingViews, api_over, document


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at everything for every question: what took long, on a busy machine, is kept."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)
    monkeypatch.setattr(totals, "_MOST_S", 0.0)
    monkeypatch.setattr(reading, "_LEARNED_S", 0.0)


@pytest.fixture
def views(records: list[Record]) -> GrowingViews:
    """The sample's views."""
    views = GrowingViews()
    views.add(*records)
    return views


@pytest.fixture
async def api(views: GrowingViews) -> AsyncIterator[Api]:
    """The API over the sample's views."""
    api = api_over(views)
    async with api.client:
        yield api
    assert api.reported == []


def _with_compactions(records: list[Record]) -> str:
    return next(
        record.data.session_id for record in records if isinstance(record.data, CompactBoundary)
    )


async def test_sessions_are_listed_by_last_activity(api: Api, records: list[Record]) -> None:
    page = await api.json("/v1/sessions")
    times = [view["last_ms"] for view in page["sessions"] if view["last_ms"] is not None]
    assert times == sorted(times, reverse=True)
    assert page["generation"] == 1
    assert page["next"] is None
    assert page["total"] == len(page["sessions"])
    assert {view["session_id"] for view in page["sessions"]} == {
        record.data.session_id for record in records
    }


async def test_pressure_puts_the_fullest_first_and_the_unknown_last(api: Api) -> None:
    page = await api.json("/v1/sessions?sort=pressure")
    used = [
        view["chains"].get("main", {"used_percent": None})["used_percent"]
        for view in page["sessions"]
    ]
    known = [percent for percent in used if percent is not None]
    assert len(known) > 3
    assert known == sorted(known, reverse=True)
    assert used[: len(known)] == known


@pytest.mark.parametrize("sort", ["recent", "pressure"])
async def test_all_pages_together_equal_the_list(api: Api, sort: str) -> None:
    whole = (await api.json(f"/v1/sessions?sort={sort}"))["sessions"]
    parts, cursor = [], ""
    while True:
        page = await api.json(f"/v1/sessions?sort={sort}&limit=5{cursor}")
        assert page["total"] == len(whole)
        parts += page["sessions"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert parts == whole


async def test_filters_select_matching_sessions(api: Api) -> None:
    whole = (await api.json("/v1/sessions"))["sessions"]
    for name, part in (("runtime", "identity"), ("model", "chains"), ("state", "chains")):
        values = [view[part].get("main", view[part])[name] for view in whole]
        page = await api.json(f"/v1/sessions?{name}={values[0]}")
        expected = [view for view, value in zip(whole, values, strict=True) if value == values[0]]
        assert page["sessions"] == expected, name
        assert page["total"] == len(expected) > 0
    unknown = await api.json("/v1/sessions?runtime=unknown")
    expected = [view for view in whole if view["identity"]["runtime"] is None]
    assert unknown["sessions"] == expected
    assert 0 < unknown["total"] < len(whole)
    half = await api.json("/v1/sessions?min_percent=50")
    assert 0 < half["total"] < len(whole)
    assert all(view["chains"]["main"]["used_percent"] >= 50 for view in half["sessions"])
    one = await api.json(f"/v1/sessions?q={whole[3]['session_id'][:13].upper()}")
    assert whole[3] in one["sessions"]
    assert (await api.json("/v1/sessions?q=nothing-is-called-so"))["sessions"] == []


@pytest.mark.extended
@pytest.mark.parametrize("many", [1, 1_000], ids=["sorted anew", "moved one by one"])
async def test_a_list_follows_new_records(
    records: list[Record], many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "_MANY", 1 / many)
    views = GrowingViews()
    api = api_over(views)
    for start in range(0, len(records), 75):
        views.add(*records[start : start + 75])
        listed = (await api.json("/v1/sessions?limit=1000"))["sessions"]
        expected = [
            codec.loads(view)
            for partition in views.partitions.values()
            for view in partition.held.views.values()
        ]
        stored = [dict(list(view.items())[:-3]) for view in listed]  # as they were before judging
        assert sorted(stored, key=_name) == sorted(expected, key=_name)
        fresh = api_over(views)  # as one that reads all views for the first time
        for asked in ("?sort=recent", "?sort=pressure", "?sort=pressure&min_percent=20"):
            expected = (await fresh.json(f"/v1/sessions{asked}"))["sessions"]
            assert (await api.json(f"/v1/sessions{asked}"))["sessions"] == expected


def _name(view: dict[str, str]) -> str:
    return view["session_id"]


async def test_a_list_is_read_again_if_the_feed_is_too_short(records: list[Record]) -> None:
    views = GrowingViews()
    api = api_over(views)
    views.add(*records[:10])
    await api.json("/v1/sessions")
    views.add(*records[10:])
    for partition in range(views.count):
        views.forget_live(partition, 1)
    total = len({record.data.session_id for record in records})
    assert (await api.json("/v1/sessions"))["total"] == total


async def test_sessions_that_left_are_no_longer_listed(
    api: Api, views: GrowingViews, records: list[Record]
) -> None:
    before = (await api.json("/v1/sessions"))["total"]
    gone = codec.key_bytes(records[0].data.session_id)
    for partition in views.partitions.values():
        for by_session in (partition.held.views, partition.held.rankings["recent"]):
            by_session.pop(gone, None)
    other = [record for record in records if record.data.session_id != records[0].data.session_id]
    views.offsets = [offset + 2 for offset in views.offsets]
    views.add(other[-1])
    assert (await api.json("/v1/sessions"))["total"] == before - 1


async def test_a_session_is_returned_as_stored(api: Api, records: list[Record]) -> None:
    name = records[0].data.session_id
    found = await api.json(f"/v1/sessions/{name}")
    assert found["session"]["session_id"] == name
    listed = (await api.json(f"/v1/sessions?q={name}"))["sessions"]
    assert found["session"] == listed[0]


async def test_a_request_for_a_partial_id_returns_a_search_url(
    api: Api, records: list[Record]
) -> None:
    name = records[0].data.session_id
    answer = await api.get(f"/v1/sessions/{name[:8]}")
    assert answer.status_code == 404
    path = re.findall(r"GET (/v1/sessions\?\S+)", answer.json()["detail"])
    assert path == [f"/v1/sessions?q={name[:8]}"]
    assert name in [view["session_id"] for view in (await api.json(path[0]))["sessions"]]
    odd = (await api.get("/v1/sessions/a%26b%20%ED%A0%80")).json()["detail"]
    assert "?q=a%26b%20" in odd
    assert "?q=" not in (await api.get(f"/v1/sessions/{'x' * 300}")).json()["detail"]


async def test_records_are_paginated_and_selected_by_kind(api: Api, records: list[Record]) -> None:
    name = _with_compactions(records)
    listed = [
        document(record)
        for record in records
        if record.data.session_id == name
        and record.kind not in ("compaction_progress", "context_reading")
    ]
    assert (await api.json(f"/v1/sessions/{name}/events"))["records"] == listed
    parts, after = [], ""
    while True:
        page = await api.json(f"/v1/sessions/{name}/events?limit=3{after}")
        parts += page["records"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert parts == listed
    warnings = await api.json(f"/v1/sessions/{name}/events?type=context_warning")
    assert warnings["records"] == [
        record for record in listed if record["type"] == "contextgauge.context_warning.v1"
    ]
    readings = await api.json(f"/v1/sessions/{name}/readings")
    assert readings["records"] == [
        document(record)
        for record in records
        if record.data.session_id == name and record.kind == "context_reading"
    ]


async def test_compactions_come_newest_first(api: Api, records: list[Record]) -> None:
    name = _with_compactions(records)
    compactions = (await api.json(f"/v1/sessions/{name}/compactions"))["compactions"]
    view = (await api.json(f"/v1/sessions/{name}"))["session"]
    counts = view["compactions"]
    assert len(compactions) == counts["manual"] + counts["automatic"] + counts["unknown_trigger"]
    numbers = [compaction["number"] for compaction in compactions]
    assert numbers == sorted(numbers, reverse=True)
    assert any(compaction["summary"] for compaction in compactions)


async def test_aggregates_are_those_of_all_partitions(api: Api, records: list[Record]) -> None:
    stats = await api.json("/v1/stats?by=model")
    boundaries = [record.data for record in records if isinstance(record.data, CompactBoundary)]
    total = stats["total"]
    counted = sum(total[name]["succeeded"] for name in ("manual", "automatic", "unknown_trigger"))
    assert counted == len(boundaries)
    assert sum(
        part[name]["succeeded"]
        for part in stats["by"].values()
        for name in ("manual", "automatic", "unknown_trigger")
    ) == len(boundaries)
    tokens = total["pre_tokens"]
    known = [stats.pre_tokens for stats in boundaries if stats.pre_tokens is not None]
    assert tokens["p50"] == pytest.approx(median(known), rel=0.02)
    assert tokens["mean"] == pytest.approx(sum(known) / len(known), abs=0.0501)
    assert tokens["min"] <= tokens["p50"] <= tokens["p95"] <= tokens["p99"] <= tokens["max"]
    hours = await api.json("/v1/stats")
    assert hours["total"] == total
    names = [name for name in hours["by"] if name != "unknown"]
    since = await api.json(f"/v1/stats?by=hour&since={names[-1]}")
    assert list(since["by"]) == [name for name in hours["by"] if name >= names[-1]]


async def test_unchanged_content_is_not_sent_again(records: list[Record]) -> None:
    name = _with_compactions(records)
    last = next(record for record in reversed(records) if record.data.session_id == name)
    views = GrowingViews()
    views.add(*[record for record in records if record is not last])
    api = api_over(views)
    paths = [
        "/v1/sessions",
        "/v1/sessions?sort=pressure",
        f"/v1/sessions/{name}",
        f"/v1/sessions/{name}/events",
        f"/v1/sessions/{name}/readings",
        f"/v1/sessions/{name}/compactions",
        f"/api/agents/{name}/events",
        "/v1/stats",
    ]
    tags = {}
    for path in paths:
        first = await api.get(path)
        tags[path] = first.headers["etag"]
        same = await api.get(path, if_none_match=f'"other", {tags[path]}')
        assert (same.status_code, same.content) == (304, b""), path
        assert same.headers["etag"] == tags[path]
        assert same.headers["contextgauge-stale"] == "false"
    assert len(set(tags.values())) == len(paths)
    views.add(last)
    for path in paths:
        again = await api.get(path, if_none_match=tags[path])
        assert again.status_code == 200, path
        assert again.headers["etag"] != tags[path]


async def test_a_silent_projector_is_reported_as_stale_despite_a_matching_etag(
    api: Api, views: GrowingViews
) -> None:
    first = await api.get("/v1/sessions")
    assert first.json()["as_of"]["stale"] is False
    position = views.partitions[1, 0].position
    assert position is not None
    assert position.heartbeat is not None
    views.report_heartbeat(
        ProjectorHeartbeat(position.heartbeat.at_ms - 11_000, position.offset, 0)
    )
    again = await api.get("/v1/sessions", if_none_match=first.headers["etag"])
    assert again.status_code == 200
    as_of = again.json()["as_of"]
    assert (as_of["stale"], as_of["silent_ms"] >= 11_000) == (True, True)
    assert again.headers["contextgauge-stale"] == "true"
    answer = await api.json("/v1/projection")
    assert answer["reading"] is None
    assert [part["partition"] for part in answer["partitions"]] == [0, 1, 2]


async def test_a_stopped_projector_whose_clock_is_ahead_is_reported_as_stale(
    views: GrowingViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SystemClock()
    snapshots = snapshot.Snapshots(views, clock)
    an_hour_ms = 3_600_000
    for _ in range(3):
        views.report_heartbeat(ProjectorHeartbeat(clock.now_ms() + an_hour_ms, None, 0))
        found = await snapshots.of(views.generation)
        assert found is not None
        assert not found.is_stale
        await asyncio.sleep(0.1)
    monkeypatch.setattr(snapshot, "STALE_MS", 200)
    await asyncio.sleep(0.3)
    found = await snapshots.of(views.generation)
    assert found is not None
    assert found.is_stale


async def test_the_same_offsets_of_another_build_invalidate_the_etag(
    api: Api, views: GrowingViews
) -> None:
    session = (await api.json("/v1/sessions"))["sessions"][0]["session_id"]
    paths = ["/v1/sessions", "/v1/stats", f"/v1/sessions/{session}"]
    paths.append(f"/api/agents/{session}/events")
    tags = {path: (await api.get(path)).headers["etag"] for path in paths}
    for place, stored in views.partitions.items():
        assert stored.position is not None
        position = stored.position._replace(build="another")
        views.partitions[place] = MemoryPartition(position, stored.held)
    for path, former in tags.items():
        assert (await api.get(path, if_none_match=former)).status_code == 200, path


async def test_a_lagging_projector_is_reported_as_stale(api: Api, views: GrowingViews) -> None:
    position = views.partitions[1, 0].position
    assert position is not None
    assert position.heartbeat is not None
    views.report_heartbeat(ProjectorHeartbeat(position.heartbeat.at_ms, 10_000, 60_000))
    as_of = (await api.json("/v1/sessions"))["as_of"]
    assert as_of["stale"] is True
    assert as_of["lag_records"] == sum(10_000 - offset for offset in views.offsets)
    assert as_of["lag_ms"] >= 60_000


async def test_a_cursor_stays_with_its_generation(api: Api, views: GrowingViews) -> None:
    first = await api.json("/v1/sessions?limit=5")
    views.swap()
    second = await api.json(f"/v1/sessions?limit=5&cursor={first['next']}")
    assert second["generation"] == 1
    assert (await api.json("/v1/sessions?limit=5"))["generation"] == 2
    again = await api.json(f"/v1/sessions?limit=5&cursor={first['next']}")
    assert again["sessions"] == second["sessions"]
    for partition in range(views.count):
        del views.partitions[1, partition]
    gone = await api.get(f"/v1/sessions?limit=5&cursor={first['next']}")
    assert gone.status_code == 410
    assert gone.json()["type"] == "urn:contextgauge:problem:generation-gone"


async def test_a_cursor_of_another_list_is_refused(api: Api) -> None:
    recent = (await api.json("/v1/sessions?sort=recent&limit=5"))["next"]
    answer = await api.get(f"/v1/sessions?sort=pressure&limit=5&cursor={recent}")
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:contextgauge:problem:bad-cursor"


async def test_a_generation_being_built_is_not_served(api: Api, views: GrowingViews) -> None:
    for partition in range(views.count):
        views.partitions[2, partition] = views.partitions[1, partition]
    cursor = Cursor(2, "recent", (None, "", 0, 0.0, 0, "00")).encoded()
    answer = await api.get(f"/v1/sessions?cursor={cursor}")
    assert answer.status_code == 410


async def test_before_the_first_projection_results_are_empty() -> None:
    views = GrowingViews()
    views.numbers = Generations(None, None)
    api = api_over(views)
    page = await api.json("/v1/sessions")
    assert (page["generation"], page["sessions"], page["total"]) == (None, [], 0)
    assert page["as_of"]["stale"] is True
    assert (await api.get("/v1/sessions/a")).status_code == 404
    assert (await api.json("/v1/stats"))["by"] == {}
    assert (await api.json("/v1/projection"))["partitions"] == []
    assert await api.json("/api/agents/a/events") == []


async def test_any_id_can_be_requested(records: list[Record]) -> None:
    from dataclasses import replace  # noqa: PLC0415

    views = GrowingViews()
    for name in ("a/b", "ü 😀", "x?y#z", "events", "a\nb"):
        views.add(replace(records[0], data=replace(records[0].data, session_id=name)))
    api = api_over(views)
    for quoted in ("a%2Fb", "%C3%BC%20%F0%9F%98%80", "x%3Fy%23z", "events", "a%0Ab"):
        assert (await api.get(f"/v1/sessions/{quoted}")).status_code == 200
        assert (await api.get(f"/v1/sessions/{quoted}/events")).status_code == 200
