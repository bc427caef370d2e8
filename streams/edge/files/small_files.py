"""Small files in a folder of the user's state, by name: what status line and hooks remember.

Each is replaced at once, and only its owner may read it. There are so many at most; the oldest
leave. The status line imports this at every prompt, so it imports nothing that takes long.
"""

import os
from contextlib import suppress
from os import path
from typing import Final

from contextgauge.user_folders import state_folder

MOST_FILES: Final = 500
"""A person has some dozens of sessions at a time."""

_LEAVING: Final = 100
"""So many leave at a time: the folder is listed seldom."""

_TICK_NS: Final = 2_000_000_000
"""The coarsest clock of a file system (FAT)."""

_ID_CHARACTERS: Final = frozenset(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
)
_MAX_ID: Final = 64


def session_file(session_id: str, suffix: str) -> str | None:
    """Return the name of a session's file; None for an id that is no plain name."""
    if not 0 < len(session_id) <= _MAX_ID or not _ID_CHARACTERS.issuperset(session_id):
        return None
    return session_id + suffix


class SmallFiles:
    """The files of a folder; `setting` is the state folder's. Names must be plain ones.

    Never raises: what cannot be read is not there.
    """

    def __init__(self, setting: str | None, folder: str) -> None:
        self.folder = path.join(state_folder(setting), folder)
        self._looked_ns = 0

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None where there is none, or it cannot be read."""
        try:
            with open(path.join(self.folder, name), "rb") as source:
                return source.read()
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Store a file; where that fails, nothing is stored."""
        file = path.join(self.folder, name)
        own = f"{file}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not path.exists(file):
                self._make_room()
            descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as target:
                target.write(content)
            os.replace(own, file)

    def append(self, name: str, content: bytes) -> None:
        """Add to a file in one step, also where several do at once. Raises OSError, unlike others.

        The folder's time changes with it, for `changed`.
        """
        file = path.join(self.folder, name)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if not path.exists(file):
            self._make_room()
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)
        os.utime(self.folder)

    def changed(self) -> list[str]:
        """Return the files that were written since the last call, at first all."""
        with suppress(OSError):
            now_ns = os.stat(self.folder).st_mtime_ns
            if now_ns == self._looked_ns:
                return []
            # A file may come within the tick of its clock that the folder had.
            before, self._looked_ns = self._looked_ns - _TICK_NS, now_ns
            with os.scandir(self.folder) as listed:
                return [each.name for each in listed if each.stat().st_mtime_ns >= before]
        return []

    def _make_room(self) -> None:
        with os.scandir(self.folder) as listed:
            files = list(listed)
        if len(files) < MOST_FILES:
            return
        for _, file in sorted((each.stat().st_mtime_ns, each.path) for each in files)[:_LEAVING]:
            with suppress(OSError):
                os.unlink(file)
