"""Values in a temporary file, which SQLite keeps, and of it a part in memory.

The file has no name, so no one else can open it, and it ends with the process, however that ends.
It is created once the values outgrow the part in memory. What is deleted makes room for others.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from contextgauge.errors import StopError
from schemas.topics import MIB

_FORGOTTEN = 1_000
"""Values that are deleted at a time where none are inserted: one alone takes far longer."""

_SETTINGS = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
CREATE TABLE held (number INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""


class TemporaryValues:
    """Implements `ValueStore`. After an error it is spent."""

    MEMORY_BYTES = 32 * MIB
    """Of the file, held in memory."""

    def __init__(self) -> None:
        with _refused():
            self._database = sqlite3.connect("", isolation_level=None)
            self._database.executescript(_SETTINGS)
            self._database.execute(f"PRAGMA cache_size = -{self.MEMORY_BYTES // 1024}")
        self._forgotten: list[tuple[int]] = []

    def put(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Take values by new numbers. Raises StopError."""
        self._write(values)

    def get(self, numbers: Collection[int]) -> list[bytes]:
        """Return values, in this order. Raises StopError."""
        find = "SELECT value FROM held WHERE number = ?"
        with _refused():
            return [self._database.execute(find, (number,)).fetchone()[0] for number in numbers]

    def delete(self, numbers: Collection[int]) -> None:
        """Forget values. Raises StopError."""
        self._forgotten += [(number,) for number in numbers]
        if len(self._forgotten) >= _FORGOTTEN:
            self._write(())

    def __del__(self) -> None:
        """Close the file: with the state that it belongs to, which is dropped in many places."""
        self._database.close()

    def _write(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Delete what was forgotten, which makes room, and insert values."""
        with _refused():
            self._database.execute("BEGIN")
            self._database.executemany("DELETE FROM held WHERE number = ?", self._forgotten)
            self._database.executemany("INSERT INTO held VALUES (?, ?)", values)
            self._database.execute("COMMIT")
        self._forgotten.clear()


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StopError(
            f"sessions that rest cannot be held in a temporary file ({error}): name a folder with "
            "room for it by TMPDIR"
        ) from error
