"""A session's timeline in the terminal: its records in log order, those of less weight folded."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple, assert_never

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    CompactionSummary,
    CompactionTiming,
    ContextEdit,
    ContextExhausted,
    ContextLimits,
    ContextReading,
    ContextReset,
    ContextWarning,
    PinsChecked,
    Record,
    RecordData,
    ReportedReceipt,
    SessionInfo,
    ToolUse,
    UserTurn,
)
from streams.cli.screen.figures import (
    GUESS,
    UNKNOWN,
    count,
    duration,
    exact,
    percent,
    safe,
    thousands,
)
from streams.cli.screen.money import profit_words
from streams.cli.screen.output import doubts_explained
from streams.cli.screen.receipt import cost_words
from streams.cli.screen.render import chain_labels
from streams.cli.screen.tables import plain_table
from streams.cli.screen.window_words import SOURCE_WORDS, guess, used_and_remaining
from streams.core.costs import CompactionProfit
from streams.core.error_words import error_words
from streams.core.session_status import THRESHOLDS
from streams.core.until_compaction import WindowDoubt

_STYLES = {
    CompactionStart.kind: "magenta",
    CompactBoundary.kind: "magenta",
    CompactionComplete.kind: "bold magenta",
    CompactionFailed.kind: "red",
    PinsChecked.kind: "magenta",
    ContextExhausted.kind: "bold red",
    ContextReset.kind: "cyan",
}


_SOURCES = {**SOURCE_WORDS, "exceeded": "the size passed the assumed one"}

_LEAST_FIGURES = 28
"""Minimum width of the figures; on narrower screens they go on a line of their own."""

LOG_ORDER = "in log order: some records are older than the ones before them"

FOLDED = "`contextgauge events --all {}` shows what is folded here"


class _Line(NamedTuple):
    """One entry as text, safe for a terminal; `new_day` if it differs from the entry before."""

    new_day: str
    moment: str
    chain: Text
    kind: Text
    figures: str


def timeline(
    records: Sequence[Record],
    width: int,
    chains: Collection[str] = (),
    *,
    show_all: bool = False,
    name: str | None = "",
    contradicted: Collection[str] = (),
    profits: Mapping[str, CompactionProfit] = MappingProxyType({}),
) -> RenderableType:
    """Return a session's timeline for a screen of this width: a line an entry, two on narrow ones.

    Compactions, resets, crossings from 70% on and readings are entries; successive other records
    are one folded entry, unless `show_all`. Each day (UTC) starts with a row of its own. `chains`
    are all of the session's chains, so that they get the same labels as elsewhere. `name` is what
    names the session for a command: by default, its ID; None where no command can read it.
    `profits` are what compactions cost, by their boundaries' ids.
    `contradicted` are chains whose automatic compactions contradict the window of their model.
    """
    known = chains if isinstance(chains, Mapping) else None
    labels = chain_labels({*chains, *(record.subject for record in records)}, known)
    guessed: dict[str, bool] = {}
    day = ""
    lines = []
    is_folded = False
    doubts: set[WindowDoubt] = set()
    for is_entry, group in groupby(records, lambda record: show_all or _is_entry(record.data)):
        run = list(group)
        for record in run:
            if isinstance(record.data, ContextReading | ContextWarning | ContextLimits):
                source = record.data.window_source
                is_contradicted = source == "catalog" and record.subject in contradicted
                guessed[record.subject] = source == "default" or is_contradicted
            if is_entry:
                is_guess = guessed.get(record.subject, False)
                description = describe(record.data, guessed=is_guess)
                description += profit_words(record, profits)
                description = f"inherited · {description}" if record.data.inherited else description
                if is_guess and GUESS in description:
                    is_contradicted = record.subject in contradicted
                    doubts.add("contradicted" if is_contradicted else "assumed")
                kind = Text(record.data.kind, style=_style(record.data))
                lines.append(_line([record], labels, kind, description, day))
                day = _day([record]) or day
        if not is_entry:
            is_folded = True
            kind, description = _folded([record.data for record in run])
            lines.append(_line(run, labels, kind, description, day))
            day = _day(run) or day
    times = [record.time_ms for record in records if record.time_ms is not None]
    notes = []
    if any(after < before for before, after in pairwise(times)):
        notes.append(LOG_ORDER)
    notes += doubts_explained(doubts)
    if is_folded and name is not None:
        notes.append(FOLDED.format(shlex.quote(safe(name or records[0].data.session_id))))
    widest_chain = max([len("Chain"), *[line.chain.cell_len for line in lines]])
    widest_kind = max([len("What"), *[line.kind.cell_len for line in lines]])
    other_columns = len("00:00:00") + widest_chain + widest_kind + 3 * 2
    is_wide = width - other_columns >= _LEAST_FIGURES
    shown = [_as_table(lines)] if is_wide else _as_pairs(lines)
    return Group(*shown, *[Text(note, style="dim") for note in notes])


def _is_entry(data: RecordData) -> bool:
    """Return whether a record is shown by itself: not the steps of a window that fills."""
    match data:
        case ContextWarning():
            return max(data.thresholds_crossed) >= THRESHOLDS.elevated_above_percent
        case ContextLimits() | SessionInfo() | ContextEdit() | ToolUse() | UserTurn():
            return False
        case _:
            return True


def _folded(run: Sequence[RecordData]) -> tuple[Text, str]:
    """Return the name and the figures of successive records that are folded."""
    crossed = [
        threshold
        for data in run
        if isinstance(data, ContextWarning)
        for threshold in data.thresholds_crossed
    ]
    steps = sum(isinstance(data, ContextWarning) for data in run)
    others = count(len(run) - steps, "other")
    if not steps:
        return Text(others, style="dim"), ", ".join(dict.fromkeys(data.kind for data in run))
    first, last = min(crossed), max(crossed)
    figures = f"{first}%" if first == last else f"{first}% to {last}%"
    if steps < len(run):
        figures += f" · {others}"
    return Text(count(steps, "step"), style="dim"), figures


def _line(
    run: Sequence[Record], labels: Mapping[str, str], kind: Text, figures: str, day: str
) -> _Line:
    """Return the line of one record, or of several that are folded; `day` is that before it.

    Several have the latest one's time, as on the page.
    """
    moment = _latest(run)
    chains = {record.subject for record in run}
    label = labels[run[0].subject] if len(chains) == 1 else count(len(chains), "chain")
    return _Line(
        new_day="" if moment.startswith(day) and day else moment[:10],
        moment=moment[11:] or UNKNOWN,
        chain=Text(label, style="dim" if chains == {MAIN_CHAIN} else ""),
        kind=kind,
        figures=safe(figures),
    )


def _latest(run: Sequence[Record]) -> str:
    """Return the latest moment of records, of which some may have none."""
    times = [record.time_ms for record in run if record.time_ms is not None]
    return _moment(max(times)) if times else ""


def _day(run: Sequence[Record]) -> str:
    return _latest(run)[:10]


def _as_table(lines: Sequence[_Line]) -> Table:
    has_chains = any(line.chain.plain != MAIN_CHAIN for line in lines)
    names = ("UTC", *(("Chain",) if has_chains else ()), "What", "Figures")
    table = plain_table(*names, wrap=("Figures",))
    for line in lines:
        if line.new_day:
            table.add_row(Text(line.new_day, style="bold dim"))
        chain = [line.chain] if has_chains else []
        table.add_row(Text(line.moment, style="dim"), *chain, line.kind, Text(line.figures))
    return table


def _as_pairs(lines: Sequence[_Line]) -> Iterator[RenderableType]:
    """Yield time and kind, then the chain, unless it is the main one, and figures."""
    for line in lines:
        if line.new_day:
            yield Text(f"{line.new_day} UTC", style="bold dim")
        yield Text.assemble((line.moment, "dim"), "  ", line.kind)
        chain = "" if line.chain.plain == MAIN_CHAIN else line.chain.plain
        below = " · ".join(part for part in (chain, line.figures) if part)
        yield Padding(Text(below, overflow="fold"), (0, 0, 0, 2), expand=False)


def _moment(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S}"


def _style(data: RecordData) -> str:
    if isinstance(data, ContextWarning):
        return "red" if data.threshold_percent >= THRESHOLDS.critical_percent else "yellow"
    if isinstance(data, PinsChecked) and data.pins_lost:
        return "bold red"
    return _STYLES.get(data.kind, "")


def _reported(receipt: ReportedReceipt | None) -> str:
    """Return what a boundary reports of its own cost, and what asked for it."""
    if receipt is None:
        return ""
    cost = cost_words(
        receipt.summary_input_tokens,
        receipt.summary_cache_read_tokens,
        receipt.summary_output_tokens,
    )
    parts = [
        cost and f"summary {cost}",
        receipt.reason and receipt.reason.replace("_", " "),
        receipt.command_id and f"command {receipt.command_id}",
    ]
    return "".join(f" · {part}" for part in parts if part)


def _rewritten(tokens: int | None) -> str:
    return "" if tokens is None else f" · {exact(tokens)} written to the cache"


def _turns(data: PinsChecked) -> str:
    """Return how many of the user's turns are still there, and which are lost."""
    figures = (
        f"#{data.number} · ~{count(data.pins_kept, 'turn')} kept · ~{exact(data.pins_lost)} lost"
    )
    texts = ", ".join(f"“{text}”" for text in data.lost_pins)
    return f"{figures}: {texts}" if texts else figures


