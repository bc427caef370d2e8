"""The texts of seeds 001, 002 and 004 for people: pure functions from figures to text.

What fills a window is in `window_parts`, widths on a terminal in `terminal_width`.

Percentages are floored, as everywhere: 89.9 % is not yet 90 %. Short counts (`58K`) are floored,
too. Texts of the conversation appear as one line without controls.
"""

from dataclasses import dataclass
from typing import Final

from contextgauge.compaction.displays import terminal_width
from contextgauge.compaction.displays.context_status import ContextStatus as ContextStatus
from contextgauge.compaction.displays.context_status import percent as percent
from contextgauge.compaction.engine.compaction_receipt import Receipt
from contextgauge.compaction.events import (
    CompactionDone,
    CompactionNotDone,
    CompactionStarting,
    ContextWarned,
    EngineEvent,
)
from contextgauge.compaction.messages import ContextCompaction

BOX_COLUMNS: Final = 50

_BAR_CHARACTERS: Final = 20
_PREVIEW_CHARACTERS: Final = 80
_LABEL_COLUMNS: Final = 15
_NUMBER_COLUMNS: Final = 8
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000

_UNITS: Final = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What `/compact` shows: messages that left, tokens saved and the summary (004).

    `active`, `total` and `summaries` are counts after the compaction.
    """

    removed: int
    tokens_before: int
    tokens_after: int
    summary: str = ""
    active: int = 0
    total: int = 0
    summaries: int = 0

    @property
    def saved_tokens(self) -> int:
        """Tokens that the next request is smaller by."""
        return max(0, self.tokens_before - self.tokens_after)


def short_count(tokens: int) -> str:
    """Return `58K` for 58 432, `1.5M` for 1 500 000: floored."""
    if tokens < _THOUSAND:
        return str(tokens)
    if tokens < _MILLION:
        return f"{tokens // _THOUSAND}K"
    tenths = tokens * 10 // _MILLION
    return f"{tenths // 10}M" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}M"


def status_text(tokens: int, window_tokens: int) -> str:
    """Return `Context: 45% (58K/128K tokens)`, for a status line."""
    return f"Context: {percent(tokens, window_tokens)}% ({_share(tokens, window_tokens)})"


def header_text(status: ContextStatus) -> str:
    """Return `Context: 45/120 msgs (37%)`, for a header; empty without active messages.

    The percentage is the tokens' share of the window, as in seed 004, and not that of the messages.
    """
    if status.active <= 0:
        return ""
    return f"Context: {status.active}/{status.total} msgs ({_mark(status)}{status.percent}%)"


def warning_text(tokens: int, window_tokens: int) -> str:
    """Return what to show once at the warning threshold, in two lines."""
    used = percent(tokens, window_tokens)
    return (
        f"⚠️ Context usage at {used}% ({_share(tokens, window_tokens)})\n"
        "Consider using /compact to summarize older messages"
    )


def warning_line(tokens: int, window_tokens: int) -> str:
    """Return the same in one line, as 004's latest version."""
    return f"⚠️ Context usage at {percent(tokens, window_tokens)}% - Consider using /compact"


def auto_compacted_text(result: CompactionResult, window_tokens: int) -> str:
    """Return what to show after an automatic compaction, in three lines."""
    return (
        "📦 Auto-compacting conversation "
        f"({percent(result.tokens_before, window_tokens)}% context usage)\n"
        f"Summarized {_messages(result.removed)}, saved {short_count(result.saved_tokens)} tokens\n"
        "Conversation coherence preserved"
    )


def auto_compacting_line(tokens: int, window_tokens: int, strategy: str) -> str:
    """Return what to show when an automatic compaction begins, as 004's latest version."""
    used = percent(tokens, window_tokens)
    return f"📦 Auto-compacting ({used}% usage, strategy: {strategy})..."


def complete_line(strategy: str) -> str:
    """Return what to show when it is done."""
    return f"✓ Compaction complete ({strategy})"


def compact_text(result: CompactionResult) -> str:
    """Return the output of `/compact` as a list."""
    lines = [
        "Compacting conversation...",
        f"Removed: {_messages(result.removed)}",
        f"Saved: {short_count(result.saved_tokens)} tokens",
    ]
    if result.summary.strip():
        lines.append(f'Summary: "{preview(result.summary)}"')
    return "\n".join(lines)


def compact_box(result: CompactionResult) -> str:
    """Return the output of `/compact` as a box of 50 columns."""
    saved = percent(result.saved_tokens, result.tokens_before)
    lines = [
        *_counts(result.active, result.total, result.summaries),
        "",
        _bar("Saved", saved),
        "",
        f"Removed: {_messages(result.removed)}",
        f"Saved: {short_count(result.saved_tokens)} tokens",
    ]
    if result.summary.strip():
        lines.append(f"Summary: {terminal_width.plain_line(result.summary)}")
    return _box("Compaction Statistics", lines)


