"""Where the runtimes of this machine keep transcripts."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from contextgauge.normalise.runtimes import RUNTIMES
from streams.edge.files.runtime_folders import folders_of, transcript_folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def folders(environment: Mapping[str, str], *labels: str) -> list[Path]:
    """Return the folders of some runtimes."""
    adapters = {each.label: each for each in RUNTIMES}
    return [folder for label in labels for folder in folders_of(adapters[label], environment)]


FOUR = ("Claude Code", "Codex", "Gemini CLI", "Qwen Code")


def test_all_runtimes_folders_are_looked_at_by_their_names() -> None:
    labels = sorted(each.label for each in RUNTIMES)
    assert transcript_folders({}) == folders({}, *labels)


def test_the_folders_are_below_the_homes_of_the_runtimes(home: Path) -> None:
    assert folders({}, *FOUR) == [
        home / ".claude" / "projects",
        home / ".config" / "claude" / "projects",
        home / ".codex" / "sessions",
        home / ".codex" / "archived_sessions",
        home / ".gemini" / "tmp",
        home / ".qwen" / "projects",
    ]
    assert folders({"XDG_CONFIG_HOME": "~/elsewhere"}, *FOUR)[1] == (
        home / "elsewhere" / "claude" / "projects"
    )


def test_a_variable_names_other_homes(home: Path) -> None:
    environment = {
        "CLAUDE_CONFIG_DIR": str(home / "mine"),
        "CODEX_HOME": "~/no, ,~/way,",
        "GEMINI_CLI_HOME": str(home / "other"),
        "QWEN_HOME": str(home / "qwen"),
    }
    assert folders(environment, *FOUR) == [
        home / "mine" / "projects",
        home / "no" / "sessions",
        home / "no" / "archived_sessions",
        home / "way" / "sessions",
        home / "way" / "archived_sessions",
        home / "other" / ".gemini" / "tmp",
        home / "qwen" / "projects",
    ]
    moved = {**environment, "QWEN_RUNTIME_DIR": str(home / "runtime")}
    assert folders(moved, *FOUR)[-1] == home / "runtime" / "projects"


def test_each_home_of_pi_and_its_kin_has_the_sessions_of_agents(home: Path) -> None:
    kin = ("pi", "oh-my-pi", "OpenClaw")
    assert folders({}, *kin) == [
        home / ".pi" / "agent" / "sessions",
        home / ".omp" / "agent" / "sessions",
        home / ".openclaw" / "agents",
    ]
    moved = {"PI_CODING_AGENT_DIR": "~/pi", "OPENCLAW_STATE_DIR": "~/claw"}
    assert folders(moved, "pi", "OpenClaw") == [home / "pi" / "sessions", home / "claw" / "agents"]


def test_a_folder_with_a_comma_in_its_name_is_one(home: Path) -> None:
    (home / "yours, mine").mkdir()
    environment = {"CLAUDE_CONFIG_DIR": str(home / "yours, mine")}
    assert folders(environment, *FOUR)[0] == home / "yours, mine" / "projects"


def test_a_folder_with_two_names_counts_once(home: Path) -> None:
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".config").mkdir()
    (home / ".config" / "claude").symlink_to(home / ".claude")
    names = [folder.parent.name for folder in transcript_folders({})]
    assert (names.count(".claude"), names.count("claude")) == (1, 0)
