"""The runtimes' own settings on this machine, as the commands show them."""

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.core.given import assistant, line

MODEL = "claude-opus-4-7"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "DISABLE_AUTO_COMPACT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")


def transcript(home: Path) -> str:
    body = line(
        assistant("a", read=100_000, model=MODEL, at=1), version="2.1.332", cwd=str(home / "p")
    )
    path = home / "t.jsonl"
    write(path, body)
    return str(path)


def test_status_and_sessions_show_the_settings_of_the_sessions_folder(
    home: Path, command: Command
) -> None:
    write(home / ".claude" / "settings.json", {"autoCompactWindow": 300_000})
    path = transcript(home)
    shown = " ".join(command("status", path).stdout.split())
    assert "Compacts in 167,000 tokens · from ~/.claude/settings.json" in shown
    write(home / "p" / ".claude" / "settings.local.json", {"autoCompactWindow": 400_000})
    shown = " ".join(command("status", path).stdout.split())
    assert "Compacts in 267,000 tokens · from ~/p/.claude/settings.local.json" in shown
    (session,) = json.loads(command("sessions", path, "--json").stdout)
    (until,) = session["status"]["until_compaction"].values()
    assert (until["source"], until["setting"]) == ("settings", "~/p/.claude/settings.local.json")


def test_status_shows_which_setting_switches_compaction_off(home: Path, command: Command) -> None:
    write(home / ".claude.json", {"autoCompactEnabled": False})
    shown = " ".join(command("status", transcript(home)).stdout.split())
    assert "Compaction off · from ~/.claude.json" in shown
    assert "more until compaction" not in shown
