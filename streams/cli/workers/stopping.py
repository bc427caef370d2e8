"""Stopping a worker: gracefully at the first signal, by force if that takes too long.

A thread of its own receives the signals, not the event loop: they must reach a worker whose loop is
stuck too. Stopping by force is safe: the next owner of the partitions, after the session timeout,
repeats what was not committed.
"""

import asyncio
import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import structlog

from streams.cli.exits import Exit, by_signal
from streams.ports import Clock

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOG_S = 1.0
"""A full pipe without a reader must not delay a stop by force."""

logger = structlog.get_logger()


class Stopping:
    """The stop signals of one worker, which has `limit_s` to stop by itself.

    Create it before any thread and before the event loop: it blocks the signals until `listen`.
    `lifeline` is for one of several processes of a command: a pipe whose other end the supervisor
    holds. A byte, or the pipe's end when the supervisor dies, stops the worker too. Second signals
    are then left to the supervisor, which may have received them as well.
    """

    def __init__(self, clock: Clock, limit_s: float, lifeline: int | None = None) -> None:
        self._clock, self._limit_s, self._lifeline = clock, limit_s, lifeline
        self._began_s: float | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    @property
    def taken_s(self) -> float | None:
        """Seconds since the first signal; None before."""
        return None if self._began_s is None else self._clock.monotonic_s() - self._began_s

    def listen(
        self, stop: asyncio.Event, on_stop: Callable[[], None], doing: Callable[[], list[str]]
    ) -> None:
        """Receive signals for this event loop.

        The first one calls `on_stop`, in another thread, and sets `stop`. `doing` returns what is
        in progress, for the log of a stop by force.
        """
        loop = asyncio.get_running_loop()

        def receive() -> None:
            received = signal.Signals(signal.sigwait(_SIGNALS))
            self._began_s = self._clock.monotonic_s()
            _start_thread(lambda: self._force(doing))
            on_stop()
            loop.call_soon_threadsafe(stop.set)
            logger.info("stopping", signal=received.name, limit_s=self._limit_s)
            if self._lifeline is not None:
                return
            again = signal.Signals(signal.sigwait(_SIGNALS))
            _end(by_signal(again), lambda: logger.warning("ending at once", signal=again.name))

        _start_thread(receive)
        if self._lifeline is not None:
            _start_thread(partial(_wait_for_supervisor, self._lifeline))

    def _force(self, doing: Callable[[], list[str]]) -> None:
        time.sleep(self._limit_s)
        _end(
            Exit.TIME_LIMIT,
            lambda: logger.error(
                "ended by force: the time to stop is up",
                seconds=round(self.taken_s or 0.0, 1),
                doing=doing(),
            ),
        )


def _wait_for_supervisor(lifeline: int) -> None:
    """Stop the process when the supervisor says so, or is gone."""
    if not os.read(lifeline, 1):
        logger.warning("the supervisor is gone")
    os.kill(os.getpid(), signal.SIGTERM)


def _end(code: int, log: Callable[[], None]) -> None:
    """End the process at once, whatever its threads do."""

    def flush() -> None:
        log()
        sys.stdout.flush()
        sys.stderr.flush()

    _start_thread(flush).join(_LOG_S)
    os._exit(code)


def _start_thread(run: Callable[[], None]) -> threading.Thread:
    """Start a daemon with the logger's context."""
    thread = threading.Thread(target=contextvars.copy_context().run, args=[run], daemon=True)
    thread.start()
    return thread
