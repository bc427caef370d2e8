"""The runtimes' own settings on this machine, as the commands show them."""

import json
from pathlib import Path

import pytest

from tests.commands import Command
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


@pytest.mark.extended
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


def test_the_window_that_the_status_line_was_given_is_that_of_status_and_sessions(
    home: Path, command: Command
) -> None:
    model, session_id = "a-model", "5b1f0c2e-0000-4000-8000-000000000001"
    body = line(assistant("a", read=190_000, model=model, at=1), version="2.1.332", cwd=str(home))
    write(home / "t.jsonl", body)
    path, state = str(home / "t.jsonl"), str(home / "state")
    shown = command("status", path, STATE_FOLDER=state).stdout
    assert "~200,000 tokens · assumed" in shown
    size = {"context_window_size": 1_000_000}
    given = {"session_id": session_id, "model": {"id": model}, "context_window": size}
    command("statusline", stdin=json.dumps(given), STATE_FOLDER=state)
    shown = command("status", path, STATE_FOLDER=state).stdout
    assert "1,000,000 tokens · reported" in shown
    assert "19% used" in shown
    (session,) = json.loads(command("sessions", path, "--json", STATE_FOLDER=state).stdout)
    assert session["chains"]["main"]["window"] == 1_000_000
    # Records are of the lines alone.
    assert '"window":200000' in command("replay", path, STATE_FOLDER=state).stdout


def test_the_status_line_shows_when_claude_codes_own_settings_say_so(
    home: Path, command: Command
) -> None:
    given = {"session_id": "s", "transcript_path": transcript(home), "cwd": str(home / "p" / "src")}
    text = json.dumps(given)
    assert "compacts in" not in command("statusline", stdin=text).stdout
    write(home / "p" / ".claude" / "settings.json", {"autoCompactWindow": 150_000})
    assert "compacts in 17K" in command("statusline", stdin=text).stdout
    command.environment["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "140000"
    assert "compacts in 7K" in command("statusline", stdin=text).stdout
    command.environment["DISABLE_AUTO_COMPACT"] = "1"
    assert "compacts in" not in command("statusline", stdin=text).stdout
