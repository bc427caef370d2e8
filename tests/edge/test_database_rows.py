"""Rows of a database that are complete later, are deleted, damaged, or written by others."""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contextgauge.normalise.adapter import Database
from contextgauge.normalise.runtimes import RUNTIMES
from streams.edge.files import database, rows
from streams.edge.files.database import open_database
from tests.patience import PATIENCE_S


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK_ROWS", 2)
    monkeypatch.setattr(database, "BLOCK_ROWS", 2)


class NotesDatabase:
    """A runtime whose rows are complete later than they come."""

    QUERY = """
        SELECT notes.rowid, id, CASE WHEN done THEN json_object('id', id) END FROM notes
        WHERE notes.rowid > :after ORDER BY notes.rowid LIMIT :limit
    """
    TITLES = "SELECT id, title FROM notes"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.execute("CREATE TABLE notes (id text, title text, done integer)")

    def execute(self, sql: str, *values: object) -> None:
        self.connection.execute(sql, values)

    def add(self, name: str, *, done: bool = False) -> None:
        self.execute("INSERT INTO notes VALUES (?, 'Notes', ?)", name, done)

    def complete(self, name: str) -> None:
        self.execute("UPDATE notes SET done = 1 WHERE id = ?", name)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NotesDatabase]:
    declared = Database((NotesDatabase.QUERY, "SELECT 1 FROM missing"), (NotesDatabase.TITLES,))
    adapter = RUNTIMES[0]._replace(database=declared)
    monkeypatch.setattr(database, "DATABASES", ((adapter, declared),))
    runtime = NotesDatabase(tmp_path / "notes.db")
    yield runtime
    runtime.connection.close()


def names_behind(notes: NotesDatabase, begin: int = 0, mark: str = "") -> tuple[str, int, str]:
    """Return the names of the rows behind a place, and the place and the mark of the end."""
    with closing(open_database(str(notes.path), begin, mark)) as content:
        size = content.size()
        lines = content.read(size - begin, begin).splitlines()
        return "".join(json.loads(line)["id"] for line in lines), size, content.mark_at(size)


def test_a_row_that_is_complete_later_comes_then(notes: NotesDatabase) -> None:
    notes.add("a")
    notes.add("b", done=True)
    with closing(open_database(str(notes.path))) as content:
        before = content.size()
        assert content.read(before, 0) == b'{"id":"b"}\n'
        notes.add("c", done=True)
        notes.complete("a")
        assert content.read(content.size() - before, before) == b'{"id":"a"}\n{"id":"c"}\n'
        assert content.read(1 << 10, 0).count(b"\n") == 3


def test_rows_that_wait_are_remembered(notes: NotesDatabase) -> None:
    for name in "abc":
        notes.add(name, done=name == "b")
    names, place, mark = names_behind(notes)
    assert names == "b"
    assert names_behind(notes, place, mark) == ("", place, mark)
    notes.complete("c")
    names, place, mark = names_behind(notes, place, mark)
    assert names == "c"
    notes.complete("a")
    notes.add("d", done=True)
    names, place, mark = names_behind(notes, place, mark)
    assert names == "ad"
    assert names_behind(notes, place, mark)[0] == ""


def test_a_row_with_the_number_of_one_that_waited_is_another(notes: NotesDatabase) -> None:
    notes.add("a", done=True)
    notes.add("b")
    _, place, mark = names_behind(notes)
    notes.execute("DELETE FROM notes WHERE id = 'b'")
    notes.add("c", done=True)
    assert names_behind(notes, place, mark)[0] == "c"


@pytest.mark.usefixtures("small_blocks")
def test_a_mark_within_what_was_read_says_what_is_left(notes: NotesDatabase) -> None:
    for name in "abcdefg":
        notes.add(name, done=name not in "bf")
    with closing(open_database(str(notes.path))) as content:
        content.size()
        notes.complete("b")
        size = content.size()
        whole = content.read(size, 0)
        places = [0, *(offset + 1 for offset, byte in enumerate(whole) if byte == ord("\n"))]
        marks = [content.mark_at(place) for place in places]
    assert names_behind(notes)[0] == "abcdeg"
    for read, (place, mark) in enumerate(zip(places, marks, strict=True)):
        left = sorted("acdegb"[read:])
        assert sorted(names_behind(notes, place, mark)[0]) == left


