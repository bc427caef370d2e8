"""An agent's events as a chat's front end takes them: by agent or session, each with its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    ContextWarning,
    Outcome,
    Record,
)
from schemas.views import EntryStream
from streams.ports import Entry
from streams.serve.api.answers import SharedCache
from streams.serve.views import snapshot
from tests.core.history import START_MS, History
from tests.serve.kit import GrowingViews, api_over, sample_records

NONE = type(None)
DATA_FIELDS: dict[str, dict[str, set[type]]] = {
    "context_warning": {
        "contextUsedPercent": {int},
        "contextRemainingPercent": {int},
        "inputTokens": {int},
        "cacheTokens": {int},
        "contextWindow": {int},
    },
    "compaction_start": {
        "triggerReason": {str},
        "contextUsedPercent": {int, NONE},
        "outcome": {str, NONE},
    },
    "compaction_complete": {
        "summary": {str},
        "tokensBefore": {int, NONE},
        "tokensAfter": {int, NONE},
        "tokensSaved": {int, NONE},
        "outcome": {str},
        "error": {str, NONE},
        "attemptId": {str, NONE},
    },
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_CACHED_S", 0.0)


async def events(agent: str, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what is answered of an agent once these records are in the views."""
    views = GrowingViews()
    views.add(*records)
    documents: list[dict[str, Any]] = await api_over(views).json(f"/api/agents/{agent}/events")
    return documents


async def test_every_session_of_the_sample_is_served_in_the_chats_format() -> None:
    records = sample_records()
    views = GrowingViews()
    views.add(*records)
    api, kinds = api_over(views), set()
    for session in {record.data.session_id for record in records}:
        listed = await api.json(f"/api/agents/{session}/events")
        assert [event["timestamp"] for event in listed] == sorted(
            event["timestamp"] for event in listed
        )
        for event in listed:
            kinds.add(event["type"])
            assert set(event) == {"id", "type", "timestamp", "taskId", "data"}
            assert type(event["timestamp"]) is int
            assert event["taskId"] is None or type(event["taskId"]) is str
            fields = DATA_FIELDS[event["type"]]
            assert set(event["data"]) == set(fields)
            assert all(type(value) in fields[name] for name, value in event["data"].items())
        ids = {event["id"] for event in listed}
        assert ids == {
            record.id
            for record in records
            if record.data.session_id == session and _is_told(record)
        }
    assert kinds == set(DATA_FIELDS)


def _is_told(record: Record) -> bool:
    if record.time_ms is None or record.data.chain != "main":
        return False
    match record.data:
        case ContextWarning():
            return True
        case CompactionStart() | CompactBoundary() | CompactionFailed():
            return True
        case _:
            return False


def of_attempt(record: Record, start: Record) -> Record:
    """Return an attempt's end with the id of its start."""
    assert isinstance(record.data, CompactBoundary | CompactionFailed)
    return replace(record, data=replace(record.data, attempt_id=start.id))


async def test_a_compaction_ends_at_its_boundary_and_is_measured_in_the_same_event() -> None:
    history = History()
    start = history.start(None, used=164_200)
    boundary = of_attempt(history.boundary("manual"), start)
    summary = history.summary(boundary, "In short.")
    complete = history.complete(boundary, after=20_000)
    known = [history.reading(5), start]
    open_start = {
        "id": start.id,
        "type": "compaction_start",
        "timestamp": start.time_ms,
        "taskId": None,
        "data": {
            "triggerReason": "threshold_exceeded",
            "contextUsedPercent": 82,
            "outcome": None,
        },
    }
    assert await events("s-1", known) == [open_start]
    ended, ending = await events("s-1", [*known, boundary])
    assert ended["data"] == {
        "triggerReason": "manual",
        "contextUsedPercent": 82,
        "outcome": "succeeded",
    }
    assert ending == {
        "id": boundary.id,
        "type": "compaction_complete",
        "timestamp": boundary.time_ms,
        "taskId": None,
        "data": {
            "summary": "",
            "tokensBefore": 160_000,
            "tokensAfter": None,
            "tokensSaved": None,
            "outcome": "succeeded",
            "error": None,
            "attemptId": start.id,
        },
    }
    _, measured = await events("s-1", [*known, boundary, summary, complete])
    sizes = {"summary": "In short.", "tokensAfter": 20_000, "tokensSaved": 140_000}
    assert measured == ending | {"data": ending["data"] | sizes}


@pytest.mark.parametrize("outcome", ["failed", "blocked", "unknown"])
async def test_an_attempt_without_success_ends_with_its_outcome(outcome: Outcome) -> None:
    history = History()
    start = history.start("manual", used=150_000)
    failure = of_attempt(history.failed(outcome, "too few messages"), start)
    begun, ended = await events("s-1", [start, failure])
    assert begun["data"]["outcome"] == outcome
    assert (ended["id"], ended["type"]) == (failure.id, "compaction_complete")
    assert ended["data"] == {
        "summary": "",
        "tokensBefore": 150_000,
        "tokensAfter": None,
        "tokensSaved": None,
        "outcome": outcome,
        "error": "too few messages",
        "attemptId": start.id,
    }


