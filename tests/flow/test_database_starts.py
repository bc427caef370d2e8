"""A start of a local view reads a database again only where it lost a session since."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from streams.edge.sqlite.store import SqliteStore
from streams.wiring.view import first_marks
from tests.edge.follower_kit import add
from tests.flow.local_view_kit import Run
from tests.runtimes.opencode_database import OpencodeDatabase
from tests.runtimes.pi_captures import SESSION
from tests.runtimes.test_openclaw_database import ENTRIES, OpenClawDatabase
from tests.runtimes.test_opencode_messages import MessagesDatabase

ASKED = {"role": "user", "content": "Fix the parser"}

Write = Callable[[Path], tuple[Path, str]]
"""Writes a database with two sessions, or with one and its subagent's; returns where, and what
deletes one of them."""


def opencode(folder: Path) -> tuple[Path, str]:
    written = OpencodeDatabase(folder / "opencode.db")
    written.session(SESSION)
    written.session("ses_2", parent=SESSION)
    written.session("ses_3", parent="ses_2")
    for session in (SESSION, "ses_2", "ses_3"):
        written.answer(session, fresh=1_000)
    written.close()
    return written.path, "DELETE FROM session WHERE id = ?"


def opencode_2(folder: Path) -> tuple[Path, str]:
    folder.mkdir()
    written = MessagesDatabase(folder / "opencode.db")
    written.session(SESSION)
    written.session("ses_2", SESSION)
    for session in (SESSION, "ses_2"):
        written.answer(session, 1_000)
    written.connection.close()
    return written.path, "DELETE FROM session_v2 WHERE id = ?"


def openclaw(folder: Path) -> tuple[Path, str]:
    (folder / "agents" / "main" / "agent").mkdir(parents=True)
    written = OpenClawDatabase(folder / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    for session in (SESSION, "other"):
        written.write(session, *ENTRIES)
    written.connection.execute("DELETE FROM session_windows WHERE session_id = 'other'")
    written.connection.close()
    return written.path, "DELETE FROM transcript_events WHERE session_id = ?"


@pytest.fixture
def start(tmp_path: Path) -> Callable[[], list[str]]:
    """Read what is new since the last start; return the names of the files that were read."""

    def started() -> list[str]:
        run = Run(tmp_path / "home", tmp_path / "local.sqlite3", marks=first_marks).all()
        run.store.close()
        return sorted({Path(each).name for each in run.read})

    return started


def sessions(tmp_path: Path, path: Path) -> set[str]:
    with closing(SqliteStore(tmp_path / "local.sqlite3", "tag")) as store:
        return {each.decode() for each in store.sessions_of(str(path))}


def execute(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, (SESSION,))


@pytest.mark.parametrize(
    ("write", "left"), [(opencode, "ses_2"), (opencode_2, "ses_2"), (openclaw, "other")]
)
def test_a_deleted_session_is_noticed_once(
    tmp_path: Path, start: Callable[[], list[str]], write: Write, left: str
) -> None:
    path, deletion = write(tmp_path / "home")
    assert start() == [path.name]
    assert start() == []
    execute(path, deletion)
    assert start() == [path.name]
    assert sessions(tmp_path, path) == {left}
    assert start() == []


def test_what_other_files_have_of_a_databases_session_is_not_lost(
    tmp_path: Path, start: Callable[[], list[str]]
) -> None:
    path, _ = openclaw(tmp_path / "home")
    lines = (
        json.dumps({"sessionId": session, "uuid": session, "type": "user", "message": ASKED})
        for session in (SESSION, "elsewhere")
    )
    add(tmp_path / "home" / f"{SESSION}.jsonl", *lines)
    assert start() == [f"{SESSION}.jsonl", path.name]
    assert start() == []
