"""What stays of a line for its conversation, and of what a person typed."""

from typing import Any

import pytest

from contextgauge.compaction.reading.lines import reduced
from contextgauge.normalise.claude_code.conversation import prompt


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        (
            {"type": "user", "message": "hello", "other": 1},
            {"type": "user", "message": {"role": "user", "content": "hello"}},
        ),
        ({"type": "assistant", "message": 3}, None),
        ({"type": "result", "usage": {}}, {"type": "result"}),
        (
            {"type": "assistant", "message": {"content": []}, "supersedes": "a", "other": 1},
            {"type": "assistant", "message": {"content": []}, "supersedes": "a"},
        ),
        (
            {"type": "system", "subtype": "init", "model": "m", "tools": ["x"]},
            {"type": "system", "subtype": "init", "model": "m"},
        ),
        (
            {
                "type": "system",
                "subtype": "compact_boundary",
                "compactMetadata": {"preTokens": 3, "trigger": "auto"},
            },
            {
                "type": "system",
                "subtype": "compact_boundary",
                "compact_metadata": {"pre_tokens": 3},
            },
        ),
        (
            {"type": "system", "subtype": "conversation_reset", "other": 1},
            {"type": "system", "subtype": "conversation_reset"},
        ),
        ({"type": "system", "subtype": "status", "status": "compacting"}, None),
        (
            {"type": "system", "subtype": "conversation_reset", "trigger": "clear"},
            {"type": "system", "subtype": "conversation_reset"},
        ),
        ({"type": "turn_context", "payload": "no object"}, None),
        ({"type": "message", "role": 3}, None),
        ({"type": "response.completed", "response": 3}, None),
        (
            {"type": "response.completed", "response": {"output": [], "other": 1}},
            {"type": "response.completed", "response": {"output": []}},
        ),
    ],
)
def test_what_a_conversation_needs_stays(line: Any, rest: Any) -> None:
    assert reduced(line) == rest


def test_what_is_no_message_was_not_typed() -> None:
    assert prompt({"type": "user", "message": 3}) is None
    assert prompt({"type": "user", "message": {"role": "assistant", "content": "x"}}) is None


@pytest.mark.parametrize("mark", ["isSidechain", "isMeta", "isCompactSummary"])
def test_what_claude_code_writes_in_a_persons_name_was_not_typed(mark: str) -> None:
    line: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "x"}}
    assert prompt(line) == "x"
    assert prompt({**line, mark: True}) is None
