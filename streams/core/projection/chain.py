"""One chain's part of a view: its size, its limits, its growth.

An epoch of a chain lasts from one boundary or reset to the next: the size is unknown until the
epoch's first reading (R22, R27), growth and the active messages count within it.
"""

from contextgauge.frozen import closed, maker, opened, replace
from schemas.records import CompactBoundary, ContextLimits, ContextReading, Record
from schemas.views import GROWTH_DIFFERENCES, Breakdown, ChainView, SizeState

_breakdown = maker(Breakdown)


def read(chain: ChainView, record: Record, data: ContextReading, *, compacting: bool) -> ChainView:
    """Return the chain after a reading; a compaction that is under way stays so.

    A copy's shows the size, but neither growth nor a peak of this chain (R30). One that comes late
    is of a former size (R34).
    """
    if data.late:
        return _read_late(chain, record, data)
    used, time_ms, before = data.used_tokens, record.time_ms, chain.used_tokens
    differences, growth = chain.differences, chain.growth_tokens
    is_own = not data.inherited
    # Between a copy's reading and one of its own, or an estimate and a reading, nothing grew. Only
    # increases count: after an edit a size is smaller, which says nothing of what a response adds.
    is_pair = is_own and not chain.inherited and chain.breakdown is not None
    if is_pair and before is not None and used > before:
        differences = (*differences, used - before)[-GROWTH_DIFFERENCES:]
        growth = sum(differences) // len(differences)
    is_peak = is_own and (chain.peak_tokens is None or used > chain.peak_tokens)
    threshold = _threshold(chain)
    limit_tokens = data.window if threshold is None else threshold
    # Set in one copy rather than by `replace`: half of all records are readings.
    after = opened(chain)
    after.model = data.model or chain.model
    after.subagent_type = data.subagent_type or chain.subagent_type
    after.state = "compacting" if compacting else "measured"
    after.used_tokens = used
    after.used_percent = data.used_percent
    after.window = data.window
    after.window_source = data.window_source
    if data.window is not None:
        after.passed_window = None
    elif chain.window is not None:
        after.passed_window = chain.window
    after.breakdown = _breakdown(
        input_tokens=data.input_tokens,
        cache_creation_tokens=data.cache_creation_tokens,
        cache_read_tokens=data.cache_read_tokens,
    )
    after.as_of_ms = time_ms
    after.until_compaction_tokens = None if threshold is None else threshold - used
    if is_peak:
        after.peak_tokens, after.peak_percent = used, data.used_percent
    after.messages = data.messages
    after.messages_total = data.messages_total
    if chain.oldest_ms is None:
        after.oldest_ms = time_ms
    after.differences = differences
    after.growth_tokens = growth
    after.responses_left = _responses_left(limit_tokens, used, growth)
    after.last_sequence = record.sequence
    after.inherited = not is_own
    return closed(after, ChainView)


def _read_late(chain: ChainView, record: Record, data: ContextReading) -> ChainView:
    """Return the chain after the reading of a former size: what it is now stays as it is."""
    used = data.used_tokens
    is_peak = chain.peak_tokens is None or used > chain.peak_tokens
    return replace(
        chain,
        peak_tokens=used if is_peak else chain.peak_tokens,
        peak_percent=data.used_percent if is_peak else chain.peak_percent,
        messages=data.messages,
        messages_total=data.messages_total,
        last_sequence=record.sequence,
    )


def limit(chain: ChainView, data: ContextLimits, time_ms: int | None) -> ChainView:
    """Return the chain with its latest limits.

    A size that is not measured takes the runtime's own total, where it reports one, as an estimate.
    """
    estimated = chain.breakdown is None and data.total_tokens is not None
    after = replace(
        chain,
        window=data.window,
        window_source=data.window_source,
        passed_window=chain.passed_window if data.window is None else None,
        auto_compact_enabled=data.auto_compact_enabled,
        auto_compact_threshold=data.auto_compact_threshold,
        effective_window=data.effective_window,
        categories=chain.categories if data.categories is None else data.categories,
        categories_tokens=chain.categories_tokens if data.categories is None else data.total_tokens,
        used_tokens=data.total_tokens if estimated else chain.used_tokens,
        as_of_ms=time_ms if estimated else chain.as_of_ms,
    )
    threshold, used = _threshold(after), after.used_tokens
    return replace(
        after,
        used_percent=_percent(used, data.window),
        until_compaction_tokens=None if threshold is None or used is None else threshold - used,
        responses_left=_responses_left(_limit(after, data.window), used, after.growth_tokens),
    )


def begin_epoch(chain: ChainView, time_ms: int | None) -> ChainView:
    """Return the chain after a boundary or reset: its size unknown, its active messages none."""
    return replace(
        chain,
        used_tokens=None,
        used_percent=None,
        breakdown=None,
        categories=None,
        categories_tokens=None,
        as_of_ms=time_ms,
        until_compaction_tokens=None,
        messages=0,
        oldest_ms=time_ms,
        differences=(),
        growth_tokens=None,
        responses_left=None,
        inherited=False,
    )


def raise_peak(chain: ChainView, data: CompactBoundary) -> ChainView:
    """Return the chain with a peak that is not below the size before a compaction (R13)."""
    size = data.pre_tokens
    if size is None or (chain.peak_tokens is not None and size <= chain.peak_tokens):
        return chain
    return replace(chain, peak_tokens=size, peak_percent=_percent(size, chain.window))


def settled(chain: ChainView) -> SizeState:
    """Return the state of a chain that no compaction is under way in."""
    if chain.used_tokens is None:
        return "unknown"
    return "estimated" if chain.breakdown is None else "measured"


def _threshold(chain: ChainView) -> int | None:
    """Return the size at which auto-compaction comes; None where it is off or not known."""
    return None if chain.auto_compact_enabled is False else chain.auto_compact_threshold


def _limit(chain: ChainView, window: int | None) -> int | None:
    threshold = _threshold(chain)
    return window if threshold is None else threshold


def _responses_left(limit: int | None, used: int | None, growth: int | None) -> int | None:
    if limit is None or used is None or growth is None:
        return None
    return (limit - used) // growth  # never by 0: growth is a mean of increases


def _percent(used: int | None, window: int | None) -> float | None:
    """Return the percentage used, floored to two decimals as in the records."""
    if used is None or not window:
        return None
    return (used * 10_000 // window) / 100
