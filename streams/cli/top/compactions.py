"""All compactions of one session, as a table."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from schemas.records import MAIN_CHAIN
from schemas.views import Compaction
from streams.cli.screen.output import UNKNOWN, ago, cell, count, duration, thousands
from streams.cli.screen.render import chain_labels, failure_name
from streams.cli.top.overview import Detail


def compactions_table(detail: Detail, now_ms: int) -> RenderableType:
    """Return the successful compactions, newest first, and the number of others."""
    failed = detail.view.compactions.failed
    caption = None if not failed else f"{count(failed, 'attempt')} {failure_name(detail.view)}"
    if not detail.compactions:
        return Text(caption or "no compaction yet", style="dim")
    labels = chain_labels({each.chain for each in detail.compactions})
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.caption, table.caption_justify = caption, "left"
    table.add_column("Compaction", no_wrap=True)
    for name in ("Before", "After", "Saved", "Took"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("Messages", justify="right", no_wrap=True)
    table.add_column("When", no_wrap=True)
    for each in detail.compactions:
        where = "" if each.chain == MAIN_CHAIN else f" ({labels[each.chain]})"
        table.add_row(
            Text(f"#{each.number} {each.trigger or 'trigger unknown'}{where}"),
            cell(_tokens(each.tokens_before)),
            cell(_after(each, each.tokens_after)),
            cell(_after(each, each.tokens_saved)),
            cell(_took(each)),
            Text(str(each.messages_since_last)),
            Text(ago(each.time_ms, now_ms), style="dim"),
        )
    return table


def _tokens(tokens: int | None) -> str | None:
    return None if tokens is None else thousands(tokens)


def _after(each: Compaction, tokens: int | None) -> str | None:
    """Return a figure that the next response reports; until then it is pending."""
    return "pending" if tokens is None and not each.complete else _tokens(tokens)


def _took(each: Compaction) -> str:
    """Return a duration, marked if it is the time from start to boundary, not a reported one."""
    if each.duration_ms is None:
        return UNKNOWN
    return duration(each.duration_ms) + (" paired" if each.duration_source == "paired" else "")
