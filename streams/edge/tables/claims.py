"""The right to write to a folder of tables: a lock on this machine, a token in an object store."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Final

from contextgauge.errors import StopError

if sys.platform != "win32":
    import fcntl

TAKEN: Final = "another process exports into this folder now: end it first, or name another folder"

SETTLING_S: Final = 5.0
"""What a process began to write before it lost its folder is there, or never will be."""


class LockClaim:
    """A lock on a file, which ends with the process. Raises StopError where another has it."""

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._file = place.open("ab")
        try:
            if sys.platform != "win32":
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise StopError(f"{place.parents[1]}: {TAKEN}") from None

    def check(self) -> None:
        """Do nothing: no other process can take a lock away."""

    def release(self) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also for forks, which have the file too
        self._file.close()


class TokenClaim:
    """A token in a file that all write and read: it has the folder whose token is there.

    It is taken over from the process that had it, which may have been killed.
    """

    def __init__(
        self,
        token: bytes,
        read: Callable[[], bytes | None],
        write: Callable[[bytes], None],
        pause: Callable[[float], None] = sleep,
    ) -> None:
        self._token, self._read, self._write, self._pause = token, read, write, pause

    def take(self, *, again: bool = False) -> None:
        """Take the folder; `again`: it was this process' before, and is not taken back.

        Raises StopError where another process took it meanwhile.
        """
        if not again:
            self._write(self._token)
            self._pause(SETTLING_S)
        self.check()

    def check(self) -> None:
        if self._read() != self._token:
            raise StopError(TAKEN)

    def release(self) -> None:
        """Do nothing: the next one takes the folder over."""
