"""A session's records in the terminal: a line each, in log order."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
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
    Record,
    RecordData,
    SessionInfo,
)
from streams.cli.screen.figures import (
    UNKNOWN,
    count,
    duration,
    exact,
    percent,
    safe,
    thousands,
)
from streams.cli.screen.output import GUESS_EXPLAINED
from streams.cli.screen.render import chain_labels, guess
from streams.cli.screen.tables import plain_table
from streams.core.session_status import THRESHOLDS

_STYLES = {
    CompactionStart.kind: "magenta",
    CompactBoundary.kind: "magenta",
    CompactionComplete.kind: "bold magenta",
    CompactionFailed.kind: "red",
    ContextExhausted.kind: "bold red",
    ContextReset.kind: "cyan",
}


_LEAST_FIGURES = 28
"""Minimum width of the figures; on narrower screens they go on a line of their own."""

LOG_ORDER = "in log order: some records are older than the ones before them"


class _Line(NamedTuple):
    """One record as text, safe for a terminal; `new_day` if it differs from the record before."""

    new_day: str
    moment: str
    chain: Text
    kind: Text
    figures: str


def timeline(records: Sequence[Record], width: int, chains: Collection[str] = ()) -> RenderableType:
    """Return a session's records for a screen of this width: a line each, two on narrow ones.

    Each day (UTC) starts with a row of its own. `chains` are all of the session's chains, so that
    they get the same labels as elsewhere.
    """
    labels = chain_labels({*chains, *(record.subject for record in records)})
    guessed: dict[str, bool] = {}
    was_guessed = False
    day = ""
    lines = []
    for record in records:
        data, chain = record.data, record.subject
        if isinstance(data, ContextReading | ContextWarning | ContextLimits):
            guessed[chain] = data.window_source == "default"
            was_guessed = was_guessed or guessed[chain]
        moment = "" if record.time_ms is None else _moment(record.time_ms)
        line = _Line(
            new_day="" if moment.startswith(day) and day else moment[:10],
            moment=moment[11:] or UNKNOWN,
            chain=Text(labels[chain], style="dim" if chain == MAIN_CHAIN else ""),
            kind=Text(data.kind, style=_style(data)),
            figures=safe(describe(data, guessed=guessed.get(chain, False))),
        )
        lines.append(line)
        day = moment[:10] or day
    times = [record.time_ms for record in records if record.time_ms is not None]
    notes = []
    if any(after < before for before, after in pairwise(times)):
        notes.append(LOG_ORDER)
    if was_guessed:
        notes.append(GUESS_EXPLAINED)
    widest_chain = max([len("Chain"), *[line.chain.cell_len for line in lines]])
    widest_kind = max([len("What"), *[line.kind.cell_len for line in lines]])
    other_columns = len("00:00:00") + widest_chain + widest_kind + 3 * 2
    is_wide = width - other_columns >= _LEAST_FIGURES
    shown = [_as_table(lines)] if is_wide else _as_pairs(lines)
    return Group(*shown, *[Text(note, style="dim") for note in notes])


def _as_table(lines: Sequence[_Line]) -> Table:
    table = plain_table("UTC", "Chain", "What", "Figures", wrap=("Figures",))
    for line in lines:
        if line.new_day:
            table.add_row(Text(line.new_day, style="bold dim"))
        table.add_row(Text(line.moment, style="dim"), line.chain, line.kind, Text(line.figures))
    return table


def _as_pairs(lines: Sequence[_Line]) -> Iterator[RenderableType]:
    """Yield time and kind, then the chain, unless it is the main one, and figures."""
    for line in lines:
        if line.new_day:
            yield Text(f"{line.new_day} UTC", style="bold dim")
        yield Text.assemble((line.moment, "dim"), "  ", line.kind)
        chain = "" if line.chain.plain == MAIN_CHAIN else line.chain.plain
        below = " · ".join(part for part in (chain, line.figures) if part)
        yield Padding(Text(below, overflow="fold"), (0, 0, 0, 2))


def _moment(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S}"


def _style(data: RecordData) -> str:
    if isinstance(data, ContextWarning):
        return "red" if data.threshold_percent >= THRESHOLDS.critical_percent else "yellow"
    return _STYLES.get(data.kind, "")


def describe(data: RecordData, *, guessed: bool = False) -> str:  # noqa: C901, PLR0912 -- a case per kind
    """Return a record's figures; `guessed` marks figures that rest on an assumed window.

    A record with a window has the mark in itself.
    """
    match data:
        case ContextReading():
            used = guess(percent(data.used_percent), data.window_source)
            size = f"{exact(data.used_tokens)} tokens · {used}"
            return f"{size} · {count(data.messages, 'message')}"
        case ContextWarning():
            crossed = ", ".join(f"{threshold}%" for threshold in data.thresholds_crossed)
            used = guess(percent(data.context_used_percent), data.window_source)
            window = guess(thousands(data.context_window), data.window_source)
            return f"crossed {crossed} · at {used} ({thousands(data.used_tokens)} of {window})"
        case ContextLimits():
            size = guess(thousands(data.window), data.window_source)
            window = f"window {size} ({data.window_source})"
            if data.auto_compact_enabled is False:
                return f"{window} · no automatic compaction"
            if data.auto_compact_threshold is None:
                return window
            return f"{window} · compacts at {thousands(data.auto_compact_threshold)}"
        case CompactionStart():
            reason = (data.trigger_reason or "").replace("_", " ")
            used = guess(percent(data.context_used_percent), "default" if guessed else None)
            size = f"at {used} ({thousands(data.used_tokens)})"
            return f"{reason} · {size}" if reason else size
        case CompactionProgress():
            known = data.elapsed_ms is not None
            return "in progress" + (f" after {duration(data.elapsed_ms)}" if known else "")
        case CompactBoundary():
            return (
                f"#{data.number} {data.trigger or 'trigger unknown'} · "
                f"{exact(data.pre_tokens)} tokens, {count(data.messages_since_last, 'message')} "
                f"· took {duration(data.duration_ms)}"
            )
        case CompactionTiming():
            return f"took {duration(data.duration_ms)}"
        case CompactionSummary():
            return f"{exact(len(data.summary))} characters"
        case CompactionComplete():
            return (
                f"{exact(data.tokens_before)} → {exact(data.tokens_after)} tokens · "
                f"saved {exact(data.tokens_saved)} · took {duration(data.duration_ms)}"
            )
        case CompactionFailed():
            outcome = "outcome unknown" if data.outcome == "unknown" else data.outcome
            why = "" if data.error is None else f" · {data.error}"
            return f"{outcome} · after {duration(data.duration_ms)}{why}"
        case ContextEdit():
            cleared = data.cleared_input_tokens
            tokens = "" if cleared is None else f" · {exact(cleared)} tokens cleared"
            return f"{count(len(data.edits), 'edit')}{tokens}"
        case ContextReset():
            return data.reason
        case ContextExhausted():
            over = data.tokens_over
            tokens = "" if over is None else f" · {exact(over)} tokens over"
            return f"{data.reason}{tokens}"
        case SessionInfo():
            runtime = " ".join(part for part in (data.runtime, data.runtime_version) if part)
            fork = data.forked_from and f"fork of {data.forked_from}"
            agent = data.publisher_agent_id and f"agent {data.publisher_agent_id}"
            parts = (runtime, data.model, data.cwd, fork, agent)
            return " · ".join(part for part in parts if part)
        case _:
            assert_never(data)
