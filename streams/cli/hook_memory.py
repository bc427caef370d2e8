"""What hooks did for a session, remembered in the state folder: one small file for each fact.

A runtime runs several hooks at once, so a crossing is found by one process, and a text replaced at
once.
"""

import fcntl
import hashlib
import os
import re
import time
from contextlib import suppress
from typing import Final

from contextgauge.state_folder import state_folder
from contextgauge.units import DAY_MS

_KEPT_MS: Final = 30 * DAY_MS
_SEEN: Final = re.compile(rb"(above|below) (\d{1,18})\n")


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

    def crosses(self, *, is_above: bool, as_of_ms: int) -> bool:
        """Remember on which side of a mark a session is; return whether it has just crossed it.

        For one of several processes only: each compares and writes under the file's lock, and what
        is not newer than what another one has seen, as of `as_of_ms`, changes nothing. Raises
        OSError where that is not known.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            seen = _SEEN.fullmatch(file.read())
            was_above = seen is not None and seen[1] == b"above"
            if seen is not None and as_of_ms <= int(seen[2]):
                return False
            file.seek(0)
            file.write(b"%s %d\n" % (b"above" if is_above else b"below", as_of_ms))
            file.truncate()
        if seen is None:
            self._forget_old()
        return is_above and not was_above

    def _forget_old(self) -> None:
        """Forget facts of sessions of long ago."""
        oldest_s = time.time() - _KEPT_MS / 1_000
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process forgets too
                if path.stat().st_mtime < oldest_s:
                    path.unlink()
