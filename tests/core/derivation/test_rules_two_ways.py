"""R34: a session that is published, and whose runtime exports telemetry, counts once."""

from collections.abc import Callable
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
    Record,
)
from streams.core.derivation.stored_state import pack, unpack
from streams.core.projection.project import project
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.otlp.telemetry_item import TelemetryItem
from tests.core.given import (
    SESSION,
    START_MS,
    Body,
    Given,
    assistant,
    boundary,
    compacting,
    every,
    failed,
    line,
    one,
    record_of,
    rollout,
    succeeded,
    token_count,
    user,
)

Shape = tuple[Callable[..., Body], Callable[..., list[Body]]]


def exported(name: str, at: float, **attributes: Any) -> list[Body]:
    """Return the messages that a log record of a runtime becomes."""
    event = {"session.id": SESSION, "conversation.id": SESSION, **attributes}
    digest = f"{name} {at} {sorted(attributes.items())}"
    moment = START_MS + int(at * 1_000)
    items = [TelemetryItem((name,), event, moment, lambda: digest)]
    return list(messages_of(items, WithoutMessage()))


def claude_line(number: int, read: int, at: float, creation: int = 500) -> Body:
    """Return a response as the transcript has it."""
    response = assistant(f"msg_{number}", 4, creation, read, output=9)
    return line(response, at, requestId=f"req_{number}")


def claude_request(number: int, read: int, at: float, creation: int = 500) -> list[Body]:
    """Return the same response as Claude Code exports it."""
    return exported(
        "claude_code.api_request",
        at,
        query_source="repl_main_thread",
        model="claude-sonnet-5",
        input_tokens=4,
        cache_creation_tokens=creation,
        cache_read_tokens=read,
        output_tokens=9,
        request_id=f"req_{number}",
    )


def codex_line(number: int, read: int, at: float) -> Body:
    """Return a rollout's `token_count`."""
    last = {"input_tokens": read + 504, "cached_input_tokens": read, "output_tokens": 9}
    return token_count(last, number * 1_000_000 + read, at=at)


def codex_event(_number: int, read: int, at: float) -> list[Body]:
    """Return the event that Codex exports of the same response; it names no response."""
    return exported(
        "codex.sse_event",
        at,
        **{"event.kind": "response.completed", "model": "gpt-5.5"},
        input_token_count=read + 504,
        cached_token_count=read,
        output_token_count=9,
    )


def gemini_line(number: int, read: int, at: float) -> Body:
    """Return a message of a chat that Gemini CLI stores."""
    tokens = {"input": read + 504, "output": 9, "cached": read, "total": read + 513}
    moment = rollout("", {}, at)["timestamp"]
    own = {"id": f"g{number}", "timestamp": moment, "type": "gemini", "content": "Done."}
    return {**own, "model": "gemini-3-pro", "tokens": tokens}


def gemini_event(_number: int, read: int, at: float) -> list[Body]:
    """Return the event that Gemini CLI exports of the same response."""
    return exported(
        "gemini_cli.api_response",
        at,
        role="main",
        model="gemini-3-pro",
        input_token_count=read + 504,
        cached_content_token_count=read,
        output_token_count=9,
    )


SHAPES: dict[str, Shape] = {
    "claude-code": (claude_line, claude_request),
    "codex": (codex_line, codex_event),
    "gemini": (gemini_line, gemini_event),
}
LATER = 0.2
"""Seconds by which an exported event is later than the line."""


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> Shape:
    """A runtime's lines, and its events."""
    return SHAPES[request.param]


def taken(*bodies: Body) -> Given:
    """Return a session that took messages which name no session themselves."""
    given = Given()
    given.take(*bodies, hint=SESSION)
    return given


def counted(records: list[Record]) -> list[int]:
    """Return the sizes that are in totals."""
    return [each.used_tokens for each in every(records, ContextReading) if not each.inherited]


