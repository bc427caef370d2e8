"""Tokens, money and time of a chain's path, by model; sums that can be added."""

from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from contextgauge.pricing import Cost, Price, Rates, TokenCounts
from streams.core.whatif.compaction_facts import CompactionFacts
from streams.core.whatif.replay import Path, ReplayedCompaction
from streams.core.whatif.turns import ChainLog, Turn
from streams.core.whatif.usage import CACHES, NO_USAGE, Cache, CallUsage, Usage, usages

PriceAt: TypeAlias = Callable[[Turn], Price | None]
"""Returns the price of a response, by its model, time and service tier; None: unknown."""

NOTHING: Final = Cost(Decimal(0), is_complete=True)
"""Where sums begin."""


def plus(one: Cost, other: Cost | None) -> Cost:
    """Return the sum; a cost that is not known makes it incomplete."""
    if other is None:
        return Cost(one.amount, is_complete=False)
    return Cost(one.amount + other.amount, one.is_complete and other.is_complete)


class Totals(NamedTuple):
    """What calls of one model took.

    `usage` is of responses, `summaries` of the compactions' own calls. `cost` is of both, in US
    dollars, with the cache as it was recorded; `warm` and `cold` with one that is always, or never,
    warm. `wait_ms` is the compactions' time, without that of `untimed` ones. `overflows` counts
    responses beyond the window, `futile` requests that no compaction would have brought below the
    trigger. `pins_kept` of `pins` turns of the user were still there after compactions.
    """

    responses: int = 0
    usage: Usage = NO_USAGE
    summaries: Usage = NO_USAGE
    cost: Cost = NOTHING
    warm: Cost = NOTHING
    cold: Cost = NOTHING
    compactions: int = 0
    wait_ms: int = 0
    untimed: int = 0
    warnings: int = 0
    overflows: int = 0
    futile: int = 0
    pins_kept: int = 0
    pins: int = 0

    def plus(self, other: "Totals") -> "Totals":
        """Return the sum."""
        return Totals(
            self.responses + other.responses,
            self.usage.plus(other.usage),
            self.summaries.plus(other.summaries),
            plus(self.cost, other.cost),
            plus(self.warm, other.warm),
            plus(self.cold, other.cold),
            *(one + two for one, two in zip(self[6:], other[6:], strict=True)),
        )


NO_TOTALS: Final = Totals()
_NO_USAGES: Final = (NO_USAGE, NO_USAGE)

ByModel: TypeAlias = dict[str | None, Totals]


def add_by_model(sums: ByModel, more: ByModel) -> None:
    """Add totals by model to others."""
    for model, totals in more.items():
        sums[model] = sums.get(model, NO_TOTALS).plus(totals)


def cost_of(usage: Usage, price: Price | None) -> Cost | None:
    """Return what one call cost; None where its price is unknown."""
    if price is None:
        return None
    return price.cost(
        TokenCounts(
            input=usage.input,
            output=usage.output,
            cache_write_5m=usage.write_5m,
            cache_write_1h=usage.write_1h,
            cache_read=usage.read,
        )
    )


def totals_of(
    log: ChainLog,
    path: Path,
    facts: CompactionFacts,
    price_at: PriceAt,
    thresholds: Collection[int],
    caches: Collection[Cache] = CACHES,
) -> ByModel:
    """Return what a path took, by model. The costs of caches that are not asked for are zero."""
    sums: ByModel = {}
    for cache in CACHES:
        if cache in caches:
            add_by_model(sums, _costs(log, path, CallUsage(log, facts, cache), price_at, cache))
    add_by_model(sums, _counts(log, path, facts, thresholds))
    return sums


def _costs(log: ChainLog, path: Path, calls: CallUsage, price_at: PriceAt, cache: Cache) -> ByModel:
    responses, summaries = usages(log, path, calls)
    began = [summary_turn(log, each) for each in path.compactions]
    meter = _Meter(price_at)
    sums: dict[str | None, tuple[Usage, Usage]] = {}
    for turn, usage in zip(log.turns, responses, strict=False):
        meter.add(turn, usage)
        own, other = sums.get(turn.model, _NO_USAGES)
        sums[turn.model] = own.plus(usage), other
    for turn, usage in zip(began, summaries, strict=True):
        meter.add(turn, usage)
        own, other = sums.get(turn.model, _NO_USAGES)
        sums[turn.model] = own, other.plus(usage)
    costs = meter.costs()
    if cache == "warm":
        return {model: Totals(warm=cost) for model, cost in costs.items()}
    if cache == "cold":
        return {model: Totals(cold=cost) for model, cost in costs.items()}
    return {
        model: Totals(usage=own, summaries=other, cost=costs[model])
        for model, (own, other) in sums.items()
    }


