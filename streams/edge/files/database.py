"""The content of a runtime's SQLite database: its rows as lines, in the order in which they came.

It is opened for reading only, while its runtime writes; a query sees what was committed before it.
Places are those of the lines, one after the other, so that a database is read and followed like a
file that grows. Where it is taken up again, its lines begin behind those that were read, which are
known by their rows and not by their bytes (`rows.py`). Of the lines only those of one or two blocks
are in memory.
"""

import errno
import os
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from typing import Final
from urllib.parse import quote

from contextgauge.normalise.adapter import Database
from contextgauge.normalise.runtimes import DATABASES
from streams.edge.files.content import Content, DamagedError
from streams.edge.files.rows import BLOCK_ROWS, Row, SeenBlock, SeenRow, SeenRows

SQLITE_MAGIC: Final = b"SQLite format 3\0"
"""How each SQLite database begins."""

_BUSY_S: Final = 2.0
"""How long a writer is waited for that keeps readers out, as where the journal is no WAL."""

_DAMAGED: Final = 250
"""So many numbers behind a row that can be read are tried, to find one behind a damaged page."""


class DamagedRowsError(DamagedError):
    """A database of which some rows cannot be read."""

    def __init__(self, reason: str) -> None:
        OSError.__init__(self, errno.EILSEQ, f"SQLite: {reason}: rows there are left out")


class DatabaseContent(Content):
    """The rows of a database as lines; it grows only at its end.

    `queries` are those of the runtime that its tables have, by their places among all. `begin` is
    the place of its first line, which is behind the rows that `mark` says.
    """

    is_measured = True
    has_rows = True

    def __init__(
        self,
        path: str,
        queries: dict[int, str],
        connection: sqlite3.Connection,
        begin: int = 0,
        mark: str = "",
    ) -> None:
        super().__init__(-1)
        self._path = path
        self._queries = queries
        self._connection = connection
        self._seen = SeenRows(begin, mark)
        self._last = b""
        """The lines of the last block."""
        self._loaded: SeenBlock | None = None
        self._lines = b""
        """Those of another one, which was read last."""
        self._damage: DamagedRowsError | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the file. Raises OSError."""
        status = os.stat(self._path)  # noqa: PTH116 -- by name: it is opened by SQLite alone
        return status.st_dev, status.st_ino

    @property
    def damage(self) -> DamagedError | None:
        """Why some rows cannot be read, where they were come upon."""
        return self._damage

    @property
    def begin(self) -> int:
        """The place of the first line."""
        return self._seen.begin

    def size(self) -> int:
        """Return the place behind the last line that is there by now. Raises OSError."""
        while self._grow():
            pass
        return self._seen.end

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        while at + size > self._seen.end and self._grow():
            pass
        parts: list[bytes] = []
        while size > 0 and self._seen.begin <= at < self._seen.end:
            block = self._seen.blocks[bisect_right(self._seen.begins, at) - 1]
            lines = self._lines_of(block)
            part = lines[at - block.begin : at - block.begin + size]
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)

    def mark_at(self, place: int) -> str:
        """Return what says which rows are before a line's beginning."""
        return self._seen.mark_at(place)

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _grow(self) -> bool:
        """Take note of rows that are new, or complete by now; return whether there are any."""
        for source in self._queries:
            late = [
                row
                for seen in sorted(self._seen.waiting(source))
                for row in self._late(source, seen)
            ]
            if late:
                self._take(source, late, is_late=True)
            new = self._new(source)
            if new:
                self._take(source, new)
            if new or late:
                return True
        return False

    def _take(self, source: int, rows: list[Row], *, is_late: bool = False) -> None:
        begins, lines = self._seen.take(source, rows, is_late=is_late)
        self._last = lines if begins else self._last + lines

    def _late(self, source: int, seen: SeenRow) -> list[Row]:
        """Return a row that had no line, if it has one now."""
        rows = self._only(source, seen.number)
        return [row for row in rows if row.line is not None and row.seen == seen]

    def _new(self, source: int) -> list[Row]:
        """Return rows behind the newest one that was seen and is there, at most a block of them."""
        for place, seen in enumerate(self._seen.anchors(source)):
            limit = 1 if place else BLOCK_ROWS + 1
            rows = self._after(source, seen.number - 1, limit)
            if rows and rows[0].seen == seen:
                return rows[1:] or self._after(source, seen.number, BLOCK_ROWS)
        return self._after(source, 0, BLOCK_ROWS)

    def _lines_of(self, block: SeenBlock) -> bytes:
        """Return the lines of a block."""
        if block is self._seen.blocks[-1]:
            return self._last
        if block is not self._loaded:
            lines = b"".join(row.bytes for row in self._again(block))
            if len(lines) != block.size:
                raise OSError(errno.ESTALE, "rows that were read have changed or were deleted")
            self._loaded, self._lines = block, lines
        return self._lines

    def _again(self, block: SeenBlock) -> Iterator[Row]:
        """Yield the rows of a block that have lines."""
        if block.is_late:
            for number in block.numbers:
                yield from self._only(block.source, number)
            return
        wanted = block.with_lines()
        at, last = min(wanted, default=1) - 1, max(wanted, default=0)
        while at < last and (rows := self._after(block.source, at, BLOCK_ROWS)):
            yield from (row for row in rows if row.number in wanted)
            at = rows[-1].number

    def _only(self, source: int, number: int) -> list[Row]:
        return [row for row in self._after(source, number - 1, 1) if row.number == number]

    def _after(self, source: int, number: int, limit: int) -> list[Row]:
        """Return the rows after a number, but for damaged ones. Raises OSError.

        The row before a damaged one is only given where no more are asked for.
        """
        rows: list[Row] = []
        tried = 0
        while tried < _DAMAGED:
            try:
                for row in _rows(self._connection, self._queries[source], number + tried, limit):
                    rows.append(row)  # noqa: PERF402 -- those before a damaged one are given
            except sqlite3.OperationalError as error:
                raise _refused(error) from None
            except sqlite3.DatabaseError as error:
                self._damage = DamagedRowsError(str(error))
                if not rows:
                    tried += limit == 1
                    limit = 1
                    continue
            break
        return rows


