"""Chains under other settings, against what was recorded."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from streams.core.whatif.break_even import BreakEven, break_evens
from streams.core.whatif.compaction_facts import CompactionFacts, FactPool, Level, Spread
from streams.core.whatif.costs import ByModel, PriceAt, RunTotals, totals_of
from streams.core.whatif.new_settings import Setting, triggers_of, with_window
from streams.core.whatif.replay import (
    After,
    GrowthPath,
    Kept,
    ReplayedCompaction,
    recorded_path,
    replay,
)
from streams.core.whatif.triggers import Judged, Unrecorded, judge
from streams.core.whatif.turns import ChainLog
from streams.core.whatif.usage import Cache, CachedCalls

_LEVELS: Final[tuple[Level, ...]] = ("low", "high")
_ONE: Final[tuple[Cache, ...]] = ("as_recorded",)


class CostChange(NamedTuple):
    """How much more calls cost than as recorded, US dollars, with the cache as recorded.

    `low` and `high` are the least and the most that are likely, by what recorded compactions left.
    `warm` and `cold` are with a cache that is always, or never, warm.
    """

    middle: Decimal
    low: Decimal
    high: Decimal
    warm: Decimal
    cold: Decimal


class SettingResult(NamedTuple):
    """A chain under a setting. `changes` are by model, without those whose price is unknown.

    `is_known` is false where what a compaction would have left is not known: then all is as
    recorded. `trigger` is that of the chain's end, tokens; `triggers` those of all its requests,
    which windows and models that change make several. `paid` are of the compactions, which are all
    that is kept of the chain's path.
    """

    setting: Setting
    trigger: int | None
    compactions: Sequence[ReplayedCompaction]
    totals: ByModel
    changes: dict[str | None, CostChange]
    is_known: bool
    paid: Sequence[BreakEven | None]
    triggers: frozenset[int | None]


class ChainResult(NamedTuple):
    """A chain as it was recorded, and under each setting."""

    log: ChainLog
    facts: CompactionFacts
    recorded: ByModel
    judged: Sequence[Judged]
    unrecorded: Sequence[Unrecorded]
    paid: Sequence[BreakEven | None]
    results: Sequence[SettingResult]


@dataclass(frozen=True, slots=True)
class ChainComparison:
    """Compares chains under settings. `thresholds` are those of warnings, in percent."""

    pool: FactPool
    settings: Sequence[Setting]
    price_at: PriceAt
    thresholds: Collection[int]

    def of(self, log: ChainLog, engines: Sequence[After | None]) -> ChainResult:
        """Return a chain's results.

        `engines` are of the settings: what the engine would leave of this chain; None where it has
        no messages.
        """
        facts, recorded = self.pool.of(log), recorded_path(log)
        totals = totals_of(log, recorded, facts, self.price_at, self.thresholds)
        judged, unrecorded = judge(log)
        calls = CachedCalls(log, facts, "as_recorded")
        paid = break_evens(log, recorded, calls, self.price_at)
        likely = [
            (level, totals_of(log, recorded, facts.at(level), self.price_at, (), _ONE))
            for level in _LEVELS
        ]
        results = [
            self._result(log, facts, totals, likely, setting, engine)
            for setting, engine in zip(self.settings, engines, strict=True)
        ]
        return ChainResult(log, facts, totals, judged, unrecorded, paid, results)

    def _result(
        self,
        log: ChainLog,
        facts: CompactionFacts,
        recorded: ByModel,
        likely: Sequence[tuple[Level, ByModel]],
        setting: Setting,
        engine: After | None,
    ) -> SettingResult:
        triggers = triggers_of(log, setting)
        path = _path(log, facts, triggers, setting, engine)
        is_known = path.unknown_at is None
        if not is_known:
            path = recorded_path(log)
        own_log = with_window(log, setting.window)
        if own_log is log and path == recorded_path(log):
            totals = recorded
        else:
            totals = totals_of(own_log, path, facts, self.price_at, self.thresholds)
        others = []
        if setting.engine is None and any(each.kept is not None for each in path.compactions):
            others = [
                self._likely(log, facts.at(level), triggers, before) for level, before in likely
            ]
        changes = {
            model: _change(before, totals[model], [each[model] for each in others])
            for model, before in recorded.items()
            if before.cost.is_complete and totals[model].cost.is_complete
        }
        calls = CachedCalls(log, facts, "as_recorded")
        paid = break_evens(log, path, calls, self.price_at)
        every = frozenset(triggers)
        own = path.compactions
        return SettingResult(setting, triggers[-1], own, totals, changes, is_known, paid, every)

    def _likely(
        self,
        log: ChainLog,
        facts: CompactionFacts,
        triggers: Sequence[int | None],
        before: ByModel,
    ) -> dict[str | None, Decimal]:
        """Return how much more a chain costs, where its compactions leave so much."""
        path = replay(log, triggers, _leaving(facts.after))
        after = totals_of(log, path, facts, self.price_at, (), _ONE)
        return {
            model: each.cost.amount - before[model].cost.amount for model, each in after.items()
        }


def _path(
    log: ChainLog,
    facts: CompactionFacts,
    triggers: Sequence[int | None],
    setting: Setting,
    engine: After | None,
) -> GrowthPath:
    if setting.engine is not None:
        return replay(log, triggers, engine or _leaving(None), replaces=True)
    return replay(log, triggers, _leaving(facts.after))


def _leaving(after: Spread | None) -> After:
    kept = None if after is None else Kept(after.middle)
    return lambda _at, _size: kept


def _change(before: RunTotals, after: RunTotals, likely: Sequence[Decimal]) -> CostChange:
    middle = after.cost.amount - before.cost.amount
    return CostChange(
        middle,
        min(middle, *likely) if likely else middle,
        max(middle, *likely) if likely else middle,
        after.warm.amount - before.warm.amount,
        after.cold.amount - before.cold.amount,
    )
