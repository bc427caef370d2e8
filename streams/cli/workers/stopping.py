"""Ending a worker: in good order at the first signal, by force where that takes too long.

Signals are taken by a thread of its own, not by the event loop: a worker whose loop stands still
must hear them too. Ending by force is safe: what was not committed is done again by whoever takes
the partitions over, once the session time-out is up.
"""

import asyncio
import contextvars
import os
import signal
import sys
import threading
from collections.abc import Callable

import structlog

from streams.cli.exits import Exit, by_signal
from streams.ports import Clock

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LAST_WORDS_S = 1.0
"""A log that nobody reads, a full pipe, must not hold up an end by force."""

logger = structlog.get_logger()


class Stopping:
    """The signals to end, for one worker. `limit_s` is the time that it has to end by itself.

    Make it before any thread is started and before the event loop runs: from then on signals wait
    to be taken. `lifeline` is for one of several processes of a command: a pipe whose other end the
    supervisor holds. A byte or its end, which is the supervisor's own, tell it to stop too; a
    second signal is then the supervisor's matter, for whoever signals may have reached both.
    """

    def __init__(self, clock: Clock, limit_s: float, lifeline: int | None = None) -> None:
        self._clock, self._limit_s, self._lifeline = clock, limit_s, lifeline
        self._began_s: float | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    @property
    def taken_s(self) -> float | None:
        """Seconds since it was told to end; None before."""
        return None if self._began_s is None else self._clock.monotonic_s() - self._began_s

    def listen(
        self, stop: asyncio.Event, on_stop: Callable[[], None], doing: Callable[[], list[str]]
    ) -> None:
        """Begin to take signals, in this event loop's name.

        The first one calls `on_stop`, in another thread, and sets `stop`. `doing` tells what is
        under way, for the log of an end by force.
        """
        loop = asyncio.get_running_loop()

        def take() -> None:
            received = signal.Signals(signal.sigwait(_SIGNALS))
            self._began_s = self._clock.monotonic_s()
            limit = threading.Timer(
                self._limit_s, contextvars.copy_context().run, [self._force, doing]
            )
            limit.daemon = True
            limit.start()
            on_stop()
            loop.call_soon_threadsafe(stop.set)
            logger.info("stopping", signal=received.name, limit_s=self._limit_s)
            if self._lifeline is not None:
                return
            again = signal.Signals(signal.sigwait(_SIGNALS))
            _end(by_signal(again), lambda: logger.warning("ending at once", signal=again.name))

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=[take], name="signals", daemon=True).start()
        if self._lifeline is not None:
            context = contextvars.copy_context()
            threading.Thread(
                target=context.run, args=[_hold, self._lifeline], name="lifeline", daemon=True
            ).start()

    def _force(self, doing: Callable[[], list[str]]) -> None:
        _end(
            Exit.TIME_LIMIT,
            lambda: logger.error(
                "ended by force: the time to stop is up",
                seconds=round(self.taken_s or 0.0, 1),
                doing=doing(),
            ),
        )


def _hold(lifeline: int) -> None:
    """Wait for the supervisor's word, or its end; then have the process stop."""
    if not os.read(lifeline, 1):
        logger.warning("the supervisor is gone")
    os.kill(os.getpid(), signal.SIGTERM)


def _end(code: int, last_words: Callable[[], None]) -> None:
    """End the process at once, whatever its threads do."""

    def speak() -> None:
        last_words()
        sys.stdout.flush()
        sys.stderr.flush()

    speaking = threading.Thread(target=contextvars.copy_context().run, args=[speak], daemon=True)
    speaking.start()
    speaking.join(_LAST_WORDS_S)
    os._exit(code)
