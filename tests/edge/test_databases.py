"""A runtime's SQLite database is read as lines, while the runtime writes it."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.edge.files import database, rows
from streams.edge.files.database import DatabaseContent, open_database
from tests.edge.follower_kit import Bench
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
