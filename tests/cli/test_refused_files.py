"""What is no transcript: refused by every command before it begins, with the reason."""

from pathlib import Path

import pytest

from tests.commands import Command

COMMANDS = (
    *(["replay"], ["status"], ["events"], ["sessions"], ["view", "--port", "0"]),
    *(["publish"], ["publish", "--follow"]),
)


@pytest.mark.extended
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            '{"kind":"note","text":"a"}',
            "its first JSON object has the fields kind, text. con",
        ),
        (
            '{"type":"tool_call","call_id":"c","tool_call":{},"session_id":"s"}',
            "this is a Cursor CLI session, which contextgauge does",
        ),
    ],
    ids=["unknown", "not read"],
)
def test_every_command_refuses_what_is_not_read_before_it_begins(
    command: Command, tmp_path: Path, arguments: list[str], line: str, shown: str
) -> None:
    """Without a broker: nothing waits for one."""
    path = tmp_path / "notes.jsonl"
    path.write_text(f"{line}\n")
    done = command(*arguments, str(path))
    assert done.returncode != 0
    assert done.stdout == ""
    assert f"{path}: " in done.stderr
    assert shown in done.stderr


def test_an_empty_file_is_named_as_such(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    done = command("status", str(path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"contextgauge: {path} has no session: it is empty\n"


@pytest.mark.extended
def test_a_file_that_is_no_transcript_is_refused(command: Command) -> None:
    readme = Path(__file__).parents[2] / "README.md"
    lines = sum(bool(line.strip()) for line in readme.read_text().splitlines())
    for arguments in (["replay"], ["replay", "--view"], ["status"], ["events"], ["sessions"]):
        done = command(*arguments, str(readme))
        assert (done.returncode, done.stdout) == (1, "")
        errors = done.stderr.splitlines()
        assert len(errors) == 5
        assert errors[0] == f"{readme}:1: not JSON"
        assert errors[3].startswith(f"{lines} could not be derived: the first 3 are above")
        assert errors[4].endswith(
            f"no line (of {lines}) could be derived: this does not look like a transcript"
        )


def test_the_only_line_of_several_files_is_called_one(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "bad.jsonl").write_text("x\n")
    done = command("sessions", str(tmp_path))
    assert "a.jsonl and 1 other file: no line (of 1) could be derived: " in done.stderr
