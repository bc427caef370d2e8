"""What fills a window: estimates by kind that sum to what was measured, and nothing invented."""

import random

import pytest

from contextgauge.compaction.displays.window_parts import (
    Measured,
    ToolTokens,
    WindowPart,
    filling_of,
)
from contextgauge.compaction.messages import (
    Block,
    ContextCompaction,
    Image,
    Message,
    Opaque,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

ASK = Message("user", (Text("x" * 392),), "ask")
CALL = Message("assistant", (Text("y" * 192), ToolCall("c1", "Read", "z" * 188)), "call")
RESULT = Message("tool", (ToolResult("c1", (Text("r" * 4_000),)),), "result")
ANSWER = Message("assistant", (Text("never counted: it was not read yet"),), "answer")
CONVERSATION = [ASK, CALL, RESULT, ANSWER]


def _kinds(parts: tuple[WindowPart, ...]) -> dict[str, int]:
    return {part.kind: part.tokens for part in parts}


def test_what_the_first_response_read_besides_messages_is_overhead() -> None:
    parts = filling_of(CONVERSATION, Measured(1, 20_100, 3, 21_200))
    # 100 of the user, 50 and 48 of the answer, 1 000 of the result, each message with its role.
    assert _kinds(parts) == {
        "overhead": 20_000,
        "user": 102,
        "assistant": 50,
        "tool_calls": 48,
        "tool_results": 1_000,
    }


def test_estimates_are_scaled_to_what_was_measured() -> None:
    parts = filling_of(CONVERSATION, Measured(1, 20_100, 3, 22_400))
    kinds = _kinds(parts)
    assert kinds["overhead"] == 20_000
    assert kinds["tool_results"] == 2_000
    assert sum(kinds.values()) == 22_400


def test_what_no_message_can_be_is_other() -> None:
    kinds = _kinds(filling_of(CONVERSATION, Measured(1, 20_100, 3, 90_000)))
    explained = 4 * 1_200
    assert kinds["tool_results"] == 4 * 1_000
    assert kinds["other"] == 90_000 - 20_000 - explained


def test_without_messages_all_is_overhead_or_other() -> None:
    assert _kinds(filling_of([ANSWER], Measured(0, 500, 0, 500))) == {"overhead": 500}
    assert _kinds(filling_of([ANSWER, ANSWER], Measured(0, 500, 0, 700))) == {
        "overhead": 500,
        "other": 200,
    }
    assert filling_of([ANSWER], Measured(0, 0, 0, 0)) == ()


def test_an_estimate_above_the_first_size_leaves_no_overhead() -> None:
    kinds = _kinds(filling_of(CONVERSATION, Measured(1, 50, 3, 601)))
    assert "overhead" not in kinds
    assert sum(kinds.values()) == 601


def test_results_are_listed_by_tool_the_largest_first() -> None:
    messages = [
        ASK,
        Message("assistant", (ToolCall("c1", "Grep", ""), ToolCall("c2", "Read", ""))),
        Message("tool", (ToolResult("c1", (Text("a" * 40),)),)),
        Message("tool", (ToolResult("c2", (Text("b" * 400), Opaque("ref", 40))),)),
        Message("tool", (ToolResult("c3", (Text("c" * 80),)),)),
        Message("tool", (ToolResult("c4", (Text("d" * 120),), name="Bash"),)),
        ANSWER,
    ]
    parts = filling_of(messages, Measured(1, 100, 6, 282))
    (results,) = [part for part in parts if part.kind == "tool_results"]
    assert [each.name for each in results.tools] == ["Read", "Bash", None, "Grep"]
    assert results.tools[0] == ToolTokens("Read", 110)
    assert sum(each.tokens for each in results.tools) == results.tokens


def test_results_that_were_cleared_are_not_in_the_window() -> None:
    kinds = _kinds(filling_of(CONVERSATION, Measured(1, 20_100, 3, 20_300), cleared=["c1"]))
    assert "tool_results" not in kinds
    assert sum(kinds.values()) == 20_300


def test_each_kind_of_block_has_its_place() -> None:
    messages = [
        Message("system", (Text("s" * 400),)),
        Message("user", (ContextCompaction(1, 0, "t" * 400, 9, 9),)),
        Message("user", (Text("u" * 400), Image(100)), "turn"),
        Message("assistant", (Thinking("", 400), Opaque("search", 400))),
        Message("tool", (ToolResult("c", (Image(50),)), Text("n" * 400))),
        Message("user", (Text("m" * 400),), "memory"),
        ANSWER,
    ]
    parts = filling_of(
        messages,
        Measured(6, 962, 6, 962),
        attachments={"memory"},
        system_characters=400,
    )
    kinds = _kinds(parts)
    assert list(kinds) == [
        *("system", "summary", "user", "attachments", "images"),
        *("assistant", "thinking", "other"),
    ]
    assert kinds["system"] == 202
    assert kinds["summary"] == 100
    assert kinds["user"] == 206
    assert kinds["attachments"] == 102
    assert kinds["images"] == 150
    assert kinds["thinking"] == 100
    assert kinds["other"] == 100


def test_reasoning_from_before_the_last_turn_is_not_sent_again() -> None:
    thought = Message("assistant", (Thinking("t" * 4_000, 4_000),))
    before = _kinds(filling_of([ASK, thought, ASK, ANSWER], Measured(3, 300, 3, 300)))
    assert "thinking" not in before
    after = _kinds(filling_of([ASK, ASK, thought, ANSWER], Measured(3, 3_000, 3, 3_000)))
    assert after["thinking"] == 1_000


def _block(rng: random.Random) -> Block:
    size, call = rng.randint(0, 900), str(rng.randint(0, 5))
    blocks: list[Block] = [
        Text("x" * size),
        Thinking("", size),
        ToolCall(call, rng.choice("abc"), "x" * size),
        ToolResult(call, (Text("x" * size),)),
        Image(size),
    ]
    return rng.choice(blocks)


@pytest.mark.parametrize("seed", range(200))
def test_the_parts_sum_to_what_was_measured(seed: int) -> None:
    rng = random.Random(seed)
    roles: list[Role] = ["system", "user", "assistant", "tool"]
    messages = [
        Message(rng.choice(roles), (_block(rng),), str(number))
        for number in range(rng.randint(1, 30))
    ]
    first = rng.randrange(len(messages))
    last = rng.randint(first, len(messages) - 1)
    measured = Measured(first, rng.randint(0, 50_000), last, rng.randint(0, 50_000))
    parts = filling_of(messages, measured, cleared=["1"], attachments=["2", "3"])
    assert sum(part.tokens for part in parts) == measured.tokens
    assert all(part.tokens > 0 for part in parts)
    assert all(sum(t.tokens for t in part.tools) == part.tokens for part in parts if part.tools)
