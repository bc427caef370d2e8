"""A history as JSON, and back."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.plan import plan_of
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.formats import read_answer, read_messages
from contextgauge.compaction.history import Edit, History
from contextgauge.compaction.messages import Text, ToolResult
from contextgauge.compaction.store.stored_history import load_history, store_history
from contextgauge.errors import ConfigError, VersionError
from tests.compaction.conversations import said, session
from tests.compaction.random_conversations import random_conversation

CALL = ModelCall(window_tokens=2_000, reserved_output_tokens=100)


def same(first: History, second: History) -> None:
    assert list(second.entries) == list(first.entries)
    assert list(second.active) == list(first.active)
    assert second.trigger == first.trigger
    assert second.tokens == first.tokens
    assert second.fresh_from == first.fresh_from
    assert [each.source for each in second.everything] == [each.source for each in first.everything]


@pytest.mark.parametrize("seed", range(50))
async def test_a_stored_history_comes_back_exactly(seed: int) -> None:
    rng = random.Random(seed)
    history, compactor = History(random_conversation(rng)), Compactor()
    for _ in range(3):
        await compactor.before_call(history, CALL)
        history.extend(random_conversation(rng))
    again = load_history(store_history(history))
    same(history, again)
    again.append(said("user", "and on"))
    await compactor.before_call(again, CALL)


async def test_sources_are_kept_also_of_shortened_messages() -> None:
    turns = [
        {"role": "user", "content": "go", "metadata": {"mine": 1}},
        *(
            item
            for number in range(8)
            for item in (
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": f"t{number}",
                            "content": f"{number} " * 900,
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                },
            )
        ),
    ]
    history = History(read_messages(turns, "anthropic"))
    receipt = (await Compactor().before_call(history, ModelCall(window_tokens=5_000))).receipt
    assert receipt is not None
    assert "clear-results" in [each.rung for each in receipt.steps]
    same(history, load_history(store_history(history)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value.pop("entries"), "entries"),
        (lambda value: value["entries"].insert(0, {"covers": 99}), "replacement"),
        (lambda value: value["entries"][0]["message"].pop("role"), r"entries\[0\].message.role"),
        (
            lambda value: value["entries"][0]["message"].update(
                format="plain",
                value={"role": "user", "content": "x"},
                blocks={"9" * 5_000: {}},
            ),
            "a position below 1",
        ),
        (lambda value: value["trigger"].update(failures="many"), "trigger.failures"),
        (lambda value: value["entries"].append({"covers": 9, "replacement": [{"same": "x"}]}), "x"),
    ],
)
def test_a_damaged_history_is_an_error_that_says_where(change: object, message: str) -> None:
    value = json.loads(store_history(History(session(1))))
    assert callable(change)
    change(value)
    with pytest.raises(ConfigError, match=message):
        load_history(json.dumps(value))


def test_a_history_of_another_build_is_refused() -> None:
    with pytest.raises(VersionError, match="version 1"):
        load_history('{"version": 1}')
    for broken in ("{", "[" * 200_000):
        with pytest.raises(ConfigError, match="is not JSON"):
            load_history(broken)
    with pytest.raises(ConfigError, match="it has no version"):
        load_history(b"{}")


def sources(history: History) -> list[object]:
    return [
        (
            each.source,
            [
                (
                    getattr(block, "source", None),
                    [part.source for part in block.content]
                    if isinstance(block, ToolResult)
                    else (),
                )
                for block in each.blocks
            ],
        )
        for each in history.active
    ]


def tool_turn(number: int) -> list[Any]:
    called: Any = {
        "type": "tool_use",
        "id": f"t{number}",
        "name": "read",
        "input": {"p": "a" * 500},
    }
    text: Any = {"type": "text", "text": f"{number} " * 900, "cache_control": {"type": "ephemeral"}}
    done: Any = {"type": "tool_result", "tool_use_id": f"t{number}", "content": [text]}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I read."}, called]},
        {"role": "user", "content": [done, {"type": "text", "text": "Go on."}]},
    ]


async def cleared(turns: int) -> History:
    """A history whose oldest result is cleared with each turn."""
    receipt = await Compactor().compact(History(session(40)), ModelCall(window_tokens=4_000))
    assert receipt is not None
    receipt = replace(receipt, number=None, steps=())
    history = History(read_messages([{"role": "user", "content": "go"}], "anthropic"))
    for number in range(turns):
        history.extend(read_messages(tool_turn(number), "anthropic"))
        active = list(history.active)
        old = active[2 * number + 2]
        notice = replace(old.results[0], content=(Text("Cleared."),))
        active[2 * number + 2] = replace(old, blocks=(notice, *old.blocks[1:]))
        history.apply(plan_of(history.active, active, receipt))
    return history


async def test_an_edit_is_stored_as_what_it_changed() -> None:
    small, large = await cleared(40), await cleared(80)
    assert len(store_history(large)) < 2.1 * len(store_history(small))
    plain = len(store_history(History(large.everything)))
    assert len(store_history(large)) < 1.6 * plain
    assert {len(each.replacement) for each in large.entries if isinstance(each, Edit)} == {1}


async def test_blocks_that_were_changed_twice_keep_what_they_were_read_from() -> None:
    history = await cleared(12)
    for budget in (5_000, 3_000):
        await Compactor().compact(history, ModelCall(window_tokens=budget))
    again = load_history(store_history(history))
    same(history, again)
    assert sources(again) == sources(history)
    assert store_history(again) == store_history(history)


def test_what_an_answer_reported_is_stored_with_its_source() -> None:
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": "x" * 1_000}],
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    history = History(read_answer(answer, "anthropic"))
    stored = store_history(history)
    assert len(stored) < 1_600
    same(history, load_history(stored))


def test_items_of_the_responses_api_are_stored_once() -> None:
    items: list[Any] = [
        {"type": "message", "role": "assistant", "content": "x" * 1_000},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    stored = store_history(History(read_messages(items, "openai-responses")))
    assert len(stored) < 1_700
