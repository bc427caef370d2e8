"""What `contextgauge view` has stored, for commands that only read it: one moment of a local file.

A `view` may write to the file meanwhile: all that is read is of one transaction.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from streams.edge.sqlite.database import full_tag
from streams.ports import Visits

_WAIT_S = 0.5
"""Another process has the file to itself for moments only: when it opens and when it ends."""


class NothingStoredError(Exception):
    """There is no such file, or it is of another build or other rules, locked or damaged."""


class StoredFigures:
    """What a local file has, at one moment, until it is closed. Sessions are keys.

    `tag` names the rules, as in `SqliteStore`. All methods raise NothingStoredError.
    """

    def __init__(self, path: Path, tag: str) -> None:
        if not path.exists():
            raise NothingStoredError
        address = f"{path.absolute().as_uri()}?mode=ro"
        try:
            self._connection = sqlite3.connect(address, _WAIT_S, isolation_level=None, uri=True)
        except sqlite3.Error as error:
            raise NothingStoredError from error
        try:
            self._rows("BEGIN")
            stored = self._rows("SELECT value FROM about WHERE name = 'tag'")
        except NothingStoredError:
            self.close()
            raise
        if stored != [(full_tag(tag),)]:
            self.close()
            raise NothingStoredError

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def copy_to(self, path: Path) -> None:
        """Write all of it into a new file of another name, and close this one."""
        try:
            with closing(self._connection), closing(sqlite3.connect(path)) as target:
                self._connection.backup(target)
        except sqlite3.Error as error:
            raise NothingStoredError from error

    def exact_marks(self) -> dict[str, bytes]:
        """Return how far files were read, of which one reading would give the same."""
        rows = self._rows("SELECT path, mark FROM files WHERE is_exact")
        return {os.fsdecode(path): mark for path, mark in rows}

    def members(self) -> list[tuple[str, bytes, Visits]]:
        """Return which sessions each file has lines of."""
        rows = self._rows("SELECT path, session, first_visit, last_visit FROM members")
        return [(os.fsdecode(path), session, Visits(*visits)) for path, session, *visits in rows]

    def views(self) -> dict[bytes, bytes]:
        """Return the views of sessions."""
        return dict(self._rows("SELECT session, view FROM sessions WHERE view IS NOT NULL"))

    def knows(self, path: str) -> bool:
        """Return whether a file has been read."""
        return bool(self._rows("SELECT 1 FROM files WHERE path = ?", os.fsencode(path)))

    def totals(self) -> list[tuple[bytes, bytes, bytes]]:
        """Return sessions' own aggregates: session, field, document."""
        return self._rows("SELECT session, field, document FROM totals JOIN sessions USING (id)")

    def _rows(self, ask: str, *values: bytes) -> list[Any]:
        try:
            return self._connection.execute(ask, values).fetchall()
        except sqlite3.Error as error:
            raise NothingStoredError from error