async def test_a_summary_without_a_timestamp_is_not_lost() -> None:
    history = History()
    boundary = history.boundary(at=10)
    summary = replace(history.summary(boundary, "In short."), time_ms=None)
    (ended,) = await events("s-1", [boundary, summary])
    assert ended["data"]["summary"] == "In short."


async def test_a_boundary_without_a_timestamp_is_as_old_as_its_measurement() -> None:
    history = History()
    boundary = replace(history.boundary(), time_ms=None)
    complete = history.complete(boundary, at=30)
    assert await events("s-1", [boundary]) == []
    (ended,) = await events("s-1", [boundary, complete])
    assert (ended["id"], ended["timestamp"]) == (boundary.id, complete.time_ms)


async def test_unknown_figures_are_null_and_a_missing_reason_means_threshold() -> None:
    history = History()
    unmeasured = history.start("manual", used=None)
    bare = history.start(None)
    manual = history.start("manual")
    orphan = history.boundary(None, pre=None)
    timeless = history.start("manual", at=None)
    listed = await events("s-1", [unmeasured, bare, manual, orphan, timeless])
    assert listed[0]["data"]["contextUsedPercent"] is None
    assert [(event["id"], event["data"].get("triggerReason")) for event in listed] == [
        (unmeasured.id, "manual"),
        (bare.id, "threshold_exceeded"),
        (manual.id, "manual"),
        (orphan.id, None),
    ]
    data = listed[3]["data"]
    assert (data["tokensBefore"], data["attemptId"], data["outcome"]) == (None, None, "succeeded")


async def test_an_agent_has_the_events_of_all_its_sessions_by_time() -> None:
    one, two, other = History("one"), History("two"), History("other")
    records = [
        one.info(publisher_agent_id="ann"),
        two.info(publisher_agent_id="ann"),
        other.info(publisher_agent_id="bob"),
        one.start("manual", at=10),
        two.start("manual", at=5),
        one.start("manual", at=20),
        other.start("manual", at=7),
    ]
    listed = await events("ann", records)
    assert [event["timestamp"] - START_MS for event in listed] == [5_000, 10_000, 20_000]
    assert [event["timestamp"] - START_MS for event in await events("bob", records)] == [7_000]
    assert len(await events("one", records)) == 2
    assert await events("nobody", records) == []


async def test_an_agent_id_takes_precedence_over_an_equal_session_id() -> None:
    one, two = History("one"), History("two")
    records = [two.info(publisher_agent_id="one"), one.start("manual"), two.start("manual")]
    assert [event["id"] for event in await events("one", records)] == ["two-2"]


async def test_polling_without_etags_returns_new_events() -> None:
    history, views = History(), GrowingViews()
    api = api_over(views)
    for count in range(4):
        assert len(await api.json("/api/agents/s-1/events")) == count
        assert len(await api.json("/api/agents/s-1/events")) == count
        views.add(history.start("manual"))


async def test_concurrent_requests_read_a_session_once_until_it_changes() -> None:
    one, two, views = History("one"), History("two"), _Counting()
    views.add(one.info(publisher_agent_id="ann"), two.info(publisher_agent_id="ann"))
    views.add(one.start("manual"), two.start("manual"))
    api = api_over(views)
    answers = await asyncio.gather(*(api.json("/api/agents/ann/events") for _ in range(10)))
    assert [len(events) for events in answers] == [2] * 10
    assert sorted(views.read) == [b"one", b"two"]
    views.add(two.start("manual"))
    assert len(await api.json("/api/agents/ann/events")) == 3
    assert sorted(views.read) == [b"one", b"two", b"two"]


class _Counting(GrowingViews):
    """Notes whose entries are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[bytes] = []

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        self.read.append(session)
        await asyncio.sleep(0)
        return await super().entries(generation, partition, stream, session, after)


async def test_percentages_are_floored_and_add_up() -> None:
    record = next(each for each in sample_records() if _is_told(each))
    assert isinstance(record.data, ContextWarning)
    data = replace(record.data, context_used_percent=82.6, context_remaining_percent=17.4)
    (event,) = await events(record.data.session_id, [replace(record, data=data, sequence=1)])
    assert event["data"]["contextUsedPercent"] == 82
    assert event["data"]["contextRemainingPercent"] == 18


async def test_the_cache_is_limited_in_bytes_and_drops_the_least_recently_used() -> None:
    cache: SharedCache[bytes] = SharedCache(limit_bytes=10)
    made: list[str] = []

    async def get(tag: str, size: int) -> None:
        async def make() -> tuple[bytes, int]:
            made.append(tag)
            return b"x" * size, size

        assert await cache.get_or_make(tag, make) == b"x" * size

    for tag, size in (("a", 5), ("b", 5), ("a", 5), ("c", 1), ("a", 5), ("b", 5), ("d", 11)):
        await get(tag, size)
    assert made == ["a", "b", "c", "b", "d"]
    await get("a", 5)
    assert made[-1] == "a"
