"""Tokens, money and time of a chain's path, by model; sums that can be added."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.pricing import Cost, Price, TokenCounts
from streams.core.whatif.compaction_facts import CompactionFacts
from streams.core.whatif.replay import GrowthPath, ReplayedCompaction
from streams.core.whatif.turns import ChainLog, ChainTurn
from streams.core.whatif.usage import (
    CACHES,
    NO_TOKENS,
    Cache,
    CachedCalls,
    CallTokens,
    is_summary_known,
    usages,
)

PriceAt: TypeAlias = Callable[[ChainTurn], Price | None]
"""Returns the price of a response, by its model, time and service tier; None: unknown."""

NOTHING: Final = Cost(Decimal(0), is_complete=True)
"""Where sums begin."""


def plus(one: Cost, other: Cost | None) -> Cost:
    """Return the sum; a cost that is not known makes it incomplete."""
    if other is None:
        return Cost(one.amount, is_complete=False)
    return Cost(one.amount + other.amount, one.is_complete and other.is_complete)


class RunTotals(NamedTuple):
    """What calls of one model took.

    `usage` is of responses, `summaries` of the compactions' own calls. `cost` is of both, in US
    dollars, with the cache as it was recorded; `warm` and `cold` with one that is always, or never,
    warm. `wait_ms` is the compactions' time: the median of recorded ones for `estimated` ones,
    nothing for `untimed` ones. `overflows` counts responses beyond the window, `futile` requests
    that no compaction would have brought below the trigger. `pins_kept` of `pins` turns of the user
    were still there after compactions. `unreported` counts calls whose output nothing reports: it
    is in no amount, which is then a minimum.
    """

    responses: int = 0
    usage: CallTokens = NO_TOKENS
    summaries: CallTokens = NO_TOKENS
    cost: Cost = NOTHING
    warm: Cost = NOTHING
    cold: Cost = NOTHING
    compactions: int = 0
    wait_ms: int = 0
    untimed: int = 0
    estimated: int = 0
    warnings: int = 0
    overflows: int = 0
    futile: int = 0
    pins_kept: int = 0
    pins: int = 0
    unreported: int = 0

    def plus(self, other: "RunTotals") -> "RunTotals":
        """Return the sum."""
        return RunTotals(
            self.responses + other.responses,
            self.usage.plus(other.usage),
            self.summaries.plus(other.summaries),
            plus(self.cost, other.cost),
            plus(self.warm, other.warm),
            plus(self.cold, other.cold),
            *(one + two for one, two in zip(self[6:], other[6:], strict=True)),
        )


NO_TOTALS: Final = RunTotals()

_Kind: TypeAlias = Literal["usage", "summaries"]

ByModel: TypeAlias = dict[str | None, RunTotals]


def add_by_model(sums: ByModel, more: ByModel) -> None:
    """Add totals by model to others."""
    for model, totals in more.items():
        sums[model] = sums.get(model, NO_TOTALS).plus(totals)


def cost_of(usage: CallTokens, price: Price | None) -> Cost | None:
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
    path: GrowthPath,
    facts: CompactionFacts,
    price_at: PriceAt,
    thresholds: Collection[int],
    caches: Collection[Cache] = CACHES,
) -> ByModel:
    """Return what a path took, by model. The costs of caches that are not asked for are zero."""
    sums: ByModel = {}
    for cache in CACHES:
        if cache in caches:
            add_by_model(sums, _costs(log, path, CachedCalls(log, facts, cache), price_at, cache))
    add_by_model(sums, _counts(log, path, facts, thresholds))
    return sums


def _costs(
    log: ChainLog, path: GrowthPath, calls: CachedCalls, price_at: PriceAt, cache: Cache
) -> ByModel:
    responses, summaries = usages(log, path, calls)
    meter = _Meter(price_at)
    for turn, usage in zip(log.turns, responses, strict=False):
        meter.add(turn, usage, "usage")
    for compaction, usage in zip(path.compactions, summaries, strict=True):
        meter.add(summary_turn(log, compaction), usage, "summaries")
    sums: ByModel = {}
    for model, kind, usage, cost in meter.sums():
        if cache == "warm":
            own = RunTotals(warm=cost)
        elif cache == "cold":
            own = RunTotals(cold=cost)
        elif kind == "usage":
            own = RunTotals(usage=usage, cost=cost)
        else:
            own = RunTotals(summaries=usage, cost=cost)
        add_by_model(sums, {model: own})
    return sums


def summary_turn(log: ChainLog, compaction: ReplayedCompaction) -> ChainTurn:
    """Return the response by whose model and time a summary's call is priced: the one before it.

    Nothing reports a service tier of such calls.
    """
    return log.turns[max(0, compaction.at - 1)]._replace(service_tier=None)


class _Meter:
    """Sums tokens by rates, to multiply once: exact, as each rate is for a token."""

    def __init__(self, price_at: PriceAt) -> None:
        self._price_at = price_at
        self._sums: dict[tuple[str | None, _Kind, int], tuple[Price | None, CallTokens]] = {}
        self._prices: list[Price] = []
        """Those that were asked for: as long as they are here, no other rates have their ids."""

    def add(self, turn: ChainTurn, usage: CallTokens, kind: _Kind) -> None:
        """Add one call; one without tokens costs nothing, whatever its price."""
        price = self._price_at(turn) if usage != NO_TOKENS else None
        rates = None if price is None else price.rates_of(usage.prompt)
        key = (turn.model, kind, 0 if usage == NO_TOKENS else id(rates))
        known = self._sums.get(key)
        if known is not None:
            self._sums[key] = known[0], known[1].plus(usage)
            return
        if price is not None and rates is not None:
            self._prices.append(price)
            price = replace(price, rates=rates, long=())
        self._sums[key] = price, usage

    def sums(self) -> Iterator[tuple[str | None, _Kind, CallTokens, Cost]]:
        """Yield the tokens and the cost by model and kind of call; of one rate at a time."""
        for (model, kind, _), (price, usage) in self._sums.items():
            cost = NOTHING if usage == NO_TOKENS else plus(NOTHING, cost_of(usage, price))
            yield model, kind, usage, cost


def _counts(
    log: ChainLog, path: GrowthPath, facts: CompactionFacts, thresholds: Collection[int]
) -> ByModel:
    begins = {each.at for each in path.compactions}
    announced: set[tuple[int, int]] = set()
    responses, warnings, overflows, unreported = (Counter[str | None]() for _ in range(4))
    for at, (turn, size) in enumerate(zip(log.turns, path.sizes, strict=False)):
        if at in begins or log.between[at].is_reset:
            announced.clear()
        crossed = _crossed(thresholds, size, turn.window) - announced
        announced |= crossed
        responses[turn.model] += 1
        warnings[turn.model] += bool(crossed)
        overflows[turn.model] += turn.window is not None and size > turn.window
        unreported[turn.model] += not turn.is_output_known
    sums: ByModel = {
        model: RunTotals(
            responses=count,
            warnings=warnings[model],
            overflows=overflows[model],
            unreported=unreported[model],
        )
        for model, count in responses.items()
    }
    for each in path.compactions:
        model = log.turns[max(0, each.at - 1)].model
        duration, is_estimated = _duration_ms(each, facts)
        kept, pins = _pins(each)
        totals = RunTotals(
            compactions=1,
            wait_ms=duration or 0,
            untimed=duration is None,
            estimated=is_estimated,
            pins_kept=kept,
            pins=pins,
            unreported=not is_summary_known(each, facts),
        )
        add_by_model(sums, {model: totals})
    if path.futile:
        add_by_model(sums, {log.model: RunTotals(futile=path.futile)})
    return sums


def _crossed(thresholds: Collection[int], size: int, window: int | None) -> set[tuple[int, int]]:
    if window is None:
        return set()
    return {(each, window) for each in thresholds if size * 100 >= each * window}


def _duration_ms(compaction: ReplayedCompaction, facts: CompactionFacts) -> tuple[int | None, bool]:
    """Return a compaction's time, the median for one that was not made; and whether it is that.

    None is unknown.
    """
    kept, recorded = compaction.kept, compaction.recorded
    if kept is None and recorded is not None:
        return recorded.duration_ms, False
    if kept is not None and kept.duration_ms is not None:
        return kept.duration_ms, False
    usual = facts.duration_ms
    return (None, False) if usual is None else (usual.middle, True)


def _pins(compaction: ReplayedCompaction) -> tuple[int, int]:
    """Return how many turns of the user a compaction kept, and of how many; 0 for unknown."""
    kept, recorded = compaction.kept, compaction.recorded
    if kept is not None:
        return kept.pins_kept or 0, kept.pins or 0
    if recorded is None or recorded.pins_kept is None:
        return 0, 0
    return recorded.pins_kept, recorded.pins_kept + (recorded.pins_lost or 0)
