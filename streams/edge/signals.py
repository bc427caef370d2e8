"""Signals that ask this process to end."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TypeAlias

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the default of kill, and a closed terminal."""

Handler: TypeAlias = Callable[[int, FrameType | None], object] | signal.Handlers


def heeded_signals() -> Iterator[signal.Signals]:
    """Yield those that this process is to heed: not a closed terminal that `nohup` ignores."""
    for each in ENDING_SIGNALS:
        if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            yield each


@contextmanager
def on_ending_signals(handler: Handler) -> Iterator[None]:
    """Handle the signals that this process is to heed, while the context lasts.

    Without effect on other threads than the main one: Python handles signals on that one alone.
    """
    with ExitStack() as restoring:
        if threading.current_thread() is threading.main_thread():
            for each in heeded_signals():
                restoring.callback(signal.signal, each, signal.getsignal(each))
                signal.signal(each, handler)
        yield


@contextmanager
def ending_signals_wait() -> Iterator[None]:
    """Let signals that ask this process to end wait until the context ends.

    For steps that belong together, such as starting a process and noting which one it is.
    """
    waiting: list[int] = []
    try:
        with on_ending_signals(lambda number, _frame: waiting.append(number)):
            yield
    finally:
        for number in waiting:
            signal.raise_signal(number)
