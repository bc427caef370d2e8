"""Aggregates added up: sums, means, percentiles, and how often they are read."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.clock import SystemClock
from schemas.views import Aggregates, Distribution, TriggerAggregates, bucket
from streams import codec
from streams.codec import view_codec
from streams.codec.aggregates import added
from streams.ports import ProjectorHeartbeat, ViewPosition
from streams.serve.api.totals import Fields, Totals, added_up, percentile, shown
from streams.serve.views.snapshot import Snapshot


def _manual(count: int, *durations: int) -> Aggregates:
    spread = Distribution(
        count=len(durations),
        sum=sum(durations),
        min=min(durations, default=None),
        max=max(durations, default=None),
        buckets={str(edge): durations.count(edge) for edge in sorted(set(durations))},
    )
    return Aggregates(
        manual=TriggerAggregates(succeeded=count, duration_ms=spread), saved_tokens=-5
    )


def test_partitions_are_added_up() -> None:
    total = added(Aggregates, [_manual(2, 1_000, 2_000), _manual(1, 2_000), Aggregates()])
    assert total.manual.succeeded == 3
    assert total.saved_tokens == -10
    assert total.manual.duration_ms == Distribution(
        count=3, sum=5_000, min=1_000, max=2_000, buckets={"1000": 1, "2000": 2}
    )
    assert added(Aggregates, []) == Aggregates()


def _tokens(*values: int) -> Distribution:
    names = [bucket(value) for value in values]
    return Distribution(
        count=len(values),
        sum=sum(values),
        min=min(values, default=None),
        max=max(values, default=None),
        buckets={name: names.count(name) for name in names},
    )


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        ((), (None, None, None)),
        ((950,), (950, 950, 950)),
        ((165_100, 186_000), (175_550, 186_000, 186_000)),
        ((90_000, 161_000, 500_000), (158_679, 500_000, 500_000)),
        ((0, 7, 9), (7, 9, 9)),
    ],
)
def test_a_percentile_is_one_figure(values: Sequence[int], figures: Sequence[int | None]) -> None:
    tokens = _tokens(*values)
    assert tuple(percentile(tokens, percent) for percent in (50, 95, 99)) == figures


def test_percentiles_of_few_values_are_exact() -> None:
    few = replace(_tokens(90_000, 161_000, 500_000), values=(90_000, 161_000, 500_000))
    assert percentile(few, 50) == 161_000
    for tokens, exact in (
        (few, [50, 95, 99]),
        (replace(few, values=None), [95, 99]),  # the largest one is known
        (_tokens(1, 2), [50, 95, 99]),
        (_tokens(*range(1_000, 1_030)), [99]),
        (_tokens(), []),
    ):
        counts = Aggregates(manual=TriggerAggregates(pre_tokens=tokens))
        manual: Any = shown(counts)["manual"]
        assert manual["pre_tokens"]["exact"] == exact


_SIZES = st.integers(0, 12_000_000) | st.integers(0, 2**54) | st.integers(60_000, 60_900)


@given(st.lists(_SIZES, min_size=1, max_size=60), st.sampled_from((50, 95, 99)))
def test_a_percentile_is_off_by_2_percent_at_most(values: list[int], percent: int) -> None:
    figure = percentile(_tokens(*values), percent)
    assert figure is not None
    ordered = sorted(values)
    whole, rest = divmod(len(values) * percent, 100)
    upper = ordered[min(whole, len(values) - 1)]
    exact = upper if rest else (ordered[max(whole, 1) - 1] + upper) / 2
    if percent == 50:
        assert exact == median(values)
    assert exact * 0.98 - 1 < figure <= exact * 1.02


def test_sizes_of_all_triggers_are_added_up_and_have_a_mean() -> None:
    both = Aggregates(
        manual=TriggerAggregates(succeeded=2, pre_tokens=_tokens(40_000, 60_001)),
        automatic=TriggerAggregates(succeeded=1, pre_tokens=_tokens(167_000)),
    )
    document: Any = shown(both)
    assert (document["manual"]["pre_tokens"]["mean"], document["manual"]["pre_tokens"]["p50"]) == (
        50_000.5,
        50_000,
    )
    assert document["automatic"]["pre_tokens"]["mean"] == 167_000
    assert document["unknown_trigger"]["pre_tokens"]["mean"] is None
    assert (document["pre_tokens"]["count"], document["pre_tokens"]["mean"]) == (3, 89_000.3)
    assert (document["pre_tokens"]["min"], document["pre_tokens"]["max"]) == (40_000, 167_000)


def test_totals_are_grouped_by_hour_or_model() -> None:
    fields = {
        b"total": view_codec.encode(_manual(3)),
        b"hour:2026-11-01T11": view_codec.encode(_manual(1)),
        b"hour:2026-11-01T12": view_codec.encode(_manual(2)),
        b"hour:unknown": view_codec.encode(_manual(4)),
        b"model:a": view_codec.encode(_manual(1)),
        b"model": view_codec.encode(_manual(2)),
        b"partition": b"not read",
    }
    hours = added_up([fields, fields], "hour")
    assert list(_by(hours)) == ["2026-11-01T11", "2026-11-01T12", "unknown"]
    assert _by(hours)["2026-11-01T12"]["manual"]["succeeded"] == 4
    since = _by(added_up([fields], "hour", "2026-11-01T12"))
    assert list(since) == ["2026-11-01T12", "unknown"]
    assert list(_by(added_up([fields], "model"))) == ["a", "unknown"]


def _by(found: object) -> dict[str, dict[str, dict[str, int]]]:
    by: dict[str, dict[str, dict[str, int]]] = codec.loads(codec.dumps(found))["by"]
    return by


class Later(SystemClock):
    """A clock that is set by hand."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def _snapshot(offset: int, silent_ms: int = 0) -> Snapshot:
    heartbeat = ProjectorHeartbeat(1_000, offset, 0)
    return Snapshot(
        1, (ViewPosition(offset, 0, 1, caught_up=True, heartbeat=heartbeat),), 1_000 + silent_ms
    )


