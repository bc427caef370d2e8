"""Values in a temporary file, which SQLite keeps, and of it a part in memory.

The file has no name, so no one else can open it, and it ends with the process, however that ends.
It is created once the values outgrow the part in memory. What is deleted makes room for others.
SQLite takes the first of these folders that can be written to: `SQLITE_TMPDIR`, `TMPDIR`,
`/var/tmp`, `/usr/tmp`, `/tmp`.
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
        self._forgotten = set[int]()

    def put(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Take values by new numbers. Raises StopError."""
        self._write(values)

    def get(self, numbers: Collection[int]) -> list[bytes]:
        """Return values, in this order. Raises StopError, and KeyError for a number without one."""
        ask = "SELECT value FROM held WHERE number = ?"
        with _refused():
            rows = [self._database.execute(ask, (number,)).fetchone() for number in numbers]
        for number, row in zip(numbers, rows, strict=True):
            if row is None or number in self._forgotten:
                raise KeyError(number)
        return [row[0] for row in rows]

    def delete(self, numbers: Collection[int]) -> None:
        """Forget values that are there. Raises StopError."""
        self._forgotten.update(numbers)
        if len(self._forgotten) >= _FORGOTTEN:
            self._write(())

    def __del__(self) -> None:
        """Close the file: with the state that it belongs to, which is dropped in many places."""
        if hasattr(self, "_database"):
            self._database.close()

    def _write(self, values: Sequence[tuple[int, bytes]]) -> None:
        """Delete what was forgotten, which makes room, and insert values."""
        with _refused():
            self._database.execute("BEGIN")
            forgotten = ((number,) for number in self._forgotten)
            self._database.executemany("DELETE FROM held WHERE number = ?", forgotten)
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
