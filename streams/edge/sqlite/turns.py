"""Whose turn it is: answers come before reading more.

The thread that reads transcripts holds the interpreter's lock nearly all the time, and a query lets
go of it at each row: taking it back takes up to the switch interval each time, seconds for the
rows of one answer. So the reading waits, between two lines, while a query runs.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST_S = 1.0
"""The reading goes on after this time: queries take some milliseconds."""


class Turns:
    """Queries, all of one thread, and a reading, of another one, that gives way to them."""

    def __init__(self) -> None:
        self._is_free = threading.Event()
        self._is_free.set()

    @contextmanager
    def query(self) -> Iterator[None]:
        """Let the reading wait while the context lasts."""
        self._is_free.clear()
        try:
            yield
        finally:
            self._is_free.set()

    def give_way(self) -> None:
        """Wait while a query runs."""
        if not self._is_free.is_set():
            self._is_free.wait(_LONGEST_S)
