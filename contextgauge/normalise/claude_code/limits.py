"""What Claude Code reports of its limits: automatic compaction, and its account of its context."""

from typing import Final

from contextgauge.normalise.fields import count, flag, items, mapping, name, truth, window
from contextgauge.normalise.limit_signals import AutoCompact, ContextUsage
from contextgauge.normalise.signals import Body, Exhausted, Signal
from contextgauge.record_words import ExhaustedReason
from contextgauge.records import Category

MAX_CATEGORIES: Final = 1_000
"""Rows of a context-usage answer; a longer list is none. Real ones have about ten."""

_OVER_LIMIT: Final[tuple[ExhaustedReason, ...]] = ("hard_limit", "compaction_window")


def auto_compact(body: Body) -> tuple[AutoCompact, ...]:
    """Return the auto-compact facts of a message's `autocompact_state`, if it has one."""
    state = mapping(body, "autocompact_state", "autocompactState")
    return () if state is None else (_auto_compact(state),)


def autocompact_state(body: Body) -> tuple[AutoCompact, ...]:
    """Return the facts of an `autocompact_state`: in its `value`, under its own name, or flat."""
    state = mapping(body, "value", "autocompact_state", "autocompactState")
    return (_auto_compact(body if state is None else state),)


def _auto_compact(state: Body) -> AutoCompact:
    return AutoCompact(
        truth(state, "enabled"),
        count(state, "threshold"),
        window(state, "effective_window", "effectiveWindow"),
        name(state, "source"),
        enforced=truth(state, "enforced") is True,
    )


def context_usage(answer: Body) -> tuple[Signal, ...]:
    """Return what a context-usage answer says of limits (R12); it is no reading (R6)."""
    raw_max = window(answer, "rawMaxTokens", "raw_max_tokens")
    listed = answer.get("categories")
    has_rows = isinstance(listed, list) and len(listed) <= MAX_CATEGORIES
    usage = ContextUsage(
        model=name(answer, "model"),
        total_tokens=window(answer, "totalTokens", "total_tokens"),
        raw_max_tokens=raw_max,
        categories=_categories(answer) if has_rows else None,
        message_breakdown=mapping(answer, "messageBreakdown", "message_breakdown"),
    )
    facts = AutoCompact(
        truth(answer, "isAutoCompactEnabled", "is_auto_compact_enabled"),
        count(answer, "autoCompactThreshold", "auto_compact_threshold"),
        raw_max,
        name(answer, "autocompactSource", "autocompact_source"),
        enforced=None,
    )
    over = mapping(answer, "over_limit", "overLimit") or {}
    tokens_over = count(over, "tokens_over", "tokensOver")
    exhausted = (
        Exhausted(known, tokens_over) for known in _OVER_LIMIT if known == over.get("kind")
    )
    return (facts, usage, *exhausted)


def _categories(answer: Body) -> tuple[Category, ...]:
    return tuple(
        Category(
            id=name(row, "id"),
            name=name(row, "name"),
            kind=name(row, "kind") or _kind_of(row),
            tokens=count(row, "tokens"),
        )
        for row in items(answer, "categories")
    )


def _kind_of(row: Body) -> str | None:
    return "deferred" if flag(row, "isDeferred", "is_deferred") else None


def control_response(body: Body) -> tuple[Signal, ...]:
    """Return what an answered `get_context_usage` says."""
    answer = mapping(mapping(body, "response") or {}, "response") or {}
    if "categories" in answer or "totalTokens" in answer or "total_tokens" in answer:
        return context_usage(answer)
    return ()
