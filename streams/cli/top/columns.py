"""The rows of `contextgauge top`: which columns there are, and which go where there is no room."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.text import Text

from schemas.views import SessionView
from streams.cli.screen.figures import elapsed
from streams.cli.screen.output import UNKNOWN, ago, percent, safe, thousands
from streams.cli.screen.render import bar, failure_name, guess, short_ids, shown_chain
from streams.core.session_status import status_of

_GAP = 1

_BARS = (10, 8, 6)
_MODELS = (40, 22, 17, 12)
"""Cells of a bar and characters of a model's name, from many to few."""


class _Form(NamedTuple):
    """How much is shown; `without` are columns that are not."""

    bar_cells: int
    model: int
    without: frozenset[str]


_FORMS = (
    _Form(_BARS[0], _MODELS[0], frozenset()),
    _Form(_BARS[0], _MODELS[1], frozenset()),
    _Form(_BARS[0], _MODELS[2], frozenset()),
    _Form(_BARS[1], _MODELS[2], frozenset({"Source"})),
    _Form(_BARS[1], _MODELS[2], frozenset({"Source", "Growth"})),
    _Form(_BARS[2], _MODELS[3], frozenset({"Source", "Growth"})),
    _Form(_BARS[2], _MODELS[3], frozenset({"Source", "Growth", "Until"})),
    _Form(_BARS[2], 0, frozenset({"Source", "Growth", "Until", "Model"})),
    _Form(_BARS[2], 0, frozenset({"Source", "Growth", "Until", "Model", "Active"})),
    _Form(0, 0, frozenset({"Source", "Growth", "Until", "Model", "Active"})),
    _Form(0, 0, frozenset({"Source", "Growth", "Until", "Model", "Active", "Tokens"})),
)
"""From all to as little as can be: below that, lines are cut."""

_RIGHT = frozenset({"Tokens", "Until", "Growth"})

_Cell = Callable[[SessionView], Text]


def header_and_rows(
    views: Sequence[SessionView], now_ms: int, width: int, first: int, rows: int
) -> list[Text]:
    """Return the header and some of the rows; columns are as wide as all rows need."""
    shorts = dict(
        zip(
            [view.session_id for view in views],
            short_ids([view.session_id for view in views]),
            strict=True,
        )
    )
    for form in _FORMS:
        columns = _columns(form, shorts, now_ms)
        cells = {name: [cell(view) for view in views] for name, cell in columns.items()}
        widths = {
            name: max([len(name), *[cell.cell_len for cell in column]])
            for name, column in cells.items()
        }
        if sum(widths.values()) + _GAP * (len(widths) - 1) <= width:
            break
    header = _joined([Text(name, style="bold") for name in widths], widths)
    lines = [header]
    for at in range(first, min(first + rows, len(views))):
        line = _joined([cells[name][at] for name in widths], widths)
        if status_of(views[at]).state(now_ms) == "stale":
            line.stylize("dim")
        lines.append(line)
    return lines


def _columns(form: _Form, shorts: dict[str, str], now_ms: int) -> dict[str, _Cell]:
    def session(view: SessionView) -> Text:
        return Text(shorts[view.session_id])

    def model(view: SessionView) -> Text:
        name = shown_chain(view).model or view.identity.model
        text = Text(UNKNOWN, style="dim") if name is None else Text(safe(name))
        text.truncate(form.model or 1, overflow="ellipsis")
        return text

    def context(view: SessionView) -> Text:
        return _context(view, form.bar_cells)

    def state(view: SessionView) -> Text:
        return _state(view, now_ms)

    def active(view: SessionView) -> Text:
        return Text(ago(view.last_ms, now_ms), style="dim")

    every: dict[str, _Cell] = {
        "Session": session,
        "Model": model,
        "Context": context,
        "Tokens": _tokens,
        "Source": _source,
        "Until": _until,
        "Growth": _growth,
        "State": state,
        "Comp.": _compactions,
        "Active": active,
    }
    return {name: cell for name, cell in every.items() if name not in form.without}


def _joined(cells: Sequence[Text], widths: dict[str, int]) -> Text:
    line = Text()
    for at, ((name, width), cell) in enumerate(zip(widths.items(), cells, strict=True)):
        if at:
            line.append(" " * _GAP)
        space = " " * (width - cell.cell_len)
        if name in _RIGHT:
            line.append(space).append(cell)
        else:
            line.append(cell).append(space)
    return line


def _context(view: SessionView, bar_cells: int) -> Text:
    chain = shown_chain(view)
    shown = bar(chain, bar_cells).append(" ") if bar_cells else Text()
    used = guess(percent(chain.used_percent), chain.window_source)
    return shown.append(f"{used:>6}", style="dim" if chain.used_percent is None else "")


def _tokens(view: SessionView) -> Text:
    chain = shown_chain(view)
    window = guess(_short(chain.window), chain.window_source)
    return Text(f"{_short(chain.used_tokens)}/{window}")


def _short(tokens: int | None) -> str:
    return "?" if tokens is None else thousands(tokens)


def _source(view: SessionView) -> Text:
    return Text(shown_chain(view).window_source or UNKNOWN, style="dim")


def _until(view: SessionView) -> Text:
    return Text(_short(shown_chain(view).until_compaction_tokens))


def _growth(view: SessionView) -> Text:
    growth = shown_chain(view).growth_tokens
    return Text("?" if growth is None else f"+{thousands(growth)}")


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
