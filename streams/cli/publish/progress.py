"""What publishing shows: a bar or a line on a terminal, some log lines elsewhere, a summary."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import structlog
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from streams.cli.screen.output import count, err, safe, size
from streams.edge.files.follower import Follower
from streams.flow.publish.publish import Published

_LOG_EACH_S = 60.0
"""A log line a minute, and only if something was sent: people read logs too."""

_DRAW_EACH_S = 0.25

logger = structlog.get_logger()


def say(text: str) -> None:
    """Print text that may quote input on standard error."""
    err.print(safe(text), markup=False, soft_wrap=True)


class Status:
    """How a run shows itself. With `follow` it is endless: off a terminal its messages are logs."""

    def __init__(self, *, follow: bool) -> None:
        self._follow = follow
        self._show: Callable[[Published], None] = lambda _done: None

    def say(self, text: str) -> None:
        """Report an event."""
        if self._follow and not err.is_terminal:
            logger.warning(text)
        else:
            say(text)

    def show(self, done: Published) -> None:
        """Show the progress."""
        self._show(done)

    @contextmanager
    def of(self, follower: Follower | None, total_bytes: int | None) -> Iterator[None]:
        """Show the progress of files or, without a follower, of pipes, while the context lasts."""
        if follower is None or not self._follow:
            with Bar(total_bytes) as bar:
                self._show = bar.show
                yield
        elif err.is_terminal:
            with Live(console=err, transient=True, auto_refresh=False) as live:
                self._show = _on_terminal(follower, live)
                yield
        else:
            self._show = _in_log(follower)
            yield
        self._show = lambda _done: None


def _on_terminal(follower: Follower, live: Live) -> Callable[[Published], None]:
    """Return what redraws one line a few times per second."""
    drawn_s = 0.0

    def show(done: Published) -> None:
        nonlocal drawn_s
        now_s = time.monotonic()
        if now_s - drawn_s < _DRAW_EACH_S:
            return
        drawn_s = now_s
        line = (
            f"following {count(follower.files, 'file')} · {count(done.messages, 'message')} · "
            f"{size(follower.lag)} behind · Ctrl-C to stop"
        )
        live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)

    return show


def _in_log(follower: Follower) -> Callable[[Published], None]:
    """Return what writes a log line at the start, and then once a minute if something was sent."""
    logged_s, logged_messages = 0.0, -1

    def show(done: Published) -> None:
        nonlocal logged_s, logged_messages
        now_s = time.monotonic()
        is_first = logged_messages < 0
        is_due = done.messages != logged_messages and now_s - logged_s >= _LOG_EACH_S
        if not is_first and not is_due:
            return
        logged_s, logged_messages = now_s, done.messages
        logger.info(
            "following",
            files=follower.files,
            messages=done.messages,
            sent_bytes=done.sent_bytes,
            lag_bytes=follower.lag,
            refused=done.refused,
            ignored=done.ignored,
        )

    return show


class Bar:
    """A progress bar, on a terminal only."""

    def __init__(self, total_bytes: int | None) -> None:
        self._total_bytes = total_bytes
        self._begin_s = time.monotonic()
        self._progress = Progress(
            TextColumn("publishing"),
            BarColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        self._task = self._progress.add_task("", total=self._total_bytes, figures="")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, done: Published) -> None:
        """Update the bar."""
        rates = _rates(done, time.monotonic() - self._begin_s)
        self._progress.update(
            self._task,
            completed=done.read_bytes,
            figures=f"{count(done.messages, 'message')} · {rates}",
        )


def _rates(done: Published, seconds: float) -> str:
    seconds = max(seconds, 0.001)
    return f"{done.messages / seconds:,.0f} messages/s · {size(int(done.sent_bytes / seconds))}/s"


def print_summary(
    done: Published, seconds: float, rejected: Sequence[str], *, already: int = 0
) -> None:
    """Print what was done; `already` lines had been sent before."""
    sent = f"{count(done.messages, 'message')} ({size(done.sent_bytes)})"
    sessions = f"{count(len(done.sessions), 'session')} in {seconds:.1f} s"
    lines = [f"published {sent} of {sessions} · {_rates(done, seconds)}"]
    if already:
        lines.append(
            f"{count(already, 'line')} already sent or rejected before: --again sends them again"
        )
    if done.shortened:
        lines.append(f"{done.shortened:,} shortened to the size limit")
    if done.ignored:
        lines.append(f"{done.ignored:,} not sent: they belong to no session and have no content")
    err.print("\n".join([*lines, *rejected]), soft_wrap=True)
