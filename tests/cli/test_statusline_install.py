"""`contextgauge statusline` by hand: a session by its prefix, and the installation."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streams.cli.statusline.install import own_command
from tests.cli.terminal_kit import Terminal
from tests.cli.views_kit import records_of, write_views
from tests.commands import Command

ID = "258c7280-ae70-4798-800f-63464d01a85d"


@pytest.fixture
def home(command: Command, tmp_path: Path) -> Path:
    """A home folder with one transcript of 60,000 tokens."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 59_990}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage}
    line = {"type": "assistant", "sessionId": ID, "isSidechain": False, "message": message}
    path = tmp_path / ".claude" / "projects" / "-srv" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line) + "\n")
    command.environment |= {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": ""}
    return tmp_path


@pytest.mark.usefixtures("home")
def test_a_prefix_of_an_id_stands_for_the_session(command: Command, home: Path) -> None:
    line = "claude-sonnet-4-5 ███░░░░░░░ 30% 60K/200K\n"
    for name in (ID, ID[:8], str(home / ".claude" / "projects" / "-srv" / f"{ID}.jsonl")):
        done = command("statusline", name)
        assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
    done = command("statusline", "nobody")
    assert done.stdout == "·········· unknown\n"
    assert "nobody: no such file, and no session on this machine has or begins with" in done.stderr


def test_a_prefix_of_several_ids_names_them(command: Command, home: Path) -> None:
    folder = home / ".claude" / "projects" / "-srv"
    other = ID.replace("-ae70-", "-be70-")
    (folder / f"{other}.jsonl").write_text("")
    done = command("statusline", ID[:8])
    assert (done.returncode, done.stdout) == (1, "")
    assert f"2 sessions begin with {ID[:8]!r}: give more of the id ({ID}, {other})" in done.stderr


@pytest.mark.usefixtures("home")
def test_a_prefix_of_several_sessions_in_redis_names_them(
    command: Command, redis_url: str, key_prefix: str
) -> None:
    ids = [f"0e26ec2{number}-937e-482c-b889-bc126f996913" for number in range(7)]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 59_990}
    message = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage}
    line = json.dumps({"type": "assistant", "isSidechain": False, "message": message}).encode()
    records = records_of([(line, session_id) for session_id in ids])
    asyncio.run(write_views(redis_url, key_prefix, records))
    settings = {"REDIS_URL": redis_url, "KEY_PREFIX": key_prefix}
    done = command("statusline", "0e26", **settings)
    assert (done.returncode, done.stdout) == (1, "")
    shown = ", ".join(ids[:5])
    assert f"7 sessions begin with '0e26': give more of the id ({shown}, …)" in done.stderr
    assert " 30% 60K/200K" in command("statusline", "0e26ec21", **settings).stdout
    # A prompt gets its line, whatever it asks for.
    prompt = command("statusline", stdin='{"session_id": "0e26"}', **settings)
    assert (prompt.returncode, prompt.stdout) == (0, "·········· unknown\n")


def test_the_settings_are_written_with_consent_and_restored(command: Command, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.write_text('{"model": "opus"}')
    refused = command("statusline", "--install")
    assert (refused.returncode, path.read_text()) == (2, '{"model": "opus"}')
    assert "pass --yes" in refused.stderr
    done = command("statusline", "--install", "--yes")
    assert (done.returncode, done.stdout) == (0, "")
    settings = json.loads(path.read_text())
    assert settings["model"] == "opus"
    assert settings["statusLine"]["command"].endswith(" statusline")
    assert settings["statusLine"]["command"] in done.stderr
    assert "--uninstall" in done.stderr
    assert "installed already" in command("statusline", "--install", "--yes").stderr
    assert command("statusline", "--uninstall", "--yes").returncode == 0
    assert path.read_text() == '{"model": "opus"}'
    again = command("statusline", "--uninstall", "--yes")
    assert (again.returncode, "nothing to undo" in again.stderr) == (1, True)


@pytest.mark.parametrize(("answer", "installed"), [("y", True), ("n", False)])
def test_on_a_terminal_it_asks(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, installed: bool
) -> None:
    monkeypatch.setenv("HOME", str(home))
    terminal = Terminal(100, 20, ["statusline", "--install"], {})
    try:
        terminal.wait(lambda text: "Write this? [y/N]" in text)
        terminal.press(f"{answer}\r")
        assert terminal.end() == (0 if installed else 1)
    finally:
        terminal.close()
    assert (home / ".claude" / "settings.json").exists() == installed


def test_the_installed_command_runs_from_any_folder(home: Path, tmp_path: Path) -> None:
    del home
    command = own_command("streams/__main__.py")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env=os.environ | {"NO_COLOR": "1"},
        input='{"session_id": "s"}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert command == f"{sys.executable} -m streams statusline"
    assert "unknown" in done.stdout
    assert own_command("/opt/my bin/contextgauge") == "'/opt/my bin/contextgauge' statusline"


def test_options_that_do_not_fit_are_refused(command: Command) -> None:
    both = command("statusline", "--install", "--uninstall")
    assert (both.returncode, "exclude each other" in both.stderr) == (2, True)
    for option in ("--install", "--uninstall"):
        named = command("statusline", ID, option, "--yes")
        assert (named.returncode, f"{option} takes no SESSION" in named.stderr) == (2, True)
    alone = command("statusline", "--yes")
    assert (alone.returncode, "--yes is for" in alone.stderr) == (2, True)


def test_what_others_write_while_it_asks_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    file = home / ".claude" / "settings.json"
    file.write_text('{"model": "opus"}')
    for uninstalls in (False, True):
        terminal = Terminal(
            100, 20, ["statusline", "--uninstall" if uninstalls else "--install"], {}
        )
        try:
            terminal.wait(lambda text: "Write this? [y/N]" in text)
            meanwhile = json.loads(file.read_text()) | {"hooks": {"at": uninstalls}}
            file.write_text(json.dumps(meanwhile))
            terminal.press("y\r")
            assert terminal.end() == 0
        finally:
            terminal.close()
        written = json.loads(file.read_text())
        assert written["hooks"] == {"at": uninstalls}
        assert ("statusLine" in written) == (not uninstalls)


def test_a_status_line_that_is_set_while_it_asks_is_not_replaced(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    file = home / ".claude" / "settings.json"
    terminal = Terminal(100, 20, ["statusline", "--install"], {})
    try:
        terminal.wait(lambda text: "Write this? [y/N]" in text)
        file.write_text('{"statusLine": {"type": "command", "command": "other"}}')
        terminal.press("y\r")
        assert terminal.end() == 1
        assert "changed meanwhile: nothing was written" in "".join(terminal.text.split("\n"))
    finally:
        terminal.close()
    assert json.loads(file.read_text())["statusLine"]["command"] == "other"
