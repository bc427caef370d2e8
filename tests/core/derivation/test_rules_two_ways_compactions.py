"""R34: compactions of a session that is published, and whose runtime exports telemetry."""

from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    CompactionTiming,
    ContextReading,
)
from streams.core.derivation.stored_state import pack, unpack
from tests.core.derivation.two_ways_kit import (
    claude_line,
    claude_request,
    codex_event,
    codex_line,
    counted,
    exported,
    shown,
    taken,
)
from tests.core.given import (
    SESSION,
    START_MS,
    Body,
    boundary,
    compacting,
    every,
    failed,
    line,
    one,
    record_of,
    rollout,
    succeeded,
    user,
)
from tests.core.history import view_of

METADATA = {"trigger": "auto", "pre_tokens": 160_000, "post_tokens": 9_000}


def compaction(at: float, **more: Any) -> list[Body]:
    """Return Claude Code's event of a compaction."""
    return exported("claude_code.compaction", at, success="true", **METADATA, **more)


def test_r34_a_compaction_that_all_ways_report_is_one_with_what_each_of_them_says() -> None:
    hook = [compacting(at=70), succeeded(at=110)]
    own = [line(boundary(METADATA), 100), line(user("Sum.", isCompactSummary=True), 100)]
    before, after = claude_line(1, 160_000, 60), claude_line(2, 9_000, 120)
    late = [*claude_request(1, 160_000, 60.2), *compaction(100.3, duration_ms=29_000)]
    orders = [
        (before, hook[0], *own, *late, hook[1], after, *claude_request(2, 9_000, 120.2)),
        (before, hook[0], *own, hook[1], after, *late, *claude_request(2, 9_000, 120.2)),
        # The publisher is slower than the exporter.
        (late[0], late[1], hook[0], *late[2:], before, *own, hook[1], after),
        (late[0], hook[0], *late[1:], *claude_request(2, 9_000, 120.2), hook[1], before, *own),
    ]
    for bodies in orders:
        records = taken(*bodies).records
        assert len(every(records, CompactionStart)) == 1
        bound = one(records, CompactBoundary)
        assert (bound.trigger, bound.number, bound.pre_tokens) == ("auto", 1, 160_000)
        assert bound.duration_ms in (29_000, 30_000, 30_300)
        assert one(records, CompactionSummary).summary == "Sum."
        assert not every(records, CompactionFailed)
        complete = one(records, CompactionComplete)
        assert (complete.tokens_after, counted(records)) == (9_504, [160_504, 9_504])


def test_r34_telemetry_gives_a_compaction_the_duration_that_a_transcript_lacks() -> None:
    bodies = [claude_line(1, 160_000, 0), line(boundary(METADATA), 40)]
    records = taken(*bodies, *compaction(40.2, duration_ms=29_000)).records
    bound = record_of(records, CompactBoundary)
    timing = one(records, CompactionTiming)
    assert (timing.boundary_id, timing.duration_ms) == (bound.id, 29_000)


def test_r34_compactions_of_telemetry_alone_all_count() -> None:
    bodies = [*compaction(40), *claude_request(1, 9_000, 60), *compaction(400)]
    records = taken(*bodies).records
    assert [each.number for each in every(records, CompactBoundary)] == [1, 2]


def test_r34_starts_of_a_stream_that_is_published_after_its_telemetry_open_nothing() -> None:
    early = [*claude_request(1, 160_000, 1), *compaction(40), *claude_request(2, 9_000, 60)]
    own = [compacting(at=10), succeeded(at=40), boundary(METADATA, at=40)]
    given = taken(*early, *own)
    assert not every(given.records, CompactionStart)
    one(given.records, CompactBoundary)
    assert given.session().attempt.start is None


@pytest.mark.parametrize("telemetry_first", [True, False])
def test_r34_a_compaction_that_failed_is_one_failure(*, telemetry_first: bool) -> None:
    event = exported("claude_code.compaction", 40.2, success="false", error="API Error")
    own = [compacting(at=10), failed("API Error", at=40)]
    bodies = [*event, *own] if telemetry_first else [*own, *event]
    assert one(taken(*bodies).records, CompactionFailed).outcome == "failed"


@pytest.mark.parametrize("order", ["own own event", "event own own", "own event own"])
def test_r34_a_failure_of_telemetry_is_one_of_two(order: str) -> None:
    ways = {
        "own": [failed("API Error", at=40), failed("API Error", at=70)],
        "event": exported("claude_code.compaction", 40.2, success="false", error="API Error"),
    }
    bodies: list[Body] = []
    for way in order.split():
        bodies += ways[way] if way == "event" else [ways[way].pop(0)]
    assert len(every(taken(*bodies).records, CompactionFailed)) == 2


