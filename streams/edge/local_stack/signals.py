"""Signals that ask this process to end, while it starts or stops child processes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TypeAlias

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handler: TypeAlias = Callable[[int, FrameType | None], object] | signal.Handlers


@contextmanager
def on_ending_signals(handler: Handler) -> Iterator[None]:
    """Handle Ctrl-C, the default of kill and a closed terminal, while the context lasts.

    A closed terminal that is ignored already stays so (`nohup`). Without effect on other threads
    than the main one: Python handles signals on that one alone.
    """
    with ExitStack() as restoring:
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                former = signal.getsignal(each)
                if each == signal.SIGHUP and former is signal.SIG_IGN:
                    continue
                restoring.callback(signal.signal, each, former)
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
