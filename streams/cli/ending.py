"""What ends a command that started processes: Ctrl-C, `kill`, and a terminal that is closed."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType

from streams.cli.exits import by_signal
from streams.edge.signals import on_ending_signals


class Ending:
    """Lets Ctrl-C, SIGTERM and a closed terminal end a command through its `finally` blocks.

    In `run` a signal cancels what runs, elsewhere it is a KeyboardInterrupt. One that comes while
    an event loop is made or closed waits: there it would end in a traceback. Services and workers
    are stopped with signals ignored.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._is_waiting = False
        self._end: Callable[[], object] = _interrupt

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Heed signals while the context lasts. Raises SystemExit with the status of the first."""
        try:
            with on_ending_signals(self._receive):
                yield
        except KeyboardInterrupt:
            raise SystemExit(by_signal(self._first or signal.SIGINT)) from None

    def run(self, main: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run what `main` returns in an event loop, to its end even where a signal cancelled it.

        Raises KeyboardInterrupt if `main` left it at that, or a signal came when it had ended.
        """
        self._end = self._wait
        try:
            asyncio.run(self._cancellable(main))
        except asyncio.CancelledError:
            if self._first is None:
                raise
            self._is_waiting = True
        finally:
            self._end = _interrupt
        if self._is_waiting:
            raise KeyboardInterrupt

    async def _cancellable(self, main: Callable[[], Coroutine[None, None, None]]) -> None:
        loop, running = asyncio.get_running_loop(), asyncio.ensure_future(main())

        def cancel() -> None:
            if running.cancel():  # not what has ended already
                self._is_waiting = False

        def end() -> None:
            self._is_waiting = True
            loop.call_soon_threadsafe(cancel)

        self._end = end
        try:
            if self._is_waiting:
                cancel()
            await running
        finally:
            self._end = self._wait

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        is_first, self._first = self._first is None, self._first or number
        # A second one would interrupt what the first one lets stop.
        if is_first or self._end != _interrupt:
            self._end()

    def _wait(self) -> None:
        self._is_waiting = True


def _interrupt() -> None:
    raise KeyboardInterrupt
