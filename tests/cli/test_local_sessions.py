"""Sessions of this machine: bare `sessions`, documents, files of no known runtime, estimates."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.views import ChainView
from streams.cli.screen.next_compaction import next_compaction
from streams.core.until_compaction import UntilCompaction
from tests.commands import Command
from tests.core.given import assistant, init, line

SESSION = "5b1f0c2e-0000-4000-8000-0000000000aa"
UNKNOWN = {"type": "system", "subtype": "init", "session_id": "u", "model": "Foo 1", "cwd": "/r"}


def write(path: Path, *bodies: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(body)}\n" for body in bodies), "utf-8")
    return path


def compacted(session_id: str, model: str, size: int) -> list[object]:
    boundary = {"trigger": "auto", "preTokens": size}
    common = {"sessionId": session_id, "version": "2.1.9", "isSidechain": False}
    return [
        {**line(assistant(f"a{session_id}", read=size, model=model, at=1)), **common},
        {**common, "type": "system", "subtype": "compact_boundary", "compactMetadata": boundary},
    ]


@pytest.fixture
def home(tmp_path: Path, command: Command) -> Path:
    """The home of a user."""
    command.environment |= {"HOME": str(tmp_path), "COLUMNS": "200"}
    return tmp_path


@pytest.mark.extended
def test_local_sessions_are_those_of_this_machines_runtimes(command: Command, home: Path) -> None:
    done = command("sessions", "--local")
    nothing = "No sessions yet: they appear when a runtime writes a transcript\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", nothing)
    assert command("sessions", "--local", "--json").stdout == "[]\n"
    claude = home / ".claude" / "projects" / "p"
    write(claude / "s-1.jsonl", *compacted("s-1", "claude-opus-4-6", 150_000))
    cursor = {"type": "tool_call", "call_id": "c", "tool_call": {}, "session_id": "p"}
    write(claude / "cursor.jsonl", cursor)
    rollout = {"type": "session_meta", "payload": {"id": SESSION, "cwd": "/r"}}
    name = f"rollout-2026-01-05T10-00-00-{SESSION}.jsonl"
    write(home / ".codex" / "archived_sessions" / name, rollout)
    done = command("sessions", "--local")
    assert {row.split()[0] for row in done.stdout.splitlines()[1:]} == {"s-1", SESSION}
    assert done.stderr.startswith("not read: 1 Cursor CLI")
    first = command("sessions", "--local", "--json", "--limit", "1").stdout
    assert len(json.loads(first)) == 1


@pytest.mark.extended
def test_a_document_is_a_session_wherever_it_is_named(command: Command, home: Path) -> None:
    bodies = [
        init(session_id=SESSION, claude_code_version="2.1.9"),
        {"type": "user", "session_id": SESSION, "message": {"role": "user", "content": "Mend it"}},
        assistant("a", read=600_000, session_id=SESSION, at=1),
    ]
    folder = home / "runs"
    folder.mkdir()
    path = folder / "execution.json"
    path.write_text(json.dumps(bodies, indent=2), "utf-8")
    for arguments in (["sessions"], ["sessions", "--titles"], ["top", "--once"], ["replay"]):
        of_folder = command(*arguments, str(folder)).stdout
        assert SESSION in of_folder
        assert of_folder == command(*arguments, str(path)).stdout
    assert "Mend it" in command("sessions", "--titles", str(path)).stdout
    for arguments in (["status", "--line"], ["events"], ["statusline"]):
        done = command(*arguments, str(path))
        assert "60%" in done.stdout, done.stderr
    line_of_prompt = command("statusline", stdin=json.dumps({"transcript_path": str(path)}))
    assert line_of_prompt.stdout == command("statusline", str(path)).stdout
    missing = command("status", str(home / "gone.json")[1:])
    assert "no such file or folder" in missing.stderr


@pytest.mark.extended
def test_a_file_of_no_known_runtime_is_not_a_session_of_unknown_figures(
    command: Command, home: Path
) -> None:
    folder = home / "mixed"
    other = write(folder / "other.jsonl", UNKNOWN)
    for done in (command("status", str(other)), command("sessions", str(other))):
        assert (done.returncode, done.stdout) == (1, "")
        assert "no line has a size or a compaction, and the runtime that wrote it is not" in (
            done.stderr
        )
    shown = command("statusline", str(other))
    assert (shown.returncode, "unknown" in shown.stdout) == (0, True)
    assert "the runtime that wrote it is not known" in shown.stderr
    write(folder / "s-1.jsonl", *compacted("s-1", "claude-opus-4-6", 150_000))
    for _ in range(2):  # the second time as `top` has stored it
        done = command("sessions", str(folder))
        assert "s-1" in done.stdout
        assert "Foo" not in done.stdout
        note = "not listed: 1 session of an unknown runtime, without any figures\n"
        assert done.stderr == note
        command("top", "--once", str(folder))
    # With a size it is a session, whatever its runtime is.
    write(other, UNKNOWN, assistant("a", read=60_000, session_id="u", model="Foo 1"))
    assert "Foo 1" in command("status", str(other)).stdout


@pytest.mark.extended
def test_status_estimates_by_the_sessions_that_are_viewed_with_it(
    command: Command, home: Path
) -> None:
    claude = home / ".claude" / "projects" / "p"
    write(claude / "s-1.jsonl", *compacted("s-1", "claude-opus-4-6", 167_000))
    path = write(
        claude / "s-2.jsonl",
        line(assistant("b", read=60_000, model="claude-opus-4-6", at=2), version="2.1.9"),
    )
    shown = " ".join(command("status", str(path)).stdout.split())
    why = "no threshold was reported, and no compaction of this model shows it"
    assert f"Compacts in unknown · {why}" in shown
    command("top", "--once", "--local")
    shown = " ".join(command("status", str(path)).stdout.split())
    assert "Compacts in ~107,000 tokens · estimated from this model" in shown
    assert "compacts in ~107K" in command("statusline", str(path)).stdout
    # Its own compactions count once.
    own = " ".join(command("status", str(claude / "s-1.jsonl")).stdout.split())
    assert "the size is not measured; at ~167,000 tokens" in own


CHAIN = ChainView(chain="main", model="m", used_tokens=60_000)


@pytest.mark.parametrize(
    ("chain", "until", "off", "row"),
    [
        (CHAIN, None, None, "Compacts in unknown · no threshold was reported, and no compaction"),
        (CHAIN, None, "~/.claude.json", "Compaction off · from ~/.claude.json"),
        (
            replace(CHAIN, auto_compact_enabled=False),
            None,
            None,
            "Compaction off · reported by the runtime",
        ),
        (
            replace(CHAIN, used_tokens=None),
            UntilCompaction(None, None, 167_000, "reported", estimated=False),
            None,
            "Compacts in unknown · the size is not measured; at 167,000 tokens",
        ),
        (
            CHAIN,
            UntilCompaction(9_000, 3, 167_000, "reported", estimated=False),
            None,
            "Compacts in 9,000 tokens",
        ),
        (
            CHAIN,
            UntilCompaction(-5, 0, 167_000, "reported", estimated=False),
            None,
            "Compaction due, 5 tokens over",
        ),
    ],
)
def test_there_is_always_a_row_for_the_next_compaction(
    chain: ChainView, until: UntilCompaction | None, off: str | None, row: str
) -> None:
    rows = [f"{name} {text}" for name, text in next_compaction(chain, until, None, off)]
    assert rows[0].startswith(row)
    assert len(rows) == 1
