"""A compaction's receipt in the terminal: what it did, in the words of the page."""

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from contextgauge.compaction.displays import preview
from schemas.views import Compaction, CompactionReceipt
from streams.cli.screen.figures import GUESS, UNKNOWN, count, duration, exact, safe
from streams.cli.screen.money import money, profit_facts
from streams.cli.screen.tables import facts_box
from streams.core.costs import CompactionProfit

_SOURCES = {
    "reported": "reported",
    "last_reading": "of the last response",
    "next_reading": "of the next response",
    "paired": "from start to end",
    "derived": "by the call that wrote the summary",
    "precomputed": "in the background",
}


def receipt_box(compaction: Compaction, profit: CompactionProfit | None = None) -> Panel:
    """Return all that is known of a compaction: figure by figure, then the summary's beginning.

    `profit` is what it cost and saved.
    """
    own = compaction.receipt
    more: list[RenderableType] = [
        Text(f"Lost turn of the user: {safe(text)}", style="bold red")
        for text in own.lost_pins or ()
    ]
    if compaction.summary is not None and compaction.summary.strip():
        more += [Text(), Text(safe(preview(compaction.summary)), style="dim")]
    facts = [(name, Text(safe(value))) for name, value in _facts(own, profit)]
    return facts_box(_marker(compaction), facts, *more)


def _marker(compaction: Compaction) -> str:
    own = compaction.receipt
    parts = [f"Context compacted #{compaction.number}"]
    if own.messages_archived is not None:
        parts.append(f"{count(own.messages_archived, 'message')} archived")
    if own.tokens_saved is not None:
        parts.append(f"{exact(own.tokens_saved)} tokens freed")
    elif own.tokens_before is not None:
        parts.append(f"{exact(own.tokens_before)} tokens before")
    return " · ".join(parts)


def _facts(own: CompactionReceipt, profit: CompactionProfit | None) -> list[tuple[str, str]]:
    reason = "" if own.reason is None else f": {own.reason.replace('_', ' ')}"
    facts = [
        ("Trigger", f"{own.trigger or UNKNOWN}{reason}"),
        ("Before", _sized(own.tokens_before, own.tokens_before_source)),
        ("After", _sized(own.tokens_after, own.tokens_after_source)),
        (
            "Summary cost",
            _with_money(_summary_cost(own), profit),
        ),
        ("Cache rewrite", _rewritten(own, profit)),
        *(() if profit is None else profit_facts(profit)),
        ("Took", _took(own)),
        ("Carried over", _counted(own.pins_carried, "turn")),
        ("User's turns", _turns(own)),
    ]
    if own.command_id is not None:
        attempt = "" if own.command_attempt is None else f", attempt {own.command_attempt}"
        facts.append(("Command", f"{own.command_id}{attempt}"))
    if own.cause_id is not None:
        facts.append(("Caused by", own.cause_id))
    return [*facts, ("Receipt", own.id)]


def _with_money(tokens: str, profit: CompactionProfit | None) -> str:
    """Return the summary's tokens, which are measured, with what they cost."""
    if not tokens:
        return UNKNOWN
    return tokens if profit is None else f"{tokens} · {money(profit.summary)}"


def _rewritten(own: CompactionReceipt, profit: CompactionProfit | None) -> str:
    if own.cache_rewrite_tokens is None:
        return UNKNOWN
    words = f"{exact(own.cache_rewrite_tokens)} tokens"
    if profit is not None:
        words += f" · {money(profit.rewrite)}"
    if profit is None or profit.cache_share_before is None or profit.cache_share_after is None:
        return words
    return f"{words} · cached {profit.cache_share_before:.0%} → {profit.cache_share_after:.0%}"


def _summary_cost(own: CompactionReceipt) -> str:
    return cost_words(
        own.summary_input_tokens, own.summary_cache_read_tokens, own.summary_output_tokens
    )


def cost_words(read: int | None, cached: int | None, written: int | None) -> str:
    """Return what was read and written to make a summary; nothing where both are unknown."""
    if read is None and written is None:
        return ""
    input_words = "input unknown" if read is None else f"{exact(read)} read"
    part = f" ({exact(cached)} cached)" if cached else ""
    output_words = "output unknown" if written is None else f"{exact(written)} written"
    return f"{input_words}{part}, {output_words}"


def _turns(own: CompactionReceipt) -> str:
    if own.pins_kept is None:
        return UNKNOWN
    return f"{GUESS}{exact(own.pins_kept)} kept, {GUESS}{exact(own.pins_lost)} lost"


def _sized(tokens: int | None, source: str | None) -> str:
    return UNKNOWN if tokens is None else _with_source(f"{exact(tokens)} tokens", source)


def _took(own: CompactionReceipt) -> str:
    if own.duration_ms is None:
        return UNKNOWN
    return _with_source(f"{duration(own.duration_ms)} to compact", own.duration_source)


def _counted(number: int | None, name: str) -> str:
    return UNKNOWN if number is None else count(number, name)


def _with_source(words: str, source: str | None) -> str:
    return words if source is None else f"{words}, {_SOURCES[source]}"
