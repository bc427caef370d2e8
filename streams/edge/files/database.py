"""The content of a runtime's SQLite database: its rows as lines, in the order in which they came.

It is opened for reading only, while its runtime writes; a query sees what was committed before it.
Places are those of the lines, one after the other, so that a database is read, followed and taken
up again like a file that grows. Of the lines only those of the last query are in memory.
"""

import errno
import os
import re
import sqlite3
from bisect import bisect_right
from typing import Final
from urllib.parse import quote

from contextgauge.normalise.runtimes import DATABASES
from streams.edge.files.content import Content, DamagedError

SQLITE_MAGIC: Final = b"SQLite format 3\0"
"""How each SQLite database begins."""

_ROWS: Final = 1_000
"""Of one query: some hundred kilobytes as a rule."""

_BUSY_S: Final = 2.0
"""How long a writer is waited for that keeps readers out, as where the journal is no WAL."""


class DatabaseContent(Content):
    """The rows of a database as lines. It grows only at its end, unless rows are deleted."""

    is_measured = True

    def __init__(self, path: str, query: str, connection: sqlite3.Connection) -> None:
        super().__init__(-1)
        self._path = path
        self._query = query
        self._connection = connection
        self._begins: list[int] = []
        """Where in the content each block of lines begins, and the row before it."""
        self._before: list[int] = []
        self._end = self._last = 0
        """Where what was measured ends, and its last row."""
        self._block = -1
        self._lines = b""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the file. Raises OSError."""
        status = os.stat(self._path)  # noqa: PTH116 -- by name: it is opened by SQLite alone
        return status.st_dev, status.st_ino

    @property
    def damage(self) -> DamagedError | None:
        """None: SQLite reads all or nothing."""
        return None

    def size(self) -> int:
        """Return how many bytes its lines have by now. Raises OSError."""
        while lines := self._after(self._last):
            before, self._last = self._last, lines[-1][0]
            self._begins.append(self._end)
            self._before.append(before)
            self._block, self._lines = len(self._begins) - 1, _joined(lines)
            self._end += len(self._lines)
        return self._end

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        if at + size > self._end:
            self.size()
        parts: list[bytes] = []
        while size > 0 and at < self._end:
            begin = self._load(bisect_right(self._begins, at) - 1)
            part = self._lines[at - begin : at - begin + size]
            if not part:  # rows were deleted since it was measured
                break
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _load(self, block: int) -> int:
        """Have the lines of a block in memory; return where it begins."""
        if block != self._block:
            end = self._before[block + 1] if block + 1 < len(self._before) else self._last
            lines = self._after(self._before[block])
            self._block = block
            self._lines = _joined([line for line in lines if line[0] <= end])
        return self._begins[block]

    def _after(self, row: int) -> list[tuple[int, str]]:
        try:
            return _rows(self._connection, self._query, row, _ROWS)
        except sqlite3.Error as error:
            raise _refused(error) from None


def open_database(path: str) -> DatabaseContent:
    """Open a runtime's database. Raises OSError, also for one of no runtime that is read."""
    try:
        connection = _connect(path)
        try:
            query = _query_of(connection, path)
        except (sqlite3.Error, OSError):
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _refused(error) from None
    return DatabaseContent(path, query, connection)


def _query_of(connection: sqlite3.Connection, path: str) -> str:
    """Return the query that the tables fit; of runtimes with the same ones, by the file's name."""
    shown = path.replace(os.sep, "/")
    named = [
        (any(re.fullmatch(rf"(?:.*/)?(?:{name})", shown) for name in each.files), database)
        for each, database in DATABASES
    ]
    for _, database in sorted(named, key=lambda pair: not pair[0]):
        try:
            _rows(connection, database.query, 0, 0)
        except sqlite3.OperationalError as error:
            if "no such" not in str(error):
                raise
        else:
            return database.query
    raise OSError(errno.ENOTSUP, "this is an SQLite database, and of no runtime that is read")


def _connect(path: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"  # noqa: PTH100 -- links stay
    return sqlite3.connect(
        address, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )


def _rows(
    connection: sqlite3.Connection, query: str, after: int, limit: int
) -> list[tuple[int, str]]:
    return connection.execute(query, {"after": after, "limit": limit}).fetchall()


def _joined(lines: list[tuple[int, str]]) -> bytes:
    return b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for _, line in lines)


def _refused(error: sqlite3.Error) -> OSError:
    kind = errno.EBUSY if "locked" in str(error) else errno.EIO
    return OSError(kind, f"SQLite: {error}")
