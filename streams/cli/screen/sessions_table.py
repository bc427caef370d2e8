"""The tables of sessions, of `contextgauge sessions` and of `contextgauge top`."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from schemas.views import ChainView, SessionView
from streams.cli.screen.figures import UNKNOWN, ago, elapsed, exact, percent, safe, thousands
from streams.cli.screen.next_compaction import until_words
from streams.cli.screen.output import PASSED_EXPLAINED, cell, doubts_explained
from streams.cli.screen.render import (
    COMPACTING,
    SHORT_ID,
    attempt_state,
    bar,
    compactions_words,
    failure_name,
    messages_words,
    short_ids,
    shown_chain,
    state_word,
)
from streams.cli.screen.tables import Cells, fitted
from streams.cli.screen.window_words import SOURCE_WORDS, guess, is_doubtful, window_words
from streams.core.session_status import is_live, status_of
from streams.core.until_compaction import NO_POINTS, CompactionPoints

NOTHING_HERE = "No sessions yet: they appear when a runtime writes a transcript"

_MODEL, _SHORT_MODEL = 18, 12
"""Characters of a model's name that identify it: claude-sonnet-4-5, and on narrow screens."""

_LEAST_GAUGE = len("compacting")
"""Columns of a percentage, or of a chain's state, without a bar."""

_TITLES = (50, 24)
"""Characters of a title at least, on wide and on narrow screens."""

_FOLDERS = ((2, 20), (1, 12))
"""Parts of a folder's path, from its end, and characters at least: they identify it."""

_STEPS = (
    *("Session", "Until", "Title", "Folder", "Runtime", "Messages", "Context", "Compactions"),
    *("Folder", "Until", "Context", "Context", "Active", "Model", "Tokens", "Title", "Session"),
)
"""What goes or becomes narrower first where there is no room; ids, percentages and compactions
always stay: at worst ids are wrapped."""

_LIVE_STEPS = (
    *("Session", "Until", "Title", "Source", "Comp.", "Last 10", "Folder", "Context", "Growth"),
    *("Folder", "Context", "Model", "Until"),
    *("Model", "Active", "Context", "Tokens", "Title", "Comp.", "State"),
)
"""The same of `top`, where each session is one line: at worst, columns are cut."""

_BLOCKS = "▁▂▃▄▅▆▇█"
"""Heights of a sparkline."""

_SPARK_BARS = 10


def live_first(views: Sequence[SessionView], now_ms: int) -> list[SessionView]:
    """Return sessions in the order given, but live ones before all others."""
    return sorted(views, key=lambda view: not is_live(view, now_ms))


def sessions_table(
    views: Sequence[SessionView],
    now_ms: int,
    width: int,
    titles: Mapping[str, str] | None = None,
    points: CompactionPoints = NO_POINTS,
) -> RenderableType:
    """Return the table of sessions, in the order given, for a screen of this width.

    `titles` are by session id, `points` are where compactions are expected.
    """
    compactions = [Text(compactions_words(view)) for view in views]
    bars = [[_gauge(view, now_ms, cells, points) for view in views] for cells in (10, 5, 0)]
    table = fitted(
        {
            "Session": _ids(views),
            **_titles_and_folders(views, titles),
            "Runtime": [Cells([cell(view.identity.runtime) for view in views])],
            "Model": [Cells(_models(views), _MODEL)],
            "Context": [*map(Cells, bars), Cells(bars[-1], _LEAST_GAUGE)],
            "Tokens": [_column(views, _tokens)],
            **_until_column(views, points),
            "Messages": [_column(views, lambda _, chain: messages_words(chain))],
            "Compactions": [Cells(compactions), Cells([_attempts(view) for view in views])],
            "Active": [_active(views, now_ms)],
        },
        _STEPS,
        width,
        right={"Tokens", "Until", "Messages"},
        cut={"Model", "Title", "Folder"},
    )
    doubts = [status_of(view).window_doubts.get(shown_chain(view).chain) for view in views]
    notes = doubts_explained(doubt for doubt in doubts if doubt is not None)
    if any(shown_chain(view).window_source == "exceeded" for view in views):
        notes.append(PASSED_EXPLAINED)
    return Group(table, *[Text(note, style="dim") for note in notes]) if notes else table


