"""The receipt of a compaction: begun by its boundary, completed by the records after it."""

from contextgauge.frozen import copied, replace
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionTiming,
    PinsChecked,
    ReportedReceipt,
)
from schemas.views import CompactionReceipt

_NOTHING = ReportedReceipt()


def begun(boundary_id: str, data: CompactBoundary) -> CompactionReceipt:
    """Return what a boundary reports."""
    reported = data.receipt or _NOTHING
    return copied(
        CompactionReceipt,
        reported,
        id=boundary_id,
        summary_cache_creation_tokens=data.summary_cache_creation_tokens,
        summary_cache_creation_1h_tokens=data.summary_cache_creation_1h_tokens,
        trigger=data.trigger,
        tokens_before=data.pre_tokens,
        tokens_before_source=data.pre_tokens_source,
        tokens_after=None,
        tokens_after_source=None,
        tokens_saved=None,
        cache_rewrite_tokens=None,
        duration_ms=data.duration_ms,
        duration_source=data.duration_source,
        pins_kept=None,
        pins_lost=None,
        lost_pins=None,
    )


def completed(
    receipt: CompactionReceipt, data: CompactionComplete | CompactionTiming | PinsChecked
) -> CompactionReceipt:
    """Return the receipt with what a later record reports of the same boundary."""
    if isinstance(data, CompactionComplete):
        return replace(
            receipt,
            tokens_after=data.tokens_after,
            tokens_after_source=None if data.tokens_after is None else "next_reading",
            tokens_saved=data.tokens_saved,
            cache_rewrite_tokens=data.cache_rewrite_tokens,
        )
    if isinstance(data, CompactionTiming):
        return replace(receipt, duration_ms=data.duration_ms, duration_source=data.duration_source)
    return replace(
        receipt,
        pins_kept=data.pins_kept,
        pins_lost=data.pins_lost,
        lost_pins=data.lost_pins,
    )
