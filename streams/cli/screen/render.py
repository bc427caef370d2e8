"""How a session looks at the terminal: its box, its status line, and the words of both."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from schemas.records import MAIN_CHAIN
from schemas.views import ChainView, Compaction, CompactionBrief, SessionView
from streams.cli.screen.breakdown import breakdown, filled_by
from streams.cli.screen.figures import (
    UNKNOWN,
    ago,
    count,
    duration,
    exact,
    percent,
    safe,
    thousands,
)
from streams.cli.screen.next_compaction import next_compaction
from streams.cli.screen.output import cell
from streams.cli.screen.tables import facts_box, plain_table
from streams.cli.screen.window_words import (
    guess,
    is_doubtful,
    no_window,
    used_and_remaining,
    window_and_source,
    window_words,
)
from streams.core.session_status import (
    Severity,
    State,
    Status,
    leading_chain,
    status_of,
)
from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
)

if TYPE_CHECKING:
    from contextgauge.compaction.displays.window_parts import WindowPart

BAR_CELLS = 20

_OUTCOMES = {
    "succeeded": "",
    "failed": "failed",
    "blocked": "blocked",
    "unknown": "outcome unknown",
}
"""An attempt that succeeded shows its trigger instead."""

SHORT_ID = 8
"""Minimum length of a shown session ID, as of a commit in git."""

_SHORT_CHAIN = 12
"""Minimum length of a shown chain name: names that are words are shown in full."""


def chain_labels(
    chains: Collection[str], known: Mapping[str, ChainView] | None = None
) -> dict[str, str]:
    """Return the label of each of a session's chains, the same on every screen, made safe.

    Of a subagent it is its type, where `known` has it, and the beginning of its id.
    """
    in_order = sorted(set(chains))
    labels = dict(zip(in_order, short_ids(in_order, _SHORT_CHAIN), strict=True))
    types = {name: chain.subagent_type for name, chain in (known or {}).items()}
    return {
        name: f"{safe(kind)} {label}" if (kind := types.get(name)) else label
        for name, label in labels.items()
    }


def short_ids(session_ids: Sequence[str], least: int = SHORT_ID) -> list[str]:
    """Return the shortest unique prefix of each ID, made safe."""
    in_order = sorted(set(session_ids))
    needed = dict.fromkeys(in_order, least)
    for before, after in pairwise(in_order):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        unique = len(list(same)) + 1
        needed[before] = max(needed[before], unique)
        needed[after] = max(needed[after], unique)
    return [safe(session_id[: needed[session_id]]) for session_id in session_ids]


def shown_chain(view: SessionView) -> ChainView:
    """Return the leading chain; a main one of which nothing is known where there is none."""
    return leading_chain(view) or ChainView(chain=MAIN_CHAIN)


def status_line(view: SessionView, now_ms: int) -> str:
    """Return one line for a status bar: `Context: 45% (58K/128K tokens)`.

    `Context: ~8% (16K/~200K tokens)` where the window was not reported.
    """
    chain, status = shown_chain(view), status_of(view)
    doubtful = chain.chain in status.window_doubts
    window = window_words(chain, doubtful=doubtful)
    if status.state(now_ms) == "unknown":
        return (
            "Context: unknown" if chain.window is None else f"Context: unknown of {window} tokens"
        )
    if chain.window is None and status.state(now_ms) not in COMPACTING:
        return (
            f"Context: {thousands(chain.used_tokens)} tokens, window {no_window(chain, thousands)}"
        )
    size = f"({thousands(chain.used_tokens)}/{window} tokens)"
    used = guess(percent(chain.used_percent), doubtful=doubtful)
    if status.state(now_ms) in COMPACTING:
        before = "" if chain.used_percent is None else f" at {used}"
        return f"Context: {attempt_state(status, now_ms)}{before} {size}"
    return f"Context: {used} {size}"


def status_box(
    view: SessionView,
    now_ms: int,
    points: CompactionPoints = NO_POINTS,
    *,
    compactions: bool = True,
    filling: "Sequence[WindowPart] | str | None" = None,
) -> Panel:
    """Return the box with all that is known of a session, with or without its compactions.

    `filling` is what fills the window by an estimate, or why that is unknown.
    """
    chain = shown_chain(view)
    parts: list[RenderableType] = []
    others = [each for each in view.chains.values() if each.chain != chain.chain]
    labels = chain_labels(
        {*view.chains, *(brief.chain for brief in view.compactions.last)}, view.chains
    )
    if others:
        parts += [Text(), _other_chains(view, others, labels, now_ms)]
    if view.compactions.last and compactions:
        parts += [Text(), _last_compactions(view.compactions.last, labels, now_ms)]
    title = f"Context of {safe(view.session_id)}"
    return facts_box(title, _facts(view, chain, points, now_ms, filling), *parts)


def _facts(
    view: SessionView,
    chain: ChainView,
    points: CompactionPoints,
    now_ms: int,
    filling: "Sequence[WindowPart] | str | None",
) -> Iterator[tuple[str, RenderableType]]:
    identity, status = view.identity, status_of(view, points)
    doubt = status.window_doubts.get(chain.chain)
    doubtful = doubt is not None
    runtime = " ".join(part for part in (identity.runtime, identity.runtime_version) if part)
    yield "Runtime", cell(runtime or None)
    yield "Model", cell(chain.model or identity.model)
    if chain.chain != MAIN_CHAIN:
        yield "Chain", Text(safe(chain.chain))
    for name, value in (
        ("Folder", identity.cwd),
        ("Fork of", identity.forked_from),
        ("Agent", identity.publisher_agent_id),
        ("Task", identity.task_id),
    ):
        if value is not None:
            yield name, Text(safe(value))
    yield "", ""
    yield "Usage", _usage(chain, status.severities.get(chain.chain, "unknown"), doubtful=doubtful)
    yield "Current", Text(f"{exact(chain.used_tokens)} tokens · {_state(view, now_ms)}")
    yield "Active", Text(ago(view.last_ms, now_ms))
    yield "Window", Text(window_and_source(chain, doubt))
    if chain.peak_tokens is not None:
        peak = guess(percent(chain.peak_percent), doubtful=doubtful)
        yield "Peak", Text(f"{exact(chain.peak_tokens)} tokens · {peak}")
    until = status.until_compaction.get(chain.chain)
    yield from next_compaction(chain, until, doubt, status.switched_off_by.get(chain.chain))
    yield "Messages", Text(_messages(chain, now_ms))
    each = view.compactions.messages_per_compaction
    often = "" if each is None else f" · one in {count(each, 'message')}"
    thrash = " · thrashing" if status.is_thrashing(now_ms) else ""
    yield "Compactions", Text(compactions_words(view) + often + thrash)
    yield "", ""
    yield from breakdown(chain)
    if filling is not None:
        yield "Filled by", filled_by(filling)


def messages_words(chain: ChainView) -> str:
    """Return the messages since the last compaction or reset, and in all: 3/135; `2, 1 own`."""
    if chain.messages is None and chain.messages_total is None:
        return UNKNOWN
    if _has_copies(chain):
        return f"{exact(chain.messages)}, {exact(chain.messages_total)} own"
    return f"{exact(chain.messages)}/{exact(chain.messages_total)}"


def _has_copies(chain: ChainView) -> bool:
    """Return whether more messages are in the context than are the session's own (R30)."""
    return (chain.messages or 0) > (chain.messages_total or 0)


