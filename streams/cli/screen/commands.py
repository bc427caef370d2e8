"""Commands and decisions of the control plane on the screen."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from rich.table import Table
from rich.text import Text

from contextgauge.compaction.displays import (
    CompactionResult,
    compact_box,
    complete_line,
    preview,
)
from contextgauge.compaction.history import History
from schemas.commands import CommandOutcome, CommandView, ControlView, DecisionView, ThresholdsSet
from schemas.records import Json
from streams.cli.screen.figures import (
    GUESS,
    ago,
    count,
    duration,
    exact,
    percent,
    safe,
    thousands,
)
from streams.cli.screen.tables import plain_table
from streams.cli.screen.window_words import guess
from streams.core.control.reasons import MEANINGS, NO_EFFECT
from streams.edge.control.service_file import EXTRACTIVE

_OUTCOMES: dict[CommandOutcome, str] = {
    "completed": "compacted",
    "nothing_to_compact": "nothing to compact",
    "refused": "refused",
    "cancelled": "cancelled",
    "failed": "failed",
    "expired": "expired",
}
_STYLES: dict[CommandOutcome, str] = {
    "completed": "green",
    "failed": "red",
    "refused": "yellow",
    "expired": "yellow",
}
_SHORT_ID = 8


def progress_text(command: CommandView | None) -> str:
    """Return how far a command is, in a few words."""
    if command is None or command.state == "requested":
        text = "requested"
    elif command.state == "accepted":
        text = f"accepted by {command.driver}"
    elif command.state == "planned":
        text = "planned"
        if command.tokens_before is not None:
            text += f", from {exact(command.tokens_before)} tokens"
    elif command.state == "called":
        text = f"waiting for the {_summary_words(command.summariser)}"
    else:
        text = "finished"
    if command is not None and command.attempt > 1:
        text += f", attempt {command.attempt}"
    return text + (", being cancelled" if command is not None and command.is_cancelling else "")


def result_text(command: CommandView) -> str:
    """Return what became of a command, in a line."""
    outcome = "open" if command.outcome is None else _OUTCOMES[command.outcome]
    parts = [outcome[0].upper() + outcome[1:]]
    if command.reason is not None:
        parts[0] += f": {command.reason}"
    if command.finished_ms is not None:
        parts.append(_since_request(command.finished_ms, command))
    if command.outcome == "completed":
        parts.append(f"by {command.driver}")
    return ", ".join(parts)


def _since_request(finished_ms: int, command: CommandView) -> str:
    """Return how long the command took: waiting for a worker and for the driver included."""
    return f"{duration(max(finished_ms - command.requested_ms, 0))} after the request"


def why_table(view: ControlView, now_ms: int) -> Table:
    """Return all that is known of a session, the newest first."""
    ignored = {each.command_id for each in view.decisions if each.reason == NO_EFFECT}
    rows: list[tuple[int, tuple[Text, Text, Text]]] = [
        (each.time_ms, _decision_cells(each)) for each in view.decisions
    ]
    rows += [
        (each.finished_ms or each.requested_ms, _command_cells(each, ignored))
        for each in view.commands
    ]
    table = plain_table("When", "What", "Size", "Why", wrap={"Why"})
    for time_ms, cells in sorted(rows, key=lambda row: -row[0]):
        table.add_row(ago(time_ms, now_ms), *cells)
    return table


def _decision_cells(decision: DecisionView) -> tuple[Text, Text, Text]:
    what = Text("requested") if decision.fired else Text("not compacted", style="yellow")
    if decision.reason == NO_EFFECT:
        what = Text("undone", style="yellow")
    meaning = MEANINGS.get(decision.reason, decision.reason)  # type: ignore[call-overload]  # of another build
    return what, _size(decision), Text(safe(str(meaning)))


def _size(decision: DecisionView) -> Text:
    used, window = decision.used_tokens, decision.window
    if used is None:
        return Text("unknown", style="dim")
    text = thousands(used)
    if window:
        doubtful = decision.window_source == "default"
        share = guess(percent(100 * used / window), doubtful=doubtful)
        text += f" of {guess(thousands(window), doubtful=doubtful)} ({share})"
    if decision.threshold_tokens is not None:
        text += f"\ncompact_at {thousands(decision.threshold_tokens)}"
    return Text(text)


def _command_cells(
    command: CommandView, ignored: AbstractSet[str | None]
) -> tuple[Text, Text, Text]:
    if command.outcome is None:
        what = Text("waiting" if command.state == "requested" else "under way", style="bold")
        why = progress_text(command)
    else:
        what = Text(_OUTCOMES[command.outcome], style=_STYLES.get(command.outcome, ""))
        why = command.reason or ""
        if command.command_id in ignored:
            what = Text("without effect", style="yellow")
    parts = [why] if why else []
    parts.append(f"{_trigger(command)}, command {command.command_id[:_SHORT_ID]}")
    if command.instructions:
        parts.append(f"“{command.instructions}”")
    if command.finished_ms is not None:
        parts.append(_since_request(command.finished_ms, command))
    if command.summariser is not None and command.outcome is not None:
        parts.append(_summary_words(command.summariser))
    return what, Text(sizes_text(command)), Text(safe("; ".join(parts)))


def _summary_words(summariser: str | None) -> str:
    if summariser == EXTRACTIVE:
        return "summary without a model"
    return "summary" if summariser is None else f"summary by {summariser}"


def _trigger(command: CommandView) -> str:
    if command.trigger == "manual":
        return f"asked for by {command.requested_by}"
    return "automatic" if command.trigger == "auto" else "model changed"


def sizes_text(command: CommandView) -> str:
    """Return the size of the whole request before and after: 171K → ~52K; empty where unknown.

    After it is always an estimate: what was reported before, less what is estimated as saved.
    """
    receipt = command.receipt or {}
    before, after = receipt.get("tokens_before", command.tokens_before), receipt.get("tokens_after")
    if not isinstance(before, int):
        return ""
    text = f"{GUESS if receipt.get('basis') == 'estimated' else ''}{thousands(before)}"
    return f"{text} → {GUESS}{thousands(after)}" if isinstance(after, int) else text


def receipt_lines(command: CommandView) -> list[str]:
    """Return what a compaction did; nothing where it has no receipt, as of a runtime's own."""
    receipt = command.receipt or {}
    before, after = receipt.get("tokens_before"), receipt.get("tokens_after")
    removed = receipt.get("messages_archived")
    if not isinstance(before, int) or not isinstance(after, int) or not isinstance(removed, int):
        return []
    return [
        f"Removed: {count(removed, 'message')}",
        f"Size: {sizes_text(command)} tokens of the whole request; the next response reports it",
        f"Saved: {GUESS}{thousands(max(0, before - after))} tokens",
    ]


