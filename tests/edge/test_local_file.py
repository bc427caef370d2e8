"""The local file of `contextgauge view` where the disk fails, or others hold the file."""

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError, RetryError, StopError
from schemas.views import LIVE_ENTRIES
from streams import codec
from streams.edge.sqlite.database import Lock, open_database, transaction
from streams.edge.sqlite.store import SqliteStore
from streams.edge.sqlite.turns import Turns
from streams.edge.sqlite.view_store import SqliteViews
from streams.ports import Entry, LiveBounds, LocalChanges, ProjectorHeartbeat
from tests.contract.stores import NOTHING
from tests.flow.local_view_kit import Run, write_sample


@contextmanager
def store_in(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, "tag")) as store:
        yield store


def views_in(path: Path) -> SqliteViews:
    return SqliteViews(path, lambda: ProjectorHeartbeat(0, None, 0), Turns())


async def test_views_that_cannot_be_read_are_no_outage(tmp_path: Path) -> None:
    with store_in(tmp_path / "local"):
        views = views_in(tmp_path / "local")
        await views.start()
        with closing(sqlite3.connect(tmp_path / "local")) as other:
            other.execute("DROP TABLE stats")
        with pytest.raises(StopError, match=r"local: no such table.*delete it"):
            await views.stats(1, 0)
        await views.stop()


async def test_a_file_that_others_have_locked_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_in(tmp_path / "local"):
        pass
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    with closing(sqlite3.connect(tmp_path / "local", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RetryError, match="local: database is locked"):
            await views_in(tmp_path / "local").start()


async def test_views_without_their_file_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StopError, match="local: unable to open database file"):
        await views_in(tmp_path / "local").start()


def test_a_transaction_that_sqlite_ended_shows_the_cause(tmp_path: Path) -> None:
    def ended(connection: sqlite3.Connection) -> None:
        with transaction(connection):
            connection.execute("ROLLBACK")  # as SQLite itself does where the disk is full
            raise ZeroDivisionError

    with closing(open_database(tmp_path / "local", "tag")) as connection:
        with pytest.raises(ZeroDivisionError):
            ended(connection)
        with transaction(connection):
            connection.execute("DELETE FROM stats")


def test_a_transaction_that_cannot_be_committed_is_rolled_back(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "local", "tag")) as connection:
        connection.executescript(
            "CREATE TABLE whole (id INTEGER PRIMARY KEY);"
            "CREATE TABLE part (id REFERENCES whole DEFERRABLE INITIALLY DEFERRED);"
            "PRAGMA foreign_keys = ON;"
        )
        with pytest.raises(sqlite3.IntegrityError), transaction(connection):
            connection.execute("INSERT INTO part VALUES (1)")
        assert not connection.in_transaction


@pytest.mark.parametrize(
    ("module", "name", "code"),
    [(fcntl, "flock", errno.ENOLCK), (os, "ftruncate", errno.EIO), (os, "pwrite", errno.ENOSPC)],
)
def test_a_lock_that_the_file_system_refuses_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as refusing:
        refusing.setattr(module, name, refuse)
        lock = Lock(tmp_path / "local")
        with pytest.raises(ConfigError, match=rf"{os.strerror(code)}.*CONTEXTGAUGE_STATE_FOLDER"):
            lock.take()
    other = Lock(tmp_path / "local")
    other.take()
    other.release()


def test_nothing_of_a_deleted_transcript_stays_in_the_file(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "projects")
    run = Run(folder, tmp_path / "local").all()
    own = max(folder.glob("streams/*.jsonl"), key=lambda path: path.stat().st_size)
    before, texts = _stored(tmp_path / "local"), _texts(tmp_path / "local", own.stem)
    assert len([text for text in texts if text in before]) > 20
    own.unlink()
    Run(folder, tmp_path / "fresh").all().store.close()
    others = _stored(tmp_path / "fresh")  # a summary may be in several sessions
    run.all()
    after = _stored(tmp_path / "local")
    assert [text for text in texts if text in after and text not in others] == []
    run.store.close()


async def test_a_feed_without_a_deleted_session_is_still_known_to_be_cut(tmp_path: Path) -> None:
    whole = [Entry(offset, b'{"session_id":"a"}') for offset in range(LIVE_ENTRIES)]
    views = views_in(tmp_path / "local")
    with store_in(tmp_path / "local") as store:
        await views.start()
        store.commit(LocalChanges(1, NOTHING._replace(live=whole), {}, {}, {}, {}))
        assert await views.live_bounds(1, 0) == LiveBounds(0, is_whole=True)
        other = Entry(LIVE_ENTRIES, b'{"session_id":"b"}')
        store.commit(LocalChanges(2, NOTHING._replace(live=[other]), {}, {}, {}, {}))
        store.commit(LocalChanges(3, NOTHING._replace(leaving={b"a": 0}), {}, {}, {}, {}))
        assert await views.live(1, 0, -1, 10) == [other]
        assert await views.live_bounds(1, 0) == LiveBounds(LIVE_ENTRIES, is_whole=False)
        await views.stop()


def _texts(file: Path, session: str) -> list[bytes]:
    """Return a session's id, and parts of its summaries."""
    with closing(sqlite3.connect(file)) as connection:
        documents = connection.execute(
            "SELECT document FROM compactions JOIN sessions USING (id) WHERE session = ?",
            [session.encode()],
        ).fetchall()
    summaries = [codec.loads(document)["summary"].encode() for (document,) in documents]
    parts = [
        each[offset : offset + 40] for each in summaries for offset in range(0, len(each) - 40, 40)
    ]
    return [session.encode(), *parts]


def _stored(file: Path) -> bytes:
    """Return all bytes of a local file, with those that wait in its log."""
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))
