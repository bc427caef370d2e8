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