def _messages(chain: ChainView, now_ms: int) -> str:
    # What a compaction keeps is not among them (R23), so they are not all that is active.
    words = exact(chain.messages)
    if chain.messages != chain.messages_total:
        copies, rest = (
            (", copied ones included", "its own") if _has_copies(chain) else ("", "in all")
        )
        words += (
            f" since the last compaction or reset{copies}, {exact(chain.messages_total)} {rest}"
        )
    has_oldest = bool(chain.messages) and chain.oldest_ms is not None
    return words + (f" · the first of them {ago(chain.oldest_ms, now_ms)}" if has_oldest else "")


def _other_chains(
    view: SessionView, chains: Sequence[ChainView], labels: Mapping[str, str], now_ms: int
) -> Table:
    table = plain_table("Subagent", "Model", "Context", "Messages", "As of")
    for chain in sorted(chains, key=lambda each: -each.last_sequence):
        used = guess(percent(chain.used_percent), doubtful=is_doubtful(view, chain))
        size = f"{used} ({thousands(chain.used_tokens)})"
        table.add_row(
            Text(labels[chain.chain]),
            cell(chain.model),
            Text(size if chain.used_tokens is not None else UNKNOWN),
            Text(messages_words(chain)),
            Text(ago(chain.as_of_ms, now_ms), style="dim"),
        )
    return table


def _last_compactions(
    briefs: Sequence[CompactionBrief], labels: Mapping[str, str], now_ms: int
) -> Table:
    figures = ("Before", "After", "Saved", "Took")
    table = plain_table("Compaction", *figures, "When", right=figures)
    for brief in reversed(briefs):
        succeeded = brief.outcome == "succeeded"
        number = f"#{brief.number} " if brief.number is not None else ""
        what = _OUTCOMES[brief.outcome] or brief.trigger or "unknown trigger"
        where = "" if brief.chain == MAIN_CHAIN else f" ({labels[brief.chain]})"
        what += ", inherited" if brief.inherited else ""
        table.add_row(
            Text(f"{number}{what}{where}", style="" if succeeded else "red"),
            thousands(brief.tokens_before),
            thousands(brief.tokens_after) if succeeded else "-",
            thousands(brief.tokens_saved) if succeeded else "-",
            duration(brief.duration_ms),
            Text(ago(brief.time_ms, now_ms), style="dim"),
        )
    return table


