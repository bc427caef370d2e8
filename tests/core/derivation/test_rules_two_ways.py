"""R34: a session that is published, and whose runtime exports telemetry, counts once."""

import pytest

from schemas.records import (
    ContextReading,
)
from streams.core.derivation import one_for_one
from streams.core.derivation.known_causes import NOTHING_KNOWN
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.otlp.telemetry_item import TelemetryItem
from tests.core.derivation.two_ways_kit import (
    LATER,
    SHAPES,
    Shape,
    claude_line,
    claude_request,
    counted,
    shown,
    taken,
)
from tests.core.given import (
    SESSION,
    START_MS,
    Body,
    assistant,
    every,
    line,
    message_delta,
    moment,
    one,
    stream_event,
)


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> Shape:
    """A runtime's lines, and its events."""
    return SHAPES[request.param]


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
    late = [body for number, read, second in many for body in export(number, read, second + LATER)]
    records = taken(*(own(*each) for each in many), *late).records
    assert counted(records) == [20_504 + number for number in range(80)]
    assert shown(records) == 20_583


def test_r34_a_transcript_that_is_published_after_its_telemetry_adds_only_what_that_lacks(
    shape: Shape,
) -> None:
    own, export = shape
    many = [(number, 20_000 + number, number * 60) for number in range(80)]
    # Telemetry was turned on with the thirtieth response.
    early = [
        body for number, read, second in many[30:] for body in export(number, read, second + LATER)
    ]
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


@pytest.mark.parametrize("telemetry_first", [True, False])
def test_r34_requests_of_the_same_size_are_two_calls(*, telemetry_first: bool) -> None:
    own, event = [claude_line(1, 1_000, 10)], claude_request(2, 1_000, 12)
    both = [*event, *own] if telemetry_first else [*own, *event]
    bodies = [claude_line(0, 900, 5), *claude_request(0, 900, 5.2), *both]
    assert counted(taken(*bodies).records) == [1_404, 1_504, 1_504]
    # Each one's own report of the same, later, is the same.
    again = [*bodies, *claude_request(1, 1_000, 10.2), claude_line(2, 1_000, 11.8)]
    assert counted(taken(*again).records) == [1_404, 1_504, 1_504]


def test_r34_an_event_answers_for_one_of_several_equal_responses(shape: Shape) -> None:
    own, export = shape
    bodies = [*export(1, 20_000, 10 + LATER), own(1, 20_000, 10), own(2, 20_000, 12)]
    assert counted(taken(*bodies).records) == [20_504, 20_504]
    late = [*bodies, *export(2, 20_000, 12 + LATER), *export(3, 20_000, 14)]
    assert counted(taken(*late).records) == [20_504, 20_504, 20_504]


def test_r34_a_response_without_a_request_is_any_equal_one_once() -> None:
    nameless = [{**claude_line(number, 20_000, number), "requestId": None} for number in (1, 2)]
    records = taken(*claude_request(7, 20_000, 1.2), *nameless).records
    assert counted(records) == [20_504, 20_504]


def test_r34_telemetry_that_names_the_message_is_the_same_where_its_counts_differ() -> None:
    def span(read: int, digest: str = "") -> list[Body]:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": SESSION,
            "gen_ai.usage.input_tokens": read,
            "gen_ai.response.id": "msg_1",
        }
        item = TelemetryItem((), attributes, START_MS + 200, lambda: f"span {read} {digest}")
        return list(messages_of([item], WithoutMessage()))

    own = claude_line(1, 20_000, 0)
    assert counted(taken(own, *span(30_000), *span(30_001)).records) == [20_504]
    records = taken(*span(30_000), *span(30_000, "of another library"), own).records
    assert (counted(records), shown(records)) == ([30_000], 20_504)
    assert every(records, ContextReading)[-1].messages == 1


def test_r34_the_size_is_that_of_the_newest_response_after_each_message(shape: Shape) -> None:
    own, export = shape
    many = [(number, 20_000 + number, number * 60) for number in range(6)]
    records = taken(*(body for each in many[3:] for body in export(*each))).records
    given = taken(*(body for each in many[3:] for body in export(*each)))
    for each in many:
        records += given.take(own(*each), hint=SESSION)
        assert shown(records) == 20_509
    late = [each.used_tokens for each in every(records, ContextReading) if each.late]
    assert late == [20_504, 20_505, 20_506]
    records += given.take(own(6, 20_006, 360), hint=SESSION)
    assert shown(records) == 20_510


def test_r34_a_further_line_of_a_response_that_telemetry_reported_is_none_either() -> None:
    given = taken(*claude_request(1, 20_000, 1), *claude_request(2, 21_000, 60))
    lines = claude_line(1, 20_000, 0.8), claude_line(1, 20_100, 0.9)
    assert not every(given.take(*lines, hint=SESSION), ContextReading)
    assert given.chain().total == 2


def test_r34_more_equal_events_than_a_minute_has_are_not_remembered() -> None:
    known, answered = NOTHING_KNOWN, 0
    for _ in range(one_for_one.MOST + 1):
        known = one_for_one.put(known, "minute")
    while (after := one_for_one.take(known, ["none", "minute"])) is not None:
        known, answered = after, answered + 1
    assert answered == one_for_one.MOST


def test_r34_telemetry_out_of_its_order_shows_no_former_size() -> None:
    newer, older = claude_request(2, 21_000, 60), claude_request(1, 190_000, 10)
    records = taken(*newer, *older).records
    assert (counted(records), shown(records)) == ([21_504, 190_504], 21_504)
    assert not [record for record in records[-1:] if record.kind == "context_warning"]


def test_r34_a_former_response_changes_neither_model_nor_window() -> None:
    event = claude_request(2, 21_000, 60)
    other = assistant("msg_1", 4, 500, 20_000, model="claude-3-haiku")
    given = taken(*event, line(other, 10, requestId="req_1"))
    first, late = every(given.records, ContextReading)
    assert (first.model, late.model) == ("claude-sonnet-5", "claude-3-haiku")
    assert given.chain().model == "claude-sonnet-5"
    # Nor is its output that of the response before the next one.
    after = given.take(*claude_request(3, 22_000, 90), hint=SESSION)
    assert one(after, ContextReading).previous_output_tokens is None


def test_r34_a_response_whose_size_comes_with_its_end_counts_once() -> None:
    counts = {"input_tokens": 4, "cache_creation_input_tokens": 500}
    begin = stream_event({"type": "message_start", "message": {"id": "msg_1"}}, at=1)
    delta = message_delta(9, usage={**counts, "cache_read_input_tokens": 20_000})
    end = {**delta, "timestamp": moment(2)}
    event = claude_request(1, 20_000, 2.2)
    for bodies in ([*event, begin, end], [begin, *event, end], [begin, end, *event]):
        given = taken(*bodies)
        assert counted(given.records) == [20_504]
        assert given.chain().total == 1
        after = given.take(*claude_request(2, 21_000, 60), hint=SESSION)
        assert one(after, ContextReading).messages == 2
