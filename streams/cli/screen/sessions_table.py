"""The table of sessions, as wide as the terminal has room for."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from schemas.views import ChainView, SessionView
from streams.cli.screen.output import GUESS_EXPLAINED, ago, percent, thousands
from streams.cli.screen.render import (
    COMPACTING,
    GAP,
    SHORT_ID,
    attempt_state,
    bar,
    compactions_words,
    guess,
    or_unknown,
    plain_table,
    short_ids,
    shown_chain,
    window_words,
)
from streams.core.session_status import status_of

_TABLE_BAR_CELLS = 10

_LEAST_MODEL = 18
"""Characters of a model's name that identify it: claude-sonnet-4-5."""

_LEAST_GAUGE = len("compacting")
"""Columns of a percentage, or of a chain's state, without a bar."""


def sessions_table(views: Sequence[SessionView], now_ms: int, width: int) -> RenderableType:
    """Return the table of sessions, in the order given, for a screen of this width.

    Where it is too wide, columns go that matter least, then the bar is cut, then the model goes,
    then the tokens. Ids, percentages and compactions always stay: at worst they are wrapped.
    """
    shorts = short_ids([view.session_id for view in views])
    cells = {
        "Session": [Text(short) for short in shorts],
        "Runtime": [or_unknown(view.identity.runtime) for view in views],
        "Model": [or_unknown(shown_chain(view).model or view.identity.model) for view in views],
        "Context": [_gauge(view, now_ms, _TABLE_BAR_CELLS) for view in views],
        "Tokens": [_tokens(shown_chain(view)) for view in views],
        "Messages": [_messages(shown_chain(view)) for view in views],
        "Compactions": [Text(compactions_words(view)) for view in views],
        "Active": [Text(ago(view.last_ms, now_ms), style="dim") for view in views],
    }
    widths = {name: _natural_width(name, column) for name, column in cells.items()}
    model = widths["Model"]
    widths["Model"] = min(model, _LEAST_MODEL)
    for name in ("Runtime", "Active", "Messages"):
        if _excess(widths, width) > 0:
            del widths[name]
    for bar_cells in (_TABLE_BAR_CELLS // 2, 0):
        if _excess(widths, width) > 0:
            cells["Context"] = [_gauge(view, now_ms, bar_cells) for view in views]
            widths["Context"] = _natural_width("Context", cells["Context"])
    _fit(widths, width)
    if "Model" in widths:
        widths["Model"] = min(model, widths["Model"] - _excess(widths, width))
    table = plain_table()
    for name in (name for name in cells if name in widths):
        table.add_column(
            name,
            no_wrap=name == "Model",
            overflow="ellipsis" if name == "Model" else "fold",
            width=widths[name],
            justify="right" if name in {"Tokens", "Messages"} else "left",
        )
    for row in zip(*(cells[name] for name in cells if name in widths), strict=True):
        table.add_row(*row)
    if any(shown_chain(view).window_source == "default" for view in views):
        return Group(table, Text(GUESS_EXPLAINED, style="dim"))
    return table


def _fit(widths: dict[str, int], width: int) -> None:
    """Narrow the columns that can be wrapped, and take away those that can go."""
    # A percentage is not wrapped, but that an attempt has stalled is long, and can be.
    if (excess := _excess(widths, width)) > 0:
        widths["Context"] = max(min(widths["Context"], _LEAST_GAUGE), widths["Context"] - excess)
    for name in ("Model", "Tokens"):
        if _excess(widths, width) > 0:
            del widths[name]
    for name, least in (("Compactions", len("Compactions")), ("Session", SHORT_ID)):
        excess = max(0, _excess(widths, width))
        widths[name] = max(min(widths[name], least), widths[name] - excess)


def _natural_width(name: str, cells: Sequence[Text]) -> int:
    return max([len(name), *[cell.cell_len for cell in cells]])


def _excess(widths: Mapping[str, int], width: int) -> int:
    """Return by how much columns of these widths are wider than the screen."""
    return sum(widths.values()) + GAP * (len(widths) - 1) - width


def _gauge(view: SessionView, now_ms: int, cells: int) -> Text:
    chain, status = shown_chain(view), status_of(view)
    state = status.state(now_ms)
    shown = bar(chain, cells).append(" ") if cells else Text()
    if state in COMPACTING:
        return shown.append(attempt_state(status, now_ms), style="magenta")
    known = chain.used_percent is not None
    used = guess(percent(chain.used_percent), chain.window_source)
    return shown.append(f"{used:>6}", style="" if known and state != "stale" else "dim")


def _tokens(chain: ChainView) -> Text:
    return Text(f"{thousands(chain.used_tokens)}/{window_words(chain)}")


def _messages(chain: ChainView) -> Text:
    return Text(f"{chain.messages}/{chain.messages_total}")
