"""The tables of sessions, of `contextgauge sessions` and of `contextgauge top`."""

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from schemas.views import ChainView, SessionView
from streams.cli.screen.figures import UNKNOWN, ago, elapsed, percent, thousands
from streams.cli.screen.output import GUESS_EXPLAINED, cell
from streams.cli.screen.render import (
    COMPACTING,
    SHORT_ID,
    attempt_state,
    bar,
    compactions_words,
    failure_name,
    guess,
    short_ids,
    shown_chain,
    window_words,
)
from streams.cli.screen.tables import Cells, fitted
from streams.core.session_status import status_of

_MODEL, _SHORT_MODEL = 18, 12
"""Characters of a model's name that identify it: claude-sonnet-4-5, and on narrow screens."""

_LEAST_GAUGE = len("compacting")
"""Columns of a percentage, or of a chain's state, without a bar."""

_STEPS = (
    *("Runtime", "Active", "Messages", "Context", "Context", "Context"),
    *("Model", "Tokens", "Compactions", "Session"),
)
"""What goes or becomes narrower first where there is no room; ids, percentages and compactions
always stay: at worst they are wrapped."""

_LIVE_STEPS = (
    *("Source", "Context", "Growth", "Context", "Model", "Until"),
    *("Model", "Active", "Context", "Tokens", "Comp.", "State"),
)
"""The same of `top`, where each session is one line: at worst, columns are cut."""


def sessions_table(views: Sequence[SessionView], now_ms: int, width: int) -> RenderableType:
    """Return the table of sessions, in the order given, for a screen of this width."""
    ids = [Text(short) for short in short_ids([view.session_id for view in views])]
    compactions = [Text(compactions_words(view)) for view in views]
    bars = [[_gauge(view, now_ms, cells) for view in views] for cells in (10, 5, 0)]
    table = fitted(
        {
            "Session": [Cells(ids), Cells(ids, SHORT_ID)],
            "Runtime": [Cells([cell(view.identity.runtime) for view in views])],
            "Model": [Cells(_models(views), _MODEL)],
            "Context": [*map(Cells, bars), Cells(bars[-1], _LEAST_GAUGE)],
            "Tokens": [_column(views, lambda _, chain: _tokens(chain))],
            "Messages": [
                _column(views, lambda _, chain: f"{chain.messages}/{chain.messages_total}")
            ],
            "Compactions": [Cells(compactions), Cells(compactions, len("Compactions"))],
            "Active": [_active(views, now_ms)],
        },
        _STEPS,
        width,
        right={"Tokens", "Messages"},
        cut={"Model"},
    )
    if any(shown_chain(view).window_source == "default" for view in views):
        return Group(table, Text(GUESS_EXPLAINED, style="dim"))
    return table


def live_table(
    views: Sequence[SessionView], now_ms: int, width: int, rows: range, selected: int | None = None
) -> Table:
    """Return the table of `top`, with some of the rows, each one line."""
    models = _models(views)
    states = [_state(view, now_ms) for view in views]
    compactions = [_compactions(view) for view in views]
    columns = {
        "Session": [Cells([Text(short) for short in short_ids([v.session_id for v in views])])],
        "Model": [Cells(models, _MODEL - 1), Cells(models, _SHORT_MODEL)],
        "Context": [Cells([_used(view, cells) for view in views]) for cells in (10, 8, 6, 0)],
        "Tokens": [_column(views, lambda _, chain: _tokens(chain).replace(UNKNOWN, "?"))],
        "Source": [Cells([cell(shown_chain(v).window_source, "dim") for v in views])],
        "Until": [_column(views, lambda _, chain: _short(chain.until_compaction_tokens))],
        "Growth": [_column(views, lambda _, chain: _short(chain.growth_tokens, "+"))],
        "State": [Cells(states), Cells(states, 0)],
        "Comp.": [Cells(compactions), Cells(compactions, 0)],
        "Active": [_active(views, now_ms)],
    }
    right = {"Tokens", "Until", "Growth"}
    table = fitted(columns, _LIVE_STEPS, width, right=right, cut=columns, gap=1, rows=rows)
    for at, row in zip(rows, table.rows, strict=True):
        stale = "dim" if status_of(views[at]).state(now_ms) == "stale" else ""
        row.style = f"{stale} {'reverse' if at == selected else ''}".strip()
    return table


def _column(views: Sequence[SessionView], words: Callable[[SessionView, ChainView], str]) -> Cells:
    return Cells([Text(words(view, shown_chain(view))) for view in views])


def _models(views: Sequence[SessionView]) -> list[Text]:
    return [cell(shown_chain(view).model or view.identity.model) for view in views]


def _active(views: Sequence[SessionView], now_ms: int) -> Cells:
    return Cells([Text(ago(view.last_ms, now_ms), style="dim") for view in views])


def _tokens(chain: ChainView) -> str:
    return f"{thousands(chain.used_tokens)}/{window_words(chain)}"


def _gauge(view: SessionView, now_ms: int, cells: int) -> Text:
    """Return how full a session's window is, or the state of its open compaction."""
    status = status_of(view)
    state = status.state(now_ms)
    if state in COMPACTING:
        shown = bar(shown_chain(view), cells).append(" ") if cells else Text()
        return shown.append(attempt_state(status, now_ms), style="magenta")
    return _used(view, cells, dim=state == "stale")


def _used(view: SessionView, cells: int, *, dim: bool = False) -> Text:
    chain = shown_chain(view)
    shown = bar(chain, cells).append(" ") if cells else Text()
    used = guess(percent(chain.used_percent), chain.window_source)
    return shown.append(f"{used:>6}", style="dim" if dim or chain.used_percent is None else "")


def _short(tokens: int | None, sign: str = "") -> str:
    return "?" if tokens is None else f"{sign}{thousands(tokens)}"


def _state(view: SessionView, now_ms: int) -> Text:
    status, attempt = status_of(view), view.attempt
    state = status.state(now_ms)
    if attempt is None:
        return Text(state, style="dim" if state != "unknown" else "yellow")
    if state == "stalled" and status.last_sign_ms is not None:
        return Text(f"stalled {elapsed(status.last_sign_ms, now_ms)}", style="bold red")
    if attempt.started_ms is None:
        return Text("compacting", style="magenta")
    return Text(f"compacting {elapsed(attempt.started_ms, now_ms)}", style="magenta")


def _compactions(view: SessionView) -> Text:
    counts = view.compactions
    shown = Text(str(counts.manual + counts.automatic + counts.unknown_trigger))
    if not counts.failed:
        return shown
    return shown.append(f", {counts.failed} {failure_name(view)}", style="red")
