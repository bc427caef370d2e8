"""The windows of status lines: stored by session, few files, never an error."""

import json
import os
import time
from pathlib import Path

import pytest

from streams.edge.files import small_files
from streams.edge.files.status_windows import StatusWindows

SESSION = "5b1f0c2e-0000-4000-8000-000000000001"


def test_a_window_is_remembered_by_session(tmp_path: Path) -> None:
    windows = StatusWindows(str(tmp_path))
    assert windows.of(SESSION) == {}
    windows.remember(SESSION, "m", 1_000_000)
    assert StatusWindows(str(tmp_path)).of(SESSION) == {"m": 1_000_000}
    windows.remember(SESSION, "n", 200_000)
    assert windows.of(SESSION) == {"n": 200_000}
    assert [file.name for file in (tmp_path / "statusline").iterdir()] == [f"{SESSION}.json"]


def test_a_window_that_is_known_is_not_written_again(tmp_path: Path) -> None:
    windows = StatusWindows(str(tmp_path))
    windows.remember(SESSION, "m", 9)
    file = tmp_path / "statusline" / f"{SESSION}.json"
    before = file.stat().st_ino
    windows.remember(SESSION, "m", 9)
    assert file.stat().st_ino == before


@pytest.mark.parametrize("session_id", ["", "..", "a/b", "a" * 65, "é"])
def test_an_id_that_is_no_plain_name_is_not_stored(tmp_path: Path, session_id: str) -> None:
    windows = StatusWindows(str(tmp_path))
    windows.remember(session_id, "m", 9)
    assert windows.of(session_id) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", ["", "[]", '{"model": 1, "window": 1}', '{"model": "m", "window": 0}']
)
def test_a_damaged_file_is_nothing(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "statusline"
    folder.mkdir()
    (folder / f"{SESSION}.json").write_text(content)
    assert StatusWindows(str(tmp_path)).of(SESSION) == {}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "statusline").write_text("a file")
    StatusWindows(str(tmp_path)).remember(SESSION, "m", 9)


def test_the_oldest_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "MOST_FILES", 3)
    monkeypatch.setattr(small_files, "_LEAVING", 2)
    windows = StatusWindows(str(tmp_path))
    for number in range(4):
        windows.remember(f"s{number}", "m", 9)
    names = sorted(file.name for file in (tmp_path / "statusline").iterdir())
    assert names == ["s2.json", "s3.json"]
    assert json.loads((tmp_path / "statusline" / "s3.json").read_text()) == {
        "model": "m",
        "window": 9,
    }


def test_what_was_stored_since_the_last_call_is_returned_once(tmp_path: Path) -> None:
    windows = StatusWindows(str(tmp_path))
    assert windows.changed() == []
    windows.remember("a", "opus", 1_000_000)
    windows.remember("b", "opus", 1_000_000)
    assert sorted(windows.changed()) == ["a", "b"]
    assert windows.changed() == []
    old_s = time.time() - 60
    for path in (tmp_path / "statusline").iterdir():
        os.utime(path, (old_s, old_s))
    windows.changed()
    windows.remember("b", "opus", 200_000)
    assert windows.changed() == ["b"]
