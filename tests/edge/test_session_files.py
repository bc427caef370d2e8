"""Transcripts of this machine: found by session, titled by what the user typed first."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from streams.edge.files import session_files
from streams.edge.files.session_files import FirstPrompts, SessionFiles, first_prompt

ID = "258c7280-ae70-4798-800f-63464d01a85d"
OTHER = "258c7280-0000-4798-800f-63464d01a85d"


def write(path: Path, *bodies: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(body) + "\n" for body in bodies))
    return path


CLEAR = "<command-name>/clear</command-name>\n<command-message>clear</command-message>"
AGENTS = "# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\nuse tabs\n</INSTRUCTIONS>"


def typed(text: object, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def codex(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    payload = {"type": "message", "role": "user", "content": content}
    return {"type": "response_item", "payload": payload}


@pytest.mark.parametrize(
    ("bodies", "title"),
    [
        ([typed("Fix the\n  parser")], "Fix the parser"),
        ([typed([{"type": "text", "text": "Look at this"}])], "Look at this"),
        ([typed("Caveat: ...", isMeta=True), typed(CLEAR), typed("now")], "now"),
        ([typed("<rules>\nuse tabs\n</rules>")], "<rules> use tabs </rules>"),
        ([typed("a subagent's", isSidechain=True), typed("mine")], "mine"),
        ([typed("a summary", isCompactSummary=True)], None),
        ([typed([{"type": "tool_result", "content": "x"}])], None),
        ([codex(AGENTS), codex("<environment_context>…</environment_context>"), codex("go")], "go"),
        ([{"type": "event_msg", "payload": {"type": "user_message", "message": "hi"}}], "hi"),
        ([{"type": "event_msg", "payload": {"type": "agent_message", "message": "user"}}], None),
        ([typed("x" * 1_000)], "x" * 200),
        ([], None),
    ],
)
def test_the_title_is_the_first_prompt_that_was_typed(
    tmp_path: Path, bodies: list[dict[str, Any]], title: str | None
) -> None:
    assert first_prompt(write(tmp_path / "a.jsonl", *bodies)) == title


def test_a_transcript_that_is_not_readable_has_no_title(tmp_path: Path) -> None:
    assert first_prompt(tmp_path / "nowhere.jsonl") is None


def test_a_prompt_is_read_once_and_looked_for_again_when_the_file_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", typed(CLEAR))
    reads: list[Path] = []

    def counted(path: Path) -> str | None:
        reads.append(path)
        return first_prompt(path)

    monkeypatch.setattr(session_files, "first_prompt", counted)
    prompts = FirstPrompts()
    assert [prompts.of(path) for _ in range(3)] == [None] * 3
    assert len(reads) == 1
    write(path, typed(CLEAR), typed("go"))
    assert [prompts.of(path) for _ in range(3)] == ["go"] * 3
    assert len(reads) == 2
    assert prompts.of(tmp_path / "gone.jsonl") is None


def test_transcripts_of_both_runtimes_are_found_by_session(tmp_path: Path) -> None:
    claude = write(tmp_path / "projects" / "-srv" / f"{ID}.jsonl", typed("one"))
    rollout = tmp_path / "sessions" / "2026" / "11" / f"rollout-2026-11-01T10-00-00-{OTHER}.jsonl"
    write(rollout, codex("two"))
    local = SessionFiles([tmp_path / "projects", tmp_path / "sessions"])
    assert (local.path(ID), local.path(OTHER)) == (claude, rollout)
    assert local.titles([ID, OTHER, "nobody"]) == {ID: "one", OTHER: "two"}
    assert [each.session_id for each in local.beginning_with("258c7280-a")] == [ID]
    assert [each.session_id for each in local.beginning_with("258c7280")] == [OTHER, ID]
    assert local.path("../../etc/passwd") is None


def test_a_session_that_no_name_shows_is_found_in_first_lines(tmp_path: Path) -> None:
    write(tmp_path / "old.jsonl", typed("one", sessionId=ID))
    last = write(tmp_path / "-srv" / "session.jsonl", typed("two", sessionId=ID))
    os.utime(tmp_path / "old.jsonl", (1, 1))
    other = write(tmp_path / "other.jsonl", typed("three", sessionId=OTHER))
    local = SessionFiles([tmp_path])
    assert [each.path for each in local.beginning_with(ID)] == [last]
    assert [each.path for each in local.beginning_with(ID[:8])] == [other, last]
    assert (local.path(ID), local.path("nobody")) == (last, None)
    named = write(tmp_path / f"{OTHER}.jsonl", typed("four"))
    assert [each.path for each in SessionFiles([tmp_path]).beginning_with(ID[:8])] == [named]


def test_a_prompt_that_is_typed_later_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", typed(CLEAR))
    local = SessionFiles([tmp_path])
    assert local.titles([ID]) == {}
    write(path, typed(CLEAR), typed("go"))
    assert local.titles([ID]) == {ID: "go"}


def test_a_session_that_starts_later_is_found(tmp_path: Path) -> None:
    local = SessionFiles([tmp_path])
    assert local.titles([ID]) == {}
    write(tmp_path / f"{ID}.jsonl", typed("one"))
    assert local.titles([ID, OTHER]) == {ID: "one"}


def test_a_named_file_stands_for_the_session_in_it(tmp_path: Path) -> None:
    named = write(tmp_path / "export.jsonl", typed("one", sessionId=ID))
    rollout = {"type": "session_meta", "payload": {"id": OTHER}}
    other = write(tmp_path / "crud.jsonl", rollout, codex("two"))
    local = SessionFiles([], [named, other])
    assert local.titles([ID, OTHER]) == {ID: "one", OTHER: "two"}