def shown(records: list[Record]) -> int | None:
    """Return the size that the session's view has at the end."""
    view = None
    for offset, record in enumerate(records):
        view = project(view, record, offset)
    assert view is not None
    return view.chains["main"].used_tokens


READS = (20_000, 21_000, 22_000)


def test_r34_a_response_counts_once_when_its_telemetry_comes_later(shape: Shape) -> None:
    own, export = shape
    bodies = []
    for number, read in enumerate(READS):
        bodies += [own(number, read, number * 60)]
        bodies += export(number, read, number * 60 + LATER)
    records = taken(*bodies).records
    assert counted(records) == [20_504, 21_504, 22_504]
    assert [each.messages for each in every(records, ContextReading)] == [1, 2, 3]


def test_r34_a_response_counts_once_when_its_telemetry_comes_first(shape: Shape) -> None:
    own, export = shape
    bodies = []
    for number, read in enumerate(READS):
        bodies += export(number, read, number * 60 + LATER)
        bodies += [own(number, read, number * 60)]
    records = taken(*bodies).records
    assert counted(records) == [20_504, 21_504, 22_504]
    assert [each.messages for each in every(records, ContextReading)] == [1, 2, 3]


def test_r34_telemetry_that_was_held_back_for_long_counts_nothing(shape: Shape) -> None:
    own, export = shape
    many = [(number, 20_000 + number, number * 60) for number in range(80)]
    late = [body for number, read, at in many for body in export(number, read, at + LATER)]
    records = taken(*(own(*each) for each in many), *late).records
    assert counted(records) == [20_504 + number for number in range(80)]
    assert shown(records) == 20_583


def test_r34_a_transcript_that_is_published_after_its_telemetry_adds_only_what_that_lacks(
    shape: Shape,
) -> None:
    own, export = shape
    many = [(number, 20_000 + number, number * 60) for number in range(80)]
    # Telemetry was turned on with the thirtieth response.
    early = [body for number, read, at in many[30:] for body in export(number, read, at + LATER)]
    records = taken(*early, *(own(*each) for each in many)).records
    assert sorted(counted(records)) == [20_504 + number for number in range(80)]
    assert shown(records) == 20_583, "the latest size, though older ones came after it"


def test_r34_where_one_way_ends_the_other_one_counts(shape: Shape) -> None:
    own, export = shape
    bodies = [own(1, 20_000, 0), *export(1, 20_000, LATER), *export(2, 21_000, 60)]
    bodies += [own(3, 22_000, 120), own(4, 23_000, 180)]
    assert counted(taken(*bodies).records) == [20_504, 21_504, 22_504, 23_504]


def test_r34_equal_calls_of_a_session_with_telemetry_alone_all_count(shape: Shape) -> None:
    _, export = shape
    bodies = [body for number in range(3) for body in export(number, 20_000, number)]
    records = taken(*bodies).records
    assert every(records, ContextReading)[-1].messages == 3


def test_r34_a_request_is_known_by_its_id_where_its_counts_differ() -> None:
    # A server's tool searched: the export has the sum of what the API counted.
    bodies = [claude_line(1, 20_000, 0), *claude_request(1, 20_000, LATER)]
    bodies += [claude_line(2, 21_000, 60), *claude_request(2, 50_000, 60 + LATER)]
    assert counted(taken(*bodies).records) == [20_504, 21_504]
    bodies = [*claude_request(2, 50_000, 60 + LATER), claude_line(2, 21_000, 60)]
    records = taken(*bodies).records
    assert counted(records) == [50_504]
    assert shown(records) == 21_504, "the session's own size is the better one"


def test_r34_repeating_everything_gives_the_same_records(shape: Shape) -> None:
    own, export = shape
    bodies = [*export(1, 20_000, LATER), own(1, 20_000, 0), own(2, 21_000, 60)]
    bodies += export(2, 21_000, 60 + LATER)
    given = taken(*bodies)
    assert given.take(*bodies, hint=SESSION) == []


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
    assert counted(taken(*claude_request(1, 22_000, 1), late).records) == [22_504, 22_504]
