"""`contextgauge hook threshold`: a command and a word to the agent, once for each crossing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streams.cli.hook_memory import HookMemory
from tests.commands import Command, command_environment
from tests.patience import PATIENCE_S

SESSION = "258c7280-ae70-4798-800f-63464d01a85d"


class Session:
    """A session of a window of 200,000 tokens, and its hooks."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._command, self._state = command, str(folder / "state")
        self.path = folder / f"{SESSION}.jsonl"
        self.ran = folder / "ran"
        self._responses = 0

    def fill(self, tokens: int) -> None:
        """Add a response of this size."""
        self._responses += 1
        usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 10}
        number = self._responses
        message = {"id": f"msg_{number}", "model": "claude-sonnet-4-5", "usage": usage}
        line = {"type": "assistant", "sessionId": SESSION, "uuid": str(number), "message": message}
        self._add(line)

    def compact(self) -> None:
        """Add a compaction's boundary."""
        self._add({"type": "system", "subtype": "compact_boundary", "sessionId": SESSION})

    def given(self, event: str = "PostToolUse") -> str:
        """Return what Claude Code passes."""
        given = {"session_id": SESSION, "transcript_path": str(self.path)}
        return json.dumps(given | {"hook_event_name": event, "cwd": "/srv"})

    def hook(self, *options: str, event: str = "PostToolUse") -> tuple[str | None, str]:
        """Run the hook; return what the agent reads, and what was reported."""
        done = self._command(
            "hook", "threshold", *options, stdin=self.given(event), STATE_FOLDER=self._state
        )
        assert done.returncode == 0, done.stderr
        if not done.stdout:
            return None, done.stderr
        output = json.loads(done.stdout)["hookSpecificOutput"]
        assert output["hookEventName"] == event
        return output["additionalContext"], done.stderr

    def runs(self) -> list[str]:
        """Return what the command was given, each time."""
        return self.ran.read_text().split() if self.ran.exists() else []

    def _add(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(f"{json.dumps(line)}\n")


@pytest.fixture
def session(command: Command, tmp_path: Path) -> Session:
    return Session(command, tmp_path)


@pytest.mark.extended
def test_it_runs_and_tells_once_for_each_crossing(session: Session) -> None:
    options = ("--at", "80", "--run", f"echo $HOOK_USED_PERCENT >> {session.ran}")
    session.fill(150_000)
    assert session.hook(*options) == (None, "")
    session.fill(164_000)
    text, _ = session.hook(*options)
    assert text is not None
    assert text.startswith("Your context window is 82 % (164,000 of 200,000 tokens) full; the user")
    assert session.hook(*options) == (None, "")
    session.fill(165_000)
    assert session.hook(*options) == (None, "")
    assert session.runs() == ["82.0"]
    session.compact()
    assert session.hook(*options) == (None, "")
    session.fill(30_000)
    assert session.hook(*options) == (None, "")
    session.fill(170_000)
    text, _ = session.hook(*options)
    assert text is not None
    assert "170,000" in text
    assert session.runs() == ["82.0", "85.0"]


def test_of_hooks_that_run_at_once_one_finds_each_crossing(tmp_path: Path) -> None:
    script = """
import sys
from streams.cli.hook_memory import HookMemory
memory = HookMemory("ran 80 x", "s")
sys.stdin.readline()
found = 0
for cycle in range(300):
    # Some hooks still have figures from before the compaction, or from before the crossing.
    for as_of_ms, is_above in ((10, False), (20, True), (10, False), (20, True), (30, False)):
        found += memory.crosses(is_above=is_above, as_of_ms=100 * cycle + as_of_ms)
print(found)
"""
    hooks = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=command_environment({"STATE_FOLDER": str(tmp_path)}),
        )
        for _ in range(4)
    ]
    for hook in hooks:
        assert hook.stdin is not None
        hook.stdin.write("\n")
        hook.stdin.flush()
    crossings = [int(hook.communicate(timeout=PATIENCE_S)[0]) for hook in hooks]
    assert sum(crossings) == 300


