"""Sessions of this machine by their ids, in the commands that take one."""

import json
from pathlib import Path

import pytest

from tests.cli.test_fork import LINES, PROJECT, SESSION, copied, run
from tests.edge.follower_kit import add


@pytest.fixture
def transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session where its runtime keeps it, of someone without a pipeline."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CONTEXTGAUGE_REDIS_URL", raising=False)
    path = tmp_path / PROJECT / f"{SESSION}.jsonl"
    add(path, *map(json.dumps, LINES))
    return path


OTHER = f"{SESSION[:-2]}bb"


@pytest.mark.parametrize(
    "arguments",
    [
        ("checkpoints", "PATH", "--session", "5"),
        ("fork", "PATH", "1", "--session", "5"),
        ("share", "PATH", "--session", "5"),
        ("autopsy", "PATH", "--session", "5"),
        ("checkpoints", "5"),
        ("share", "5"),
        ("status", "5"),
        ("events", "5"),
    ],
)
def test_the_beginning_of_several_ids_is_refused_with_the_ids(
    transcript: Path, arguments: tuple[str, ...]
) -> None:
    add(transcript.with_name(f"{OTHER}.jsonl"), *copied(OTHER, LINES))
    done = run(*(str(transcript.parent) if each == "PATH" else each for each in arguments))
    several = f"2 sessions begin with '5': give more of the id ({SESSION}, {OTHER})"
    assert str(done.exception) == several


@pytest.mark.parametrize("name", ["", "none"])
@pytest.mark.parametrize("command", ["checkpoints", "share", "status", "events"])
@pytest.mark.usefixtures("transcript")
def test_what_names_no_session_is_refused_though_there_is_but_one(command: str, name: str) -> None:
    error = str(run(command, name).exception)
    assert ("no session on this machine begins" if name else "an empty name") in error


@pytest.mark.parametrize(
    "command", [("checkpoints",), ("fork", "1"), ("share", "--yes"), ("status",), ("events",)]
)
def test_a_session_is_found_in_a_file_that_is_not_named_by_its_id(
    transcript: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(transcript.parent)
    transcript.rename(transcript.with_name("session.jsonl"))
    name, *options = command
    done = run(name, SESSION[:8], *options)
    assert done.exit_code == 0, done.output
