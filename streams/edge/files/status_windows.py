"""The windows that Claude Code passes to its status line, remembered on this machine by session.

Transcripts have no window, so `view`, `status` and `sessions` read here what `statusline` was
given. One small file per session, which is written only where the window changes. The status line
imports this at every prompt, so it imports nothing that takes long.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from streams.edge.files.objects import object_of
from streams.edge.files.small_files import SmallFiles

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
        self._files = SmallFiles(setting, "statusline")
        self._looked_ns = 0

    def remember(self, session_id: str, model: str, window: int) -> None:
        """Store a model's window for a session. Never raises: else nothing is stored."""
        name = _name_of(session_id)
        if name is not None and self.of(session_id) != {model: window}:
            self._files.write(name, json.dumps({"model": model, "window": window}).encode())

    def of(self, session_id: str) -> Mapping[str, int]:
        """Return what is known of a session: a model's window, in tokens, or nothing."""
        name = _name_of(session_id)
        content = None if name is None else self._files.read(name)
        stored = (object_of(content) if content else None) or {}
        model, window = stored.get("model"), stored.get("window")
        if not isinstance(model, str) or type(window) is not int or window <= 0:
            return _NO_WINDOWS
        return {model: window}

    def changed(self) -> list[str]:
        """Return the sessions whose windows were stored since the last call, at first all."""
        folder = self._files.folder
        with suppress(OSError):
            now_ns = os.stat(folder).st_mtime_ns
            if now_ns == self._looked_ns:
                return []
            # A file may come within the tick of its clock that the folder had.
            before, self._looked_ns = self._looked_ns - _TICK_NS, now_ns
            with os.scandir(folder) as listed:
                new = [each.name for each in listed if each.stat().st_mtime_ns >= before]
            return [name.removesuffix(".json") for name in new if name.endswith(".json")]
        return []


def _name_of(session_id: str) -> str | None:
    """Return the name of a session's file; None for an id that is no plain name."""
    if not 0 < len(session_id) <= _MAX_ID or not _ID_CHARACTERS.issuperset(session_id):
        return None
    return f"{session_id}.json"
