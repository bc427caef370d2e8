"""What `contextgauge demo` prints: its steps, totals, sessions, one timeline, what to try next."""

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from contextgauge.clock import SystemClock
from schemas.records import MAIN_CHAIN, CompactionComplete, Record
from schemas.views import CompactionBrief, SessionView
from streams.cli.publish.rejected import by_reason
from streams.cli.screen.figures import count, duration, exact
from streams.cli.screen.output import out, rule
from streams.cli.screen.render import short_ids
from streams.cli.screen.sessions_table import sessions_table
from streams.cli.screen.timeline import timeline
from streams.core.until_compaction import CompactionPoints
from streams.flow.publish.publish import PublishCounts

_BEFORE, _AFTER = 8, 4
"""Records of the timeline that are shown before and after the compaction's end."""


def step(what: str, *, done: bool = False) -> None:
    """Print a step: in progress, or done."""
    line = Text("✓ " if done else "· ", style="green" if done else "dim")
    out.print(line.append(what, style="" if done else "dim"), soft_wrap=True)


def title(what: str) -> None:
    """Begin a section."""
    out.print()
    rule(Text(what, style="bold"), align="left")


def print_totals(
    published: PublishCounts,
    records: int,
    refused: Counter[str],
    dead: Counter[str],
    seconds: float,
) -> None:
    """Print what was processed; what could not be sent or read, by reason."""
    step(
        f"{count(published.messages, 'message')} of {count(len(published.sessions), 'session')} "
        f"became {count(records, 'record')} in {seconds:.1f} s, including the start of the workers",
        done=True,
    )
    if dead:
        step(
            f"could not be read, now in the dead letters: {count(dead.total(), 'message')} "
            f"({by_reason(dead)})"
        )
    if refused:
        step(f"{count(refused.total(), 'line')} could not be sent: {by_reason(refused)}")


def print_sessions(views: Sequence[SessionView], total: int, points: CompactionPoints) -> None:
    """Print the table of sessions; `points` are where compactions are expected."""
    title("Sessions")
    out.print(sessions_table(views, SystemClock().now_ms(), out.width, points=points))
    if total > len(views):
        out.print(f"and {exact(total - len(views))} more, active earlier", style="dim")


def most_known(
    views: Sequence[SessionView],
) -> tuple[SessionView, CompactionBrief | None] | None:
    """Return the session to show, and its compaction: the one with the most known figures."""

    def known_figures(brief: CompactionBrief) -> int:
        figures = (brief.duration_ms, brief.tokens_before, brief.tokens_after, brief.time_ms)
        return sum(figure is not None for figure in figures)

    compactions = [
        (view, brief)
        for view in views
        for brief in view.compactions.last
        if brief.outcome == "succeeded" and brief.chain == MAIN_CHAIN
    ]
    if compactions:
        return max(compactions, key=lambda each: known_figures(each[1]))
    return (views[0], None) if views else None


def print_timeline(
    view: SessionView, brief: CompactionBrief | None, records: Sequence[Record]
) -> None:
    """Print a session's records around a compaction, and the compaction in one line."""
    (short,) = short_ids([view.session_id])
    title(f"What happened in session {short}")
    shown, earlier, later = _around(records, brief)
    if earlier:
        out.print(f"{count(earlier, 'record')} before these", style="dim")
    out.print(timeline(shown, out.width, name=None))
    if later:
        out.print(f"{count(later, 'record')} after these", style="dim")
    if brief is None:
        out.print("\nNone of the sessions was compacted.")
        return
    out.print()
    out.print(Padding(_sentence(brief), (0, 0, 0, 2), expand=False))


def _around(
    records: Sequence[Record], brief: CompactionBrief | None
) -> tuple[Sequence[Record], int, int]:
    """Return the records around the end of a compaction, and how many are left out."""

    def is_end(record: Record) -> bool:
        data = record.data
        complete = data.boundary_id if isinstance(data, CompactionComplete) else None
        return brief is not None and brief.record_id in {record.id, complete}

    end = max([index for index, record in enumerate(records) if is_end(record)], default=0)
    first, beyond = max(0, end - _BEFORE), min(len(records), end + 1 + _AFTER)
    return records[first:beyond], first, len(records) - beyond


def _sentence(brief: CompactionBrief) -> Text:
    sentence = Text.assemble(
        "Compaction ",
        (f"#{brief.number}", "bold"),
        f" ({brief.trigger or 'unknown trigger'}) took ",
        (
            "an unknown time" if brief.duration_ms is None else duration(brief.duration_ms),
            "bold magenta",
        ),
        ": ",
        (exact(brief.tokens_before), "bold"),
        " → ",
        (exact(brief.tokens_after), "bold"),
        " tokens",
    )
    if brief.tokens_saved is not None and brief.tokens_before:
        share = brief.tokens_saved * 100 // brief.tokens_before
        sentence.append(f", {exact(brief.tokens_saved)} saved ({share}%)")
    return sentence


def print_next(path: str | None, *, served: bool) -> None:
    """Print what to try next."""
    command = _own_command()
    steps = [
        (f"{command} stack up", "Kafka and Redis that keep running"),
        (f"{command} status FILE", "one transcript's figures, without a broker"),
        (f"{command} simulate --help", "simulated sessions of every kind, at any rate"),
    ]
    if not served:
        with_page = f"{command} demo --serve" + ("" if path is None else " PATH")
        steps.insert(0, (with_page, "the same, with the web page"))
    if path is None:
        steps.insert(0, (f"{command} demo ~/.claude/projects", "your own transcripts"))
    width = max(len(what) for what, _ in steps)
    lines = Text("\n").join(
        Text.assemble((what.ljust(width + 2), "bold"), (why, "dim")) for what, why in steps
    )
    out.print()
    out.print(Panel(lines, title="Try next", title_align="left", expand=False, padding=(0, 1)))


def _own_command() -> str:
    """Return what starts this command again, from here."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return "python -m streams"
    if shutil.which(path.name) == str(path):
        return path.name
    is_below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if is_below else path)
