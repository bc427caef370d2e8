"""Chains summed by runtime and model, and by how much they would have differed.

An interval has two parts: what compactions leave is as uncertain as recorded ones differ
(`CostChange`), and other sessions differ as these do among each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import sqrt
from statistics import stdev
from typing import Final, NamedTuple

from streams.core.whatif.break_even import UsualBreakEven, usual
from streams.core.whatif.comparison import ChainResult, CostChange
from streams.core.whatif.costs import NO_TOTALS, RunTotals
from streams.core.whatif.new_settings import Setting
from streams.core.whatif.triggers import RecordedTrigger, recorded_triggers

_NINETY_PERCENT: Final = (
    *(6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812),
    *(1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725),
    *(1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697),
)
"""Standard errors on both sides of a mean within which it lies nine times of ten: Student's t, the
95 % quantile for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of Statistical Methods,
1.3.6.7.2). For more, that of 30, at most 3 % too wide."""


class Change(NamedTuple):
    """By how much the sessions of a model would have differed in all, US dollars.

    `low` to `high` is the interval; `sessions` counts those with this model. `warm` and `cold` are
    with a cache that is always, or never, warm.
    """

    amount: Decimal
    low: Decimal
    high: Decimal
    warm: Decimal
    cold: Decimal
    sessions: int


class ModelSetting(NamedTuple):
    """A model under a setting; `change` is None where a price is not known.

    `triggers` are those of all requests, tokens; None among them is an unknown one.
    `unknown` counts chains that are as recorded, since what a compaction would have left is not
    known. `paid` is of all compactions of the chains.
    """

    setting: Setting
    totals: RunTotals
    change: Change | None
    unknown: int
    triggers: frozenset[int | None]
    paid: UsualBreakEven

    @property
    def trigger(self) -> int | None:
        """The only trigger; None where there are several, as of several windows, or none."""
        return next(iter(self.triggers)) if len(self.triggers) == 1 else None


class ModelResult(NamedTuple):
    """All chains of a runtime with responses of a model; the recorded trigger is of most."""

    runtime: str | None
    model: str | None
    chains: Sequence[ChainResult]
    recorded: RunTotals
    recorded_trigger: RecordedTrigger | None
    recorded_paid: UsualBreakEven
    settings: Sequence[ModelSetting]


def by_model(chains: Sequence[ChainResult]) -> list[ModelResult]:
    """Return the results by runtime and model, those with the most responses first."""
    groups: dict[tuple[str | None, str | None], list[ChainResult]] = defaultdict(list)
    for chain in chains:
        for model in chain.recorded:
            groups[chain.log.runtime, model].append(chain)
    results = [_result(runtime, model, own) for (runtime, model), own in groups.items()]
    return sorted(results, key=lambda each: -each.recorded.responses)


def _result(runtime: str | None, model: str | None, chains: list[ChainResult]) -> ModelResult:
    settings = []
    for number, first in enumerate(chains[0].results):
        own = [chain.results[number] for chain in chains]
        totals = _sum([each.totals.get(model, NO_TOTALS) for each in own])
        unknown = sum(not each.is_known for each in own)
        change = change_of(chains, number, model)
        triggers = frozenset[int | None]().union(*(each.triggers for each in own))
        paid = usual(paid for each in own for paid in each.paid)
        settings.append(ModelSetting(first.setting, totals, change, unknown, triggers, paid))
    recorded = _sum([chain.recorded[model] for chain in chains])
    last = _usual(recorded_triggers(chain.log)[-1] for chain in chains)
    paid = usual(paid for chain in chains for paid in chain.paid)
    return ModelResult(runtime, model, chains, recorded, last, paid, settings)


def _usual(triggers: Iterable[RecordedTrigger | None]) -> RecordedTrigger | None:
    known = Counter(each for each in triggers if each is not None)
    return known.most_common(1)[0][0] if known else None


def _sum(parts: Sequence[RunTotals]) -> RunTotals:
    total = NO_TOTALS
    for each in parts:
        total = total.plus(each)
    return total


def change_of(chains: Sequence[ChainResult], number: int, model: str | None) -> Change | None:
    """Return by how much these chains differ under the setting of that number.

    None where a price is not known.
    """
    own = [
        (chain.log.session_id, chain.results[number].changes[model])
        for chain in chains
        if model in chain.results[number].changes
    ]
    if len(own) < len(chains):
        return None
    sessions: defaultdict[str, Decimal] = defaultdict(Decimal)
    for session_id, change in own:
        sessions[session_id] += change.middle
    sums = CostChange(
        *(sum(figures, Decimal(0)) for figures in zip(*(each[1] for each in own), strict=True))
    )
    doubt = _sampling(list(sessions.values()))
    return Change(
        sums.middle, sums.low - doubt, sums.high + doubt, sums.warm, sums.cold, len(sessions)
    )


def _sampling(amounts: Sequence[Decimal]) -> Decimal:
    """Return half the interval of a sum over other sessions like these; 0 for a single one."""
    if len(amounts) <= 1:
        return Decimal(0)
    error = stdev(float(each) for each in amounts) * sqrt(len(amounts))
    freedom = min(len(amounts) - 1, len(_NINETY_PERCENT))
    return Decimal(repr(_NINETY_PERCENT[freedom - 1] * error))