def live_table(
    views: Sequence[SessionView],
    now_ms: int,
    width: int,
    rows: range,
    selected: int | None = None,
    *,
    titles: Mapping[str, str] | None = None,
    sorted_by: str = "",
    points: CompactionPoints = NO_POINTS,
) -> Table:
    """Return the table of `top`, with some of the rows, each one line.

    `sorted_by` is the column that the rows are sorted by, `points` where compactions are expected.
    """
    models = _models(views)
    states = [_state(view, now_ms) for view in views]
    attempts = [_attempts(view) for view in views]
    columns = {
        "Session": _ids(views)[:2],
        **_titles_and_folders(views, titles),
        "Model": [Cells(models, _MODEL - 1), Cells(models, _SHORT_MODEL)],
        "Context": [
            Cells([_used(view, cells, points) for view in views]) for cells in (10, 8, 6, 0)
        ],
        "Tokens": [_column(views, _tokens)],
        "Source": [Cells([_source(shown_chain(view)) for view in views])],
        "Until": _until_forms([_until(view, points).replace(UNKNOWN, "?") for view in views]),
        "Growth": [_column(views, lambda _, chain: _short(chain.growth_tokens, "+"))],
        "Last 10": [_column(views, lambda _, chain: sparkline(chain.differences[-_SPARK_BARS:]))],
        "State": [Cells(states), Cells(states, 0)],
        "Comp.": [
            Cells([_compactions(view) for view in views]),
            Cells(attempts),
            Cells(attempts, 0),
        ],
        "Active": [_active(views, now_ms)],
    }
    right = {"Tokens", "Until", "Growth"}
    table = fitted(columns, _LIVE_STEPS, width, right=right, cut=columns, gap=1, rows=rows)
    for column in table.columns:
        if column.header == sorted_by:
            column.header_style = "bold reverse"
    for position, row in zip(rows, table.rows, strict=True):
        stale = "" if is_live(views[position], now_ms) else "dim"
        row.style = f"{stale} {'reverse' if position == selected else ''}".strip()
    return table


