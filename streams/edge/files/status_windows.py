"""The windows that Claude Code passes to its status line, remembered on this machine by session.

Transcripts have no window, so `view`, `status` and `sessions` read here what `statusline` was
given. One small file per session, which is written only where the window changes. The status line
imports this at every prompt, so it imports nothing that takes long.
"""

import json
from collections.abc import Mapping
from typing import Final

from streams.edge.files.objects import object_of
from streams.edge.files.small_files import SmallFiles, session_file

_SUFFIX: Final = ".json"
_NO_WINDOWS: Final[Mapping[str, int]] = {}


class StatusWindows:
    """Remembers windows by session in a folder of the user's state; see the module."""

    def __init__(self, setting: str | None) -> None:
        self._files = SmallFiles(setting, "statusline")

    def remember(self, session_id: str, model: str, window: int) -> None:
        """Store a model's window for a session. Never raises: else nothing is stored."""
        name = session_file(session_id, _SUFFIX)
        if name is not None and self.of(session_id) != {model: window}:
            self._files.write(name, json.dumps({"model": model, "window": window}).encode())

    def of(self, session_id: str) -> Mapping[str, int]:
        """Return what is known of a session: a model's window, in tokens, or nothing."""
        name = session_file(session_id, _SUFFIX)
        content = None if name is None else self._files.read(name)
        stored = (object_of(content) if content else None) or {}
        model, window = stored.get("model"), stored.get("window")
        if not isinstance(model, str) or type(window) is not int or window <= 0:
            return _NO_WINDOWS
        return {model: window}

    def changed(self) -> list[str]:
        """Return the sessions whose windows were stored since the last call, at first all."""
        names = self._files.changed()
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
