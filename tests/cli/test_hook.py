"""`contextgauge hook pre-compact`: the turns of users, and no compaction that is blocked."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contextgauge.compaction.messages import DigestEntry
from streams.cli import hook
from streams.cli.hook import app, instructions, user_turns
from tests.patience import PATIENCE_S

RULE = "Never change the files below vendor/."
LATER = "The tests must not need a network."


def line(kind: str, uuid: str, parent: str | None, text: str, **more: object) -> dict[str, Any]:
    message = {"role": kind, "content": text}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **more}


LINES: list[dict[str, Any]] = [
    line("user", "1", None, f"Tidy the parser up. {RULE}"),
    line("assistant", "2", "1", "You must never believe what I say."),
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "3",
        "parentUuid": None,
        "logicalParentUuid": "2",
    },
    line("user", "4", "3", "The user must never be asked again.", isCompactSummary=True),
    line("assistant", "5", "4", "Going on."),
    line("user", "6", "5", LATER),
    line("assistant", "7", "6", "I shall."),
]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in LINES) + '{"type": "us')
    return path


def given(path: Path) -> str:
    return json.dumps(
        {
            "session_id": "s",
            "transcript_path": str(path),
            "hook_event_name": "PreCompact",
            "trigger": "auto",
            "custom_instructions": None,
        }
    )


def test_turns_of_the_user_are_printed_from_before_other_compactions_too(transcript: Path) -> None:
    result = CliRunner().invoke(app, ["pre-compact"], input=given(transcript))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines()[1:] == [f"1. Tidy the parser up. {RULE}", f"2. {LATER}"]
    # A line that begins with a brace would be read as the hook's JSON.
    assert result.stdout.startswith("These are the user's turns")


def test_without_turns_nothing_is_printed(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps(line("assistant", "1", None, "Ready.")))
    result = CliRunner().invoke(app, ["pre-compact"], input=given(tmp_path / "s.jsonl"))
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no transcript_path on standard input: make it a PreCompact hook of Claude Code"),
        ('{"transcript_path": 3}', "no transcript_path on standard input"),
        (given(Path("nowhere")), "the transcript cannot be read (No such file or directory)"),
    ],
)
def test_a_failure_does_not_block_the_compaction(text: str, why: str) -> None:
    """Claude Code blocks it for exit code 2 only."""
    result = CliRunner().invoke(app, ["pre-compact"], input=text)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"contextgauge hook pre-compact: {why}")


def test_a_fault_of_ours_does_not_block_it_either(
    transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: bytes) -> tuple[DigestEntry, ...]:
        raise ZeroDivisionError("a text of the transcript")

    monkeypatch.setattr(hook, "user_turns", broken)
    result = CliRunner().invoke(app, ["pre-compact"], input=given(transcript))
    assert (result.exit_code, result.stderr) == (
        1,
        "contextgauge hook pre-compact: ZeroDivisionError\n",
    )


def test_the_installed_command_answers(transcript: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "streams", "hook", "pre-compact"],
        input=given(transcript),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert RULE in done.stdout


def test_an_empty_transcript_has_no_turns() -> None:
    assert user_turns(b"") == ()
    assert user_turns(b"no JSON\n") == ()


def test_of_too_many_turns_the_first_and_the_newest_are_printed() -> None:
    turns = [DigestEntry(n, "u", "user", f"Rule {n}: {'x' * 100}") for n in range(1, 201)]
    lines = instructions(turns).splitlines()
    assert sum(map(len, lines)) < 9_000
    assert lines[1].startswith("1. Rule 1: ")
    assert lines[-1].startswith("200. Rule 200: ")
    assert any("turns left out]" in each for each in lines)
    long = instructions([DigestEntry(1, "u", "user", "word " * 9_000)])
    assert "characters left out]" in long
    assert len(long) < 9_000


def test_turns_from_before_a_compaction_inside_an_answer_are_carried() -> None:
    inside = line("assistant", "8", "7", "")
    inside["message"]["content"] = [{"type": "compaction", "content": "So far."}]
    lines = [*LINES, inside, line("user", "9", "8", "Go on.")]
    turns = user_turns("".join(f"{json.dumps(each)}\n" for each in lines).encode())
    assert [each.text for each in turns] == [f"Tidy the parser up. {RULE}", LATER, "Go on."]