def compacted_text(receipt: Mapping[str, Json], history: History) -> str:
    """Return the summary, the counts and the end of a compaction, as 004 shows them."""
    marker = next((each.compaction for each in reversed(history.active) if each.compaction), None)
    summary = "" if marker is None else marker.summary
    removed, before, after = (
        value if isinstance(value := receipt.get(name), int) else 0
        for name in ("messages_archived", "tokens_before", "tokens_after")
    )
    result = CompactionResult(
        removed=removed,
        tokens_before=before,
        tokens_after=after,
        summary=summary,
        active=len(history.active),
        total=len(history.everything),
        summaries=history.rounds,
    )
    lines = [f'Summary: "{preview(summary)}"'] if summary.strip() else []
    return "\n".join((*lines, compact_box(result), complete_line("compact")))


def thresholds_text(entry: ThresholdsSet | None) -> str:
    """Return thresholds that were set, in a line."""
    if entry is None:
        return "nothing set: the service's file holds"
    parts: Sequence[str | None] = (
        None if entry.automatic is None else ("automatic" if entry.automatic else "not automatic"),
        None if entry.compact_at is None else f"compact at {entry.compact_at}",
        None if entry.compact_to is None else f"to {entry.compact_to}",
    )
    text = ", ".join(part for part in parts if part is not None)
    return f"{text} (set by {entry.requested_by})"
