"""The conversation of a session of pi: a tree of entries, of which one branch is seen."""

from contextgauge.compaction.messages import Image, Text, Thinking, ToolCall, ToolResult
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import reduced
from contextgauge.compaction.reading.transcripts import read_conversation
from tests.runtimes.pi_captures import (
    SESSION_ENTRIES,
    TITLE,
    answered,
    asked,
    compaction,
    conversation,
    entry,
    head,
    message,
    usage,
    values,
)


def test_the_conversation_is_what_the_model_sees() -> None:
    before = conversation(*SESSION_ENTRIES[:5])
    assert before == ["user: make the tests pass", "assistant: I look.", "tool: "]
    # The compaction kept the answer and its result.
    assert conversation(*SESSION_ENTRIES) == [
        "user: What was done.",
        "assistant: I look.",
        "tool: ",
        "assistant: Answer a4.",
    ]


def test_blocks_of_messages_are_read() -> None:
    read = read_conversation(b"\n".join(values(*SESSION_ENTRIES[:5])))
    _, answer, result = read.request.messages
    assert [type(each) for each in answer.blocks] == [Thinking, Text, ToolCall]
    assert answer.usage is not None
    assert answer.usage.context == 175_004
    (block,) = result.blocks
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert [type(each) for each in block.content] == [Text, Image]


def test_what_a_compaction_retained_in_its_own_words_is_not_known() -> None:
    reading = ConversationReading()
    tail = [{"role": "user", "content": "go on"}]
    for each in (*SESSION_ENTRIES[:5], compaction("c1", "a3", 14, retainedTail=tail)):
        reading.add(each, "key")
    assert reading.is_incomplete
    # Without one, nothing but the summary is left.
    bare = compaction("c2", "c1", 15, tokensBefore=None)
    assert reading.add(bare, "key")
    assert not reading.is_incomplete


def test_the_conversation_is_that_of_the_branch_with_the_last_message() -> None:
    assert conversation(
        head(),
        asked("a1", None, 11, "go"),
        answered("a2", "a1", 12, usage(90), model=None),
        entry("custom", "x1", "a2", 12, customType="plan", data={}),
        asked("a3", "x1", 13, "the wrong way"),
        entry("branch_summary", "b1", "a2", 14, fromId="a3", summary="Not that way."),
        entry("custom_message", "x2", "b1", 14, customType="plan", content="Plan."),
        message("b2", "x2", 15, role="bashExecution", command="ls", output="a.py"),
        message("b3", "b2", 15, role="bashExecution", command="ls", excludeFromContext=True),
        message("x3", "b3", 16, role="custom", content=None),
        asked("a4", "x3", 17, "the other way"),
    ) == [
        "user: go",
        "assistant: Answer a2.",
        "user: Not that way.",
        "user: Plan.",
        "user: Ran `ls`\n\na.py",
        "user: ",
        "user: the other way",
    ]


def test_reducing_what_was_reduced_changes_nothing() -> None:
    for each in (*SESSION_ENTRIES, TITLE, entry("reset_boundary", "r", "a", 12)):
        line = reduced(each)
        assert line is None or reduced(line) == line
