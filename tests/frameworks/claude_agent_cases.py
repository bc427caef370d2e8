"""The Claude Agent SDK: run by `test_frameworks.py` where the package is installed."""

import asyncio
import json
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from contextgauge.adapters.claude_agent import carried_turns


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
