"""What publishing shows: a bar or a line on a terminal, some log lines elsewhere, a summary."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from streams.cli.publish.rejected import RejectedLines
from streams.cli.screen.figures import count, size
from streams.cli.screen.output import err, say
from streams.edge.files.follower import Follower
from streams.flow.publish.publish import PublishCounts

_LOG_EACH_S = 60.0
"""A log line a minute, and only if something was sent: people read logs too."""

logger = structlog.get_logger()


class PublishStatus:
    """How a run shows itself. With `follow` it is endless: off a terminal its messages are logs.

    `show` takes the progress.
    """

    def __init__(self, *, follow: bool) -> None:
        self._follow = follow
        self.show: Callable[[PublishCounts], None] = lambda _done: None

    def say(self, text: str) -> None:
        """Report an event."""
        if self._follow and not err.is_terminal:
            logger.warning(text)
        else:
            say(text)

    @contextmanager
    def of(self, follower: Follower | None, total_bytes: int | None) -> Iterator[None]:
        """Show the progress of files or, without a follower, of pipes, while the context lasts."""
        if follower is not None and self._follow and not err.is_terminal:
            self.show = _in_log(follower)
            yield
        else:
            with publish_bar(total_bytes, follower if self._follow else None) as self.show:
                yield


def _in_log(follower: Follower) -> Callable[[PublishCounts], None]:
    """Return what writes a log line at the start, and then once a minute if something was sent."""
    logged_s, logged_messages = 0.0, -1

    def show(done: PublishCounts) -> None:
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


@contextmanager
def publish_bar(
    total_bytes: int | None, follower: Follower | None = None
) -> Iterator[Callable[[PublishCounts], None]]:
    """Show a bar, on a terminal only; with a follower, which has no end, a line of figures."""
    begin_s = time.monotonic()
    figures = TextColumn("{task.description}")
    columns = [figures] if follower else [BarColumn(), figures, TimeRemainingColumn()]
    hidden = not err.is_terminal
    with Progress(
        *columns, console=err, transient=True, disable=hidden, refresh_per_second=4
    ) as bar:
        task = bar.add_task("publishing", total=total_bytes)

        def show(done: PublishCounts) -> None:
            sent = count(done.messages, "message")
            if follower is None:
                shown = f"{sent} · {_rates(done, time.monotonic() - begin_s)}"
            else:
                files, lag = count(follower.files, "file"), size(follower.lag)
                shown = f"following {files} · {sent} · {lag} behind · Ctrl-C to stop"
            bar.update(task, completed=done.read_bytes, description=shown)

        yield show


def _rates(done: PublishCounts, seconds: float) -> str:
    seconds = max(seconds, 0.001)
    return f"{done.messages / seconds:,.0f} messages/s · {size(int(done.sent_bytes / seconds))}/s"


def print_summary(
    done: PublishCounts, seconds: float, rejected: RejectedLines, *, already: int = 0
) -> None:
    """Print what was done; `already` lines had been sent before."""
    sent = f"{count(done.messages, 'message')} ({size(done.sent_bytes)})"
    sessions = f"{count(len(done.sessions), 'session')} in {seconds:.1f} s"
    say(f"published {sent} of {sessions} · {_rates(done, seconds)}")
    if already:
        say(f"{count(already, 'line')} already sent or rejected before: --again sends them again")
    if done.shortened:
        say(f"{done.shortened:,} shortened to the size limit")
    if done.ignored:
        say(f"{done.ignored:,} not sent: they belong to no session and have no content")
    rejected.report_all()
    # What follows lines that were sent before may well be without figures.
    if not already and (note := done.check.end()) is not None:
        say(note)
