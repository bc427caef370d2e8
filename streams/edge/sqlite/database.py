"""The local file of `contextgauge view`: an SQLite database, and who may write to it.

All that it holds is read from the transcripts: a file of another format, of other rules, or one
that is no database is deleted and filled again.
"""

import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from contextgauge.errors import ConfigError, StopError
from schemas.views import FORMAT_VERSION, VIEW_VERSION

if sys.platform != "win32":
    import fcntl

_LAYOUT_VERSION = 3
"""Version of the tables."""

_UNUSED_S = 90 * 24 * 3_600
"""A file that was not written to for so long is of paths that are viewed no more, or have nothing
new: then it is filled again."""

_OWNER_ONLY = 0o600
_FOLDER_OWNER_ONLY = 0o700

_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value ANY NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    path BLOB PRIMARY KEY, mark BLOB NOT NULL, is_exact INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE members (
    path BLOB, session BLOB, first_visit INTEGER NOT NULL, last_visit INTEGER NOT NULL,
    PRIMARY KEY (path, session)
) WITHOUT ROWID;
CREATE INDEX files_of_session ON members (session);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, session BLOB UNIQUE NOT NULL,
    view BLOB, recent INTEGER, pressure REAL
);
CREATE INDEX sessions_by_time ON sessions (recent, session) WHERE recent IS NOT NULL;
CREATE INDEX sessions_by_pressure ON sessions (pressure, session) WHERE pressure IS NOT NULL;
CREATE TABLE compactions (id INTEGER, name BLOB, document BLOB, PRIMARY KEY (id, name))
    WITHOUT ROWID;
CREATE TABLE entries (
    id INTEGER, stream TEXT, position INTEGER, document BLOB,
    PRIMARY KEY (id, stream, position)
) WITHOUT ROWID;
CREATE TABLE agents (
    agent BLOB, id INTEGER, recent INTEGER, PRIMARY KEY (agent, id)
) WITHOUT ROWID;
CREATE TABLE states (id INTEGER, part BLOB, value BLOB, PRIMARY KEY (id, part)) WITHOUT ROWID;
CREATE TABLE totals (id INTEGER, field BLOB, document BLOB, PRIMARY KEY (id, field)) WITHOUT ROWID;
CREATE INDEX totals_by_field ON totals (field);
CREATE TABLE stats (field BLOB PRIMARY KEY, document BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE live (position INTEGER PRIMARY KEY, document BLOB NOT NULL);
"""

_SETTINGS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -4000;
PRAGMA journal_size_limit = 16777216;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON;
"""
"""What is deleted is overwritten, so nothing stays of a deleted transcript. A killed process loses
nothing; a machine that loses power the last moments, which are read again. A small cache: most
reads are of what was just written, which the system has in memory."""


NO_PAGE = "no page"
"""What the holder of a lock writes down that serves no page."""


class InUseError(StopError):
    """Another process writes to the file; `address` is where it serves the page, if known."""

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(f"another contextgauge view uses {path}")
        self.address = address


class Lock:
    """The right to write to a local file, from `take` until the process ends or `release`.

    The lock's file also says where its holder serves the page.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self._target = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises InUseError, and ConfigError where the file cannot be written."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_OWNER_ONLY)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
            try:
                if sys.platform != "win32":
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                address = os.pread(self._descriptor, 1_000, 0).decode(errors="replace").strip()
                self.release()
                raise InUseError(self._target, address) from None
        self.announce("")

    def announce(self, address: str) -> None:
        """Write down where the page is, for those who find the lock taken."""
        with self._writing():
            if self._descriptor is not None:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, address.encode(), 0)

    def release(self) -> None:
        """Let others take it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an error of the system into a ConfigError; the lock is then free."""
        try:
            yield
        except OSError as error:
            self.release()
            raise ConfigError(
                f"{self.path}: {error.strerror}. Name another folder with CONTEXTGAUGE_STATE_FOLDER"
            ) from error


def full_tag(tag: str) -> str:
    """Return what a file is known by: it holds what this build writes under these rules."""
    return f"{_LAYOUT_VERSION}/{FORMAT_VERSION}/{VIEW_VERSION}/{tag}"


def open_database(path: Path, tag: str) -> sqlite3.Connection:
    """Open the file to write to, made or made again where it is not of this tag; holds the lock.

    `tag` names the rules. Raises ConfigError where the file cannot be written.
    """
    tag = full_tag(tag)
    try:
        connection = _opened(path, tag)
        if connection is None:
            delete_file(path)
            connection = _made(path, tag)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(
            f"{path} cannot be written ({error}): delete it, or name another folder with "
            "CONTEXTGAUGE_STATE_FOLDER"
        ) from error
    return connection


def delete_file(path: Path) -> None:
    """Delete a local file."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def delete_unused(own: Path, now_s: float) -> None:
    """Delete the other local files of the folder that were not written to for long.

    And those copies whose process was killed: their names have a number.
    """
    for path in own.parent.glob(f"*{own.suffix}"):
        with contextlib.suppress(OSError, InUseError, ConfigError):
            is_copy = "." in path.stem
            is_young = now_s - path.stat().st_mtime < _UNUSED_S
            if path == own or (is_young and not is_copy):
                continue
            lock = Lock(path)
            lock.take()
            try:
                delete_file(path)
                lock.path.unlink()
            finally:
                lock.release()


def _opened(path: Path, tag: str) -> sqlite3.Connection | None:
    """Return the file as it is; None where it is missing, of another tag or damaged."""
    if not path.exists():
        return None
    connection = _connect(path)
    try:
        connection.executescript(_SETTINGS)
        stored = connection.execute("SELECT value FROM about WHERE name = 'tag'").fetchone()
        if stored is not None and stored[0] == tag:
            return connection
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            connection.close()
            raise
    except sqlite3.DatabaseError:  # damaged, or not a database
        pass
    connection.close()
    return None


def _made(path: Path, tag: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_OWNER_ONLY)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
    connection = _connect(path)
    try:
        connection.executescript(_SETTINGS)
        with transaction(connection):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            about = [("tag", tag), ("build", os.urandom(8).hex()), ("position", 0)]
            connection.executemany("INSERT INTO about VALUES (?, ?)", about)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=64
    )


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write everything that the context does, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself rolls back after some errors, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def failing(path: Path) -> Iterator[None]:
    """Turn errors of the database into a StopError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise StopError(
            f"{path}: {error}. Is the disk full? If the file is damaged, delete it: it is filled "
            "again from the transcripts"
        ) from error
