"""What stays and what leaves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.selection import select, whole_cut, whole_cuts
from contextgauge.compaction.formats import read_messages, write_messages
from contextgauge.compaction.messages import (
    ContextCompaction,
    FormatName,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    open_calls,
)
from contextgauge.records import Json
from tests.compaction.conversations import call, conversations, orphans, result, said, session


def ids(messages: list[Message]) -> list[Message]:
    return [Message(each.role, each.blocks, id=f"m{index}") for index, each in enumerate(messages)]


def test_the_last_messages_stay_and_the_system_message_too() -> None:
    messages = session(10)
    division = select(messages, keep_last=10, keep_tokens=None, counter=ESTIMATE)
    assert division.head == (messages[0],)
    assert division.tail == tuple(messages[-10:]) or division.tail == tuple(messages[-11:])
    assert list(division.leaving) == messages[1 : len(messages) - len(division.tail)]


def test_a_call_and_its_result_are_never_cut_apart() -> None:
    messages = [said("user", "go"), call("a"), result("a"), said("assistant", "done")]
    assert list(whole_cuts(messages, len(messages))) == [4, 3, 1, 0]


@given(conversations())
def test_earlier_cuts_are_those_that_separate_nothing(messages: list[Message]) -> None:
    cuts = list(whole_cuts(messages, len(messages)))
    assert cuts == [cut for cut in range(len(messages), -1, -1) if whole_cut(messages, cut) == cut]


@pytest.mark.parametrize("keep_last", [1, 2])
def test_a_result_stays_with_its_call(keep_last: int) -> None:
    messages = [said("user", "go"), call("a"), result("a"), result("a", "late part")][:3]
    messages = [said("user", "first"), said("assistant", "done"), *messages]
    division = select(messages, keep_last=keep_last, keep_tokens=None, counter=ESTIMATE)
    assert [each.role for each in division.tail] == ["assistant", "tool"]


def test_parallel_calls_stay_with_all_their_results() -> None:
    messages = [
        said("user", "go"),
        Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}"))),
        result("a"),
        result("b"),
    ]
    division = select(messages, keep_last=1, keep_tokens=None, counter=ESTIMATE)
    assert len(division.tail) == 3


def test_results_in_a_users_message_stay_with_their_calls() -> None:
    results = Message("user", (ToolResult("a", (Text("ok"),)), Text("and go on")))
    messages = [said("user", "go"), said("assistant", "hm"), call("a"), results]
    assert whole_cut(messages, 3) == 2


def test_reasoning_that_came_alone_stays_with_what_it_led_to() -> None:
    messages = [said("user", "go"), Message("assistant", (Thinking("hm", 2),)), call("a")]
    assert whole_cut([*messages, result("a")], 3) == 1


def test_an_open_call_never_leaves() -> None:
    messages = [said("user", "go"), call("a"), call("b"), result("b"), said("assistant", "yes")]
    assert whole_cut(messages, 4) == 1


def test_an_interrupted_call_holds_nothing_back() -> None:
    messages = [said("user", "go"), call("a"), said("user", "stop"), said("assistant", "yes")]
    assert whole_cut(messages, 3) == 3
    assert open_calls(messages) == set()


def test_an_id_that_is_used_twice_counts_where_it_was_used_last() -> None:
    messages = [call("a"), result("a"), said("user", "again"), call("a"), result("a")]
    assert whole_cut(messages, 4) == 3


def test_large_messages_leave_before_the_last_ones_are_counted() -> None:
    messages = [said("user", "x" * 400) for _ in range(10)]
    division = select(messages, keep_last=10, keep_tokens=320, counter=ESTIMATE)
    assert len(division.tail) == 3


def test_the_last_message_stays_whatever_its_size() -> None:
    messages = [said("user", "a"), said("user", "x" * 4_000)]
    division = select(messages, keep_last=10, keep_tokens=10, counter=ESTIMATE)
    assert division.tail == (messages[1],)


def test_the_previous_summary_is_found_by_its_marker_not_by_its_text() -> None:
    marker = ContextCompaction(1, 0, "whatever", 5, 100)
    fake = said("assistant", "## Session Summary (Compaction Round 7)")
    messages = [said("system", "s"), Message("user", (marker,)), fake, *session(5)[1:]]
    division = select(messages, keep_last=4, keep_tokens=None, counter=ESTIMATE)
    assert division.previous is messages[1]
    assert fake in division.leaving


def test_messages_that_the_caller_keeps_stay_with_their_calls() -> None:
    messages = ids([*session(6)])
    message_id = next(each.id for each in messages if each.results)
    division = select(
        messages, keep_last=2, keep_tokens=None, counter=ESTIMATE, keep_ids=frozenset({message_id})
    )
    assert [each.role for each in division.head] == ["system", "assistant", "tool"]


@given(conversations(), st.integers(0, 12), st.integers(0, 400) | st.none())
def test_no_division_separates_a_call_from_its_result(
    messages: list[Message], keep_last: int, keep_tokens: int | None
) -> None:
    division = select(messages, keep_last=keep_last, keep_tokens=keep_tokens, counter=ESTIMATE)
    assert orphans([*division.head, *division.tail]) == set()
    assert orphans([*division.leaving]) == set()
    assert len(division.head) + len(division.leaving) + len(division.tail) == len(messages)
    if keep_tokens is None and keep_last:
        assert list(division.tail)[-keep_last:] == messages[-keep_last:]


def programmatic(number: int) -> list[Any]:
    """A turn in which a program of the provider's tool calls a tool of the client."""
    caller = {"type": "code_execution_20250825", "tool_id": f"s{number}"}
    code: Any = {
        "type": "server_tool_use",
        "id": f"s{number}",
        "name": "code_execution",
        "input": {},
    }
    called: Any = {
        "type": "tool_use",
        "id": f"t{number}",
        "name": "db",
        "input": {},
        "caller": caller,
    }
    done: Any = {"type": "code_execution_tool_result", "tool_use_id": f"s{number}", "content": {}}
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [code, called]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "rows"}],
        },
        {"role": "assistant", "content": [done, {"type": "text", "text": "Done."}]},
    ]


