"""The judgement of sessions in answers: verdicts as of the answer, and when they change."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

import pytest

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from contextgauge.runtime_settings import RuntimeSettings, Sourced
from schemas.records import Record
from schemas.views import SessionView
from streams import codec
from streams.codec import view_codec
from streams.core.session_status import THRESHOLDS
from streams.serve.api.serving import RuntimeFolder
from streams.serve.views import snapshot
from tests.cases.session_status import CASES, HALF, NOW_MS, Case, chain, session
from tests.core.history import START_MS, History
from tests.serve.kit import Api, GrowingViews, api_over


class FixedTime(SystemClock):
    """A clock that shows what the test sets."""

    time_ms = NOW_MS

    def now_ms(self) -> int:
        return self.time_ms


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the positions for every question."""
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)


@pytest.fixture
def clock() -> FixedTime:
    """The server's clock."""
    return FixedTime()


def api_of(views: Sequence[SessionView], clock: FixedTime) -> Api:
    """Return an API over these views."""
    store = GrowingViews()
    for view in views:
        key = codec.key_bytes(view.session_id)
        held = store.partitions[1, partition_of(view.session_id, store.count)].held
        held.views[key] = view_codec.encode(view)
        held.rankings["recent"][key] = view.last_ms or 0
    return api_over(store, clock=clock)


def named(cases: Sequence[Case]) -> dict[str, Case]:
    """Return the cases, each with a session id of its own."""
    return {
        f"case-{number:03}": case._replace(view=replace(case.view, session_id=f"case-{number:03}"))
        for number, case in enumerate(cases)
    }


def check(case: Case, view: dict[str, Any]) -> None:
    """Check the verdict that came with a view."""
    status = view["status"]
    assert status["leading_chain"] == case.leading, case.name
    assert status["state"] == case.state, case.name
    assert status["severity"] == case.severity, case.name
    assert status["thrashing"] == case.thrashing, case.name
    assert set(status["severities"]) == set(case.view.chains), case.name


async def test_each_case_has_its_verdict_in_lists_and_alone(clock: FixedTime) -> None:
    cases = named(CASES)
    api = api_of([case.view for case in cases.values()], clock)
    answer = await api.json("/v1/sessions?sort=pressure&limit=1000")
    assert {view["session_id"] for view in answer["sessions"]} == set(cases)
    assert answer["thresholds"] == THRESHOLDS._asdict()
    for view in answer["sessions"]:
        check(cases[view["session_id"]], view)
        alone = await api.json(f"/v1/sessions/{view['session_id']}")
        assert alone["session"] == view
        assert alone["thresholds"] == answer["thresholds"]


async def test_a_list_is_sorted_and_filtered_by_what_it_shows(clock: FixedTime) -> None:
    cases = named(CASES)
    api = api_of([case.view for case in cases.values()], clock)
    views = (await api.json("/v1/sessions?sort=pressure&limit=1000"))["sessions"]
    shares = [
        view["chains"].get(view["status"]["leading_chain"], {}).get("used_percent")
        for view in views
    ]
    known = [share for share in shares if share is not None]
    assert known == sorted(known, reverse=True)
    assert shares[len(known) :] == [None] * (len(shares) - len(known))
    answer = await api.json("/v1/sessions?state=compacting&limit=1000")
    assert {view["session_id"] for view in answer["sessions"]} == {
        name for name, case in cases.items() if case.state in {"compacting", "stalled"}
    }


async def test_sessions_are_served_by_their_ids(clock: FixedTime) -> None:
    cases = named(CASES)
    api = api_of([case.view for case in cases.values()], clock)
    ids = [*list(cases)[5:0:-2], "not there", "case-001"]
    answer = await api.json("/v1/sessions?" + "&".join(f"id={name}" for name in ids))
    assert [view["session_id"] for view in answer["sessions"]] == [
        "case-005",
        "case-003",
        "case-001",
    ]
    assert (answer["next"], answer["total"]) == (None, 3)
    for view in answer["sessions"]:
        check(cases[view["session_id"]], view)
    for wrong in ("?id=a&sort=recent", "?" + "&".join(["id=a"] * 201)):
        assert (await api.get(f"/v1/sessions{wrong}")).status_code in {400, 422}


