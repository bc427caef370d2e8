"""Tokens of texts, messages and whole requests, reported or estimated."""

from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import (
    ESTIMATE,
    CumulativeTokens,
    Estimate,
    Seed002Counter,
    Size,
    core_message_tokens,
)
from contextgauge.compaction.engine.compaction_receipt import LadderStep, Receipt
from contextgauge.compaction.engine.plan import plan_of
from contextgauge.compaction.engine.request_size import ModelCall, once
from contextgauge.compaction.formats import read_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import (
    ApiUsage,
    ContextCompaction,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from contextgauge.compaction.profiles import Window
from contextgauge.errors import ConfigError
from tests.compaction.conversations import call, result

USER = Message("user", (Text("a" * 40),))
CALL = ModelCall()
MARKER = Message("user", (ContextCompaction(1, 0, "s" * 8, 9, 900),))


def answer(context: int, output: int) -> Message:
    return Message("assistant", (Text("done"),), usage=ApiUsage(context, output))


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (Text("12345"), 2),
        (Text(""), 0),
        (ToolCall("c", "read", '{"path":1}'), 1 + 3),
        (ToolResult("c", (Text("12345"), Text("1"), Image(70))), 2 + 1 + 70),
        (Image(1_000), 1_000),
        (Thinking("", 401), 101),
        (Opaque("compaction", 9), 3),
        (ContextCompaction(1, 0, "12345678", 1, 1, prose="not sent"), 2),
    ],
)
def test_each_part_is_estimated_by_four_characters(block: Any, tokens: int) -> None:
    assert ESTIMATE.message(Message("user", (block,))) == 2 + tokens


def test_the_parts_of_a_message_are_rounded_up_one_by_one() -> None:
    assert ESTIMATE.message(Message("user", (Text("1"), Text("1"), Text("1")))) == 2 + 3


def size_of(*messages: Message, call: ModelCall = CALL) -> Size:
    return Compactor().size(History(messages), call)


def test_a_request_without_usage_is_estimated_whole() -> None:
    call = ModelCall(system="s" * 8, tools=("t" * 12, "t"), reserved_output_tokens=500)
    assert size_of(USER, call=call) == Size(2 + 4 + 12, 2, 4, 12, 500, "estimated")


def test_a_reported_size_counts_with_what_follows_it() -> None:
    call = ModelCall(system="s" * 400, tools=("t" * 40,))
    size = size_of(USER, answer(1_000, 50), USER, call=call)
    assert size == Size(1_062, 100, 10, 952, 0, "reported")


def test_the_last_reported_size_counts() -> None:
    assert size_of(answer(1_000, 50), USER, answer(1_006, 5)).tokens == 1_011


def test_what_follows_grows_as_the_last_reports_did() -> None:
    reports = (answer(100, 5), *[USER] * 10, answer(540, 5), USER)
    # Ten messages of 12 tokens and an answer of 3 were 440 tokens.
    assert size_of(*reports).tokens == 545 + int(440 / 123 * 12)


def test_a_size_reported_before_a_compaction_is_void() -> None:
    size = size_of(answer(1_000, 50), MARKER, USER)
    assert (size.tokens, size.basis) == (4 + 12, "estimated")
    assert size_of(MARKER, answer(70, 5)).tokens == 75


def test_after_an_edit_the_size_follows_from_what_was_reported_before() -> None:
    history, compactor = History([USER, USER, answer(1_000, 50), USER]), Compactor()
    assert compactor.size(history).tokens == 1_050 + 12
    history.replace_active([USER])
    size = compactor.size(history)
    assert (size.tokens, size.basis) == (1_000 - 12, "estimated")
    history.extend([USER, USER])
    assert compactor.size(history).tokens == 1_000 + 12
    history.append(answer(60, 5))
    assert compactor.size(history).tokens == 65


def test_reports_before_an_edit_do_not_tell_how_sizes_grow() -> None:
    cleared = result("c", "x" * 4_000)
    history = History([USER, answer(12, 3), call("c"), cleared, answer(1_050, 3)])
    compactor = Compactor()
    compactor.size(history)
    step = LadderStep("clear-results", 1_025, 25, (), "")
    receipt = Receipt(
        trigger="auto",
        tokens_before=1_053,
        tokens_after=53,
        basis="reported",
        window=Window(9_000, "given"),
        target_tokens=500,
        steps=(step,),
    )
    active = list(history.active)
    replacement = [*active[:3], replace(active[3], blocks=result("c").blocks), active[4]]
    history.apply(plan_of(active, replacement, receipt))
    compactor.size(history)
    assert history.trigger.calibration is not None
    assert history.trigger.calibration.growth == pytest.approx(1.0, abs=0.05)


