"""Costs on the screen: `~` marks what is derived from list prices; unknown is not zero."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from rich.panel import Panel
from rich.text import Text

from contextgauge.pricing import Cost
from schemas.records import CompactBoundary, CompactionComplete, Record
from streams.cli.screen.figures import GUESS, UNKNOWN, count, exact, safe
from streams.cli.screen.tables import facts_box
from streams.core.costs import CompactionProfit, SessionCosts

UNPRICED: Final = "price unknown"

_CENT: Final = Decimal("0.01")
_DIGITS: Final = 2
"""Of amounts below a dollar: a response costs fractions of a cent."""

_LISTED: Final = 5
"""Models that are named, the most expensive ones."""


def money(cost: Cost | None) -> str:
    """Return an amount: `~$12.24`, `at least ~$0.067` where a part is unknown, `price unknown`."""
    return UNPRICED if cost is None else at_least(amount(cost), is_complete=cost.is_complete)


def at_least(words: str, *, is_complete: bool) -> str:
    """Return a figure that more would be known of: `at least ~$0.067`."""
    return words if is_complete else f"at least {words}"


def at_most(words: str, *, is_complete: bool) -> str:
    """Return a figure that an unknown cost would lower: `at most ~$3.10`."""
    return words if is_complete else f"at most {words}"


def amount(cost: Cost, *, exact: bool = False) -> str:
    """Return an amount in dollars with cents, below a dollar with two digits that count.

    With `exact`, all its digits.
    """
    size = abs(cost.amount)
    if exact:
        digits = f"{size:,f}"
    elif size >= 1:
        digits = f"{size.quantize(_CENT):,f}"
    elif not size:
        digits = "0"
    else:
        digits = f"{size.quantize(Decimal(1).scaleb(size.adjusted() - _DIGITS + 1)):f}"
    return f"{GUESS}{'-' if cost.amount < 0 else ''}${digits}"


def costs_box(costs: SessionCosts) -> Panel | None:
    """Return what a session cost, and each of its models; None where it has no calls."""
    if not costs.models:
        return None
    facts = [("Session", Text(money(costs.cost)))]
    ranked = sorted(costs.models, key=lambda each: -each.cost.amount if each.cost else Decimal(0))
    for each in ranked[:_LISTED]:
        unpriced = f", {exact(each.unpriced)} unpriced" if each.cost and each.unpriced else ""
        words = f"{money(each.cost)} · {count(each.calls, 'call')}{unpriced}"
        facts.append((safe(each.model or UNKNOWN), Text(words)))
    return facts_box("Cost at list prices", facts)


def profit_facts(profit: CompactionProfit) -> list[tuple[str, str]]:
    """Return what a compaction saved, and whether that paid for it."""
    if profit.saving is None:
        saved = UNKNOWN if profit.tokens_saved is None else UNPRICED
    else:
        saved = f"{amount(profit.saving)} a response · {count(profit.responses, 'response')} since"
    return [("Saves", saved), ("Pays after", _breaking_even(profit)), ("Net", _net(profit))]


def profit_words(record: Record, profits: Mapping[str, CompactionProfit]) -> str:
    """Return what a timeline adds to a boundary and to its completion."""
    data = record.data
    if isinstance(data, CompactBoundary):
        profit = profits.get(record.id)
        return "" if profit is None or profit.summary is None else f" · {money(profit.summary)}"
    if (
        not isinstance(data, CompactionComplete)
        or (profit := profits.get(data.boundary_id)) is None
    ):
        return ""
    parts = []
    if profit.rewrite is not None:
        parts.append(f"rewrite {money(profit.rewrite)}")
    if profit.saving is not None:
        parts.append(f"saves {amount(profit.saving)} a response")
        parts.append(f"net {_net(profit)} after {exact(profit.responses)}")
    return "".join(f" · {part}" for part in parts)


def _breaking_even(profit: CompactionProfit) -> str:
    if profit.break_even is None:
        return UNKNOWN
    words = count(profit.break_even, "response")
    return at_least(words, is_complete=profit.net is not None and profit.net.is_complete)


def _net(profit: CompactionProfit) -> str:
    if profit.net is None:
        return UNKNOWN
    if profit.summary is None:
        return f"{amount(profit.net)} without the summary"
    return at_most(amount(profit.net), is_complete=profit.net.is_complete)