@pytest.mark.extended
def test_of_many_deleted_rows_only_some_before_are_read_again(notes: NotesDatabase) -> None:
    for number in range(1_000):
        notes.add(str(number), done=True)
    place_and_mark = names_behind(notes)[1:]
    assert len(place_and_mark[1]) < 2_000
    notes.execute("DELETE FROM notes WHERE rowid > 990")
    assert names_behind(notes, *place_and_mark)[0] == ""
    notes.execute("DELETE FROM notes WHERE rowid > 900")
    assert 0 < len(names_behind(notes, *place_and_mark)[0]) <= 3 * 100
    for _ in range(20):
        notes.add("z", done=True)
        place_and_mark = names_behind(notes, *place_and_mark)[1:]
    assert len(place_and_mark[1]) < 2_000


def test_a_mark_of_another_version_reads_all_again(notes: NotesDatabase) -> None:
    notes.add("a", done=True)
    assert names_behind(notes, 0, "0:x:;?;1:2")[0] == "a"


def test_a_damaged_row_hides_no_other(notes: NotesDatabase) -> None:
    for name in "abcdefghi":
        notes.add(name * 60_000, done=True)
    notes.connection.close()
    content = bytearray(notes.path.read_bytes())
    page = int.from_bytes(content[16:18])
    page_offset = content.index(b"e" * 1_000) // page * page
    for begin in range(page_offset, len(content), page):
        if content[begin + 8 : begin + 100] == b"e" * 92:
            content[begin : begin + 4] = b"\xff" * 4
            break
    notes.path.write_bytes(content)
    notes.connection = sqlite3.connect(notes.path)
    with closing(open_database(str(notes.path))) as opened:
        size = opened.size()
        names = [json.loads(line)["id"][0] for line in opened.read(size, 0).splitlines()]
        assert names == list("abcdfghi")
        assert opened.damage is not None
        assert "rows there are left out" in str(opened.damage)


def test_text_that_is_no_utf_8_hides_no_row(notes: NotesDatabase) -> None:
    notes.add("a", done=True)
    notes.execute("INSERT INTO notes VALUES (CAST(X'62FF' AS text), '', 1)")
    notes.add("c", done=True)
    with closing(open_database(str(notes.path))) as content:
        lines = content.read(content.size(), 0).splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "b\ufffd", "c"]


WRITER = """
import sqlite3, sys
path, mode, begin = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None)
connection.execute(f"PRAGMA journal_mode = {mode}")
connection.execute(begin)
for number in range(100):
    connection.execute("INSERT INTO notes VALUES (?, '', 1)", (str(number),))
print("holds", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("wrote", flush=True)
sys.stdin.readline()
"""


class OtherWriter:
    """Another process that writes: it holds its lock until it is let go."""

    def __init__(self, path: Path, mode: str, begin: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), mode, begin],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.wait_for("holds")

    def wait_for(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{word}\n"

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.communicate()


@pytest.mark.parametrize(
    ("mode", "begin"), [("WAL", "BEGIN EXCLUSIVE"), ("DELETE", "BEGIN IMMEDIATE")]
)
def test_another_process_that_writes_keeps_no_reader_out(
    notes: NotesDatabase, mode: str, begin: str
) -> None:
    notes.add("a", done=True)
    notes.connection.close()
    writer = OtherWriter(notes.path, mode, begin)
    try:
        names, place, mark = names_behind(notes)
        assert names == "a"
        writer.go_on()
        writer.wait_for("wrote")
        assert names_behind(notes, place, mark)[0] == "".join(map(str, range(100)))
    finally:
        writer.end()


def test_a_lock_is_waited_for_and_no_longer(
    notes: NotesDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.add("a", done=True)
    notes.connection.close()
    writer = OtherWriter(notes.path, "DELETE", "BEGIN EXCLUSIVE")
    try:
        monkeypatch.setattr(database, "_BUSY_S", 0.01)
        with pytest.raises(OSError, match="SQLite: database is locked"):
            open_database(str(notes.path))
        monkeypatch.setattr(database, "_BUSY_S", PATIENCE_S)
        letting_go = threading.Timer(0.05, writer.go_on)
        letting_go.start()
        assert names_behind(notes)[0].startswith("a0")
        letting_go.join()
    finally:
        writer.end()


def test_a_database_that_cannot_be_written_next_to_is_read(notes: NotesDatabase) -> None:
    notes.execute("PRAGMA journal_mode = WAL")
    notes.add("a", done=True)
    notes.connection.close()
    folder = notes.path.parent
    folder.chmod(0o500)
    try:
        assert names_behind(notes)[0] == "a"
    finally:
        folder.chmod(0o700)
