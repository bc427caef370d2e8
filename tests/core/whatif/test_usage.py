"""What the cache has of a request of another size, and what that costs."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.pricing import Price, Rates
from streams.core.whatif.costs import NO_TOTALS, RunTotals, totals_of
from streams.core.whatif.replay import GrowthPath, Kept, ReplayedCompaction, recorded_path, replay
from streams.core.whatif.turns import ChainLog
from streams.core.whatif.usage import CachedCalls, CallTokens, usages
from tests.core.whatif.whatif_kit import (
    MANUAL,
    MODEL,
    PREFIX,
    PRICE,
    RESET,
    compaction,
    facts_of,
    log_of,
    price_at,
)

LOG = log_of(100_000, 120_000, 159_000, compaction(161_000), 30_000, 60_000, 90_000)
CALLS = CachedCalls(LOG, facts_of(LOG), "as_recorded")
WARM = CachedCalls(LOG, facts_of(LOG), "warm")
COLD = CachedCalls(LOG, facts_of(LOG), "cold")


def replayed(log: ChainLog, trigger: int | None, left: int = 30_000) -> GrowthPath:
    return replay(log, [trigger] * len(log.between), lambda _at, _size: Kept(left))


def test_recorded_sizes_have_the_recorded_tokens() -> None:
    responses, summaries = usages(LOG, recorded_path(LOG), CALLS)
    assert [each.prompt for each in responses] == [turn.used for turn in LOG.turns]
    assert [(each.write_5m, each.read, each.output) for each in responses] == [
        (turn.creation, turn.read, turn.output) for turn in LOG.turns
    ]
    assert summaries == [CallTokens(0, 2_000, 0, 159_000, 2_000)]


def test_a_warm_response_reads_the_difference_from_the_cache() -> None:
    assert CALLS.response(1, 110_000, 90_000) == CallTokens(0, 20_000, 0, 90_000, 100)
    assert CALLS.response(1, 15_000, 1_000) == CallTokens(0, 15_000, 0, 0, 100)


def test_a_cold_response_writes_the_difference() -> None:
    cold = LOG.turns[1]._replace(creation=110_000, read=PREFIX)
    log = log_of(100_000, 120_000)
    log = type(log)(
        **{**{name: getattr(log, name) for name in log.__slots__}, "turns": (log.turns[0], cold)}
    )
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    assert calls.response(1, 130_000, 110_000) == CallTokens(0, 120_000, 0, PREFIX, 100)
    assert calls.response(1, 5_000, 4_000) == CallTokens(0, 0, 0, 5_000, 100)


def test_a_compaction_that_falls_away_leaves_the_cache_for_its_lifetime() -> None:
    assert CALLS.response(3, 161_000, 159_000) == CallTokens(0, 2_000, 0, 159_000, 100)
    slow = log_of(100_000, compaction(101_000), 30_000, seconds=400)
    calls = CachedCalls(slow, facts_of(slow), "as_recorded")
    assert calls.response(1, 101_000, 100_000) == CallTokens(0, 91_000, 0, PREFIX, 100)
    busy = log_of(100_000, compaction(101_000), 30_000, seconds=320)
    assert (
        CachedCalls(busy, facts_of(busy), "as_recorded").response(1, 101_000, 100_000).read
        == 100_000
    )


def test_after_another_compaction_only_the_prefix_is_in_the_cache() -> None:
    assert CALLS.response(1, 30_000, None) == CallTokens(0, 20_000, 0, PREFIX, 100)


def test_an_hour_that_was_paid_for_is_a_lifetime() -> None:
    log = log_of(100_000, compaction(101_000), 30_000, seconds=400)
    turns = tuple(turn._replace(creation_1h=turn.creation) for turn in log.turns)
    long = ChainLog("s", "main", None, {}, turns, log.between)
    calls = CachedCalls(long, facts_of(long), "as_recorded")
    assert calls.response(1, 101_000, 100_000) == CallTokens(0, 0, 1_000, 100_000, 100)
    assert calls.summary(recorded_path(long).compactions[0]) == CallTokens(
        0, 0, 1_000, 100_000, 2_000
    )
    quiet = turns[1]._replace(creation=0, creation_1h=0, input=20_000)
    other = ChainLog("s", "main", None, {}, (turns[0], quiet), log.between)
    own = CachedCalls(other, facts_of(other), "as_recorded").response(1, 101_000, 100_000)
    assert own == CallTokens(1_000, 0, 0, 100_000, 100)


def test_what_a_cache_that_is_always_or_never_warm_would_have() -> None:
    assert WARM.response(1, 120_000, 100_000) == CallTokens(0, 20_000, 0, 100_000, 100)
    assert WARM.response(3, 30_000, None).read == PREFIX
    assert COLD.response(1, 120_000, 100_000) == CallTokens(0, 120_000, 0, 0, 100)
    (own,) = recorded_path(LOG).compactions
    assert WARM.summary(own) == CallTokens(0, 2_000, 0, 159_000, 2_000)
    assert COLD.summary(own) == CallTokens(0, 161_000, 0, 0, 2_000)


def test_a_provider_that_reports_no_writes_has_fresh_tokens_instead() -> None:
    turns = tuple(turn._replace(creation=0, input=turn.creation) for turn in LOG.turns)
    log = ChainLog("s", "main", None, {}, turns, LOG.between)
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    assert calls.response(1, 110_000, 90_000) == CallTokens(20_000, 0, 0, 90_000, 100)
    assert calls.summary(recorded_path(log).compactions[0]) == CallTokens(
        2_000, 0, 0, 159_000, 2_000
    )
    uncached = tuple(turn._replace(read=0, input=turn.used) for turn in turns)
    without = ChainLog("s", "main", None, {}, uncached, LOG.between)
    calls = CachedCalls(without, facts_of(without), "as_recorded")
    assert calls.response(3, 161_000, 159_000) == CallTokens(161_000, 0, 0, 0, 100)
    assert calls.response(1, 130_000, 110_000) == CallTokens(130_000, 0, 0, 0, 100)
    assert calls.summary(recorded_path(without).compactions[0]) == CallTokens(
        161_000, 0, 0, 0, 2_000
    )


def test_a_reported_call_is_what_the_summary_took() -> None:
    own = compaction(161_000)._replace(summary_input=163_000, summary_read=158_000)
    log = log_of(100_000, 159_000, own, 30_000, 60_000)
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    assert calls.summary(recorded_path(log).compactions[0]) == CallTokens(
        0, 5_000, 0, 158_000, 2_000
    )
    written = own._replace(summary_written=4_000, summary_written_1h=1_000)
    log = log_of(100_000, 159_000, written, 30_000, 60_000)
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    reported = CallTokens(1_000, 3_000, 1_000, 158_000, 2_000)
    assert calls.summary(recorded_path(log).compactions[0]) == reported
    # Of another size it is not the call that was reported.
    other = recorded_path(log).compactions[0]._replace(previous=90_000, before=92_000)
    assert calls.summary(other) == CallTokens(0, 2_000, 0, 90_000, 2_000)


def test_a_summary_without_a_model_takes_nothing() -> None:
    compacted = Kept(30_000, has_call=False)
    assert CALLS.summary(ReplayedCompaction(3, 1, 2, 3, None, compacted)) == CallTokens()


def test_unknown_times_and_texts() -> None:
    own = compaction(None)._replace(summary_output=None, time_ms=400_000)
    log = log_of(100_000, own)
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    assert calls.summary(recorded_path(log).compactions[0]) == CallTokens(0, 100_100, 0, 0, 0)
    untimed = ChainLog("s", "main", None, {}, (log.turns[0]._replace(time_ms=None),), log.between)
    calls = CachedCalls(untimed, facts_of(untimed), "as_recorded")
    assert calls.summary(recorded_path(untimed).compactions[0]).read == 100_000
    first = log_of(compaction(90_000, MANUAL), 30_000)
    calls = CachedCalls(first, facts_of(first), "as_recorded")
    assert calls.summary(recorded_path(first).compactions[0]) == CallTokens(0, 90_000, 0, 0, 2_000)


def total(log: ChainLog, path: GrowthPath) -> RunTotals:
    sums = totals_of(log, path, facts_of(log), price_at, (50, 75))
    (own,) = sums.values()
    return own


def test_totals_count_tokens_money_time_and_warnings() -> None:
    own = total(LOG, recorded_path(LOG))
    assert (own.responses, own.compactions, own.wait_ms, own.untimed) == (6, 1, 30_000, 0)
    assert (own.warnings, own.overflows) == (2, 0)
    assert own.usage.prompt == sum(turn.used for turn in LOG.turns)
    writes = own.usage.write_5m + own.summaries.write_5m
    reads = own.usage.read + own.summaries.read
    outputs = own.usage.output + own.summaries.output
    expected = (writes * Decimal(5) + reads * Decimal("0.4") + outputs * Decimal(20)) / 1_000_000
    assert own.cost == (expected, True)
    assert own.warm.amount <= own.cost.amount < own.cold.amount


def test_a_window_that_is_passed_is_counted() -> None:
    assert total(LOG, replayed(LOG, None)).overflows == 1
    unknown = log_of(100_000, 150_000, window=None)
    assert total(unknown, recorded_path(unknown)).warnings == 0


def test_warnings_begin_again_after_a_reset() -> None:
    log = log_of(110_000, 120_000, RESET, 110_000)
    assert total(log, recorded_path(log)).warnings == 2


def test_an_unknown_price_is_not_zero() -> None:
    log = log_of(100_000, 110_000, model="unheard-of")
    own = total(log, recorded_path(log))
    assert own.usage.read > 0
    assert not own.cost.is_complete


def test_long_prompts_have_their_own_rates() -> None:
    double = Rates(Decimal(8), Decimal(40), Decimal(10), Decimal(16), Decimal("0.8"))
    long = Price(
        model=MODEL, rates=PRICE.rates, long=((110_000, double),), source="", checked=PRICE.checked
    )
    log = log_of(100_000, 120_000)
    sums = totals_of(log, recorded_path(log), facts_of(log), lambda _turn: long, ())
    first = (90_000 * Decimal(5) + 10_000 * Decimal("0.4") + 100 * Decimal(20)) / 1_000_000
    second = (20_000 * Decimal(10) + 100_000 * Decimal("0.8") + 100 * Decimal(40)) / 1_000_000
    assert sums[MODEL].cost == (first + second, True)


def test_what_was_kept_of_the_users_turns_and_unknown_times_are_counted() -> None:
    known = compaction(161_000)._replace(pins_kept=3, pins_lost=1, duration_ms=None)
    log = log_of(150_000, known, 30_000)
    own = total(log, recorded_path(log))
    assert (own.pins_kept, own.pins, own.untimed, own.wait_ms) == (3, 4, 1, 0)
    compacted = Kept(20_000, has_call=False, pins_kept=2, pins=2, duration_ms=40)
    path = replay(log, [150_000] * 3, lambda _at, _size: compacted, replaces=True)
    own = total(log, path)
    assert (own.pins_kept, own.pins, own.wait_ms, own.summaries) == (2, 2, 40, CallTokens())
    other = total(LOG, replayed(LOG, 110_000))
    assert (other.wait_ms, other.estimated) == (30_000, 1)
    untimed = compaction(161_000)._replace(duration_ms=None)
    log = log_of(150_000, compaction(161_000), 30_000, 150_000, untimed, 30_000)
    own = total(log, recorded_path(log))
    assert (own.wait_ms, own.untimed, own.estimated) == (30_000, 1, 0)
    assert total(LOG, replayed(LOG, 110_000, left=190_000)).futile == 1


@given(st.lists(st.integers(1_000, 200_000), min_size=1, max_size=12), st.integers(1, 12))
def test_costs_are_additive(sizes: list[int], cut: int) -> None:
    models = [MODEL if number < cut else "other" for number in range(len(sizes))]
    log = log_of(*sizes)
    turns = tuple(turn._replace(model=model) for turn, model in zip(log.turns, models, strict=True))
    mixed = ChainLog("s", "main", None, {}, turns, log.between)
    path, facts = recorded_path(log), facts_of(log)
    prices = {MODEL: PRICE, "other": PRICE}
    parts = totals_of(mixed, path, facts, lambda turn: prices[turn.model or ""], (50, 75))
    whole = NO_TOTALS
    for each in parts.values():
        whole = whole.plus(each)
    assert whole == total(log, path)


@pytest.mark.parametrize("trigger", [60_000, 110_000, 150_000])
def test_each_response_has_the_size_of_the_path(trigger: int) -> None:
    path = replayed(LOG, trigger)
    for calls in (CALLS, WARM, COLD):
        responses, _ = usages(LOG, path, calls)
        assert tuple(each.prompt for each in responses) == path.sizes