def test_the_result_of_a_providers_tool_stays_with_its_use() -> None:
    messages = read_messages(
        [each for turn in range(5) for each in programmatic(turn)], "anthropic"
    )
    assert {whole_cut(messages, cut) % 4 for cut in range(len(messages))} == {0, 1}


def test_a_paused_answer_stays_with_what_it_goes_on_with() -> None:
    use: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    answer: Any = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    items: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "assistant", "content": [answer]},
        {"role": "assistant", "content": "So it is."},
    ]
    assert whole_cut(read_messages(items, "anthropic"), 2) == 1
    assert whole_cut(read_messages(items, "anthropic"), 3) == 1


def test_an_approval_stays_with_its_request() -> None:
    items: list[Any] = [
        {"role": "user", "content": "go"},
        {"type": "mcp_approval_request", "id": "r", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        {"type": "mcp_call", "id": "c", "approval_request_id": "r", "name": "f", "output": "ok"},
        {"role": "user", "content": "go on"},
    ]
    messages = [message for item in items for message in read_messages([item], "openai-responses")]
    assert [whole_cut(messages, cut) for cut in range(5)] == [0, 1, 1, 1, 4]


def test_the_parts_of_one_answer_stay_together() -> None:
    messages = [
        said("user", "go"),
        Message("assistant", (Thinking("hm", 2),)),
        said("assistant", "I look."),
        call("a"),
        result("a"),
    ]
    assert {whole_cut(messages, cut) for cut in (1, 2, 3, 4)} == {1}


def test_texts_of_the_assistant_in_a_row_may_be_cut_apart() -> None:
    assert whole_cut([said("assistant", "a"), said("assistant", "b")], 1) == 1


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("openai-responses", {"type": "compaction", "encrypted_content": "secret"}),
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "compaction", "content": "So far."}]},
        ),
    ],
)
def test_a_providers_own_compaction_stays_as_it_is(name: FormatName, item: Json) -> None:
    messages = [*read_messages([item], name), *session(20)[1:]]
    division = select(messages, keep_last=4, keep_tokens=None, counter=ESTIMATE)
    assert write_messages(division.head, name) == [item]


def test_what_a_providers_compaction_came_with_stays_too() -> None:
    compaction: Any = {"type": "compaction", "content": "So far."}
    used: Any = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    items: list[Any] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [compaction, used]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}],
        },
    ]
    messages = [*read_messages(items, "anthropic"), *session(20)[1:]]
    division = select(messages, keep_last=4, keep_tokens=None, counter=ESTIMATE)
    assert division.head == tuple(messages[1:3])