async def test_slow_totals_are_read_rarely_and_served_as_of_the_last_read() -> None:
    clock, reads = Later(), []

    async def read(snapshot: Snapshot) -> Fields:
        reads.append(snapshot.positions[0].offset)
        clock.now_s += 0.2
        return [{b"total": view_codec.encode(_manual(len(reads)))}]

    totals = Totals(read, clock)
    first = totals.current(_snapshot(1))
    one = await totals.of(first, "hour", None)
    clock.now_s += 1.9
    # The same snapshot, so the same tag: old figures are not taken for the new snapshot's.
    assert totals.current(_snapshot(2)) is first
    assert await totals.of(first, "hour", None) is one
    assert reads == [1]
    clock.now_s += 0.2
    second = totals.current(_snapshot(2))
    assert second is not first
    assert await totals.of(second, "hour", None) != one
    assert reads == [1, 2]
    # That it became stale is reported at once.
    stale = _snapshot(2, silent_ms=60_000)
    assert totals.current(stale) is stale


async def test_hours_that_change_or_leave_between_two_reads_are_those_of_the_last_read() -> None:
    one, two, three = (view_codec.encode(_manual(count)) for count in (1, 2, 3))
    stored: list[dict[bytes, bytes]] = [
        {b"total": two, b"hour:2026-11-01T11": one, b"hour:2026-11-01T12": one},
        {b"total": three, b"hour:2026-11-01T12": two, b"hour:2026-11-01T13": one},
        {b"total": one, b"hour:2026-11-01T13": one},
    ]
    clock = Later()

    async def read(snapshot: Snapshot) -> Fields:
        return [stored[snapshot.positions[0].offset]]

    totals = Totals(read, clock)
    for offset, fields in enumerate(stored):
        aggregates = await totals.of(_snapshot(offset), "hour", None)
        assert codec.loads(codec.dumps(aggregates)) == codec.loads(
            codec.dumps(added_up([fields], "hour"))
        )
