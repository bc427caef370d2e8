"""What a session costs, and each of its compactions: token counts of records at list prices.

Token counts are measured, amounts are derived from them, and what is not known is None. The records
say how many tokens; prices are looked up when someone asks, so that a newer table needs no rebuild.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.pricing import Cost, Price, TokenCounts, total
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionTiming,
    ContextReading,
    ContextReset,
    DurationSource,
    Record,
)
from streams.core.stored_records import whole_from

PriceLookup: TypeAlias = Callable[[str | None, datetime | None, str | None], Price | None]
"""Gives the price of a model, at a time if it is known, in a tier: `price_of`, a table's `find`."""

CallKind: TypeAlias = Literal["response", "summary"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class PricedCall(NamedTuple):
    """One call of a model: a response, or a compaction's own call that wrote the summary.

    `cost` is None where the price is unknown. `size` are all tokens of the prompt.
    """

    kind: CallKind
    chain: str
    sequence: int
    model: str | None
    service_tier: str | None
    tokens: TokenCounts
    size: int
    price: Price | None
    cost: Cost | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProfit:
    """What a compaction cost, and what it saved since. `boundary_id` is its record's.

    `summary` is the cost of the call that wrote it. `rewrite` is that of what the first response
    after the boundary wrote to the cache: `rewrite_tokens`. `saving` is by how much each response
    after it is cheaper: `tokens_saved` at the price of what is read from the cache, or of input
    where the runtime reports no cache. `responses` counts those after it, until the next boundary
    or reset; `break_even` is how many of them pay for summary and rewrite, and `net` what they
    saved less these. Without the summary's cost both are too good: `net` is then not complete.

    `cache_share_before` and `cache_share_after` are the shares, 0 to 1, of the last prompt before
    and the first after it that were read from the cache. `duration_ms` is how long it took,
    `waited_ms` how long the agent waited: nothing for one that was made in the background.
    """

    boundary_id: str
    chain: str
    number: int
    model: str | None
    summary: Cost | None
    rewrite_tokens: int | None
    rewrite: Cost | None
    tokens_saved: int | None
    saving: Cost | None
    responses: int
    break_even: int | None
    net: Cost | None
    cache_share_before: float | None
    cache_share_after: float | None
    duration_ms: int | None
    waited_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """What a session's calls of a model cost. `unpriced` counts calls without a known price."""

    model: str | None
    calls: int
    unpriced: int
    cost: Cost | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCosts:
    """What a session cost, as far as its records tell; by model, and each compaction.

    Compactions are in the order of the records. `is_whole` is false where earlier records are
    missing: all is then a minimum.
    """

    cost: Cost | None
    models: tuple[ModelCost, ...]
    compactions: tuple[CompactionProfit, ...]
    is_whole: bool

    @property
    def profits(self) -> Mapping[str, CompactionProfit]:
        """The compactions by their boundaries' ids."""
        return {each.boundary_id: each for each in self.compactions}


def session_costs(
    records: Iterable[Record], price_of: PriceLookup, *, is_whole: bool = True
) -> SessionCosts:
    """Return what a session's records say of its costs; what was inherited cost another (R30)."""
    own = sorted(
        (record for record in records if not record.data.inherited),
        key=lambda record: record.sequence,
    )
    responses = _responses(own, price_of)
    summaries = {
        record.id: call
        for record in own
        if isinstance(record.data, CompactBoundary)
        and (call := _summary(record, record.data, price_of)) is not None
    }
    calls = [*(call for chain in responses.values() for call in chain), *summaries.values()]
    by_model: dict[str | None, list[PricedCall]] = defaultdict(list)
    for call in calls:
        by_model[call.model].append(call)
    models = tuple(
        ModelCost(
            model=model,
            calls=len(group),
            unpriced=sum(call.cost is None for call in group),
            cost=total(call.cost for call in group),
        )
        for model, group in sorted(by_model.items(), key=lambda item: item[0] or "")
    )
    cost = total(call.cost for call in calls)
    if cost is not None and not is_whole:
        cost = Cost(cost.amount, is_complete=False)
    return SessionCosts(
        cost=cost,
        models=models,
        compactions=tuple(_profits(own, responses, summaries)),
        is_whole=is_whole,
    )


def stored_costs(records: Sequence[Record], price_of: PriceLookup) -> SessionCosts:
    """Return the costs of a session whose views hold these records, perhaps only the newest."""
    return session_costs(records, price_of, is_whole=not whole_from(records))


def _responses(
    records: Sequence[Record], price_of: PriceLookup
) -> Mapping[str, Sequence[PricedCall]]:
    """Return the responses of each chain; one of several readings counts once, by the last."""
    readings: dict[str, list[tuple[Record, ContextReading]]] = defaultdict(list)
    for record in records:
        if isinstance(record.data, ContextReading):
            readings[record.data.chain].append((record, record.data))
    calls: dict[str, list[PricedCall]] = {}
    for chain, of_chain in readings.items():
        latest = {
            data.response_id or record.id: (record, data, _output(data, following))
            for (record, data), following in zip(of_chain, [*of_chain[1:], None], strict=True)
        }
        calls[chain] = [
            _call(
                "response", record, data.model, data.service_tier, _tokens(data, output), price_of
            )
            for record, data, output in latest.values()
        ]
    return calls


def _output(data: ContextReading, following: tuple[Record, ContextReading] | None) -> int | None:
    if data.output_tokens is not None:
        return data.output_tokens
    return None if following is None else following[1].previous_output_tokens


def _tokens(data: ContextReading, output: int | None) -> TokenCounts:
    return _counts(
        data.input_tokens,
        data.cache_creation_tokens,
        data.cache_creation_1h_tokens,
        data.cache_read_tokens,
        output,
    )


def _counts(
    fresh: int | None,
    written: int | None,
    for_hour: int | None,
    read: int | None,
    output: int | None,
) -> TokenCounts:
    """Return counts with cache writes by lifetime; one that is not reported was not made."""
    hour = min(for_hour or 0, written or 0)
    return TokenCounts(
        input=fresh,
        output=output,
        cache_write_5m=(written or 0) - hour,
        cache_write_1h=hour,
        cache_read=read or 0,
    )


def _summary(record: Record, data: CompactBoundary, price_of: PriceLookup) -> PricedCall | None:
    """Return the call that wrote a summary, None where nothing is reported of it."""
    own = data.receipt
    if own is None or (own.summary_input_tokens is None and own.summary_output_tokens is None):
        return None
    read, written = own.summary_cache_read_tokens, data.summary_cache_creation_tokens
    fresh = own.summary_input_tokens
    if fresh is not None:
        fresh = max(0, fresh - (read or 0) - (written or 0))
    counts = _counts(
        fresh, written, data.summary_cache_creation_1h_tokens, read, own.summary_output_tokens
    )
    return _call("summary", record, data.model, None, counts, price_of)


def _call(
    kind: CallKind,
    record: Record,
    model: str | None,
    tier: str | None,
    tokens: TokenCounts,
    price_of: PriceLookup,
) -> PricedCall:
    when = None if record.time_ms is None else _EPOCH + timedelta(milliseconds=record.time_ms)
    price = price_of(model, when, tier)
    cost = None if price is None else price.cost(tokens)
    return PricedCall(
        kind, record.data.chain, record.sequence, model, tier, tokens, tokens.prompt, price, cost
    )


def _profits(
    records: Sequence[Record],
    responses: Mapping[str, Sequence[PricedCall]],
    summaries: Mapping[str, PricedCall],
) -> Iterable[CompactionProfit]:
    completions = {
        record.data.boundary_id: record.data
        for record in records
        if isinstance(record.data, CompactionComplete)
    }
    timings = {
        record.data.boundary_id: record.data
        for record in records
        if isinstance(record.data, CompactionTiming)
    }
    breaks: dict[str, list[int]] = defaultdict(list)
    for record in records:
        if isinstance(record.data, CompactBoundary | ContextReset):
            breaks[record.data.chain].append(record.sequence)
    ends = {
        begin: end
        for sequences in breaks.values()
        for begin, end in pairwise([*sequences, 1 << 62])
    }
    for record in records:
        data = record.data
        if isinstance(data, CompactBoundary):
            calls = responses.get(data.chain, ())
            yield _profit(
                record,
                data,
                completions.get(record.id),
                timings.get(record.id),
                summaries.get(record.id),
                next((call for call in reversed(calls) if call.sequence < record.sequence), None),
                [call for call in calls if record.sequence < call.sequence < ends[record.sequence]],
            )


def _profit(  # noqa: PLR0917 -- the records of one compaction
    record: Record,
    data: CompactBoundary,
    complete: CompactionComplete | None,
    timing: CompactionTiming | None,
    summary: PricedCall | None,
    before: PricedCall | None,
    after: Sequence[PricedCall],
) -> CompactionProfit:
    first = after[0] if after else None
    tokens_saved = None if complete is None else complete.tokens_saved
    rewrite_tokens = None if complete is None else complete.cache_rewrite_tokens
    rewrite, saving = _rewrite(first, rewrite_tokens), _saving(first, tokens_saved)
    summary_cost = None if summary is None else summary.cost
    duration_ms, source = data.duration_ms, data.duration_source
    if duration_ms is None and timing is not None:
        duration_ms, source = timing.duration_ms, timing.duration_source
    return CompactionProfit(
        boundary_id=record.id,
        chain=data.chain,
        number=data.number,
        model=data.model if first is None else first.model,
        summary=summary_cost,
        rewrite_tokens=rewrite_tokens,
        rewrite=rewrite,
        tokens_saved=tokens_saved,
        saving=saving,
        responses=len(after),
        break_even=_break_even(summary_cost, rewrite, saving),
        net=_net(summary_cost, rewrite, saving, len(after)),
        cache_share_before=_cache_share(before),
        cache_share_after=_cache_share(first),
        duration_ms=duration_ms,
        waited_ms=_waited_ms(duration_ms, source),
    )


def _waited_ms(duration_ms: int | None, source: DurationSource | None) -> int | None:
    return 0 if source == "precomputed" else duration_ms


def _cache_share(call: PricedCall | None) -> float | None:
    if call is None or not call.size:
        return None
    return round((call.tokens.cache_read or 0) / call.size, 4)


def _rewrite(first: PricedCall | None, tokens: int | None) -> Cost | None:
    if first is None or tokens is None or first.price is None:
        return None
    hour = min(tokens, first.tokens.cache_write_1h or 0)
    return first.price.cost(
        TokenCounts(cache_write_5m=tokens - hour, cache_write_1h=hour), first.size
    )


def _saving(first: PricedCall | None, tokens: int | None) -> Cost | None:
    """Return what a response after a boundary saves; a negative one where the context grew."""
    if first is None or tokens is None or first.price is None:
        return None
    is_cached = bool(first.tokens.cache_read or first.tokens.cache_write_5m)
    is_cached = is_cached or bool(first.tokens.cache_write_1h)
    count = abs(tokens)
    counts = TokenCounts(cache_read=count) if is_cached else TokenCounts(input=count)
    cost = first.price.cost(counts, first.size)
    return cost if tokens >= 0 else Cost(-cost.amount, cost.is_complete)


def _break_even(summary: Cost | None, rewrite: Cost | None, saving: Cost | None) -> int | None:
    if summary is None or rewrite is None or saving is None or saving.amount <= 0:
        return None
    ratio: Decimal = (summary.amount + rewrite.amount) / saving.amount
    return int(ratio.to_integral_value(ROUND_CEILING))


def _net(
    summary: Cost | None, rewrite: Cost | None, saving: Cost | None, responses: int
) -> Cost | None:
    if saving is None or rewrite is None:
        return None
    spent = rewrite.amount if summary is None else rewrite.amount + summary.amount
    is_complete = summary is not None and all(
        cost.is_complete for cost in (summary, rewrite, saving)
    )
    return Cost(saving.amount * responses - spent, is_complete)
