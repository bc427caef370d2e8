"""How a session's records look at the terminal: one line for each, in the order they happened."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

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
from streams.cli.render import FULL_PERCENT, short_ids
from streams.cli.screen import UNKNOWN, count, duration, exact, percent, safe, thousands

_STYLES = {
    CompactionStart.kind: "magenta",
    CompactBoundary.kind: "magenta",
    CompactionComplete.kind: "bold magenta",
    CompactionFailed.kind: "red",
    ContextExhausted.kind: "bold red",
    ContextReset.kind: "cyan",
}


def timeline(records: Sequence[Record]) -> Table:
    """Return a session's records as a table; a new day (UTC) is a row of its own."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("UTC", no_wrap=True)
    table.add_column("Chain", no_wrap=True)
    table.add_column("What", no_wrap=True)
    table.add_column("Figures", overflow="fold")
    chains = sorted({record.subject for record in records})
    shorts = dict(zip(chains, short_ids(chains), strict=True))
    day = ""
    for record in records:
        moment = "" if record.time_ms is None else _moment(record.time_ms)
        if moment and moment[:10] != day:
            day = moment[:10]
            table.add_row(Text(day, style="bold dim"))
        main = record.subject == MAIN_CHAIN
        table.add_row(
            Text(moment[11:] or UNKNOWN, style="dim"),
            Text(shorts[record.subject], style="dim" if main else ""),
            Text(record.kind, style=_style(record.data)),
            Text(safe(describe(record.data))),
        )
    return table


def _moment(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S}"


def _style(data: RecordData) -> str:
    if isinstance(data, ContextWarning):
        return "red" if data.threshold_percent >= FULL_PERCENT else "yellow"
    return _STYLES.get(data.kind, "")


def describe(data: RecordData) -> str:
    """Return a record's figures in words."""
    match data:
        case ContextReading() | ContextWarning() | ContextLimits():
            return _describe_size(data)
        case (
            CompactionStart()
            | CompactionProgress()
            | CompactBoundary()
            | CompactionSummary()
            | CompactionComplete()
            | CompactionFailed()
        ):
            return _describe_compaction(data)
        case ContextEdit():
            cleared = data.cleared_input_tokens
            told = "" if cleared is None else f" · {exact(cleared)} tokens cleared"
            return f"{count(len(data.edits), 'edit')}{told}"
        case ContextReset() | ContextExhausted():
            return data.reason
        case SessionInfo():
            runtime = " ".join(part for part in (data.runtime, data.runtime_version) if part)
            fork = None if data.forked_from is None else f"fork of {data.forked_from}"
            return " · ".join(part for part in (runtime, data.model, data.cwd, fork) if part)
        case _:
            assert_never(data)


def _describe_size(data: ContextReading | ContextWarning | ContextLimits) -> str:
    match data:
        case ContextReading():
            size = f"{exact(data.used_tokens)} tokens · {percent(data.used_percent)}"
            return f"{size} · {count(data.messages, 'message')}"
        case ContextWarning():
            crossed = ", ".join(f"{threshold}%" for threshold in data.thresholds_crossed)
            size = f"{thousands(data.used_tokens)} of {thousands(data.context_window)}"
            return f"crossed {crossed} · at {percent(data.context_used_percent)} ({size})"
        case ContextLimits():
            window = f"window {thousands(data.window)} ({data.window_source})"
            if data.auto_compact_enabled is False:
                return f"{window} · compacts only when told to"
            if data.auto_compact_threshold is None:
                return window
            return f"{window} · compacts at {thousands(data.auto_compact_threshold)}"
        case _:
            assert_never(data)


def _describe_compaction(
    data: CompactionStart
    | CompactionProgress
    | CompactBoundary
    | CompactionSummary
    | CompactionComplete
    | CompactionFailed,
) -> str:
    match data:
        case CompactionStart():
            reasons = {"manual": "by hand", "threshold_exceeded": "threshold exceeded", None: ""}
            size = f"at {percent(data.context_used_percent)} ({thousands(data.used_tokens)})"
            return " · ".join(part for part in (reasons[data.trigger_reason], size) if part)
        case CompactionProgress():
            known = data.elapsed_ms is not None
            return "still at work" + (f" after {duration(data.elapsed_ms)}" if known else "")
        case CompactBoundary():
            return (
                f"#{data.number} {data.trigger or 'trigger unknown'} · "
                f"{exact(data.pre_tokens)} tokens, {count(data.messages_since_last, 'message')} "
                f"· took {duration(data.duration_ms)}"
            )
        case CompactionSummary():
            return f"{exact(len(data.summary))} characters"
        case CompactionComplete():
            return (
                f"{exact(data.tokens_before)} → {exact(data.tokens_after)} tokens · "
                f"saved {exact(data.tokens_saved)} · took {duration(data.duration_ms)}"
            )
        case CompactionFailed():
            outcome = "its end was never told" if data.outcome == "unknown" else data.outcome
            why = "" if data.error is None else f" · {data.error}"
            return f"{outcome} · after {duration(data.duration_ms)}{why}"
        case _:
            assert_never(data)
