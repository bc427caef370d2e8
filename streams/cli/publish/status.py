"""What `publish` shows while it runs: a bar or a line on a terminal, a few log lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from rich.live import Live
from rich.text import Text

from streams.cli.publish.publishing import Bar, say
from streams.cli.screen.output import err
from streams.edge.files.follower import Follower
from streams.flow.publish.publish import Published

_LOG_EACH_S = 60.0
"""A log line a minute, and only where something was sent: a log is read by people too."""

_DRAW_EACH_S = 0.25

_MB = 1_000_000

logger = structlog.get_logger()


class Status:
    """How a run shows itself. `follow`: it has no end, and on no terminal its words are logged."""

    def __init__(self, *, follow: bool) -> None:
        self._follow = follow
        self._show: Callable[[Published], None] = lambda _done: None

    def say(self, text: str) -> None:
        """Tell of something that happened."""
        if self._follow and not err.is_terminal:
            logger.warning(text)
        else:
            say(text)

    def show(self, done: Published) -> None:
        """Show how far it is."""
        self._show(done)

    @contextmanager
    def of(self, follower: Follower | None, total_bytes: int | None) -> Iterator[None]:
        """Show what is done while the context lasts; without a follower, of pipes."""
        if follower is None or not self._follow:
            with Bar(total_bytes) as bar:
                self._show = bar.show
                yield
        elif err.is_terminal:
            with Live(console=err, transient=True, auto_refresh=False) as live:
                self._show = _OnTerminal(follower, live).show
                yield
        else:
            self._show = _InLog(follower).show
            yield
        self._show = lambda _done: None


class _OnTerminal:
    """One line, drawn anew a few times a second."""

    def __init__(self, follower: Follower, live: Live) -> None:
        self._follower = follower
        self._live = live
        self._drawn_s = 0.0

    def show(self, done: Published) -> None:
        now_s = time.monotonic()
        if now_s - self._drawn_s < _DRAW_EACH_S:
            return
        self._drawn_s = now_s
        lag = self._follower.lag
        behind = f"{lag / _MB:,.1f} MB behind" if lag >= _MB else f"{lag:,} bytes behind"
        line = (
            f"following {self._follower.files:,} files · {done.messages:,} messages · "
            f"{behind} · Ctrl-C ends it"
        )
        self._live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)


class _InLog:
    """A line at the start, and then seldom."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._told_s = 0.0
        self._told_messages = -1

    def show(self, done: Published) -> None:
        now_s = time.monotonic()
        is_first = self._told_messages < 0
        is_news = done.messages != self._told_messages
        if not is_first and (not is_news or now_s - self._told_s < _LOG_EACH_S):
            return
        self._told_s, self._told_messages = now_s, done.messages
        logger.info(
            "following",
            files=self._follower.files,
            messages=done.messages,
            sent_bytes=done.sent_bytes,
            lag_bytes=self._follower.lag,
            refused=done.refused,
            ignored=done.ignored,
        )
