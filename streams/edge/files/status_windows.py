"""The windows that Claude Code passes to its status line, remembered on this machine by session.

Transcripts have no window, so `view`, `status` and `sessions` read here what `statusline` was
given. One small file per session, which is written only where the window changes, and replaced at
once. The status line imports this at every prompt, so it imports nothing that takes long.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from os import path
from typing import Final

from contextgauge.user_folders import state_folder
from streams.edge.files.objects import object_of

MAX_SESSIONS: Final = 500
"""Sessions that are remembered; the oldest files leave. A person has some dozens at a time."""

_LEAVING: Final = 100
"""So many leave at a time: the folder is listed seldom."""

_TICK_NS: Final = 2_000_000_000
"""The coarsest clock of a file system (FAT)."""

_ID_CHARACTERS: Final = frozenset(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
)
_MAX_ID: Final = 64
_NO_WINDOWS: Final[Mapping[str, int]] = {}


class StatusWindows:
    """Remembers windows by session in a folder of the user's state; see the module."""

    def __init__(self, setting: str | None) -> None:
        self._folder = path.join(state_folder(setting), "statusline")
        self._looked_ns = 0

    def remember(self, session_id: str, model: str, window: int) -> None:
        """Store a model's window for a session. Never raises: else nothing is stored."""
        file = self._file(session_id)
        if file is None or self.of(session_id) == {model: window}:
            return
        own = f"{file}.{os.getpid()}"
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if not path.exists(file):
                self._make_room()
            with open(own, "w", encoding="utf-8") as target:
                json.dump({"model": model, "window": window}, target)
            os.replace(own, file)

    def of(self, session_id: str) -> Mapping[str, int]:
        """Return what is known of a session: a model's window, in tokens, or nothing."""
        file = self._file(session_id)
        if file is None:
            return _NO_WINDOWS
        try:
            with open(file, "rb") as source:
                stored = object_of(source.read(4096)) or {}
        except OSError:
            return _NO_WINDOWS
        model, window = stored.get("model"), stored.get("window")
        if not isinstance(model, str) or type(window) is not int or window <= 0:
            return _NO_WINDOWS
        return {model: window}

    def changed(self) -> list[str]:
        """Return the sessions whose windows were stored since the last call, at first all."""
        with suppress(OSError):
            now_ns = os.stat(self._folder).st_mtime_ns
            if now_ns == self._looked_ns:
                return []
            # A file may come within the tick of its clock that the folder had.
            before, self._looked_ns = self._looked_ns - _TICK_NS, now_ns
            with os.scandir(self._folder) as listed:
                new = [each.name for each in listed if each.stat().st_mtime_ns >= before]
            return [name.removesuffix(".json") for name in new if name.endswith(".json")]
        return []

    def _file(self, session_id: str) -> str | None:
        """Return the session's file; None for an id that is no plain name."""
        if not 0 < len(session_id) <= _MAX_ID or not _ID_CHARACTERS.issuperset(session_id):
            return None
        return path.join(self._folder, f"{session_id}.json")

    def _make_room(self) -> None:
        with os.scandir(self._folder) as listed:
            files = list(listed)
        if len(files) < MAX_SESSIONS:
            return
        for _, file in sorted((each.stat().st_mtime_ns, each.path) for each in files)[:_LEAVING]:
            with suppress(OSError):
                os.unlink(file)