def open_database(path: str, begin: int = 0, mark: str = "") -> DatabaseContent:
    """Open a runtime's database, at a place behind the rows that a mark says.

    Raises OSError, also for one of no runtime that is read.
    """
    try:
        connection = _connect(path)
        try:
            queries = _prepared(connection, path)[1]
        except (sqlite3.Error, OSError):
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _refused(error) from None
    return DatabaseContent(path, queries, connection, begin, mark)


def titles_in(path: str) -> dict[str, str]:
    """Return the titles of a database's sessions, by id. Raises OSError as `open_database` does."""
    listed: list[dict[str, str]] = []
    try:
        with closing(_connect(path)) as connection:
            for query in _prepared(connection, path)[0].sessions:
                try:
                    rows = connection.execute(query)
                    listed.append({name: title or "" for name, title in rows})
                except sqlite3.OperationalError as error:
                    if not _lacks_tables(error):
                        raise
    except sqlite3.Error as error:
        raise _refused(error) from None
    if not listed:
        raise OSError(errno.ENOTSUP, "SQLite: it has no table that lists its sessions")
    return {name: title for part in listed for name, title in part.items()}


def _prepared(connection: sqlite3.Connection, path: str) -> tuple[Database, dict[int, str]]:
    """Return what the tables fit; of runtimes that have the same ones, by the file's name."""
    shown = path.replace(os.sep, "/")
    named = [
        (any(re.fullmatch(rf"(?:.*/)?(?:{name})", shown) for name in each.files), database)
        for each, database in DATABASES
    ]
    for _, database in sorted(named, key=lambda pair: not pair[0]):
        queries = enumerate(database.queries)
        fitting = {place: query for place, query in queries if _has_tables(connection, query)}
        if fitting:
            return database, fitting
    raise OSError(errno.ENOTSUP, "this is an SQLite database, and of no runtime that is read")


def _has_tables(connection: sqlite3.Connection, query: str) -> bool:
    try:
        list(_rows(connection, query, 0, 0))
    except sqlite3.OperationalError as error:
        if not _lacks_tables(error):
            raise
        return False
    return True


def _lacks_tables(error: sqlite3.OperationalError) -> bool:
    """Return whether a query is of another version of the runtime: others say nothing of that."""
    return "no such" in str(error)


def _connect(path: str) -> sqlite3.Connection:
    """Open a database for reading only.

    In a folder that cannot be written to, SQLite has no place for the index of a WAL: where no
    writer left one, none is needed.
    """
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"  # noqa: PTH100 -- links stay
    connection = _connected(address)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")
    except sqlite3.OperationalError as error:
        connection.close()
        if "unable to open" not in str(error) or os.path.exists(f"{path}-wal"):  # noqa: PTH110 -- as above
            raise
        return _connected(f"{address}&immutable=1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connected(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = lambda value: value.decode("utf-8", "replace")
    return connection


def _rows(connection: sqlite3.Connection, query: str, after: int, limit: int) -> Iterator[Row]:
    for row in connection.execute(query, {"after": after, "limit": limit}):
        yield Row(*row)


def _refused(error: sqlite3.Error) -> OSError:
    kind = errno.EBUSY if "locked" in str(error) else errno.EIO
    return OSError(kind, f"SQLite: {error}")
