"""`contextgauge install`: settings of runtimes get hooks, status line and MCP server, and back."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.install_kit import CONFIG, SETTINGS, commands_of, files_of, settings_of
from tests.cli.terminal_kit import Terminal
from tests.commands import Command

RUNTIMES = ("claude-code", "codex", "gemini", "qwen-code")


@pytest.mark.extended
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_installed_once_is_installed_and_undone(
    command: Command, home: Path, runtime: str
) -> None:
    before = files_of(home)
    done = command("install", runtime, "--yes")
    assert (done.returncode, done.stdout) == (0, "")
    installed = files_of(home)
    assert installed != before
    again = command("install", runtime, "--yes")
    assert "installed already" in again.stderr
    assert files_of(home) == installed
    assert command("install", runtime, "--undo", "--yes").returncode == 0
    assert files_of(home) == before
    nothing = command("install", runtime, "--undo", "--yes")
    assert (nothing.returncode, "nothing that was installed" in nothing.stderr) == (1, True)


def test_claude_code_gets_status_line_hooks_and_server(command: Command, home: Path) -> None:
    shown = command("install", "claude-code", "--yes").stderr
    settings, state = settings_of(home, ".claude/settings.json"), settings_of(home, ".claude.json")
    assert settings["statusLine"]["command"].endswith(" statusline")
    assert commands_of(settings, "PreCompact") == ["own", "hook compaction"]
    assert commands_of(settings, "PostCompact") == ["hook compaction"]
    assert "PostToolUse" not in settings["hooks"]
    server = state["mcpServers"]["contextgauge"]
    assert (server["type"], server["args"][-1]) == ("stdio", "mcp")
    assert state["mcpServers"]["other"] == {"command": "x"}
    command_line = f'"command": "{settings["statusLine"]["command"]}"'
    assert any(line.startswith("+") and command_line in line for line in shown.splitlines())
    assert "contextgauge install claude-code --undo" in shown


def test_codex_keeps_its_comments(command: Command, home: Path) -> None:
    command("install", "codex", "--yes", "--at", "80")
    text = (home / ".codex" / "config.toml").read_text()
    assert text.startswith(CONFIG)
    servers = tomllib.loads(text)["mcp_servers"]
    assert servers["contextgauge"]["args"][-1] == "mcp"
    hooks = settings_of(home, ".codex/hooks.json")
    assert list(hooks) == ["hooks"]
    assert commands_of(hooks, "PostToolUse") == ["hook threshold --at 80"]


def test_gemini_gets_the_hooks_that_it_has(command: Command, home: Path) -> None:
    command("install", "gemini", "--yes", "--at", "75")
    settings = settings_of(home, ".gemini/settings.json")
    assert "PreCompress" not in settings["hooks"]
    assert commands_of(settings, "BeforeAgent") == ["hook threshold --at 75"]
    assert set(settings["mcpServers"]) == {"other", "contextgauge"}


def test_qwen_code_gets_both_hooks_of_a_compaction(command: Command, home: Path) -> None:
    command("install", "qwen-code", "--yes", "--at", "75")
    settings = settings_of(home, ".qwen/settings.json")
    assert commands_of(settings, "PreCompact") == ["hook compaction"]
    assert commands_of(settings, "PostCompact") == ["hook compaction"]
    assert commands_of(settings, "PostToolUse") == ["hook threshold --at 75"]
    assert set(settings["mcpServers"]) == {"contextgauge"}


@pytest.mark.extended
def test_another_percentage_replaces_the_hook(command: Command, home: Path) -> None:
    before = files_of(home)
    command("install", "claude-code", "--yes", "--at", "80")
    command("install", "claude-code", "--yes", "--at", "90")
    settings = settings_of(home, ".claude/settings.json")
    assert commands_of(settings, "UserPromptSubmit") == ["hook threshold --at 90"]
    command("install", "claude-code", "--yes", "--undo")
    assert files_of(home) == before


@pytest.mark.extended
def test_parts_come_and_go_alone(command: Command, home: Path) -> None:
    before = files_of(home)
    command("install", "claude-code", "--yes", "--only", "mcp")
    assert settings_of(home, ".claude/settings.json") == SETTINGS
    command("install", "claude-code", "--yes", "--only", "status-line", "--only", "hooks")
    command("install", "claude-code", "--yes", "--undo", "--only", "status-line")
    settings = settings_of(home, ".claude/settings.json")
    assert "statusLine" not in settings
    assert commands_of(settings, "PostCompact") == ["hook compaction"]
    command("install", "claude-code", "--yes", "--undo")
    assert files_of(home) == before
    refused = command("install", "codex", "--only", "status-line", "--yes")
    assert (refused.returncode, "codex has no status-line" in refused.stderr) == (2, True)


def test_what_others_changed_meanwhile_stays(command: Command, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    own_line = {"type": "command", "command": "mine"}
    path.write_text(json.dumps(SETTINGS | {"statusLine": own_line}))
    command("install", "claude-code", "--yes")
    settings = json.loads(path.read_text())
    settings["hooks"]["PreCompact"][1]["hooks"].append({"type": "command", "command": "later"})
    settings["model"] = "sonnet"
    path.write_text(json.dumps(settings))
    command("install", "claude-code", "--undo", "--yes")
    settings = json.loads(path.read_text())
    assert settings["statusLine"] == own_line
    assert settings["model"] == "sonnet"
    assert commands_of(settings, "PreCompact") == ["own", "later"]
    assert "PostCompact" not in settings["hooks"]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("runtime", "path", "text"),
    [
        ("claude-code", ".claude/settings.json", "// mine\n{}"),
        ("claude-code", ".claude.json", "{"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}'),
        ("claude-code", ".claude/settings.json", '{"hooks": {"PreCompact": {}}}'),
        ("codex", ".codex/config.toml", "[a"),
        ("codex", ".codex/hooks.json", "[]"),
    ],
)
def test_a_file_that_is_not_understood_is_named_and_nothing_is_written(
    command: Command, home: Path, runtime: str, path: str, text: str
) -> None:
    (home / path).write_text(text)
    before = files_of(home)
    done = command("install", runtime, "--yes")
    assert done.returncode == 2
    assert str(home / path) in done.stderr
    assert "nothing was changed" in done.stderr
    assert files_of(home) == before


def test_without_a_terminal_consent_is_an_option(command: Command, home: Path) -> None:
    before = files_of(home)
    done = command("install", "claude-code")
    assert (done.returncode, "pass --yes" in done.stderr) == (2, True)
    assert files_of(home) == before


@pytest.mark.parametrize(("answer", "is_installed"), [("y", True), ("n", False)])
def test_on_a_terminal_it_asks(home: Path, answer: str, is_installed: bool) -> None:
    terminal = Terminal(100, 20, ["install", "gemini"], {})
    try:
        terminal.wait(lambda text: "Write this? [y/N]" in text)
        terminal.press(f"{answer}\r")
        assert terminal.end() == (0 if is_installed else 1)
    finally:
        terminal.close()
    assert ("contextgauge" in (home / ".gemini" / "settings.json").read_text()) == is_installed


def test_what_others_write_while_it_asks_is_kept(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    options = ["install", "claude-code", "--only", "status-line"]
    for undo in (False, True):
        terminal = Terminal(100, 20, [*options, *(["--undo"] if undo else [])], {})
        try:
            terminal.wait(lambda text: "Write this? [y/N]" in text)
            path.write_text(json.dumps(json.loads(path.read_text()) | {"meanwhile": undo}))
            terminal.press("y\r")
            assert terminal.end() == 0
        finally:
            terminal.close()
        written = json.loads(path.read_text())
        assert written["meanwhile"] == undo
        assert ("statusLine" in written) == (not undo)


def test_a_status_line_that_is_set_while_it_asks_is_not_replaced(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    terminal = Terminal(100, 20, ["install", "claude-code", "--only", "status-line"], {})
    try:
        terminal.wait(lambda text: "Write this? [y/N]" in text)
        path.write_text('{"statusLine": {"type": "command", "command": "other"}}')
        terminal.press("y\r")
        assert terminal.end() == 1
        assert "changed meanwhile: nothing was written" in "".join(terminal.text.split("\n"))
    finally:
        terminal.close()
    assert json.loads(path.read_text())["statusLine"]["command"] == "other"


@pytest.mark.extended
def test_folders_of_the_environment_are_heeded(command: Command, home: Path) -> None:
    command.environment |= {
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "CODEX_HOME": str(home / "codex"),
        "GEMINI_CLI_HOME": str(home / "gemini"),
        "QWEN_HOME": str(home / "qwen"),
        "QWEN_RUNTIME_DIR": str(home / "runs"),
    }
    before = files_of(home)
    for runtime in RUNTIMES:
        assert command("install", runtime, "--yes").returncode == 0
    written = {
        "claude/settings.json",
        "claude/.claude.json",
        "codex/config.toml",
        "codex/hooks.json",
        "gemini/.gemini/settings.json",
        "qwen/settings.json",
    }
    backups = {f"{name}.before-contextgauge" for name in written}
    assert files_of(home).keys() - before.keys() == written | backups


@pytest.mark.extended
def test_the_installed_commands_run_from_any_folder(command: Command, home: Path) -> None:
    command("install", "claude-code", "--yes", "--at", "80")
    settings = settings_of(home, ".claude/settings.json")
    hooks = [group["hooks"][-1] for event in settings["hooks"].values() for group in event]
    for each in [settings["statusLine"], *hooks]:
        if each["command"] == "own":
            continue
        assert each["command"].startswith(f"{sys.executable} -m streams ")
        done = subprocess.run(
            ["sh", "-c", each["command"]],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"NO_COLOR": "1"},
            input="{}",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_without_the_sdk_the_server_is_left_out(home: Path) -> None:
    script = (
        "import sys, importlib.util as util\n"
        "util.find_spec = lambda name: None\n"
        "sys.argv = ['contextgauge', 'install', 'claude-code', '--yes', *sys.argv[1:]]\n"
        "from streams.__main__ import main\n"
        "main()\n"
    )
    for options, code in ((("--only", "mcp"), 2), ((), 0)):
        done = subprocess.run(
            [sys.executable, "-c", script, *options],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "install 'contextgauge[pipeline,mcp]'" in done.stderr
    assert "contextgauge" not in (home / ".claude.json").read_text()
    assert "contextgauge" in (home / ".claude" / "settings.json").read_text()
