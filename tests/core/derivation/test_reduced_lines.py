"""What stays of a line for its conversation, and of what a person typed."""

from typing import Any

import pytest

from contextgauge.compaction.reading.lines import reduced
from contextgauge.normalise.claude_code.conversation import prompt
from contextgauge.normalise.runtimes import line_of


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


@pytest.mark.parametrize(
    ("payload", "instructions"),
    [
        ({"base_instructions": {"text": "Be brief."}}, "Be brief."),
        ({"base_instructions": "Be brief."}, "Be brief."),
        ({"instructions": "Be brief."}, "Be brief."),
        ({}, None),
        (3, None),
    ],
)
def test_the_head_of_a_rollout_has_the_system_prompt(payload: Any, instructions: Any) -> None:
    line = {"type": "session_meta", "payload": payload}
    read = line_of(line).instructions
    assert read is not None
    assert read(line) == instructions


def test_of_what_was_attached_all_texts_but_its_kind_are_seen() -> None:
    content: Any = {"type": "todo", "items": ["a", {"type": "b", "text": "c"}, 3]}
    read = line_of({"type": "attachment"}).attached
    assert read is not None
    assert read({"attachment": content}) == "a\nc"
    assert read({"attachment": "nothing"}) is None