def context_text(status: ContextStatus) -> str:
    """Return the output of `/context` as a list."""
    tenths = status.tokens * 1_000 // status.window_tokens if status.window_tokens > 0 else 0
    mark = _mark(status)
    lines = [
        "Context Usage:",
        f"  Current: {mark}{status.tokens:,} tokens ({mark}{tenths // 10}.{tenths % 10}%)",
        f"  Maximum: {status.window_tokens:,} tokens",
        f"  Messages: {status.active}",
    ]
    if status.oldest_age_ms is not None:
        lines.append(f"  Oldest: {_ago(status.oldest_age_ms)}")
    return "\n".join(
        (
            *lines,
            "",
            "Breakdown:",
            f"  System prompt: {mark}{status.system_tokens:,} tokens",
            f"  Memory context: {mark}{status.memory_tokens:,} tokens",
            f"  Conversation: {mark}{status.conversation_tokens:,} tokens",
        )
    )


def context_box(status: ContextStatus) -> str:
    """Return the output of `/context` as a box of 50 columns."""
    has_summary = status.summaries > 0 if status.is_compressed is None else status.is_compressed
    return _box(
        "Context Usage Statistics",
        [
            *_counts(status.active, status.total, status.summaries),
            "",
            _bar("Usage", status.percent, _mark(status)),
            "",
            f"Status: {'Compressed' if has_summary else 'Uncompressed'}",
        ],
    )


def marker_text(
    marker: ContextCompaction, *, freed_tokens: int | None = None, expanded: bool = False
) -> str:
    """Return the marker of a compaction among the messages (001).

    `freed_tokens` is an estimate, as a receipt's `tokens_saved`. With `expanded` the whole summary,
    else a preview of it. Where it is unknown how much was freed, the size before stands in its
    place. What is unknown, as of a runtime's own compaction, is left out.
    """
    known = [f"{_messages(marker.messages_archived)} archived"] if marker.messages_archived else []
    if freed_tokens is not None:
        known.append(f"~{freed_tokens:,} tokens freed")
    elif marker.context_size_before:
        known.append(f"{marker.context_size_before:,} tokens before")
    lines = [f"🗃️  Context Compacted #{marker.number}", *([", ".join(known)] if known else [])]
    if expanded:
        lines += [terminal_width.plain_line(line) for line in marker.summary.splitlines()]
    elif marker.summary.strip():
        lines.append(preview(marker.summary))
    return "\n".join(lines)


def event_line(event: EngineEvent) -> str:
    """Return what to show of an event of the engine in one line, as 004's latest version."""
    match event:
        case ContextWarned():
            return warning_line(event.tokens, event.window.tokens)
        case CompactionStarting():
            return auto_compacting_line(event.tokens, event.window.tokens, event.strategy)
        case CompactionDone():
            return complete_line(event.receipt.strategy)
        case CompactionNotDone():
            return f"Not compacted: {event.reason}"
    return (
        f"No compaction can help: the least that can be sent has {event.fixed_tokens:,} tokens, "
        f"and the limit is {event.threshold_tokens:,}"
    )


def log_line(receipt: Receipt) -> str:
    """Return seed 002's line for a log; where no message was archived, the steps and no round."""
    sizes = f"{receipt.tokens_before} → {receipt.tokens_after} tokens"
    if receipt.number is None:
        shortened = len({each for step in receipt.steps for each in step.message_ids})
        names = ", ".join(step.rung for step in receipt.steps)
        return f"[Compaction] {sizes} ({names}: {_messages(shortened)} shortened)"
    archived = receipt.messages_archived
    return f"[Compaction] Round {receipt.number}: {sizes} ({archived} messages summarized)"


def preview(summary: str) -> str:
    """Return the beginning of a summary as one line."""
    line = terminal_width.plain_line(summary[: 10 * _PREVIEW_CHARACTERS])
    if len(line) <= _PREVIEW_CHARACTERS:
        return line
    return f"{line[: _PREVIEW_CHARACTERS - 3].rstrip()}..."


def _share(tokens: int, window_tokens: int) -> str:
    return f"{short_count(tokens)}/{short_count(window_tokens)} tokens"


def _messages(number: int) -> str:
    return f"{number} message" if number == 1 else f"{number} messages"


def _ago(age_ms: int) -> str:
    for unit_ms, name in _UNITS:
        number = age_ms // unit_ms
        if number:
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "just now"


def _counts(active: int, total: int, summaries: int) -> list[str]:
    rows = (("Active Messages", active), ("Total Messages", total), ("Summaries", summaries))
    return [f"{label:{_LABEL_COLUMNS}}{number:{_NUMBER_COLUMNS}}" for label, number in rows]


def _mark(status: ContextStatus) -> str:
    return "~" if status.is_estimated else ""


def _bar(label: str, used: int, mark: str = "") -> str:
    filled = min(_BAR_CHARACTERS, max(0, used) * _BAR_CHARACTERS // 100)
    bar = "#" * filled + "." * (_BAR_CHARACTERS - filled)
    return f"{label}  [{bar}]  {mark}{used}%"


def _box(title: str, lines: list[str]) -> str:
    border = f"+{'-' * (BOX_COLUMNS - 2)}+"
    inner = BOX_COLUMNS - 4
    rows = [f"| {terminal_width.padded(line, inner)} |" for line in (title, *lines)]
    return "\n".join((border, rows[0], border, *rows[1:], border))
