"""A whole comparison: chains, models, what to use, and the records by rule.

A session's stored records are enough for one, without its messages.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

from contextgauge.pricing import Price
from schemas.records import ContextLimits, Record, SessionInfo
from streams.core.costs import PriceLookup
from streams.core.stored_records import whole_from
from streams.core.whatif.advice import Advice, advise
from streams.core.whatif.compaction_facts import FactPool
from streams.core.whatif.comparison import ChainComparison, ChainResult
from streams.core.whatif.costs import PriceAt
from streams.core.whatif.models import ModelResult, by_model
from streams.core.whatif.new_settings import Setting
from streams.core.whatif.rules import RuleRow, rule_rows
from streams.core.whatif.turns import ChainTurn, read_logs

_HOUR_S: Final = 3_600
"""Prices change with dates and hours."""


class WhatIfAnswer(NamedTuple):
    """Sessions under other settings. `advice` is of the `models`, in their order.

    `is_whole`: false where a part of the sessions' records was not there to be compared.
    """

    settings: Sequence[Setting]
    chains: Sequence[ChainResult]
    models: Sequence[ModelResult]
    advice: Sequence[Advice]
    rules: Sequence[RuleRow]
    is_whole: bool


def answer_of(
    settings: Sequence[Setting],
    chains: Sequence[ChainResult],
    kinds: Mapping[str, int],
    again: Mapping[str, int] | None = None,
    *,
    is_whole: bool,
) -> WhatIfAnswer:
    """Return the answer of compared chains; `kinds` and `again` as in `rule_rows`."""
    models = by_model(chains)
    advice = [advise(each) for each in models]
    rules = rule_rows(chains, kinds, again)
    return WhatIfAnswer(settings, chains, models, advice, rules, is_whole)


def stored_answer(
    records: Sequence[Record],
    settings: Sequence[Setting],
    price_at: PriceAt,
    thresholds: Collection[int],
) -> WhatIfAnswer:
    """Return the answer of a session whose views hold these records, perhaps only the newest."""
    begin = whole_from(records)
    there = [
        record
        for record in records
        if record.sequence >= begin or isinstance(record.data, SessionInfo | ContextLimits)
    ]
    logs = read_logs(there)
    comparison = ChainComparison(FactPool(logs), settings, price_at, thresholds)
    chains = [comparison.of(log, [None] * len(settings)) for log in logs]
    kinds = Counter(each.kind for each in there if each.data.inherited is not True)
    return answer_of(settings, chains, kinds, is_whole=begin == 0)


def priced(lookup: PriceLookup) -> PriceAt:
    """Return what prices of responses are known by."""

    @lru_cache(maxsize=4_096)
    def of_hour(model: str | None, hour: int | None, tier: str | None) -> Price | None:
        when = None if hour is None else datetime.fromtimestamp(hour * _HOUR_S, UTC)
        return lookup(model, when, tier)

    def price_at(turn: ChainTurn) -> Price | None:
        hour = None if turn.time_ms is None else turn.time_ms // 1_000 // _HOUR_S
        return of_hour(turn.model, hour, turn.service_tier)

    return price_at
