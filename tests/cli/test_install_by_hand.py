"""`contextgauge install` keeps what a person wrote, also where it is of contextgauge."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from contextgauge.errors import ConfigError
from streams.cli.install.install_command import install
from streams.cli.install.runtimes import InstallPart
from streams.edge.files.settings_document import Settings, SettingsDocument
from tests.cli.install_kit import CONFIG, SETTINGS, commands_of, files_of, settings_of
from tests.commands import Command

LINE = {"type": "command", "command": "contextgauge statusline --verbose"}
HOOK = {"type": "command", "command": "contextgauge hook threshold --at 90 --run ./save.sh"}
OWN = {"type": "command", "command": "own"}
SERVER = {"command": "contextgauge", "args": ["mcp", "--url", "http://x", "--write"], "env": {}}
BY_HAND = {
    "statusLine": LINE,
    "hooks": {"UserPromptSubmit": [{"hooks": [HOOK]}, {"matcher": "x", "hooks": [OWN]}]},
    "mcpServers": {"contextgauge": SERVER},
}
INSTALL = ("install", "claude-code", "--yes")
SHORT = {
    "statusLine": {"type": "command", "command": "contextgauge statusline"},
    "hooks": {
        "PreCompact": [{"hooks": [{"type": "command", "command": "contextgauge hook compaction"}]}]
    },
}


def write(path: Path, settings: Any) -> None:
    """Write settings."""
    path.write_text(json.dumps(settings, indent=1))


@pytest.mark.extended
@pytest.mark.parametrize("written", [BY_HAND, SHORT])
def test_entries_that_were_written_by_hand_come_back(
    command: Command, home: Path, written: dict[str, Any]
) -> None:
    for name in (".claude/settings.json", ".claude.json"):
        write(home / name, written)
    before = files_of(home)
    command(*INSTALL, "--at", "80")
    settings = settings_of(home, ".claude/settings.json")
    assert settings["statusLine"]["command"].endswith("-m streams statusline")
    assert commands_of(settings, "UserPromptSubmit")[-1] == "hook threshold --at 80"
    assert (home / ".claude" / "settings.json.before-contextgauge").exists()
    command(*INSTALL, "--undo")
    assert files_of(home) == before


def test_entries_by_hand_come_back_into_what_was_changed_since(
    command: Command, home: Path
) -> None:
    path = home / ".claude" / "settings.json"
    write(path, BY_HAND)
    command(*INSTALL, "--at", "80")
    settings = json.loads(path.read_text())
    settings["hooks"]["UserPromptSubmit"].insert(0, {"hooks": [{"command": "later"}]})
    write(path, settings)
    command(*INSTALL, "--undo")
    hooks = json.loads(path.read_text())["hooks"]["UserPromptSubmit"]
    assert [hook for group in hooks for hook in group["hooks"]] == [{"command": "later"}, OWN, HOOK]


def test_a_hook_that_is_added_by_hand_later_stays(command: Command, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    command(*INSTALL, "--at", "80")
    settings = json.loads(path.read_text())
    settings["hooks"]["UserPromptSubmit"].append({"hooks": [HOOK]})
    write(path, settings)
    command(*INSTALL, "--undo")
    assert json.loads(path.read_text())["hooks"]["UserPromptSubmit"] == [{"hooks": [HOOK]}]
    assert not path.with_name("settings.json.before-contextgauge").exists()


def test_undo_without_an_install_takes_nothing_that_a_person_wrote(
    command: Command, home: Path
) -> None:
    for name in (".claude/settings.json", ".claude.json"):
        write(home / name, BY_HAND)
    before = files_of(home)
    done = command(*INSTALL, "--undo")
    assert (done.returncode, "nothing that was installed" in done.stderr) == (1, True)
    assert files_of(home) == before


def test_undo_without_a_copy_takes_out_what_install_writes_and_keeps_the_file(
    command: Command, home: Path
) -> None:
    path = home / ".claude" / "settings.json"
    path.unlink()
    command(*INSTALL, "--at", "80")
    backup = path.with_name("settings.json.before-contextgauge")
    assert backup.read_text() == ""
    backup.unlink()
    command(*INSTALL, "--undo", "--only", "hooks")
    assert not backup.exists()
    command(*INSTALL, "--undo")
    assert json.loads(path.read_text()) == {}


def test_a_file_that_was_empty_is_not_deleted(command: Command, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.write_text("")
    command(*INSTALL)
    command(*INSTALL, "--undo")
    assert path.read_text().strip() == ""


def test_a_hook_at_a_threshold_is_known_without_its_percentage(
    command: Command, home: Path
) -> None:
    path = home / ".claude" / "settings.json"
    command(*INSTALL, "--at", "80.5", "--only", "hooks")
    settings = json.loads(path.read_text())
    for event in ("PreCompact", "PostCompact"):
        del settings["hooks"][event]
    write(path, settings)
    command(*INSTALL, "--only", "status-line")
    command(*INSTALL, "--undo")
    assert json.loads(path.read_text()) == SETTINGS | {"hooks": {}}


@pytest.mark.extended
@pytest.mark.parametrize(
    "newer", [{"type": "command", "command": "newer"}, LINE], ids=["other", "with an option"]
)
def test_undo_brings_back_the_status_line_that_was_replaced_last(
    command: Command, home: Path, newer: dict[str, str]
) -> None:
    path = home / ".claude" / "settings.json"
    write(path, {"statusLine": OWN, "model": "m"})
    command(*INSTALL)
    settings = json.loads(path.read_text())
    settings["statusLine"] = newer
    settings["hooks"]["UserPromptSubmit"] = [{"hooks": [HOOK]}]
    write(path, settings)
    command(*INSTALL, "--at", "80")
    command(*INSTALL, "--undo")
    assert json.loads(path.read_text()) == {
        "statusLine": newer,
        "model": "m",
        "hooks": {"UserPromptSubmit": [{"hooks": [HOOK]}]},
    }


def test_a_link_to_a_file_of_another_name_is_toml(command: Command, home: Path) -> None:
    link, target = home / ".codex" / "config.toml", home / "codex-config"
    link.rename(target)
    link.symlink_to(target)
    done = command("install", "codex", "--yes")
    assert (done.returncode, link.is_symlink()) == (0, True)
    assert target.read_text().startswith(CONFIG)
    assert "contextgauge" in tomllib.loads(target.read_text())["mcp_servers"]
    command("install", "codex", "--yes", "--undo")
    assert target.read_text() == CONFIG


@pytest.mark.parametrize("only", [(), ("--only", "mcp")])
def test_settings_that_would_move_into_our_table_are_left_as_they_are(
    command: Command, home: Path, only: tuple[str, ...]
) -> None:
    text = 'mcp_servers.a.command = "x"\nk = 1\n'
    (home / ".codex" / "config.toml").write_text(text)
    before = files_of(home)
    done = command("install", "codex", "--yes", *only)
    assert done.returncode == 2
    assert "nothing was changed. By hand, add this:" in done.stderr
    assert "[mcp_servers.contextgauge]" in done.stderr
    assert files_of(home) == before


def test_what_is_written_while_it_writes_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["contextgauge"])
    write(home / ".claude.json", {"count": 0})
    before = files_of(home)
    count = 0
    with_settings = SettingsDocument.with_settings

    def computed(document: SettingsDocument, settings: Settings) -> bytes:
        nonlocal count
        text = with_settings(document, settings)
        if document.path.name == ".claude.json":
            count += 1
            write(document.path, {"count": count})
        return text

    monkeypatch.setattr(SettingsDocument, "with_settings", computed)
    parts = [InstallPart.status_line, InstallPart.mcp]
    with pytest.raises(ConfigError, match=r"\.claude\.json was changed meanwhile: run this again"):
        install("claude-code", only=parts, yes=True)
    assert count
    assert files_of(home) == before | {".claude.json": json.dumps({"count": count}, indent=1)}
