"""Claude Code's settings: the status line is added and taken out, and nothing else changes."""

import json
import stat
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError, StopError
from streams.edge.files.claude_settings import ClaudeSettings, settings_path

COMMAND = "/opt/bin/contextgauge statusline"
OWN = '{\n    "model": "opus",\n    "statusLine": {"type": "command", "command": "mine"},\n "x": 1}'


def test_the_folder_is_that_of_claude_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_path({}) == tmp_path / ".claude" / "settings.json"
    own = {"CLAUDE_CONFIG_DIR": str(tmp_path / "own")}
    assert settings_path(own) == tmp_path / "own" / "settings.json"


def test_everything_else_stays_and_the_file_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    path.chmod(0o600)
    ClaudeSettings(path).install(COMMAND)
    settings = json.loads(path.read_text())
    assert settings == {
        "model": "opus",
        "statusLine": {"type": "command", "command": COMMAND},
        "x": 1,
    }
    assert list(settings) == ["model", "statusLine", "x"]
    assert path.read_text().startswith('{\n    "model"')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    installed = ClaudeSettings(path)
    assert installed.backup.read_text() == OWN
    assert (installed.has_ours, installed.former_command) == (True, "mine")
    installed.uninstall()
    assert path.read_text() == OWN
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_what_was_changed_in_between_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    ClaudeSettings(path).install(COMMAND)
    changed = json.loads(path.read_text()) | {"x": 2, "y": "ü"}
    path.write_text(json.dumps(changed))
    ClaudeSettings(path).uninstall()
    expected = {"model": "opus", "statusLine": {"type": "command", "command": "mine"}}
    assert json.loads(path.read_text()) == expected | {"x": 2, "y": "ü"}


def test_a_second_installation_keeps_the_first_copy(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    ClaudeSettings(path).install(COMMAND)
    ClaudeSettings(path).install("/elsewhere/contextgauge statusline")
    ClaudeSettings(path).uninstall()
    assert path.read_text() == OWN


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    ClaudeSettings(path).install(COMMAND)
    assert json.loads(path.read_text()) == {"statusLine": {"type": "command", "command": COMMAND}}
    ClaudeSettings(path).uninstall()
    assert not path.exists()


@pytest.mark.parametrize("text", ['{"a": "\\ud800 \\u001b"}', '{"\\udfff": "ü \\ud83d\\ude00"}'])
def test_half_characters_stay_what_they_are(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    ClaudeSettings(path).install(COMMAND)
    installed = json.loads(path.read_bytes().decode())
    assert installed.pop("statusLine")["command"] == COMMAND
    assert installed == json.loads(text)
    ClaudeSettings(path).uninstall()
    assert path.read_text() == text


def test_a_number_that_json_has_no_word_for_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"f": 1e999}')
    with pytest.raises(ConfigError, match="a number is too large: nothing was changed"):
        ClaudeSettings(path).install(COMMAND)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [
        ("settings.json", '{"f": 1e999}')
    ]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    ClaudeSettings(link).install(COMMAND)
    assert link.is_symlink()
    assert json.loads(target.read_text())["statusLine"]["command"] == COMMAND


def test_another_status_line_is_not_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(OWN)
    with pytest.raises(StopError, match="nothing to undo"):
        ClaudeSettings(path).uninstall()
    assert path.read_text() == OWN


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("contextgauge statusline", True),
        ("'/a b/contextgauge' statusline --verbose", True),
        ("/usr/bin/python3 -m streams statusline", True),
        ("other statusline", False),
        ("contextgauge sessions", False),
        ("'", False),
    ],
)
def test_own_commands_are_recognised(tmp_path: Path, command: str, is_ours: bool) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"statusLine": {"type": "command", "command": command}}))
    assert ClaudeSettings(path).has_ours == is_ours


@pytest.mark.parametrize("text", ["{", "[1]", "// comment\n{}"])
def test_a_file_that_is_not_understood_is_not_changed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="nothing was changed"):
        ClaudeSettings(path)
    assert path.read_text() == text
