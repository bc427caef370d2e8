"""A runtime's SQLite database is read as lines, while the runtime writes it."""

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
from streams.edge.files.database import DatabaseContent, open_database
from tests.edge.follower_kit import Bench
from tests.patience import PATIENCE_S
from tests.runtimes.opencode_database import OpencodeDatabase

SESSION = "ses_1"


@pytest.fixture
def written(tmp_path: Path) -> Iterator[OpencodeDatabase]:
    runtime = OpencodeDatabase(tmp_path / "opencode.db")
    runtime.session(SESSION)
    yield runtime
    runtime.close()


@pytest.fixture
def content(written: OpencodeDatabase) -> Iterator[DatabaseContent]:
    opened = open_database(str(written.path))
    yield opened
    opened.close()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BLOCK_ROWS", 2)
    monkeypatch.setattr(database, "BLOCK_ROWS", 2)


def kinds(content: DatabaseContent) -> list[str]:
    return [json.loads(line)["type"] for line in content.read(content.size(), 0).splitlines()]


def test_rows_that_are_written_once_are_lines_in_their_order(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    written.prompt(SESSION, "Fix the parser")
    written.answer(SESSION, fresh=100)
    written.part(SESSION, written.message(SESSION, "user"), "compaction", auto=True)
    assert kinds(content) == ["text", "step_finish", "compaction"]


def sizes_in(content: DatabaseContent) -> list[int]:
    begin = content.size() - len(content.read(1 << 20, content.begin))
    lines = content.read(content.size() - begin, begin).splitlines()
    return [json.loads(line)["part"]["tokens"]["input"] for line in lines]


def test_lines_that_come_later_are_behind_those_that_were_read(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    written.answer(SESSION, fresh=100)
    before = content.read(content.size(), 0)
    written.answer(SESSION, fresh=200)
    grown = content.size()
    assert content.read(grown, 0).startswith(before)
    assert json.loads(content.read(grown, len(before)))["part"]["tokens"]["input"] == 200


@pytest.mark.usefixtures("small_blocks")
def test_every_piece_is_that_of_the_whole(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    for number in range(20):
        written.answer(SESSION, fresh=number)
    size = content.size()
    whole = content.read(size, 0)
    assert (len(whole), whole.count(b"\n")) == (size, 20)
    for begin in range(0, size, 101):
        assert content.read(257, begin) == whole[begin : begin + 257]


@pytest.mark.usefixtures("small_blocks")
def test_a_piece_whose_rows_were_deleted_is_refused(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    for number in range(2):
        written.answer(SESSION, fresh=number + 1)
    written.session("ses_2")
    written.answer("ses_2", fresh=3)
    size = content.size()
    written.execute("DELETE FROM session WHERE id = ?", SESSION)
    with pytest.raises(OSError, match="rows that were read have changed or were deleted"):
        content.read(size, 0)
    content.close()
    again = open_database(str(written.path))
    assert sizes_in(again) == [3]
    again.close()


def test_rows_with_the_numbers_of_deleted_ones_are_new(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    written.answer(SESSION, fresh=1)
    written.session("ses_2")
    written.answer("ses_2", fresh=2)
    before = content.read(content.size(), 0)
    written.execute("DELETE FROM session WHERE id = 'ses_2'")
    written.answer(SESSION, fresh=3)
    size = content.size()
    assert content.read(size, 0).startswith(before)
    assert json.loads(content.read(size, len(before)))["part"]["tokens"]["input"] == 3


@pytest.mark.usefixtures("small_blocks")
def test_what_was_read_is_not_read_again_where_a_whole_blocks_end_was_deleted(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    written.answer(SESSION, fresh=1)
    written.session("ses_2")
    for number in range(2, 7):
        written.answer("ses_2", fresh=number)
    before = content.size()
    written.execute("DELETE FROM session WHERE id = 'ses_2'")
    written.answer(SESSION, fresh=7)
    line = content.read(content.size() - before, before)
    assert json.loads(line)["part"]["tokens"]["input"] == 7


def test_the_runtime_writes_on_while_it_is_read(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    written.answer(SESSION, fresh=1)
    content.size()
    written.execute("BEGIN IMMEDIATE")
    written.answer(SESSION, fresh=2)
    assert kinds(content) == ["step_finish"]
    written.execute("COMMIT")
    assert kinds(content) == ["step_finish"] * 2


def test_a_database_of_no_runtime_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE part (id text)")
    with pytest.raises(OSError, match="an SQLite database, and of no runtime that is read"):
        open_database(str(path))


def test_a_damaged_database_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(database.SQLITE_MAGIC + b"\0" * 4_000)
    with pytest.raises(OSError, match="SQLite: "):
        open_database(str(path))


def test_reading_says_why_it_fails(written: OpencodeDatabase, content: DatabaseContent) -> None:
    written.execute("DROP TABLE part")
    with pytest.raises(OSError, match="SQLite: no such table"):
        content.size()


def test_the_identity_is_that_of_the_file(
    written: OpencodeDatabase, content: DatabaseContent
) -> None:
    status = written.path.stat()
    assert content.identity == (status.st_dev, status.st_ino)
    assert content.damage is None


def followed(bench: Bench) -> list[tuple[int, bool]]:
    """Return the size that each new line says, and whether it was read as it was written."""
    return [
        (json.loads(line.value)["part"]["tokens"]["input"], piece.live)
        for piece in bench.pieces()
        for line in piece.lines
    ]


def test_a_database_in_a_runtimes_folder_is_followed(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=1)
    (written.path.parent / "storage").mkdir()
    (written.path.parent / "storage" / "notes.jsonl").write_text("{}\n")
    (written.path.parent / "other.db").write_bytes(database.SQLITE_MAGIC)
    bench = Bench([str(written.path.parent)])
    assert followed(bench) == [(1, False)]
    written.answer(SESSION, fresh=2)
    assert followed(bench) == [(2, True)]
    assert followed(bench) == []
    bench.restart()
    written.answer(SESSION, fresh=3)
    assert followed(bench) == [(3, False)]
    assert bench.events == []


def test_what_is_deleted_while_it_is_followed_is_not_read_again(written: OpencodeDatabase) -> None:
    written.answer(SESSION, fresh=1)
    written.session("ses_2")
    written.answer("ses_2", fresh=2)
    bench = Bench([str(written.path)])
    assert len(followed(bench)) == 2
    written.execute("DELETE FROM session WHERE id = 'ses_2'")
    written.answer(SESSION, fresh=3)
    assert followed(bench) == [(3, True)]
    assert bench.events == []


@pytest.mark.parametrize("deleted", [SESSION, "ses_2", "ses_3"])
def test_what_is_deleted_while_nothing_runs_is_not_sent_again(
    written: OpencodeDatabase, deleted: str
) -> None:
    for number, session in enumerate((SESSION, "ses_2", "ses_3"), 1):
        if session != SESSION:
            written.session(session)
        written.answer(session, fresh=number)
    bench = Bench([str(written.path)])
    assert len(followed(bench)) == 3
    written.execute("DELETE FROM session WHERE id = ?", deleted)
    bench.restart()
    assert followed(bench) == []
    written.session("ses_4")
    written.answer("ses_4", fresh=4)
    bench.restart()
    assert followed(bench) == [(4, False)]
    assert bench.events == []


def test_a_database_that_took_the_place_of_another_is_read_whole(
    written: OpencodeDatabase, tmp_path: Path
) -> None:
    written.answer(SESSION, fresh=1)
    written.answer(SESSION, fresh=2)
    bench = Bench([str(written.path)])
    assert len(followed(bench)) == 2
    other = OpencodeDatabase(tmp_path / "other.db")
    other.session("ses_other")
    other.message("ses_other", "user")
    other.answer("ses_other", fresh=3)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    written.close()
    for each in ("-wal", "-shm"):
        Path(f"{written.path}{each}").unlink(missing_ok=True)
    (tmp_path / "other.db").replace(written.path)
    bench.restart()
    assert [size for size, _ in followed(bench)] == [3]


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
    names, *at = names_behind(notes)
    assert names == "b"
    assert names_behind(notes, *at) == ("", *at)
    notes.complete("c")
    names, *at = names_behind(notes, *at)
    assert names == "c"
    notes.complete("a")
    notes.add("d", done=True)
    names, *at = names_behind(notes, *at)
    assert names == "ad"
    assert names_behind(notes, *at)[0] == ""


def test_a_row_with_the_number_of_one_that_waited_is_another(notes: NotesDatabase) -> None:
    notes.add("a", done=True)
    notes.add("b")
    _, *at = names_behind(notes)
    notes.execute("DELETE FROM notes WHERE id = 'b'")
    notes.add("c", done=True)
    assert names_behind(notes, *at)[0] == "c"


@pytest.mark.usefixtures("small_blocks")
def test_a_mark_within_what_was_read_says_what_is_left(notes: NotesDatabase) -> None:
    for name in "abcdefg":
        notes.add(name, done=name not in "bf")
    with closing(open_database(str(notes.path))) as content:
        content.size()
        notes.complete("b")
        size = content.size()
        whole = content.read(size, 0)
        places = [0, *(at + 1 for at, byte in enumerate(whole) if byte == ord("\n"))]
        marks = [content.mark_at(place) for place in places]
    assert names_behind(notes)[0] == "abcdeg"
    for read, (place, mark) in enumerate(zip(places, marks, strict=True)):
        left = sorted("acdegb"[read:])
        assert sorted(names_behind(notes, place, mark)[0]) == left


def test_of_many_deleted_rows_only_some_before_are_read_again(notes: NotesDatabase) -> None:
    for number in range(1_000):
        notes.add(str(number), done=True)
    at = names_behind(notes)[1:]
    assert len(at[1]) < 2_000
    notes.execute("DELETE FROM notes WHERE rowid > 990")
    assert names_behind(notes, *at)[0] == ""
    notes.execute("DELETE FROM notes WHERE rowid > 900")
    assert 0 < len(names_behind(notes, *at)[0]) <= 3 * 100
    for _ in range(20):
        notes.add("z", done=True)
        at = names_behind(notes, *at)[1:]
    assert len(at[1]) < 2_000


def test_a_mark_of_another_version_reads_all_again(notes: NotesDatabase) -> None:
    notes.add("a", done=True)
    assert names_behind(notes, 0, "0:x:;?;1:2")[0] == "a"


def test_a_damaged_row_hides_no_other(notes: NotesDatabase) -> None:
    for name in "abcdefghi":
        notes.add(name * 60_000, done=True)
    notes.connection.close()
    content = bytearray(notes.path.read_bytes())
    page = int.from_bytes(content[16:18])
    at = content.index(b"e" * 1_000) // page * page
    for begin in range(at, len(content), page):
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
        names, *at = names_behind(notes)
        assert names == "a"
        writer.go_on()
        writer.wait_for("wrote")
        assert names_behind(notes, *at)[0] == "".join(map(str, range(100)))
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
