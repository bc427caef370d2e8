"""What hooks did for a session, remembered in the state folder: one small file for each fact.

A runtime runs several hooks at once, so a fact is claimed by one process, and replaced at once.
"""

import hashlib
import os
import time
from contextlib import suppress
from typing import Final

from contextgauge.state_folder import state_folder
from contextgauge.units import DAY_MS

_KEPT_MS: Final = 30 * DAY_MS


class HookMemory:
    """One fact about a session; `fact` says which."""

    def __init__(self, fact: str, session_id: str) -> None:
        name = hashlib.sha256(f"{fact} {session_id}".encode("utf-8", "replace")).hexdigest()
        self._folder = state_folder(os.environ.get("CONTEXTGAUGE_STATE_FOLDER")) / "hooks"
        self._path = self._folder / name

    def read(self) -> str | None:
        """Return what was written last; None where there is nothing."""
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Replace what is remembered. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        own.write_text(text, encoding="utf-8")
        own.replace(self._path)
        self._forget_old()

    def claim(self) -> bool:
        """Remember the fact; return whether it was not remembered yet: for one of several only.

        Raises OSError where that is not known.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
        self._forget_old()
        return True

    def release(self) -> None:
        """Forget the fact."""
        self._path.unlink(missing_ok=True)

    def _forget_old(self) -> None:
        """Forget facts of sessions of long ago."""
        oldest_s = time.time() - _KEPT_MS / 1_000
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process forgets too
                if path.stat().st_mtime < oldest_s:
                    path.unlink()