def compactions_table(
    view: SessionView, compactions: Sequence[Compaction], now_ms: int
) -> RenderableType:
    """Return all successful compactions, newest first, and the number of other attempts.

    A size that the next response reports is pending until then; a duration is marked if it is the
    time from start to boundary, not a reported one.
    """
    failed = view.compactions.failed
    caption = f"{count(failed, 'attempt')} {failure_name(view)}" if failed else None
    if not compactions:
        return Text(caption or "no compaction yet", style="dim")
    labels = chain_labels({each.chain for each in compactions})
    figures = ("Before", "After", "Saved", "Took", "Messages")
    table = plain_table("Compaction", *figures, "When", right=figures)
    table.caption, table.caption_justify = caption, "left"

    def after(each: Compaction, tokens: int | None) -> Text:
        pending = tokens is None and not each.complete
        return Text("pending") if pending else _figure(tokens)

    for each in compactions:
        where = "" if each.chain == MAIN_CHAIN else f" ({labels[each.chain]})"
        paired = " paired" if each.duration_source == "paired" else ""
        inherited = ", inherited" if each.inherited else ""
        table.add_row(
            Text(f"#{each.number} {each.trigger or 'unknown trigger'}{inherited}{where}"),
            _figure(each.tokens_before),
            after(each, each.tokens_after),
            after(each, each.tokens_saved),
            duration(each.duration_ms) + paired,
            exact(each.messages_since_last),
            Text(ago(each.time_ms, now_ms), style="dim"),
        )
    return table


def _figure(tokens: int | None) -> Text:
    return cell(None if tokens is None else thousands(tokens))


_COLOURS: Mapping[Severity, str] = {
    "unknown": "dim",
    "normal": "green",
    "elevated": "green",
    "high": "yellow",
    "critical": "red",
}


def bar(chain: ChainView, cells: int, severity: Severity) -> Text:
    """Return a bar, the only place where a percentage is clamped; empty and dim if unknown."""
    if chain.used_percent is None:
        return Text("·" * cells, style="dim")
    filled = min(cells, max(0, int(chain.used_percent * cells / 100)))
    drawn = Text("█" * filled, style=_COLOURS[severity])
    return drawn.append("░" * (cells - filled), style="dim")


def _usage(chain: ChainView, severity: Severity, *, doubtful: bool) -> Text:
    shown = bar(chain, BAR_CELLS, severity)
    if chain.used_percent is None:
        is_size = chain.used_tokens is not None and chain.window is None
        words = f"share {UNKNOWN}" if is_size else UNKNOWN
        return shown.append("  ").append(words, style="bold")
    size = used_and_remaining(chain.used_percent, doubtful=doubtful)
    return shown.append("  ").append(size, style="bold")


COMPACTING = frozenset({"compacting", "stalled"})


def _state(view: SessionView, now_ms: int) -> str:
    chain, status = shown_chain(view), status_of(view)
    state = status.state(now_ms)
    if state in COMPACTING:
        return f"{attempt_state(status, now_ms)}; the figures are those before it"
    if state == "unknown":
        return _why_unknown(view, chain)
    as_of = "" if chain.as_of_ms is None else f" {ago(chain.as_of_ms, now_ms)}"
    as_of += ", inherited from the session that it was forked from" if chain.inherited else ""
    if state != "stale":
        return f"{state}{as_of}"
    silent = ago(view.last_ms, now_ms).removesuffix(" ago")
    return f"{state_word(state)} for {silent}, {status.settled}{as_of}"


def state_word(state: State) -> str:
    """Return a state as people call it; JSON has the state itself."""
    return "quiet" if state == "stale" else state


def _why_unknown(view: SessionView, chain: ChainView) -> str:
    """Return since when no size is known, in the words of the page."""
    ended = [
        brief
        for brief in view.compactions.last
        if brief.chain == chain.chain and brief.outcome == "succeeded"
    ]
    is_latest = bool(ended) and ended[-1].time_ms is not None
    if chain.pending or (is_latest and ended[-1].time_ms == chain.as_of_ms):
        return "unknown since compaction"
    return "not measured yet" if chain.peak_tokens is None else "unknown since cleared"


def attempt_state(status: Status, now_ms: int) -> str:
    """Return the state of an open attempt."""
    if status.state(now_ms) == "stalled":
        return f"compaction stalled {ago(status.last_sign_ms, now_ms)}"
    return "compacting"


def compactions_words(view: SessionView) -> str:
    """Return a session's compactions by trigger, and its attempts without success."""
    counts = view.compactions
    parts = [
        f"{exact(number)} {name}"
        for number, name in (
            (counts.automatic, "auto"),
            (counts.idle, "idle"),
            (counts.manual, "manual"),
            (counts.unknown_trigger, "unknown trigger"),
            (counts.failed, failure_name(view)),
            (counts.inherited, "inherited"),
        )
        if number
    ]
    return ", ".join(parts) or "none"


def failure_name(view: SessionView) -> str:
    """Return the name for unsuccessful attempts, as on the web page.

    `failed` if all of them did; else `not completed`: some were blocked, or their outcome is
    unknown.
    """
    failed = sum(brief.outcome == "failed" for brief in view.compactions.last)
    return "failed" if failed == view.compactions.failed else "not completed"