def describe(data: RecordData, *, guessed: bool = False) -> str:  # noqa: C901, PLR0912 -- a case per kind
    """Return a record's figures; `guessed` marks figures that rest on a doubtful window."""
    match data:
        case ContextReading():
            used = guess(percent(data.used_percent), doubtful=guessed)
            size = f"{exact(data.used_tokens)} tokens · {used}"
            late = "late · " if data.late else ""
            return f"{late}{size} · {count(data.messages, 'message')}"
        case ContextWarning():
            size = used_and_remaining(data.context_used_percent, doubtful=guessed)
            window = guess(thousands(data.context_window), doubtful=guessed)
            crossed = ", ".join(f"{threshold}%" for threshold in data.thresholds_crossed)
            several = f" · crossed {crossed}" if len(data.thresholds_crossed) > 1 else ""
            return f"{size} ({thousands(data.used_tokens)}/{window}){several}"
        case ContextLimits():
            size = guess(thousands(data.window), doubtful=guessed)
            window = f"window {size} ({_SOURCES[data.window_source]})"
            if data.auto_compact_enabled is False:
                return f"{window} · no automatic compaction"
            if data.auto_compact_threshold is None:
                return window
            return f"{window} · compacts at {thousands(data.auto_compact_threshold)}"
        case CompactionStart():
            reason = (data.trigger_reason or "").replace("_", " ")
            used = guess(percent(data.context_used_percent), doubtful=guessed)
            size = f"at {used} used ({thousands(data.used_tokens)})"
            return f"{reason} · {size}" if reason else size
        case CompactionProgress():
            known = data.elapsed_ms is not None
            return "in progress" + (f" after {duration(data.elapsed_ms)}" if known else "")
        case CompactBoundary():
            return (
                f"#{data.number} {data.trigger or 'unknown trigger'} at "
                f"{thousands(data.pre_tokens)} · {count(data.messages_since_last, 'message')} "
                f"· took {duration(data.duration_ms)}{_reported(data.receipt)}"
            )
        case CompactionTiming():
            return f"took {duration(data.duration_ms)}"
        case CompactionSummary():
            return f"{exact(len(data.summary))} characters"
        case PinsChecked():
            return _turns(data)
        case CompactionComplete():
            sizes = f"{exact(data.tokens_before)} → {exact(data.tokens_after)} tokens"
            rewritten = _rewritten(data.cache_rewrite_tokens)
            return f"{sizes} · saved {exact(data.tokens_saved)}{rewritten}"
        case CompactionFailed():
            outcome = "outcome unknown" if data.outcome == "unknown" else data.outcome
            why = "" if data.error is None else f" · {error_words(data.error)}"
            return f"{outcome} · after {duration(data.duration_ms)}{why}"
        case ContextEdit():
            cleared = data.cleared_input_tokens
            tokens = "" if cleared is None else f" · {exact(cleared)} tokens cleared"
            return f"{count(len(data.edits), 'edit')}{tokens}"
        case ContextReset():
            return error_words(data.reason)
        case ContextExhausted():
            over = data.tokens_over
            tokens = "" if over is None else f" · {exact(over)} tokens over"
            return f"{error_words(data.reason)}{tokens}"
        case SessionInfo():
            runtime = " ".join(part for part in (data.runtime, data.runtime_version) if part)
            fork = data.forked_from and f"fork of {data.forked_from}"
            agent = data.publisher_agent_id and f"agent {data.publisher_agent_id}"
            parts = (runtime, data.model, data.cwd, fork, agent)
            return " · ".join(part for part in parts if part)
        case ToolUse():
            size = f"about {exact(data.tokens_estimated)} tokens"
            failed = "failed" if data.is_error else None
            return " · ".join(part for part in (data.part, data.tool, size, failed) if part)
        case UserTurn():
            return f"{exact(data.characters)} characters"
        case _:
            assert_never(data)
