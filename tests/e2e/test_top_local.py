"""`contextgauge top` without Redis: over the transcripts of this machine, or of paths."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streams import wiring
from streams.cli.top.top_command import top
from streams.settings import Settings
from tests.cli.terminal_kit import Terminal
from tests.commands import Command
from tests.e2e.view_kit import View
from tests.edge.follower_kit import add
from tests.flow.local_view_kit import write_sample

pytestmark = pytest.mark.extended

Open = Callable[..., Terminal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A projects folder with a dozen sessions of all runtimes."""
    return write_sample(tmp_path / "projects")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Open terminals with a `top`: `terminal(path, ...)`. Its Redis is one that is not there."""
    opened: list[Terminal] = []

    def open_one(*arguments: str | Path, variables: Mapping[str, str] | None = None) -> Terminal:
        given = [f"{name}={value}" for name, value in (variables or {}).items()]
        made = Terminal(
            120,
            30,
            ["top", "--interval", "0.2", *map(str, arguments)],
            {"STATE_FOLDER": str(tmp_path / "state")},
            ("env", *given, sys.executable, "-m", "streams"),
        )
        opened.append(made)
        return made

    yield open_one
    for each in opened:
        each.close()


def _response(session: str, number: int, tokens: int) -> str:
    usage = {"input_tokens": tokens, "output_tokens": 10}
    message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
    line = {"type": "assistant", "sessionId": session, "uuid": f"{session}-{number}"}
    now = datetime.now(UTC).isoformat()
    return json.dumps(line | {"timestamp": now, "message": message})


def test_sessions_of_a_path_are_shown_and_followed(terminal: Open, folder: Path) -> None:
    opened = terminal(folder)
    screen = opened.wait(lambda text: "12 sessions ·" in text and "newest record" in text)
    assert "Redis" not in screen
    assert "project worker" not in screen
    lines = {path.stem[-36:][:8] for path in folder.rglob("*.jsonl") if "agent" not in path.name}
    assert len(lines & {line[:8] for line in screen.split("\n")}) >= 10
    add(folder / "new.jsonl", _response("fresh-session", 1, 50_000))
    opened.wait(lambda text: "13 sessions ·" in text and "50K/200K" in text)
    add(folder / "new.jsonl", _response("fresh-session", 2, 90_000))
    opened.wait(lambda text: "90K/200K" in text)
    opened.press("/fresh\r\r")
    opened.wait(lambda text: "Context of fresh-session" in text or "Context of fresh" in text)
    opened.press("q")
    assert opened.end() == 0
    assert opened.settings_now == opened.modes


def test_this_machines_sessions_are_those_of_its_runtimes(
    terminal: Open, folder: Path, tmp_path: Path
) -> None:
    claude = tmp_path / "claude" / "projects"
    claude.mkdir(parents=True)
    variables = {"CLAUDE_CONFIG_DIR": str(claude.parent), "CODEX_HOME": str(tmp_path / "codex")}
    opened = terminal("--local", variables=variables)
    opened.wait(lambda text: "they appear when a runtime writes a transcript" in text)
    (folder / "-srv-repo").rename(claude / "-srv-repo")
    sessions = len(list((claude / "-srv-repo").glob("*.jsonl")))
    opened.wait(lambda text: f"{sessions} sessions on this machine ·" in text)
    opened.process.send_signal(signal.SIGTERM)
    assert opened.end() == 0


def test_without_redis_the_sessions_of_this_machine_are_shown(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "claude").mkdir()
    folder.rename(tmp_path / "claude" / "projects")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    own = Settings(state_folder=str(tmp_path / "state"))
    monkeypatch.setattr(wiring, "settings", lambda: own)
    top(show_once=True)
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("contextgauge  12 sessions on this machine · ")
    assert columns.startswith("Session")
    assert len(rows) == 12


def test_one_frame_has_all_that_is_there(command: Command, folder: Path) -> None:
    first = command("top", "--once", str(folder))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("contextgauge  12 sessions · ")
    assert (
        command("top", "--once", str(folder)).stdout.splitlines()[1:]
        == (first.stdout.splitlines()[1:])
    )
    titled = command("top", "--once", "--titles", str(folder)).stdout
    assert "Title" in titled.splitlines()[1]


def test_files_without_times_are_not_live_because_they_were_just_written(
    command: Command, folder: Path
) -> None:
    for path in folder.rglob("*.jsonl"):
        os.utime(path)
    listed = json.loads(command("sessions", "--json", str(folder)).stdout)
    untimed = {view["session_id"] for view in listed if view["last_ms"] is None}
    assert 0 < len(untimed) < len(listed)
    assert {view["session_id"] for view in listed[-len(untimed) :]} == untimed
    head, _, *rows = command("top", "--once", str(folder)).stdout.splitlines()
    assert " d ago" in head
    for row in rows:
        assert row.rstrip().endswith(" unknown" if row.split()[0] in untimed else " d ago")
    for path in folder.rglob("*.jsonl"):
        if path.stem in untimed:
            lines = command("status", str(path)).stdout.splitlines()
            (active,) = [line.strip("│ ").split() for line in lines if " Active " in line]
            assert active == ["Active", "unknown"]


def test_what_cannot_be_read_is_shown(command: Command, folder: Path, terminal: Open) -> None:
    add(folder / "broken.jsonl", "no JSON")
    opened = terminal(folder)
    opened.wait(lambda text: "1 line could not be read: `contextgauge replay" in text)
    missing = command("top", "--once", str(folder / "missing"))
    assert missing.returncode == 2
    assert "no such file or folder" in missing.stderr


def test_a_view_and_a_top_of_the_same_transcripts_do_not_meet(
    terminal: Open, command: Command, folder: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    opened = terminal(folder)
    opened.wait(lambda text: "12 sessions ·" in text and "newest record" in text)
    view = View(command, state, str(folder))
    view.wait_until_read()
    assert len(view.sessions()) == 12
    other = terminal(folder)
    other.wait(lambda text: "12 sessions ·" in text and "newest record" in text)
    add(folder / "new.jsonl", _response("fresh-session", 1, 50_000))
    for each in (opened, other):
        each.wait(lambda text: "13 sessions ·" in text)
    assert len(list((state / "view").glob("*.sqlite3"))) == 3
    assert view.stop() == 0
    other.press("q")
    assert other.end() == 0
    # A copy is deleted at the end, and one whose process was killed by the next one.
    assert len(list((state / "view").glob("*.sqlite3"))) == 1
    killed = terminal(folder)
    killed.wait(lambda text: "13 sessions ·" in text and "newest record" in text)
    killed.process.kill()
    killed.end()
    assert len(list((state / "view").glob("*.sqlite3"))) == 2
    opened.press("q")
    assert opened.end() == 0
    view = View(command, state, str(folder))
    view.wait_until_read()
    assert len(view.sessions()) == 13
    assert len(list((state / "view").glob("*.sqlite3"))) == 1
    assert view.stop() == 0


def test_a_top_next_to_a_view_reads_only_what_is_new(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    """It begins with what the view has stored: else a gigabyte would be read at each start."""
    state = tmp_path / "state"
    view = View(command, state, str(folder))
    view.wait_until_read()
    done = subprocess.run(
        [sys.executable, "-c", _SPY, str(folder)],
        env=os.environ | {"CONTEXTGAUGE_STATE_FOLDER": str(state)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "12 sessions" in done.stdout
    assert done.stderr.splitlines()[-1] == "0 pieces"
    assert view.stop() == 0


_SPY = """
import sys
from streams.cli.top.top_command import top
from streams.flow.view.derivation import LocalDerivation

taken, take = [], LocalDerivation.take
LocalDerivation.take = lambda self, piece: (taken.append(piece), take(self, piece))
top([sys.argv[1]], show_once=True)
sys.stderr.write(f"{len(taken)} pieces\\n")
"""