async def test_a_view_is_served_as_it_is_stored(clock: FixedTime) -> None:
    view = session(HALF)
    answer = await api_of([view], clock).json("/v1/sessions/case")
    assert answer["session"].pop("title") is None
    assert answer["session"].pop("address") == "case"
    answer["session"].pop("status")
    assert answer["session"] == codec.loads(codec.dumps(asdict(view)))


async def test_a_server_that_has_titles_serves_them_with_their_sessions(clock: FixedTime) -> None:
    views = GrowingViews()
    for name in ("one", "two"):
        history = History(name)
        origin = "parent" if name == "two" else None
        info = history.info(runtime="codex", cwd="/srv/shop", forked_from=origin)
        views.add(info, history.reading(1_000))

    async def titles(session_ids: Sequence[str]) -> dict[str, str]:
        return {each: 'Fix "it" in the basket' for each in session_ids if each == "one"}

    api = api_over(views, clock=clock, titles=titles)
    for path in ("/v1/sessions", "/v1/sessions?id=one&id=two"):
        listed = (await api.json(path))["sessions"]
        assert {view["session_id"]: view["title"] for view in listed} == {
            "one": 'Fix "it" in the basket',
            "two": None,
        }
    assert (await api.json("/v1/sessions/one"))["session"]["title"] == 'Fix "it" in the basket'
    for text, names in (
        ("fix", ["one"]),
        ("TWO", ["two"]),
        ("fixed", []),
        ("Basket fix", ["one"]),  # not in this order
        ("basket SHOP codex", ["one"]),  # of title, folder and runtime
        ("basket two", []),
        ("shop two", ["two"]),
        ("parent", ["two"]),  # its origin
        (" ", ["one", "two"]),
    ):
        answer = await api.json(f"/v1/sessions?q={quote(text)}&sort=folder")
        assert sorted(view["session_id"] for view in answer["sessions"]) == names
        assert answer["total"] == len(names)


async def test_estimates_follow_compactions_of_the_model_within_seconds() -> None:
    class _Ticking(FixedTime):
        def monotonic_s(self) -> float:
            return self.time_ms / 1_000

    clock = _Ticking()
    views = GrowingViews()
    views.add(History("one").reading(100_000))
    api = api_over(views, clock=clock)
    estimates = (await api.json("/v1/projection"))["estimates"]
    assert (await api.json("/v1/sessions"))["sessions"][0]["status"]["until_compaction"] == {}
    views.add(History("two").boundary("auto", pre=167_094))
    clock.time_ms += 5_000
    assert (await api.json("/v1/projection"))["estimates"] != estimates
    ranked = {each["session_id"]: each for each in (await api.json("/v1/sessions"))["sessions"]}
    assert ranked["one"]["status"]["until_compaction"]["main"]["tokens"] == 67_094


async def test_a_server_of_this_machine_serves_what_the_runtimes_settings_say(
    clock: FixedTime,
) -> None:
    views = GrowingViews()
    history = History("one")
    views.add(history.info(runtime="claude-code", cwd="/p"))
    views.add(history.reading(100_000, window=200_000))
    own = {"limit": 150_000}
    asked: list[Sequence[RuntimeFolder]] = []

    def read(places: Sequence[RuntimeFolder]) -> dict[RuntimeFolder, RuntimeSettings]:
        asked.append(places)
        set_window = Sourced(own["limit"], "settings.json")
        return {place: RuntimeSettings("claude-code", window=set_window) for place in places}

    api = api_over(views, clock=clock, runtime_settings=read)
    answer = await api.get("/v1/sessions")
    (until,) = answer.json()["sessions"][0]["status"]["until_compaction"].values()
    assert (until["source"], until["setting"]) == ("settings", "settings.json")
    assert until["threshold_tokens"] == 117_000
    assert asked[-1] == [("claude-code", "/p")]
    # A setting that is changed is another answer, though no record came.
    tag = answer.headers["etag"]
    assert (await api.get("/v1/sessions", if_none_match=tag)).status_code == 304
    estimates = (await api.json("/v1/projection"))["estimates"]
    assert (await api.json("/v1/projection"))["estimates"] == estimates
    own["limit"] = 190_000
    assert (await api.json("/v1/projection"))["estimates"] != estimates
    answer = await api.get("/v1/sessions", if_none_match=tag)
    (until,) = answer.json()["sessions"][0]["status"]["until_compaction"].values()
    assert until["threshold_tokens"] == 157_000
    by_until = await api.json("/v1/sessions?sort=until")
    assert len(by_until["sessions"]) == 1


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/sessions/case"])
async def test_a_tag_is_good_until_a_verdict_changes(clock: FixedTime, path: str) -> None:
    api = api_of([session(HALF, silent=0)], clock)
    tag = (await api.get(path)).headers["etag"]
    clock.time_ms = NOW_MS + THRESHOLDS.stale_after_ms - 1
    same = await api.get(path, if_none_match=tag)
    assert (same.status_code, same.headers["etag"]) == (304, tag)
    clock.time_ms += 1
    stale = await api.get(path, if_none_match=tag)
    assert stale.status_code == 200
    assert b'"state":"stale"' in stale.content
    tag = stale.headers["etag"]
    clock.time_ms += 10**9
    assert (await api.get(path, if_none_match=tag)).status_code == 304


