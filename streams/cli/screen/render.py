"""How sessions look at the terminal: the table, the box of one session, the status line."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from schemas.records import MAIN_CHAIN, WindowSource
from schemas.views import AttemptView, ChainView, CompactionBrief, SessionView
from streams.cli.screen.figures import FULL_PERCENT, HIGH_PERCENT, STALLED_MS
from streams.cli.screen.output import (
    GUESS,
    GUESS_EXPLAINED,
    UNKNOWN,
    ago,
    count,
    duration,
    exact,
    percent,
    safe,
    thousands,
)

BAR_CELLS = 20
_TABLE_BAR_CELLS = 10

_OUTCOMES = {
    "succeeded": "",
    "failed": "failed",
    "blocked": "blocked",
    "unknown": "outcome unknown",
}
"""An attempt that succeeded shows its trigger instead."""

_GAP = 2
"""Columns between those of a table."""

_LEAST_MODEL = 18
"""Characters of a model's name that tell it: claude-sonnet-4-5."""

_LEAST_GAUGE = len("compacting")
"""Columns of a percentage, or of a chain's state, without a bar."""

_SHORT_ID = 8
"""Minimum length of a shown session ID, as of a commit in git."""

_SHORT_CHAIN = 12
"""Minimum length of a shown chain name: names that are words are shown in full."""