@pytest.mark.parametrize(
    "event",
    [
        exported("claude_code.compaction", 10, success="false", error="API Error"),
        exported("claude_code.compaction", 10, success="true"),
        exported("codex.conversation_starts", 10, model="gpt-5.5", context_window=272_000),
        claude_request(1, 20_000, 10),
    ],
)
def test_r34_telemetry_of_before_does_not_end_the_compaction_under_way(event: list[Body]) -> None:
    begin = 8 * 3_600
    given = taken(compacting(at=begin), *event, compacting(at=begin + 30))
    one(given.records, CompactionStart)
    assert given.session().attempt.start is not None
    assert view_of(*given.records).attempt is not None
    assert every(given.take(failed("API Error", at=begin + 40)), CompactionFailed)[-1].attempt_id


def test_r34_the_state_is_stored_and_read_back() -> None:
    given = taken(*claude_request(1, 160_000, 1), *compaction(40), claude_line(2, 9_000, 60))
    session = given.session()
    ways = session.chains["main"].ways
    assert ways is not None
    assert (ways.own_ms, len(ways.boundaries)) == (START_MS + 60_000, 1)
    stored = {name: part for name, part in pack(None, session).items() if part is not None}
    assert unpack(SESSION, stored) == session


def test_r34_an_own_response_of_before_a_compaction_measures_nothing_of_it() -> None:
    bodies = [*claude_request(1, 160_000, 1), *compaction(40), claude_line(7, 150_000, 20)]
    records = taken(*bodies).records
    assert counted(records) == [160_504, 150_504]
    assert not every(records, CompactionComplete)
    after = taken(*bodies, *claude_request(2, 9_000, 60)).records
    assert one(after, CompactionComplete).tokens_after == 9_504


def test_r34_a_compaction_far_from_the_one_of_telemetry_is_another() -> None:
    bodies = [*compaction(40), line(boundary(METADATA), 4_000)]
    records = taken(*bodies).records
    assert [each.number for each in every(records, CompactBoundary)] == [1, 2]


def test_r34_an_own_compaction_adds_its_summary_to_the_one_of_telemetry() -> None:
    records = taken(*compaction(40), rollout("compacted", {"message": "Sum."}, 40.1)).records
    summary = one(records, CompactionSummary)
    assert (summary.summary, summary.boundary_id) == (
        "Sum.",
        record_of(records, CompactBoundary).id,
    )


def test_r34_what_has_no_time_is_another_event() -> None:
    timeless = [{**event, "timestamp": None} for event in compaction(40)]
    records = taken(*timeless, line(boundary(METADATA), 40)).records
    assert len(every(records, CompactBoundary)) == 2
    late = {**claude_line(9, 22_000, 5), "timestamp": None, "requestId": None}
    event = [{**each, "timestamp": None} for each in claude_request(1, 22_000, 1)]
    nameless = {**claude_line(9, 22_000, 5), "requestId": None}
    assert counted(taken(*event, nameless).records) == [22_504, 22_504]
    assert counted(taken(*claude_request(1, 22_000, 1), late).records) == [22_504, 22_504]


def test_r34_a_compaction_that_comes_late_is_measured_by_its_own_responses() -> None:
    sizes = [(1, 20_000), (2, 100_000), (3, 9_000), (4, 15_000)]
    early = [
        body for number, read in sizes for body in codex_event(number, read, number * 60 + 0.2)
    ]
    own = [codex_line(number, read, number * 60) for number, read in sizes]
    given = taken(*early, *own[:2], rollout("compacted", {"message": "Sum."}, 150))
    bound = one(given.records, CompactBoundary)
    assert (bound.pre_tokens, bound.pre_tokens_source) == (100_504, "last_reading")
    assert (bound.messages_since_last, bound.messages_total) == (2, 2)
    assert shown(given.records) is None
    # Telemetry that comes now is of later.
    after = given.take(*codex_event(5, 21_000, 300.2), hint=SESSION)
    assert one(after, ContextReading).messages == 3
    assert not every(after, CompactionComplete)
    assert one(given.take(own[2], hint=SESSION), CompactionComplete).tokens_after == 9_504
    assert not given.take(own[3], hint=SESSION)


def test_r34_warnings_after_a_compaction_do_not_come_from_what_was_read_before_it() -> None:
    early = [*compaction(100), *claude_request(1, 5_000, 120)]
    before, after = claude_line(7, 190_000, 90), claude_line(9, 190_000, 400)
    records = taken(*early, before, line(boundary(METADATA), 100), after).records
    warnings = [record for record in records if record.kind == "context_warning"]
    reading = [record for record in records if record.kind == "context_reading"][-1]
    assert [record.sequence > reading.sequence for record in warnings] == [True]