def test_figures_of_before_a_crossing_do_not_make_it_happen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGAUGE_STATE_FOLDER", str(tmp_path))
    memory = HookMemory("ran 80 x", "s")
    assert not memory.crosses(is_above=False, as_of_ms=10)
    assert memory.crosses(is_above=True, as_of_ms=20)
    assert not memory.crosses(is_above=False, as_of_ms=10), "a hook that was slower"
    assert not memory.crosses(is_above=True, as_of_ms=20)
    assert not memory.crosses(is_above=True, as_of_ms=25)
    assert not memory.crosses(is_above=False, as_of_ms=30)
    assert memory.crosses(is_above=True, as_of_ms=40)


def test_of_several_thresholds_the_highest_that_is_crossed_counts(session: Session) -> None:
    options = ["--at", "50", "--at", "70", "--at", "90"]
    options += ["--run", f"echo $HOOK_AT_PERCENT >> {session.ran}"]
    session.fill(150_000)
    text, _ = session.hook(*options)
    assert text is not None
    assert "a mark at 70 %" in text
    session.fill(185_000)
    session.hook(*options)
    assert session.runs() == ["70.0", "90.0"]


@pytest.mark.extended
def test_at_an_event_that_cannot_tell_the_agent_the_next_one_does(session: Session) -> None:
    session.fill(170_000)
    options = ("--at", "80", "--run", f"echo ran >> {session.ran}")
    assert session.hook(*options, event="Stop") == (None, "")
    assert session.hook(*options, event="UserPromptSubmit")[0] is not None
    assert session.runs() == ["ran"]


def test_only_the_command_runs_where_the_user_does_not_want_the_agent_to_know(
    session: Session,
) -> None:
    session.fill(170_000)
    options = ("--at", "80", "--no-tell")
    assert session.hook(*options, "--run", f"cat > {session.ran}") == (None, "")
    document = json.loads(session.ran.read_text())
    assert document == {
        "session_id": SESSION,
        "used_percent": 85.0,
        "used_tokens": 170_000,
        "window_tokens": 200_000,
        "at_percent": 80.0,
        "tokens_until_compaction": document["tokens_until_compaction"],
        "transcript_path": str(session.path),
        "cwd": "/srv",
        "hook_event_name": "PostToolUse",
    }
    assert "does nothing" in session.hook(*options)[1]


@pytest.mark.extended
def test_of_several_hooks_at_once_one_fires(session: Session, tmp_path: Path) -> None:
    session.fill(170_000)
    environment = command_environment({"STATE_FOLDER": str(tmp_path / "state")})
    run = f"echo ran >> {session.ran}"
    arguments = ["hook", "threshold", "--at", "80", "--run", run]
    hooks = [
        subprocess.Popen(
            [sys.executable, "-m", "streams", *arguments],
            cwd=Path(__file__).parents[2],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for each in hooks:
        assert each.stdin is not None
        each.stdin.write(session.given())
        each.stdin.close()
        each.stdin = None
    outputs = [each.communicate(timeout=PATIENCE_S)[0] for each in hooks]
    assert sum(map(bool, outputs)) == 1
    assert session.runs() == ["ran"]


def test_what_the_command_prints_is_not_read_by_the_runtime(session: Session) -> None:
    session.fill(170_000)
    text, error = session.hook("--at", "80", "--run", 'echo \'{"decision": "block"}\'; exit 3')
    assert text is not None
    assert '{"decision": "block"}\n' in error
    assert "the command of --run ended with exit code 3" in error


@pytest.mark.extended
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "it is no JSON object"),
        ("{}", "it has no session_id"),
        ('{"session_id": "s"}', "it has no transcript_path"),
        ('{"session_id": "s", "transcript_path": "/nowhere/x.jsonl"}', "no such file"),
    ],
)
def test_wrong_input_is_reported_and_is_harmless(
    command: Command, tmp_path: Path, given: str, why: str
) -> None:
    done = command(
        "hook", "threshold", "--at", "80", stdin=given, STATE_FOLDER=str(tmp_path / "state")
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("contextgauge hook threshold: ")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_state_folder_that_cannot_be_written_is_reported(
    command: Command, tmp_path: Path, session: Session
) -> None:
    session.fill(170_000)
    (tmp_path / "file").touch()
    done = command(
        "hook",
        "threshold",
        "--at",
        "80",
        stdin=session.given(),
        STATE_FOLDER=str(tmp_path / "file"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert os.strerror(20) in done.stderr
