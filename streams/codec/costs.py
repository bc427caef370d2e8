"""Costs as JSON: amounts are decimal text in US dollars, with their basis."""

from contextgauge.pricing import Cost
from schemas.records import Json
from streams.core.costs import CompactionProfit, SessionCosts


def costs_document(costs: SessionCosts) -> dict[str, Json]:
    """Return a session's costs as the API has them."""
    return {
        "currency": "USD",
        "cost": _amount(costs.cost),
        "models": [
            {
                "model": each.model,
                "calls": each.calls,
                "unpriced": each.unpriced,
                "cost": _amount(each.cost),
            }
            for each in costs.models
        ],
        "compactions": [_profit(each) for each in costs.compactions],
        "is_whole": costs.is_whole,
    }


def _amount(cost: Cost | None) -> dict[str, Json]:
    if cost is None:
        return {"usd": None, "basis": "unknown", "is_complete": False}
    return {"usd": f"{cost.amount:f}", "basis": "derived", "is_complete": cost.is_complete}


def _profit(profit: CompactionProfit) -> dict[str, Json]:
    return {
        "boundary_id": profit.boundary_id,
        "chain": profit.chain,
        "number": profit.number,
        "model": profit.model,
        "summary": _amount(profit.summary),
        "rewrite_tokens": profit.rewrite_tokens,
        "rewrite": _amount(profit.rewrite),
        "tokens_saved": profit.tokens_saved,
        "saving": _amount(profit.saving),
        "responses": profit.responses,
        "break_even_responses": profit.break_even,
        "net": _amount(profit.net),
        "cache_share_before": profit.cache_share_before,
        "cache_share_after": profit.cache_share_after,
        "duration_ms": profit.duration_ms,
        "waited_ms": profit.waited_ms,
    }