@pytest.mark.parametrize(
    "made_up", ['W/"x-9"', '"-"', "-", 'W/"{}-²"', 'W/"{}-' + "9" * 5_000 + '"']
)
async def test_made_up_tags_are_no_error(clock: FixedTime, made_up: str) -> None:
    api = api_of([session(chain(None))], clock)
    opaque = (await api.get("/v1/sessions")).headers["etag"][3:].split("-")[0]
    answer = await api.client.get(
        "/v1/sessions", headers={b"If-None-Match": made_up.replace("{}", opaque).encode()}
    )
    assert answer.status_code in {200, 304}


def _named(name: str, *, ago_min: int, folder: str, sizes: Sequence[int]) -> list[Record]:
    """Return the records of a session whose last response was so many minutes ago."""
    history = History(name, at=(NOW_MS - START_MS) / 1000 - 60 * ago_min - len(sizes) - 2)
    limits = history.limits(threshold=170_000, enabled=True)
    compacted = [history.boundary("auto") for _ in range(len(sizes) - 2)]
    readings = [history.reading(size) for size in sizes]
    return [history.info(cwd=folder), limits, *compacted, *readings]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("sort=pressure", "old fast full slow"),
        ("sort=pressure&live_first=true", "fast full slow old"),
        ("sort=recent&live_first=true", "slow full fast old"),
        ("sort=until&live_first=true", "fast full slow old"),
        ("sort=growth&live_first=true", "fast full slow old"),
        ("sort=compactions&live_first=true", "slow full fast old"),
        ("sort=folder", "old slow full fast"),
        ("sort=folder&live_first=true", "slow full fast old"),
    ],
)
async def test_a_list_is_sorted_by_each_column_and_live_sessions_come_first(
    clock: FixedTime, query: str, order: str
) -> None:
    views = GrowingViews()
    views.add(
        *_named("old", ago_min=600, folder="/a/alpha", sizes=(180_000, 190_000)),
        *_named("slow", ago_min=1, folder="/z/Beta/", sizes=(1_000, 2_000, 3_000, 4_000)),
        *_named("full", ago_min=5, folder="C:\\x\\delta", sizes=(100_000, 105_000, 110_000)),
        *_named("fast", ago_min=20, folder="/x/gamma", sizes=(60_000, 120_000)),
    )
    api = api_over(views, clock=clock)
    answer = await api.json(f"/v1/sessions?{query}")
    assert " ".join(view["session_id"] for view in answer["sessions"]) == order
    assert (answer["total"], answer["live"]) == (4, 3 if "live_first" in query else None)
    parts: list[str] = []
    cursor = ""
    for _ in range(4):
        part = await api.json(f"/v1/sessions?{query}&limit=1{cursor}")
        parts += [view["session_id"] for view in part["sessions"]]
        cursor = f"&cursor={part['next']}"
    assert " ".join(parts) == order
    assert part["next"] is None


async def test_a_list_with_live_sessions_first_changes_as_time_passes(clock: FixedTime) -> None:
    views = GrowingViews()
    views.add(*_named("one", ago_min=1, folder="/a", sizes=(1_000, 2_000)))
    api = api_over(views, clock=clock)
    first = await api.get("/v1/sessions?live_first=true")
    assert first.json()["live"] == 1
    clock.time_ms += THRESHOLDS.stale_after_ms
    later = await api.get("/v1/sessions?live_first=true", if_none_match=first.headers["etag"])
    assert later.status_code == 200
    assert later.json()["live"] == 0