def test_an_image_is_no_text_of_its_base64() -> None:
    value: Any = [
        {
            "role": "user",
            "content": [
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": "A" * 1_000_000,
                    },
                }
            ],
        }
    ]
    (message,) = read_messages(value, "anthropic")
    assert ESTIMATE.message(message) == 2 + 1_600


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"role": "user", "content": "12345"}, 2 + 2),
        ({"role": "user", "content": "😀😀😀"}, 2 + 1),
        ({"role": "user", "content": ""}, 2),
        ({"role": "user", "content": None}, 2),
        ({"role": "user", "content": [{"type": "text", "text": 12345}, {"type": "x"}]}, 2),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "abcd"},
                    {
                        "type": "tool-call",
                        "toolCallId": "1",
                        "toolName": "bash",
                        "args": {"a": 1},
                    },
                ],
            },
            2 + 1 + 1 + 2,  # {"a":1}
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "1", "toolName": "bash"}],
            },
            2 + 1,
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "tool-call", "toolCallId": "1", "toolName": "bash", "args": None}
                ],
            },
            2 + 1 + 1,
        ),
        (
            {
                "role": "tool",
                "content": [
                    {"type": "tool-result", "toolCallId": "1", "toolName": "b", "result": "abcdef"}
                ],
            },
            2 + 2,
        ),
        (
            {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": "1", "toolName": "b"}],
            },
            2,
        ),
    ],
)
def test_seed_002_counts_a_message(message: Any, tokens: int) -> None:
    assert core_message_tokens(message) == tokens


def test_seed_002_counts_calls_apart_again() -> None:
    call = {"toolCallId": "1", "toolName": "bash", "args": {"command": "ls"}}
    tokens = 1 + 4
    parts = [{"type": "tool-call", **call}]
    assistant: Any = {"role": "assistant", "content": parts, "toolCalls": [call]}
    assert core_message_tokens(assistant) == 2 + 2 * tokens
    assert core_message_tokens({**assistant, "role": "user"}) == 2 + tokens
    (message,) = read_messages([assistant], "plain")
    assert len(message.calls) == 1
    assert Seed002Counter().message(message) == 2 + 2 * tokens


def test_seed_002_counts_a_message_of_any_format_as_its_own() -> None:
    value: Any = [
        {"role": "user", "content": "12345"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "long"},
                {"type": "tool_use", "id": "t", "name": "bash", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "abcdef"}],
        },
    ]
    messages = read_messages(value, "anthropic")
    assert list(map(Seed002Counter().message, messages)) == [2 + 2, 2 + 1 + 2, 2 + 2]
    assert Seed002Counter().message(Message("user", (Text("😀😀😀"),))) == 2 + 1
    assert Seed002Counter().message(Message("assistant", (Thinking("x", 1),))) == 2


def test_a_counter_that_is_derived_from_the_estimate_counts_a_message_once() -> None:
    texts: list[str] = []

    class Tokenizer(Estimate):
        """Counts texts in a way that is dear."""

        def text(self, text: str) -> int:
            texts.append(text)
            return len(text)

    counter = once(Tokenizer())
    assert [counter.message(USER), counter.message(USER)] == [2 + 40, 2 + 40]
    assert texts == ["a" * 40]
    assert once(ESTIMATE) is ESTIMATE


def test_cumulative_tokens_add_up_and_are_stored() -> None:
    tokens = CumulativeTokens.of([USER, answer(100, 10), answer(400, 20), MARKER])
    assert (tokens.input, tokens.output, tokens.total, tokens.answers) == (500, 30, 530, 2)
    assert (tokens.mean_context, tokens.mean_output) == (250, 15)
    assert (tokens.last_context, tokens.last_output, tokens.largest_context) == (400, 20, 400)
    assert CumulativeTokens.from_json(tokens.to_json()) == tokens
    assert tokens.to_json()["total"] == 530
    assert tokens.add(ApiUsage(1, 1)).total == 532
    assert tokens.add(ApiUsage(1, 1)).largest_context == 400


@pytest.mark.parametrize("value", [None, {}, {"total": None, "input": None}])
def test_a_session_without_data_starts_at_zero(value: Any) -> None:
    tokens = CumulativeTokens.from_json(value)
    assert tokens == CumulativeTokens()
    assert (tokens.total, tokens.mean_context, tokens.mean_output) == (0, 0, 0)


@pytest.mark.parametrize("value", [{"input": -1}, {"input": "1"}, {"input": True}, []])
def test_wrong_stored_counts_are_reported(value: Any) -> None:
    with pytest.raises(ConfigError, match="token usage"):
        CumulativeTokens.from_json(value)