def sessions_table(views: Sequence[SessionView], now_ms: int, width: int) -> RenderableType:
    """Return the table of sessions, in the order given, for a screen of this width.

    Where it is too wide, columns go that matter least, then the bar is cut, then the model goes,
    then the tokens. Ids, percentages and compactions always stay: at worst they are wrapped.
    """
    shorts = short_ids([view.session_id for view in views])
    cells = {
        "Session": [Text(short) for short in shorts],
        "Runtime": [_or_unknown(view.identity.runtime) for view in views],
        "Model": [_or_unknown(main_chain(view).model or view.identity.model) for view in views],
        "Context": [_gauge(view, main_chain(view), now_ms, _TABLE_BAR_CELLS) for view in views],
        "Tokens": [_tokens(main_chain(view)) for view in views],
        "Messages": [_messages(main_chain(view)) for view in views],
        "Compactions": [Text(_compactions(view)) for view in views],
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
            cells["Context"] = [_gauge(view, main_chain(view), now_ms, bar_cells) for view in views]
            widths["Context"] = _natural_width("Context", cells["Context"])
    _fit(widths, width)
    if "Model" in widths:
        widths["Model"] = min(model, widths["Model"] - _excess(widths, width))
    table = _table()
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
    if any(main_chain(view).window_source == "default" for view in views):
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
    for name, least in (("Compactions", len("Compactions")), ("Session", _SHORT_ID)):
        excess = max(0, _excess(widths, width))
        widths[name] = max(min(widths[name], least), widths[name] - excess)


def _natural_width(name: str, cells: Sequence[Text]) -> int:
    return max([len(name), *[cell.cell_len for cell in cells]])


def _excess(widths: Mapping[str, int], width: int) -> int:
    """Return by how much columns of these widths are wider than the screen."""
    return sum(widths.values()) + _GAP * (len(widths) - 1) - width


def guess(figure: str, source: WindowSource | None) -> str:
    """Return a figure, marked if it rests on an assumed window."""
    return f"{GUESS}{figure}" if source == "default" and figure != UNKNOWN else figure


def _tokens(chain: ChainView) -> Text:
    return Text(f"{thousands(chain.used_tokens)}/{_window(chain)}")


def _window(chain: ChainView) -> str:
    return guess(thousands(chain.window), chain.window_source)


def _messages(chain: ChainView) -> Text:
    return Text(f"{chain.messages}/{chain.messages_total}")


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")


def chain_labels(chains: Collection[str]) -> dict[str, str]:
    """Return the label of each of a session's chains, the same on every screen, made safe."""
    in_order = sorted(set(chains))
    return dict(zip(in_order, short_ids(in_order, _SHORT_CHAIN), strict=True))


def short_ids(session_ids: Sequence[str], least: int = _SHORT_ID) -> list[str]:
    """Return the shortest unique prefix of each ID, made safe."""
    in_order = sorted(set(session_ids))
    needed = dict.fromkeys(in_order, least)
    for before, after in pairwise(in_order):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        unique = len(list(same)) + 1
        needed[before] = max(needed[before], unique)
        needed[after] = max(needed[after], unique)
    return [safe(session_id[: needed[session_id]]) for session_id in session_ids]


def main_chain(view: SessionView) -> ChainView:
    """Return the main chain; one of which nothing is known where only subagents have spoken."""
    return view.chains.get(MAIN_CHAIN) or ChainView(chain=MAIN_CHAIN)


def status_line(view: SessionView) -> str:
    """Return one line for a status bar: `Context: 45% (58K/128K tokens)`.

    `Context: ~8% (16K/~200K tokens)` where the window was not told.
    """
    chain = main_chain(view)
    if chain.used_tokens is None and chain.state != "compacting":
        window = "" if chain.window is None else f" of {_window(chain)} tokens"
        return f"Context: unknown{window}"
    size = f"({thousands(chain.used_tokens)}/{_window(chain)} tokens)"
    used = "" if chain.used_percent is None else f"{int(chain.used_percent)}%"
    used = guess(used, chain.window_source)
    if chain.state == "compacting":
        before = "" if chain.used_percent is None else f" at {used}"
        return f"Context: compacting{before} {size}"
    if chain.used_percent is None:
        return f"Context: unknown {size}"
    return f"Context: {used} {size}"


def status_box(view: SessionView, now_ms: int, *, compactions: bool = True) -> Panel:
    """Return the box that tells all that is known of a session; its last compactions, or not."""
    chain = main_chain(view)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _facts(view, chain, now_ms):
        grid.add_row(name, value)
    parts: list[RenderableType] = [grid]
    others = [each for each in view.chains.values() if each.chain != MAIN_CHAIN]
    labels = chain_labels({*view.chains, *(brief.chain for brief in view.compactions.last)})
    if others:
        parts += [Text(), _subagents(others, labels, now_ms)]
    if view.compactions.last and compactions:
        parts += [Text(), _last_compactions(view.compactions.last, labels, now_ms)]
    title = Text(f"Context of {safe(view.session_id)}", overflow="ellipsis", no_wrap=True)
    return Panel(Group(*parts), title=title, title_align="left", expand=False, padding=(1, 2))


def _facts(
    view: SessionView, chain: ChainView, now_ms: int
) -> Iterator[tuple[str, RenderableType]]:
    identity = view.identity
    runtime = " ".join(part for part in (identity.runtime, identity.runtime_version) if part)
    yield "Runtime", _or_unknown(runtime or None)
    yield "Model", _or_unknown(chain.model or identity.model)
    if identity.cwd is not None:
        yield "Folder", Text(safe(identity.cwd))
    if identity.forked_from is not None:
        yield "Fork of", Text(safe(identity.forked_from))
    if identity.publisher_agent_id is not None:
        yield "Agent", Text(safe(identity.publisher_agent_id))
    if identity.task_id is not None:
        yield "Task", Text(safe(identity.task_id))
    yield "", ""
    yield "Usage", _usage(chain)
    yield "Current", Text(f"{exact(chain.used_tokens)} tokens · {_state(view, chain, now_ms)}")
    source = "" if chain.window_source is None else f" · {chain.window_source}"
    untold = ", as it was not told" if chain.window_source == "default" else ""
    window = guess(exact(chain.window), chain.window_source)
    yield "Window", Text(f"{window} tokens{source}{untold}")
    if chain.peak_tokens is not None:
        peak = guess(percent(chain.peak_percent), chain.window_source)
        yield "Peak", Text(f"{exact(chain.peak_tokens)} tokens · {peak}")
    if chain.until_compaction_tokens is not None:
        yield "Compacts in", Text(f"{exact(chain.until_compaction_tokens)} tokens")
    if chain.growth_tokens is not None:
        yield "Growth", Text(f"{exact(chain.growth_tokens)} tokens a response{_left(chain)}")
    yield (
        "Messages",
        Text(
            f"{exact(chain.messages)} active of {exact(chain.messages_total)}"
            + ("" if chain.oldest_ms is None else f" · oldest {ago(chain.oldest_ms, now_ms)}")
        ),
    )
    each = view.compactions.messages_per_compaction
    often = "" if each is None else f" · one in {each} messages"
    yield "Compactions", Text(_compactions(view) + often)
    yield "", ""
    yield from _breakdown(chain)


def _left(chain: ChainView) -> str:
    """Return how many responses are left, and until what."""
    if chain.responses_left is None:
        return ""
    known = chain.until_compaction_tokens is not None
    until = "until compaction" if known else "until the window is full"
    return f" · {count(chain.responses_left, 'response')} left {until}"


def _breakdown(chain: ChainView) -> Iterator[tuple[str, RenderableType]]:
    if chain.breakdown is None:
        yield "Breakdown", Text(UNKNOWN, style="dim")
        return
    parts = (
        ("Cache read", chain.breakdown.cache_read_tokens),
        ("Cache creation", chain.breakdown.cache_creation_tokens),
        ("Input", chain.breakdown.input_tokens),
    )
    yield "Breakdown", _amounts(parts)
    if chain.categories:
        yield (
            "By category",
            _amounts([(each.name or each.id or UNKNOWN, each.tokens) for each in chain.categories]),
        )


def _amounts(parts: Sequence[tuple[str, int | None]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    for name, tokens in parts:
        grid.add_row(Text(safe(name)), Text(exact(tokens)))
    return grid


def _subagents(chains: Sequence[ChainView], labels: Mapping[str, str], now_ms: int) -> Table:
    table = _table()
    for name in ("Subagent", "Model", "Context", "Messages", "As of"):
        table.add_column(name, no_wrap=True, justify="left")
    for chain in sorted(chains, key=lambda each: -each.last_sequence):
        label = labels[chain.chain]
        name = label if chain.subagent_type is None else f"{label} {safe(chain.subagent_type)}"
        used = guess(percent(chain.used_percent), chain.window_source)
        size = f"{used} ({thousands(chain.used_tokens)})"
        table.add_row(
            Text(name),
            _or_unknown(chain.model),
            Text(size if chain.used_tokens is not None else UNKNOWN),
            Text(f"{chain.messages}/{chain.messages_total}"),
            Text(ago(chain.as_of_ms, now_ms), style="dim"),
        )
    return table


def _last_compactions(
    briefs: Sequence[CompactionBrief], labels: Mapping[str, str], now_ms: int
) -> Table:
    table = _table()
    table.add_column("Compaction", no_wrap=True)
    table.add_column("Before", justify="right", no_wrap=True)
    table.add_column("After", justify="right", no_wrap=True)
    table.add_column("Saved", justify="right", no_wrap=True)
    table.add_column("Took", justify="right", no_wrap=True)
    table.add_column("When", no_wrap=True)
    for brief in reversed(briefs):
        succeeded = brief.outcome == "succeeded"
        number = f"#{brief.number} " if brief.number is not None else ""
        what = _OUTCOMES[brief.outcome] or brief.trigger or "trigger unknown"
        where = "" if brief.chain == MAIN_CHAIN else f" ({labels[brief.chain]})"
        table.add_row(
            Text(f"{number}{what}{where}", style="" if succeeded else "red"),
            Text(thousands(brief.tokens_before)),
            Text(thousands(brief.tokens_after) if succeeded else "-"),
            Text(thousands(brief.tokens_saved) if succeeded else "-"),
            Text(duration(brief.duration_ms)),
            Text(ago(brief.time_ms, now_ms), style="dim"),
        )
    return table


def bar(used_percent: float | None, cells: int) -> Text:
    """Return a bar, the only place where a percentage is clamped; empty and dim if unknown."""
    if used_percent is None:
        return Text("·" * cells, style="dim")
    filled = min(cells, max(0, int(used_percent * cells / 100)))
    drawn = Text("█" * filled, style=_colour(used_percent))
    return drawn.append("░" * (cells - filled), style="dim")


def _colour(used_percent: float) -> str:
    if used_percent >= FULL_PERCENT:
        return "red"
    return "yellow" if used_percent >= HIGH_PERCENT else "green"


def _usage(chain: ChainView) -> Text:
    shown = bar(chain.used_percent, BAR_CELLS)
    used = guess(percent(chain.used_percent), chain.window_source)
    return shown.append("  ").append(used, style="bold")


def _gauge(view: SessionView, chain: ChainView, now_ms: int, cells: int) -> Text:
    shown = bar(chain.used_percent, cells).append(" ") if cells else Text()
    if chain.state == "compacting":
        return shown.append(_attempt_state(view.attempt, now_ms), style="magenta")
    known = chain.used_percent is not None
    used = guess(percent(chain.used_percent), chain.window_source)
    return shown.append(f"{used:>6}", style="" if known else "dim")


def _state(view: SessionView, chain: ChainView, now_ms: int) -> str:
    if chain.state == "compacting":
        return f"{_attempt_state(view.attempt, now_ms)}; the figures are those before it"
    if chain.state == "unknown":
        return "not measured since the last compaction or reset" if chain.peak_tokens else UNKNOWN
    return chain.state + ("" if chain.as_of_ms is None else f" {ago(chain.as_of_ms, now_ms)}")


def _attempt_state(attempt: AttemptView | None, now_ms: int) -> str:
    if attempt is None:
        return "compacting"
    signs = [sign for sign in (attempt.started_ms, attempt.last_heartbeat_ms) if sign is not None]
    if signs and now_ms - max(signs) > STALLED_MS:
        return f"compaction stalled {ago(max(signs), now_ms)}"
    return "compacting"


def _compactions(view: SessionView) -> str:
    told = view.compactions
    parts = [
        f"{number} {name}"
        for number, name in (
            (told.automatic, "auto"),
            (told.manual, "manual"),
            (told.untold, "other"),
            (told.failed, failure_name(view)),
        )
        if number
    ]
    return ", ".join(parts) or "none"


def failure_name(view: SessionView) -> str:
    """Return the name for unsuccessful attempts, as on the web page.

    `failed` if all of them did; else `not done`: some were blocked, or their outcome is unknown.
    """
    failed = sum(brief.outcome == "failed" for brief in view.compactions.last)
    return "failed" if failed == view.compactions.failed else "not done"


def _or_unknown(text: str | None) -> Text:
    return Text(UNKNOWN, style="dim") if text is None else Text(safe(text))
