"""What one line says of each message where all are listed."""

import pytest

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    Block,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from streams.cli.screen.conversation import message_lines
from tests.compaction.conversations import said

REMINDER = "<system-reminder>\nThe file a.py was changed.\n</system-reminder>"


def listed(*messages: Message, whole: bool = False) -> list[str]:
    lines = message_lines(History(messages), None if whole else (), 0, {})
    return [each.plain[7:] for each in lines]


def failed(text: str) -> ToolResult:
    return ToolResult("c", (Text(text),), is_error=True)


def test_the_users_words_come_before_what_a_runtime_added() -> None:
    (line,) = listed(Message("user", (Text(REMINDER), Text("Not on main!"))))
    assert line.split(maxsplit=1)[1].startswith("Not on main! [data, 63 characters: <system-rem")


@pytest.mark.parametrize(
    ("role", "block", "shown"),
    [
        ("assistant", Text("I look.\nThen I fix it."), "I look. Then I fix it."),
        ("assistant", ToolCall("c", "read", '{"path":"a.py"}'), '[read {"path":"a.py"}]'),
        ("assistant", Thinking("Hm. " * 20, 80), "[thinking, 80 characters]"),
        ("assistant", Opaque("web_search_call", 40), "[web_search_call, 40 characters]"),
        ("user", Image(900, "image/png"), "[image/png]"),
        ("tool", ToolResult("c", (Text("x" * 1_200),)), "[result of a tool, 1,200 characters]"),
    ],
)
def test_each_part_is_named_with_its_beginning_or_its_size(
    role: str, block: Block, shown: str
) -> None:
    (line,) = listed(Message(role, (block,)))  # type: ignore[arg-type]
    assert line.split(maxsplit=1)[1] == shown


def test_a_call_that_failed_says_what_failed() -> None:
    call = Message("assistant", (ToolCall("c", "sh", "{}"),))
    trace = "Traceback:\n  File a\nImportError: no module lxml"
    _, line = listed(call, Message("tool", (failed(trace),)))
    assert line.endswith("[error of sh, 47 characters: ImportError: no module lxml]")


def test_whole_messages_have_all_their_text() -> None:
    lines = listed(said("user", REMINDER), Message("tool", (failed("a\nb"),)), whole=True)
    assert [each.strip() for each in lines][-3:] == ["tool       [error of a tool]", "a", "b"]
    assert "The file a.py was changed." in "".join(lines)
