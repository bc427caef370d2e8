"""The aggregates: what is counted, in which fields, and what leaves them."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Outcome, TriggerReason, UserTurn
from schemas.topics import DAY_MS
from schemas.views import (
    BUCKET_EDGES,
    FEW_VALUES,
    HOURS_KEPT_MS,
    MAX_MODELS,
    Aggregates,
    Distribution,
    PartitionView,
    TriggerAggregates,
    bucket,
    few_values,
)
from streams.codec.aggregates import added
from streams.core.projection.statistics import (
    CLOCK_AHEAD_MS,
    advance,
    counted,
    enters_day,
    fields,
    hour_field,
    hours_too_old,
    models_capped,
)
from tests.core.history import START_MS, History, view_of

NOTHING = Aggregates()


def test_a_boundary_is_counted_by_trigger_with_size_and_duration() -> None:
    history = History()
    total = counted(NOTHING, history.boundary("manual", pre=160_000, duration_ms=30_000), None)
    total = counted(total, history.boundary("manual", pre=200_000, duration_ms=None), None)
    total = counted(total, history.boundary("auto", pre=None, duration_ms=90_000_000), None)
    total = counted(total, history.boundary(None, pre=12_000_000, duration_ms=0), None)
    assert total == Aggregates(
        manual=TriggerAggregates(
            succeeded=2,
            duration_ms=one(30_000, "30182"),
            pre_tokens=Distribution(
                count=2,
                sum=360_000,
                min=160_000,
                max=200_000,
                buckets={"161916": 1, "205839": 1},
                values=(160_000, 200_000),
            ),
        ),
        automatic=TriggerAggregates(succeeded=1, duration_ms=one(90_000_000, "90025326")),
        unknown_trigger=TriggerAggregates(
            succeeded=1, duration_ms=one(0, "0"), pre_tokens=one(12_000_000, "12180365")
        ),
        messages=160,
    )


def one(value: int, edge: str) -> Distribution:
    """Return the distribution of one value."""
    return Distribution(
        count=1, sum=value, min=value, max=value, buckets={edge: 1}, values=(value,)
    )


@given(st.lists(st.integers(0, 10**9), max_size=FEW_VALUES + 5), st.integers(0, 25))
def test_few_values_are_stored_in_whatever_order_and_parts(values: list[int], cut: int) -> None:
    def folded(some: list[int]) -> Aggregates:
        history, total = History(), NOTHING
        for value in some:
            total = counted(total, history.boundary("auto", pre=value, duration_ms=None), None)
        return total

    whole = folded(values).automatic.pre_tokens
    wanted = tuple(sorted(values)) if 0 < len(values) <= FEW_VALUES else None
    assert whole.values == wanted
    assert folded(values[::-1]).automatic.pre_tokens.values == wanted
    parts = added(Aggregates, [folded(values[:cut]), folded(values[cut:])])
    assert parts.automatic.pre_tokens == whole


def test_a_completion_is_counted_where_both_sizes_are_known() -> None:
    history = History()
    boundary = history.boundary(pre=50_000)
    total = counted(NOTHING, history.complete(boundary, after=60_000), None)
    assert (total.measured, total.measured_before_tokens, total.saved_tokens) == (
        1,
        50_000,
        -10_000,
    )
    assert counted(total, history.complete(boundary, after=None), None) == total


@pytest.mark.parametrize("outcome", ["failed", "blocked", "unknown"])
@pytest.mark.parametrize(
    ("reason", "name"),
    [("manual", "manual"), ("threshold_exceeded", "automatic"), (None, "unknown_trigger")],
)
def test_a_failure_is_counted_by_its_attempts_trigger(
    outcome: Outcome, reason: TriggerReason | None, name: str
) -> None:
    history = History()
    view = view_of(history.start(reason))
    total = counted(NOTHING, history.failed(outcome), view)
    of_trigger = getattr(total, name)
    assert getattr(of_trigger, outcome) == 1
    assert total != NOTHING
    assert counted(total, history.failed(outcome), view) != total


def test_a_failure_without_an_attempt_has_no_known_trigger() -> None:
    total = counted(NOTHING, History().failed(), None)
    assert total.unknown_trigger.failed == 1


def test_other_records_are_not_counted() -> None:
    history = History()
    reading, boundary = history.reading(5), history.boundary()
    assert counted(NOTHING, reading, None) is NOTHING
    assert not fields(reading, None, None)
    assert not fields(history.limits(), None, None)
    assert fields(boundary, None, None)
    assert fields(history.complete(boundary), None, None)
    assert fields(history.failed(), None, None)


def test_counts_are_by_model_and_by_hour() -> None:
    history = History()
    assert fields(history.boundary(at=0), None, None) == (
        "total",
        "model:claude-sonnet-5",
        "hour:2026-11-01T12",
    )
    assert fields(history.boundary(at=None, model=None), None, START_MS) == (
        "total",
        "model",
        "hour:unknown",
    )


def test_a_timing_is_counted_once_under_its_boundarys_hour_model_and_trigger() -> None:
    history = History()
    boundary = history.boundary("auto", duration_ms=None, model="gpt-5", at=0)
    complete, timing = (
        history.complete(boundary),
        history.timing(boundary, 3_069, at=7_200, model="other"),
    )
    view = view_of(boundary, complete)
    assert fields(timing, view, None) == ("total", "model:gpt-5", "hour:2026-11-01T12")
    total = counted(counted(NOTHING, boundary, None), timing, view)
    assert total.automatic.succeeded == 1
    assert total.automatic.duration_ms == one(3_069, bucket(3_069))
    again = history.timing(boundary)
    assert fields(again, view_of(boundary, complete, timing), None) == ()
    assert fields(again, view_of(history.reading(1)), None) == ()
    assert fields(again, None, None) == ()
    assert counted(total, again, None) is total


def test_a_timing_in_an_hour_that_left_begins_none() -> None:
    history = History()
    boundary = history.boundary(duration_ms=None, at=0)
    newest_ms = START_MS + HOURS_KEPT_MS + DAY_MS
    timing = history.timing(boundary, at=1)
    assert fields(timing, view_of(boundary), newest_ms) == ("total", "model:claude-sonnet-5")


def test_the_duration_of_a_precomputed_summary_is_counted_nowhere() -> None:
    total = counted(
        NOTHING, History().boundary(duration_ms=90_000, duration_source="precomputed"), None
    )
    assert total.automatic.succeeded == 1
    assert total.automatic.pre_tokens.count == 1
    assert total.automatic.duration_ms == Distribution()


def test_hours_leave_400_days_before_the_newest_day() -> None:
    history = History()
    known = ["total", "model:a", "hour:2025-09-27T23", "hour:2025-09-28T00", "hour:unknown"]
    newest_ms = START_MS + DAY_MS
    assert hours_too_old(known, newest_ms) == ["hour:2025-09-27T23"]
    assert hours_too_old(known, None) == []
    assert hours_too_old(known, 5) == []
    late = history.boundary(at=-HOURS_KEPT_MS / 1000)
    assert len(fields(late, None, START_MS)) == 3
    assert len(fields(late, None, newest_ms)) == 2


def test_the_partition_knows_its_latest_times() -> None:
    history = History()
    first = advance(PartitionView(), history.reading(1, at=50), START_MS)
    assert first == PartitionView(records=1, newest_ms=START_MS + 50_000, logged_ms=START_MS)
    second = advance(first, history.reading(1, at=20), START_MS - 5)
    assert second == replace(first, records=2)
    assert advance(second, history.reading(1, at=None), None) == replace(first, records=3)
    assert advance(PartitionView(), history.reading(1, at=9), None).newest_ms == START_MS + 9_000


def test_a_clock_that_is_far_ahead_ages_nothing() -> None:
    history = History()
    ahead_s = CLOCK_AHEAD_MS / 1000
    first = advance(PartitionView(), history.reading(1, at=ahead_s), START_MS)
    assert first.newest_ms == START_MS + CLOCK_AHEAD_MS
    assert advance(first, history.reading(1, at=ahead_s + 1), START_MS).newest_ms == first.newest_ms


def test_sessions_begin_to_leave_on_a_new_day_of_the_log() -> None:
    history = History()
    view = PartitionView()
    for logged_ms, leaving in [
        (START_MS, False),
        (START_MS + 11 * 3_600_000, False),
        (START_MS + 12 * 3_600_000, True),
        (START_MS + 13 * 3_600_000, True),
    ]:
        view = advance(view, history.reading(1), logged_ms)
        assert view.leaving == leaving
    assert not advance(replace(view, leaving=False), history.reading(1), START_MS).leaving
    assert not enters_day(None, START_MS)
    assert not enters_day(START_MS, None)


def test_hours_have_names_that_sort() -> None:
    assert hour_field(None) > hour_field(START_MS) > hour_field(START_MS - 1)


def test_values_of_a_bucket_differ_by_at_most_51_to_49() -> None:
    assert BUCKET_EDGES[:51] == (*range(50), 51)
    for below, upper in pairwise(BUCKET_EDGES):
        assert upper == below + 1 or upper * 49 <= below * 51
        assert bucket(below + 1) == bucket(upper) == str(upper)
    assert bucket(0) == "0"
    assert bucket(3 * (2**53 - 1)) == "27097144750660682"  # a size is the sum of three counts
    assert bucket(10**30) == bucket(BUCKET_EDGES[-1])


def test_edges_are_the_same_on_every_machine() -> None:
    names = [bucket(10**power) for power in (3, 5, 7, 15)]
    assert names == ["1020", "100190", "10379203", "1019172398829064"]


def test_a_model_too_many_is_counted_as_other() -> None:
    names = fields(History().boundary(at=0, model="new"), None, None)
    known = {f"model:{number}" for number in range(MAX_MODELS - 1)}
    assert models_capped(names, known) == names
    known.add("model:last")
    assert models_capped(names, known) == ("total", "model:other", "hour:2026-11-01T12")
    assert models_capped(names, {*known, "model:new"}) == names
    unknown = fields(History().boundary(model=None), None, None)
    assert models_capped(unknown, known) == unknown


def test_few_values_are_known_of_several_distributions_together() -> None:
    few = Distribution(count=2, values=(3, 1))
    assert few_values([few, Distribution(), Distribution(count=1, values=(2,))]) == (1, 2, 3)
    assert few_values([few, Distribution(count=1)]) is None
    assert few_values([few, Distribution(count=FEW_VALUES, values=(0,) * FEW_VALUES)]) is None
    assert few_values([]) is None


def test_what_is_measured_of_content_only_moves_a_view_on() -> None:
    history = History()
    reading = history.reading(50_000)
    turn = history.record(UserTurn(**history.common(), characters=12, tokens_estimated=3))
    view, before = view_of(reading, turn), view_of(reading)
    assert (view.chains, view.compactions, view.attempt) == (
        before.chains,
        before.compactions,
        before.attempt,
    )
    assert view.sequence == turn.sequence
    assert view.position > before.position