def sparkline(differences: Sequence[int]) -> str:
    """Return the tokens that each of the last responses added, as heights."""
    most = max(differences, default=0)
    last = len(_BLOCKS) - 1
    return "".join(_BLOCKS[max(0, each) * last // most] for each in differences if most)


def folder_words(path: str | None, parts: int) -> str:
    """Return the last parts of a folder's path, as people name it."""
    if path is None:
        return ""
    names = [name for name in path.replace("\\", "/").split("/") if name]
    return safe("/".join(names[-parts:])) or "/"


def _ids(views: Sequence[SessionView]) -> list[Cells]:
    """Return the forms of ids: whole, shortened, wrapped."""
    whole = [Text(safe(view.session_id)) for view in views]
    short = [Text(text) for text in short_ids([view.session_id for view in views])]
    return [Cells(whole), Cells(short), Cells(short, SHORT_ID)]


def _titles_and_folders(
    views: Sequence[SessionView], titles: Mapping[str, str] | None
) -> dict[str, list[Cells]]:
    """Return the columns by which people recognise their sessions, as far as anything is known."""
    columns = {}
    if titles:
        names = [Text(safe(titles.get(view.session_id, ""))) for view in views]
        columns["Title"] = [Cells(names, least) for least in _TITLES]
    if any(view.identity.cwd is not None for view in views):
        columns["Folder"] = [
            Cells([Text(folder_words(view.identity.cwd, parts)) for view in views], least)
            for parts, least in _FOLDERS
        ]
    return columns


def _column(views: Sequence[SessionView], words: Callable[[SessionView, ChainView], str]) -> Cells:
    return Cells([Text(words(view, shown_chain(view))) for view in views])


def _models(views: Sequence[SessionView]) -> list[Text]:
    return [cell(shown_chain(view).model or view.identity.model) for view in views]


def _active(views: Sequence[SessionView], now_ms: int) -> Cells:
    return Cells([Text(ago(view.last_ms, now_ms), style="dim") for view in views])


def _until_column(views: Sequence[SessionView], points: CompactionPoints) -> dict[str, list[Cells]]:
    """Return the column of tokens until compaction, where they are known of any session."""
    words = [_until(view, points) for view in views]
    if all(each == UNKNOWN for each in words):
        return {}
    return {"Until": _until_forms(words)}


def _until_forms(words: Sequence[str]) -> list[Cells]:
    """Return the forms of tokens until compaction: `due, 131K over`, and `131K over`."""
    short = [each.removeprefix("due, ").removeprefix("expected, ") for each in words]
    return [Cells([Text(each) for each in words]), Cells([Text(each) for each in short])]


def _until(view: SessionView, points: CompactionPoints) -> str:
    status = status_of(view, points)
    return until_words(status.until_compaction.get(shown_chain(view).chain), thousands)


def _tokens(view: SessionView, chain: ChainView) -> str:
    window = window_words(chain, doubtful=is_doubtful(view, chain))
    return f"{thousands(chain.used_tokens)}/{window}".replace(UNKNOWN, "?")


def _gauge(view: SessionView, now_ms: int, cells: int, points: CompactionPoints) -> Text:
    """Return how full a session's window is, or the state of its open compaction."""
    status = status_of(view, points)
    state = status.state(now_ms)
    if state in COMPACTING:
        shown = bar(shown_chain(view), cells, status.severity).append(" ") if cells else Text()
        return shown.append(attempt_state(status, now_ms), style="magenta")
    return _used(view, cells, points, dim=state == "stale")


def _used(view: SessionView, cells: int, points: CompactionPoints, *, dim: bool = False) -> Text:
    chain, status = shown_chain(view), status_of(view, points)
    shown = bar(chain, cells, status.severity).append(" ") if cells else Text()
    used = guess(percent(chain.used_percent), doubtful=chain.chain in status.window_doubts)
    return shown.append(f"{used:>5}", style="dim" if dim or chain.used_percent is None else "")


def _source(chain: ChainView) -> Text:
    words = {**SOURCE_WORDS, "exceeded": "passed"}
    return cell(words.get(chain.window_source or "unknown"), "dim")


def _short(tokens: int | None, sign: str = "") -> str:
    return "?" if tokens is None else f"{sign}{thousands(tokens)}"


def _state(view: SessionView, now_ms: int) -> Text:
    status, attempt = status_of(view), view.attempt
    state = status.state(now_ms)
    if attempt is None:
        return Text(state_word(state), style="dim" if state != "unknown" else "yellow")
    if state == "stalled" and status.last_sign_ms is not None:
        return Text(f"stalled {elapsed(status.last_sign_ms, now_ms)}", style="bold red")
    if attempt.started_ms is None:
        return Text("compacting", style="magenta")
    return Text(f"compacting {elapsed(attempt.started_ms, now_ms)}", style="magenta")


def _compactions(view: SessionView) -> Text:
    """Return successful compactions, inherited ones, and unsuccessful attempts."""
    shown = Text(exact(successful(view)))
    if view.compactions.inherited:
        shown.append(f", {exact(view.compactions.inherited)} inherited", style="dim")
    if not view.compactions.failed:
        return shown
    return shown.append(f", {exact(view.compactions.failed)} {failure_name(view)}", style="red")


def _attempts(view: SessionView) -> Text:
    """Return the same where there is little room: 1 of 3."""
    done, failed = successful(view), view.compactions.failed
    if not failed:
        return Text(exact(done))
    return Text(f"{exact(done)} of {exact(done + failed)}", style="red")


def successful(view: SessionView) -> int:
    """Return the number of successful compactions."""
    counts = view.compactions
    return counts.manual + counts.automatic + counts.idle + counts.unknown_trigger
