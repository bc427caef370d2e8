"""Which local file a process writes to: that of its transcripts, or a copy while another has it.

A copy begins with what the other has stored, and is deleted at the end. A process that is killed
leaves it, for the next one to delete (`delete_unused`).
"""

import os
from contextlib import suppress
from pathlib import Path

from streams.edge.sqlite.database import Lock, delete_file
from streams.edge.sqlite.recall import NothingStoredError, StoredFigures


class LocalFile:
    """A local file that this process writes to, from `take` or `take_copy` to `release`."""

    def __init__(self, path: Path, *, is_copy: bool = False) -> None:
        self.path = path
        self._is_copy = is_copy
        self._lock = Lock(path)
        self._lock.take()

    def announce(self, address: str) -> None:
        """Write down where the page is, for those who find the file taken."""
        self._lock.announce(address)

    def release(self) -> None:
        """Let others take it. It must be closed."""
        if self._is_copy:
            with suppress(OSError):  # the next one deletes it
                delete_file(self.path)
                self._lock.path.unlink()
        self._lock.release()


def take(path: Path) -> LocalFile:
    """Take a local file. Raises InUseError, ConfigError."""
    return LocalFile(path)


def take_copy(path: Path, tag: str) -> LocalFile:
    """Take a copy of a local file that another process has; an empty one of another tag's."""
    copy = LocalFile(path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}"), is_copy=True)
    with suppress(NothingStoredError):
        StoredFigures(path, tag).copy_to(copy.path)
    return copy
