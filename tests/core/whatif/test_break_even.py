"""After how many responses a compaction has paid for itself."""

from decimal import Decimal

import pytest

from streams.core.whatif.break_even import BreakEven, break_even
from streams.core.whatif.costs import PriceAt, totals_of
from streams.core.whatif.replay import Kept, recorded_path, replay
from streams.core.whatif.turns import ChainLog
from streams.core.whatif.usage import CachedCalls
from tests.core.whatif.whatif_kit import (
    MANUAL,
    MODEL,
    RESET,
    compaction,
    facts_of,
    log_of,
    price_at,
)

SUMMARY = (1_000 * Decimal(5) + 100_000 * Decimal("0.4") + 2_000 * Decimal(20)) / 1_000_000
"""A call that reads 100 000 tokens, writes 1 000 to the cache, and answers with 2 000."""


def paid(log: ChainLog, number: int = 0, prices: PriceAt = price_at) -> BreakEven | None:
    calls = CachedCalls(log, facts_of(log), "as_recorded")
    return break_even(log, recorded_path(log), number, calls, prices)


def test_each_response_saves_what_it_need_not_read() -> None:
    # Without it the first response reads 100 000 and writes 1 000, with it 10 000 and 20 000.
    first = (1_000 - 20_000) * Decimal(5) + (100_000 - 10_000) * Decimal("0.4")
    later = 71_000 * Decimal("0.4")
    log = log_of(100_000, compaction(101_000), *(30_000 + 100 * each for each in range(10)))
    expected = -SUMMARY + (first + 9 * later) / 1_000_000
    assert paid(log) == BreakEven(SUMMARY, expected, 10, 7, is_extrapolated=False)
    assert (
        -SUMMARY + (first + 5 * later) / 1_000_000 < 0 <= -SUMMARY + (first + 6 * later) / 1_000_000
    )


def test_it_ends_with_the_next_compaction_or_reset_and_goes_on_beyond_that() -> None:
    responses = tuple(30_000 + 100 * each for each in range(4))
    end = paid(log_of(100_000, compaction(101_000), *responses))
    assert end is not None
    assert (end.followed_by, end.responses, end.is_extrapolated) == (4, 7, True)
    for step in (RESET, compaction(33_000, MANUAL)):
        assert paid(log_of(100_000, compaction(101_000), *responses, step, 20_000)) == end


def test_one_that_saves_nothing_never_pays() -> None:
    larger = paid(log_of(100_000, compaction(101_000), 101_000, 101_100, 101_200))
    assert larger is not None
    assert (larger.responses, larger.is_extrapolated) == (None, False)
    alone = paid(log_of(100_000, compaction(101_000), 30_000))
    assert alone is not None
    assert (alone.followed_by, alone.responses) == (1, None)
    for last in (log_of(100_000, compaction(101_000)), log_of(9, compaction(9), RESET, 5)):
        nothing = paid(last)
        assert nothing is not None
        assert (nothing.followed_by, nothing.saved) == (0, -nothing.cost)


def test_without_prices_it_is_unknown() -> None:
    log = log_of(100_000, compaction(101_000), 30_000, 30_100)
    assert paid(log, prices=lambda _turn: None) is None
    assert paid(log, prices=lambda turn: price_at(turn) if turn.used == 100_000 else None) is None


@pytest.mark.parametrize("cache", ["as_recorded", "warm", "cold"])
def test_what_one_compaction_saved_is_the_difference_of_two_paths(cache: str) -> None:
    """Independent of how it is summed: the whole path with it, and without it."""
    log = log_of(100_000, compaction(101_000), *(30_000 + 700 * each for each in range(9)))
    facts, path = facts_of(log), recorded_path(log)
    without = replay(log, [None] * len(log.between), lambda _at, _size: Kept(0))
    assert without.compactions == ()
    calls = CachedCalls(log, facts, cache)  # type: ignore[arg-type]  # one of them
    own = break_even(log, path, 0, calls, price_at)
    field = "cost" if cache == "as_recorded" else cache
    costs = [
        getattr(totals_of(log, each, facts, price_at, ())[MODEL], field).amount
        for each in (without, path)
    ]
    assert own is not None
    assert own.saved == costs[0] - costs[1]
