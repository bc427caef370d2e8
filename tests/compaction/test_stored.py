"""A history as JSON, and back."""

import json
import random

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.formats import read_messages
from contextgauge.compaction.history import History
from contextgauge.compaction.measuring import ModelCall
from contextgauge.compaction.stored import load_history, store_history
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


@pytest.mark.parametrize("seed", range(150))
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
    receipt = await Compactor().compact(history, ModelCall(window_tokens=8_000))
    assert receipt is not None
    assert "clear-results" in [each.rung for each in receipt.steps]
    same(history, load_history(store_history(history)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value.pop("entries"), "entries"),
        (lambda value: value["entries"].insert(0, {"covers": 99}), "replacement"),
        (lambda value: value["entries"][0]["message"].pop("role"), r"entries\[0\].message.role"),
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


def test_a_history_of_a_later_build_is_refused() -> None:
    with pytest.raises(VersionError, match="version 2"):
        load_history('{"version": 2}')
    with pytest.raises(ConfigError, match="no JSON"):
        load_history("{")
