"""The Claude Agent SDK: run by `test_frameworks.py` where the package is installed."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    get_session_info,
    get_session_messages,
)

from contextgauge.adapters.claude_agent import carried_turns
from contextgauge.normalise.claude_code.fork import FORK
from contextgauge.normalise.fork_form import NewFork, PastCompaction


def call(hooks: dict[Any, list[HookMatcher]], event: str, path: Path, **more: Any) -> str:
    """Call a hook as Claude Code does, and return the context that it adds."""
    given: Any = {"session_id": "s", "transcript_path": str(path), "hook_event_name": event, **more}
    work: Any = hooks[event][0].hooks[0](given, None, {"signal": None})
    answer = asyncio.run(work)
    added: dict[str, str] = answer.get("hookSpecificOutput", {"additionalContext": ""})
    assert added.get("hookEventName", event) == event
    return added["additionalContext"]


def transcript(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "s.jsonl"
    parents = [None, *(f"u{number}" for number in range(len(lines)))]
    path.write_text(
        "".join(
            json.dumps({"uuid": f"u{number}", "parentUuid": parents[number], **line}) + "\n"
            for number, line in enumerate(lines)
        )
    )
    return path


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": text}
    return {"type": role, "sessionId": "s", "message": message, **more}


BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "content": "Conversation compacted",
    "sessionId": "s",
    "compactMetadata": {"trigger": "auto", "preTokens": 100_000},
}


def test_the_users_turns_follow_a_compaction_once_and_from_before_earlier_ones(
    tmp_path: Path,
) -> None:
    hooks = carried_turns()
    assert ClaudeAgentOptions(hooks=hooks).hooks == hooks
    path = transcript(
        tmp_path,
        said("user", "  Nicht auf `main`!"),
        said("assistant", "Well."),
        BOUNDARY,
        said("user", "A summary of all that.", isCompactSummary=True),
        said("user", "禁止直接推送。"),
    )
    assert call(hooks, "UserPromptSubmit", path) == ""
    assert call(hooks, "PreCompact", path, trigger="auto", custom_instructions=None) == ""
    assert call(hooks, "PostToolUse", path, agent_id="a subagent") == ""
    added = call(hooks, "PostToolUse", path)
    assert added.splitlines()[1:] == ["1. Nicht auf `main`!", "2. 禁止直接推送。"]
    assert call(hooks, "UserPromptSubmit", path) == ""


def test_of_too_many_turns_the_first_and_the_newest_stay(tmp_path: Path) -> None:
    hooks = carried_turns(characters=400)
    turns = [said("user", f"Turn {number}. {'x' * 50}") for number in range(20)]
    path = transcript(tmp_path, *turns)
    call(hooks, "PreCompact", path)
    added = call(hooks, "UserPromptSubmit", path)
    assert len(added) <= 400
    assert [line.partition(".")[0] for line in added.splitlines()[1:]] == ["1", "18", "19", "20"]


def test_a_transcript_that_cannot_be_read_stops_no_compaction(tmp_path: Path) -> None:
    hooks = carried_turns()
    call(hooks, "PreCompact", tmp_path / "none.jsonl")
    assert call(hooks, "UserPromptSubmit", tmp_path) == ""


ORIGIN = "11111111-0000-4000-8000-000000000001"
NEW = NewFork("22222222-0000-4000-8000-000000000002", ORIGIN, 1, "/repo", None, "a fork")


def read_by_the_sdk(folder: Path, fork: NewFork, lines: Iterable[dict[str, Any]]) -> list[str]:
    """Return the texts of a fork's messages as the SDK finds them, and check its title."""
    path = folder / "projects" / FORK.path(fork)
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    info = get_session_info(fork.id)
    assert info is not None
    assert info.custom_title == "a fork"
    messages = [each.message for each in get_session_messages(fork.id)]
    return [str(each["content"]) for each in messages if isinstance(each, dict)]


@pytest.mark.parametrize(("end", "texts"), [(2, ["Fix it.", "Fixed."]), (4, ["A summary."])])
def test_a_copied_fork_is_what_the_sdk_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int, texts: list[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    session = transcript(
        tmp_path,
        said("user", "Fix it."),
        said("assistant", "Fixed."),
        {**BOUNDARY, "parentUuid": None, "logicalParentUuid": "u1"},
        said("user", "A summary.", isCompactSummary=True),
    )
    lines = [json.loads(line) for line in session.read_text().splitlines()[:end]]
    assert read_by_the_sdk(tmp_path, NEW, FORK.copy(lines, NEW, {})) == texts


def test_a_written_fork_is_what_the_sdk_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    fork = NEW._replace(past=[PastCompaction("auto", 167_000, None)])
    messages: list[Any] = [("a", {"role": "user", "content": "A summary."})]
    assert read_by_the_sdk(tmp_path, fork, FORK.write(messages, fork)) == ["A summary."]
