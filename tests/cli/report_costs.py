"""What the report should say of money: each call priced by itself, without SQL."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple

from contextgauge.pricing import Cost, TokenCounts, price_of, total
from contextgauge.records import CompactBoundary, ContextReading, Record
from streams.core.costs import session_costs

Row = tuple[Any, ...]


class PricedRecord(NamedTuple):
    """One call of a model, by the record that has it."""

    record: Record
    tier: str | None
    tokens: TokenCounts
    cost: Cost | None
    price: str | None
    checked: Any


def calls_of(records: Sequence[Record], outputs: dict[str, int | None]) -> list[PricedRecord]:
    """Return responses, each by its last reading, and the summaries that report their usage."""
    latest = {
        (each.data.session_id, each.data.chain, each.data.response_id or each.id): each
        for each in records
        if isinstance(each.data, ContextReading)
    }
    calls = []
    for record in latest.values():
        data = record.data
        assert isinstance(data, ContextReading)
        written, hour = data.cache_creation_tokens or 0, data.cache_creation_1h_tokens or 0
        counts = data.input_tokens, written, hour, data.cache_read_tokens or 0, outputs[record.id]
        calls.append(_priced(record, data.service_tier, *counts))
    for record in records:
        own = record.data.receipt if isinstance(record.data, CompactBoundary) else None
        if own is None or (own.summary_input_tokens is None and own.summary_output_tokens is None):
            continue
        data = record.data
        assert isinstance(data, CompactBoundary)
        read, written = own.summary_cache_read_tokens or 0, data.summary_cache_creation_tokens or 0
        hour, whole = data.summary_cache_creation_1h_tokens or 0, own.summary_input_tokens
        fresh = None if whole is None else max(whole - read - written, 0)
        calls.append(_priced(record, None, fresh, written, hour, read, own.summary_output_tokens))
    return calls


def _priced(  # noqa: PLR0917 -- the parts of a prompt, and the answer
    record: Record,
    tier: str | None,
    fresh: int | None,
    written: int,
    hour: int,
    read: int,
    output: int | None,
) -> PricedRecord:
    tokens = TokenCounts(
        input=fresh,
        output=output,
        cache_write_5m=written - min(hour, written),
        cache_write_1h=min(hour, written),
        cache_read=read,
    )
    time_ms = record.time_ms
    when = None if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC)
    price = price_of(record.data.model, when, tier)
    if price is None:
        return PricedRecord(record, tier, tokens, None, None, None)
    return PricedRecord(record, tier, tokens, price.cost(tokens), price.source, price.checked)


def _grouped(calls: Sequence[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for call in calls:
        groups[key(call)].append(call)
    return groups


def _sums(group: Sequence[PricedRecord]) -> Row:
    def known_sum(values: Sequence[Any]) -> Any:
        known = [each for each in values if each is not None]
        return sum(known) if known else None

    priced = [each.cost.amount for each in group if each.cost is not None]
    complete = all(each.cost is not None and each.cost.is_complete for each in group)
    return (
        len(group),
        known_sum([each.tokens.input for each in group]),
        sum(
            (each.tokens.cache_write_5m or 0) + (each.tokens.cache_write_1h or 0) for each in group
        ),
        sum(each.tokens.cache_read or 0 for each in group),
        known_sum([each.tokens.output for each in group]),
        known_sum(priced),
        len(group) - len(priced),
        "yes" if complete else "no",
    )


def in_all(calls: Sequence[PricedRecord]) -> Row:
    """Return the calls and their cost, the summaries among them, and what has no price."""
    summaries = [each for each in calls if isinstance(each.record.data, CompactBoundary)]
    priced = [each.cost.amount for each in summaries if each.cost is not None]
    number, *_, cost, unpriced, is_complete = _sums(calls)
    of_summaries = sum(priced) if priced else None
    return (number, cost, len(summaries), of_summaries, unpriced, is_complete)


def by_day(calls: Sequence[PricedRecord], day_of: Callable[[Record], str | None]) -> list[Row]:
    groups = _grouped(calls, lambda each: day_of(each.record))
    return [(day, *_sums(group)) for day, group in groups.items()]


def by_model(calls: Sequence[PricedRecord], day_text: Callable[[Any], str]) -> list[Row]:
    groups = _grouped(calls, lambda each: (each.record.data.model, each.tier))
    rows = []
    for (model, tier), group in groups.items():
        sources = [each.price for each in group if each.price is not None]
        checked = [each.checked for each in group if each.checked is not None]
        end = max(sources, default="unknown price"), day_text(max(checked)) if checked else None
        rows.append((model or "unknown", tier or "standard", *_sums(group), *end))
    return rows


def profits(records: Sequence[Record]) -> list[Row]:
    sessions = _grouped(records, lambda each: each.data.session_id)
    all_ = [
        profit for own in sessions.values() for profit in session_costs(own, price_of).compactions
    ]
    rows = []
    for model, group in _grouped(all_, lambda each: each.model or "unknown").items():
        nets = [each.net for each in group if each.net is not None]
        paid = [each for each in nets if each.amount > 0]
        broken = [each for each in group if each.break_even is not None]
        summary, rewrite = (
            total(getattr(each, name) for each in group) for name in ("summary", "rewrite")
        )
        complete = (
            bool(nets) and all(each.is_complete for each in paid),
            bool(broken) and all(each.net and each.net.is_complete for each in broken),
            *(each is not None and each.is_complete for each in (summary, rewrite)),
            bool(nets) and all(each.is_complete for each in nets),
        )

        rows.append(
            (
                model,
                *(len(group), len(nets), len(paid) if nets else None),
                median(each.break_even for each in broken) if broken else None,
                *(
                    None if each is None else each.amount
                    for each in (summary, rewrite, total(nets))
                ),
                *("yes" if each else "no" for each in complete),
            )
        )
    return rows
