"""Where the runtimes of this machine keep transcripts."""

from pathlib import Path

import pytest

from streams.edge.files.runtime_folders import transcript_folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_folders_are_below_the_homes_of_the_runtimes(home: Path) -> None:
    assert transcript_folders({}) == [
        home / ".claude" / "projects",
        home / ".config" / "claude" / "projects",
        home / ".codex" / "sessions",
        home / ".codex" / "archived_sessions",
        home / ".gemini" / "tmp",
        home / ".qwen" / "projects",
    ]
    assert transcript_folders({"XDG_CONFIG_HOME": "~/elsewhere"})[1] == (
        home / "elsewhere" / "claude" / "projects"
    )


def test_a_variable_names_other_homes(home: Path) -> None:
    environment = {
        "CLAUDE_CONFIG_DIR": str(home / "mine"),
        "CODEX_HOME": "~/no, ,~/way,",
        "GEMINI_CLI_HOME": str(home / "other"),
        "QWEN_HOME": str(home / "qwen"),
    }
    assert transcript_folders(environment) == [
        home / "mine" / "projects",
        home / "no" / "sessions",
        home / "no" / "archived_sessions",
        home / "way" / "sessions",
        home / "way" / "archived_sessions",
        home / "other" / ".gemini" / "tmp",
        home / "qwen" / "projects",
    ]
    moved = {**environment, "QWEN_RUNTIME_DIR": str(home / "runtime")}
    assert transcript_folders(moved)[-1] == home / "runtime" / "projects"


def test_a_folder_with_a_comma_in_its_name_is_one(home: Path) -> None:
    (home / "yours, mine").mkdir()
    environment = {"CLAUDE_CONFIG_DIR": str(home / "yours, mine")}
    assert transcript_folders(environment)[0] == home / "yours, mine" / "projects"


def test_a_folder_with_two_names_counts_once(home: Path) -> None:
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".config").mkdir()
    (home / ".config" / "claude").symlink_to(home / ".claude")
    assert [folder.parent.name for folder in transcript_folders({})] == [
        ".claude",
        ".codex",
        ".codex",
        ".gemini",
        ".qwen",
    ]
