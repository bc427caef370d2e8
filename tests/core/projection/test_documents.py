"""What records add beside the session's view."""

from dataclasses import fields

import pytest

from schemas.records import CompactBoundary, Record
from schemas.views import Compaction, EntryStream, LiveEntry
from streams.core.projection.documents import (
    changeable_compactions,
    compaction,
    entry_stream,
    live_entry,
    pressure,
    recency,
    touched_compaction,
)
from streams.core.projection.project import project
from streams.core.projection.receipt_views import begun as receipt_begun
from tests.core.history import START_MS, History, view_of

HISTORY = History()


@pytest.mark.parametrize(
    ("record", "stream"),
    [
        (HISTORY.reading(1), "readings"),
        (HISTORY.progress(HISTORY.start()), None),
        (HISTORY.start(), "events"),
        (HISTORY.boundary(), "events"),
        (HISTORY.info(), "events"),
        (HISTORY.limits(), "events"),
    ],
    ids=lambda value: value.kind if isinstance(value, Record) else str(value),
)
def test_each_record_has_its_stream(record: Record, stream: EntryStream | None) -> None:
    assert entry_stream(record) == stream


def test_a_compaction_grows_from_boundary_to_completion() -> None:
    history = History()
    boundary = history.boundary("manual")
    assert isinstance(boundary.data, CompactBoundary)
    summary = history.summary(boundary, "so far")
    complete = history.complete(boundary)
    assert touched_compaction(None, boundary) == "1"
    begun = compaction(None, boundary)
    assert begun == Compaction(
        chain="main",
        number=1,
        boundary_id=boundary.id,
        attempt_id=None,
        trigger="manual",
        time_ms=boundary.time_ms,
        tokens_before=160_000,
        tokens_before_source="reported",
        post_tokens=None,
        tokens_after=None,
        tokens_saved=None,
        duration_ms=30_000,
        duration_source="reported",
        messages_since_last=40,
        complete=False,
        metadata={"trigger": "manual"},
        summary=None,
        receipt=receipt_begun(boundary.id, boundary.data),
    )
    view = view_of(boundary)
    assert touched_compaction(view, summary) == "1"
    first = compaction(begun, summary)
    assert first is not None
    assert (first.summary, first.complete) == ("so far", False)
    assert touched_compaction(project(view, summary, 9), complete) == "1"
    whole = compaction(first, complete)
    assert whole is not None
    assert (whole.summary, whole.tokens_after, whole.tokens_saved) == ("so far", 30_000, 130_000)
    assert whole.complete


def test_a_timing_sets_the_duration_of_a_compaction_that_was_measured_before() -> None:
    history = History()
    boundary = history.boundary(None, duration_ms=None, number=4)
    complete, timing = history.complete(boundary), history.timing(boundary, 3_069)
    view = view_of(boundary, complete)
    assert changeable_compactions(view_of(boundary).chains["main"]) == {"4"}
    assert changeable_compactions(view.chains["main"]) == {"4"}
    assert touched_compaction(view, timing) == "4"
    timed = compaction(compaction(compaction(None, boundary), complete), timing)
    assert timed is not None
    assert (timed.duration_ms, timed.duration_source, timed.complete) == (3_069, "reported", True)
    after = project(view, timing, 9)
    assert after.chains["main"].untimed is None
    assert touched_compaction(after, history.timing(boundary)) is None
    assert touched_compaction(None, timing) is None
    assert compaction(None, timing) is None


def test_a_subagents_compaction_has_its_chain_in_its_name() -> None:
    history = History()
    boundary = history.boundary(chain="a1", number=3)
    assert touched_compaction(None, boundary) == "3:a1"
    assert touched_compaction(view_of(boundary), history.complete(boundary)) == "3:a1"


def test_a_completion_is_that_of_its_own_boundary() -> None:
    history = History()
    first, second = history.boundary(number=1), history.boundary(number=2)
    assert touched_compaction(view_of(first, second), history.complete(first)) is None
    assert (
        touched_compaction(view_of(first, history.complete(first)), history.summary(first)) is None
    )
    assert touched_compaction(view_of(history.reading(1)), history.summary(first)) is None
    assert touched_compaction(view_of(history.info()), history.summary(first)) is None
    assert touched_compaction(None, history.summary(first)) is None
    assert touched_compaction(view_of(first), history.reading(5)) is None
    assert touched_compaction(view_of(first), history.limits()) is None


def test_records_of_an_unknown_compaction_are_ignored() -> None:
    history = History()
    boundary = history.boundary()
    assert compaction(None, history.summary(boundary)) is None
    assert compaction(None, history.complete(boundary)) is None
    begun = compaction(None, boundary)
    assert compaction(begun, history.reading(5)) is begun


def test_sessions_are_ranked_by_pressure_where_it_is_known() -> None:
    history = History()
    assert pressure(view_of(history.info())) is None
    assert pressure(view_of(history.reading(50_000))) == 25.0
    assert pressure(view_of(history.reading(50_000), history.boundary())) is None
    assert pressure(view_of(history.reading(50_000), history.reading(190_000, chain="a"))) == 25.0


def test_sessions_are_ranked_by_their_own_time_and_come_last_without_one() -> None:
    history = History()
    assert recency(view_of(history.reading(1, at=7)), START_MS + 99_000) == START_MS + 7_000
    untimed = view_of(history.reading(1, at=None))
    assert recency(untimed, None) < recency(untimed, START_MS) < recency(untimed, 2 * START_MS) < 0


def test_a_live_entry_contains_session_kind_and_size() -> None:
    history = History()
    reading = history.reading(50_000)
    entry = live_entry(view_of(reading), reading)
    assert list(entry) == [field.name for field in fields(LiveEntry)]
    assert LiveEntry(**entry) == LiveEntry(
        record_id=reading.id,
        kind="context_reading",
        session_id="s-1",
        chain="main",
        time_ms=reading.time_ms,
        sequence=1,
        state="measured",
        used_tokens=50_000,
        used_percent=25.0,
    )
    info = history.info()
    entry = live_entry(view_of(info), info)
    assert (entry["state"], entry["used_tokens"]) == ("unknown", None)
