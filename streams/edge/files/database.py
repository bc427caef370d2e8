"""The content of a runtime's SQLite database: its rows as lines, in the order in which they came.

It is opened for reading only, while its runtime writes; a query sees what was committed before it.
Places are those of the lines, one after the other, so that a database is read, followed and taken
up again like a file that grows. Of the lines only those of one or two blocks are in memory.
"""

import errno
import os
import re
import sqlite3
from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import quote

from contextgauge.normalise.adapter import Database
from contextgauge.normalise.runtimes import DATABASES
from streams.edge.files.content import Content, DamagedError

SQLITE_MAGIC: Final = b"SQLite format 3\0"
"""How each SQLite database begins."""

_ROWS: Final = 250
"""In a block: a hundred kilobytes as a rule."""


class Row(NamedTuple):
    """Its number, which a later one may have once it is deleted, its key, and its line."""

    number: int
    key: str
    line: str

    @property
    def identity(self) -> tuple[int, str]:
        """What it is known by, whatever its line becomes."""
        return self.number, self.key


_BUSY_S: Final = 2.0
"""How long a writer is waited for that keeps readers out, as where the journal is no WAL."""


@dataclass(slots=True)
class _Measured:
    """Where the lines of a database lie that this process has seen, in blocks.

    A runtime may delete its newest rows, and SQLite gives their numbers to later ones. So the rows
    of the last block are remembered: what was seen stays where it is, and what is new comes behind.
    """

    begins: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    """The number of the row before each block."""
    anchor: Row | None = None
    """The row before the last block: while it is there, no number after it is an earlier row's."""
    rows: list[Row] = field(default_factory=list)
    """Those of the last block, in the order in which they were seen."""
    end: int = 0

    def take(self, new: list[Row]) -> None:
        if not self.begins or len(self.rows) >= _ROWS:
            self.anchor = max(self.rows, default=self.anchor)
            self.begins.append(self.end)
            self.before.append(0 if self.anchor is None else self.anchor.number)
            self.rows = []
        self.rows += new
        self.end += len(_joined(new))


MEASURED: Final[dict[tuple[int, int], _Measured]] = {}
"""By the file: it may be opened many times, and measuring reads all of it."""


class DatabaseContent(Content):
    """The rows of a database as lines; it grows only at its end."""

    is_measured = True

    def __init__(self, path: str, query: str, connection: sqlite3.Connection) -> None:
        super().__init__(-1)
        self._path = path
        self._query = query
        self._connection = connection
        self._block = -1
        self._lines = b""
        """Of one block, which was read last."""

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
        while True:
            measured = self._measured()
            new = self._unseen(measured)
            if measured is not self._measured():
                continue  # rows that were seen are gone: all is measured again
            if not new:
                return measured.end
            measured.take(new)

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        if at + size > self._measured().end:
            self.size()
        measured = self._measured()
        parts: list[bytes] = []
        while size > 0 and at < measured.end:
            begin = self._load(measured, bisect_right(measured.begins, at) - 1)
            part = self._lines[at - begin : at - begin + size]
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _measured(self) -> _Measured:
        return MEASURED.setdefault(self.identity, _Measured())

    def _unseen(self, measured: _Measured) -> list[Row]:
        """Return rows that were not seen yet, at most a block of them."""
        last = max(measured.rows, default=None)
        if last is not None:
            rows = self._after(last.number - 1)
            if rows and rows[0].identity == last.identity:
                return rows[1 : _ROWS + 1]
        # The last row is gone, and its number may be a later one's: the whole block is compared.
        anchor = measured.anchor
        rows = self._after(0 if anchor is None else anchor.number - 1)
        if anchor is not None:
            if not rows or rows[0].identity != anchor.identity:
                self._forget()
                return []
            del rows[0]
        seen = {each.identity for each in measured.rows}
        return [row for row in rows if row.identity not in seen][:_ROWS]

    def _load(self, measured: _Measured, block: int) -> int:
        """Have the lines of a block in memory; return where it begins."""
        if block == len(measured.begins) - 1:
            self._block, self._lines = -1, _joined(measured.rows)
        elif block != self._block:
            end = measured.before[block + 1]
            rows = self._after(measured.before[block])
            lines = _joined([row for row in rows if row.number <= end])
            if len(lines) != measured.begins[block + 1] - measured.begins[block]:
                self._forget()
                raise OSError(errno.ESTALE, "rows that were read were deleted")
            self._block, self._lines = block, lines
        return measured.begins[block]

    def _forget(self) -> None:
        MEASURED[self.identity] = _Measured()
        self._block = -1

    def _after(self, number: int) -> list[Row]:
        try:
            return _rows(self._connection, self._query, number, 2 * _ROWS + 1)
        except sqlite3.Error as error:
            raise _refused(error) from None


def open_database(path: str) -> DatabaseContent:
    """Open a runtime's database. Raises OSError, also for one of no runtime that is read."""
    try:
        connection = _connect(path)
        try:
            query = _database_of(connection, path).query
        except (sqlite3.Error, OSError):
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _refused(error) from None
    return DatabaseContent(path, query, connection)


def titles_in(path: str) -> dict[str, str]:
    """Return the titles of a database's sessions, by id. Raises OSError as `open_database` does."""
    try:
        with closing(_connect(path)) as connection:
            query = _database_of(connection, path).sessions
            return {name: title or "" for name, title in connection.execute(query)}
    except sqlite3.Error as error:
        raise _refused(error) from None


def _database_of(connection: sqlite3.Connection, path: str) -> Database:
    """Return what the tables fit; of runtimes that have the same ones, by the file's name."""
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
            return database
    raise OSError(errno.ENOTSUP, "this is an SQLite database, and of no runtime that is read")


def _connect(path: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"  # noqa: PTH100 -- links stay
    return sqlite3.connect(
        address, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )


def _rows(connection: sqlite3.Connection, query: str, after: int, limit: int) -> list[Row]:
    return [Row(*row) for row in connection.execute(query, {"after": after, "limit": limit})]


def _joined(rows: list[Row]) -> bytes:
    return b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for _, _, line in rows)


def _refused(error: sqlite3.Error) -> OSError:
    kind = errno.EBUSY if "locked" in str(error) else errno.EIO
    return OSError(kind, f"SQLite: {error}")