def summary_turn(log: ChainLog, compaction: ReplayedCompaction) -> Turn:
    """Return the response by whose model and time a summary's call is priced: the one before it.

    Nothing reports a service tier of such calls.
    """
    return log.turns[max(0, compaction.at - 1)]._replace(service_tier=None)


class _Meter:
    """Sums tokens by rates, to multiply once: exact, as each rate is for a token."""

    def __init__(self, price_at: PriceAt) -> None:
        self._price_at = price_at
        self._sums: dict[tuple[str | None, Rates | None], tuple[Price | None, Usage]] = {}

    def add(self, turn: Turn, usage: Usage) -> None:
        """Add one call."""
        if usage == NO_USAGE:
            self._sums.setdefault((turn.model, None), (None, NO_USAGE))
            return
        price = self._price_at(turn)
        rates = None if price is None else price.rates_of(usage.prompt)
        if price is not None and rates is not None and price.long:
            price = replace(price, rates=rates, long=())
        _, before = self._sums.get((turn.model, rates), (None, NO_USAGE))
        self._sums[turn.model, rates] = price, before.plus(usage)

    def costs(self) -> dict[str | None, Cost]:
        """Return the cost by model."""
        costs: dict[str | None, Cost] = {}
        for (model, _), (price, usage) in self._sums.items():
            cost = NOTHING if usage == NO_USAGE else cost_of(usage, price)
            costs[model] = plus(costs.get(model, NOTHING), cost)
        return costs


def _counts(
    log: ChainLog, path: Path, facts: CompactionFacts, thresholds: Collection[int]
) -> ByModel:
    sums: ByModel = {}
    begins = {each.at for each in path.compactions}
    announced: set[tuple[int, int]] = set()
    for at, (turn, size) in enumerate(zip(log.turns, path.sizes, strict=False)):
        if at in begins or log.between[at].is_reset:
            announced.clear()
        crossed = _crossed(thresholds, size, turn.window) - announced
        announced |= crossed
        totals = Totals(
            responses=1,
            warnings=bool(crossed),
            overflows=turn.window is not None and size > turn.window,
        )
        add_by_model(sums, {turn.model: totals})
    for each in path.compactions:
        model = log.turns[max(0, each.at - 1)].model
        duration = _duration_ms(each, facts)
        kept, pins = _pins(each)
        totals = Totals(
            compactions=1,
            wait_ms=duration or 0,
            untimed=duration is None,
            pins_kept=kept,
            pins=pins,
        )
        add_by_model(sums, {model: totals})
    if path.futile:
        add_by_model(sums, {log.model: Totals(futile=path.futile)})
    return sums


def _crossed(thresholds: Collection[int], size: int, window: int | None) -> set[tuple[int, int]]:
    if window is None:
        return set()
    return {(each, window) for each in thresholds if size * 100 >= each * window}


def _duration_ms(compaction: ReplayedCompaction, facts: CompactionFacts) -> int | None:
    """Return a compaction's time: its own, else the median of recorded ones."""
    done = compaction.recorded if compaction.kept is None else compaction.kept
    own = None if done is None else done.duration_ms
    if own is None and facts.duration_ms is not None:
        return facts.duration_ms.middle
    return own


def _pins(compaction: ReplayedCompaction) -> tuple[int, int]:
    """Return how many turns of the user a compaction kept, and of how many; 0 for unknown."""
    kept, recorded = compaction.kept, compaction.recorded
    if kept is not None:
        return kept.pins_kept or 0, kept.pins or 0
    if recorded is None or recorded.pins_kept is None:
        return 0, 0
    return recorded.pins_kept, recorded.pins_kept + (recorded.pins_lost or 0)
