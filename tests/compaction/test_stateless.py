"""`compact`: one call beside a loop that keeps its own messages."""

import asyncio
import json
from typing import Any

import pytest

from contextgauge.compaction import Compactor, ModelCall, compact, recall_tool_schema
from contextgauge.compaction.messages import FormatName
from contextgauge.errors import ConfigError
from contextgauge.records import Json
from tests.compaction.test_compactor import Scripted

WINDOW = 10_000


def said(format_: FormatName, role: str, text: str) -> dict[str, Any]:
    if format_ == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def rounds(format_: FormatName, number: int) -> list[dict[str, Any]]:
    """A dozen turns, each with something to be remembered, of some 2 300 tokens."""
    return [
        each
        for step in range(12)
        for each in (
            said(format_, "user", f"Step {number}/{step}: «no *.lock» in mod_{number}_{step}!"),
            said(format_, "assistant", f"Done with {step}. " + "Then I looked around. " * 30),
        )
    ]


@pytest.mark.parametrize(
    "format_", ["anthropic", "openai-chat", "openai-responses", "gemini", "plain"]
)
def test_a_conversation_stays_small_over_rounds_and_keeps_what_the_user_wrote(
    format_: FormatName,
) -> None:
    messages: list[Json] = []
    for number in range(5):
        given = [*messages, *rounds(format_, number)]
        messages = compact(given, format_, WINDOW)
        text = json.dumps(messages, ensure_ascii=False)
        assert len(text) < 4 * WINDOW
        assert text.count("[Compaction ") == (number > 1)
    steps = [(number, step) for number in range(5) for step in range(12)]
    assert all(f"«no *.lock» in mod_{number}_{step}!" in text for number, step in steps[-24:])
    assert "mod_0_0!" in text
    assert "[Compaction 6" not in text


def test_nothing_changes_below_the_threshold() -> None:
    messages = rounds("anthropic", 0)
    sent = compact(messages, "anthropic", 200_000)
    assert all(one is other for one, other in zip(sent, messages, strict=True))


def test_what_is_sent_is_compacted_below_the_threshold_where_that_is_asked_for() -> None:
    messages = rounds("openai-chat", 0)
    compactor = Compactor(profile="seed-001", summariser=Scripted("the summary"))
    sent = compact(messages, "openai-chat", 200_000, now=True, compactor=compactor)
    assert len(sent) == 1
    assert "the summary" in json.dumps(sent)


@pytest.mark.parametrize("window", [0, -5, "40k"])
def test_a_window_that_is_no_number_of_tokens_is_an_error(window: Any) -> None:
    for given in ({"window_tokens": window}, {"call": ModelCall(window_tokens=window)}):
        with pytest.raises(ConfigError, match="window_tokens must be a number of tokens"):
            compact([], "plain", **given)


async def test_it_works_where_an_event_loop_runs() -> None:
    messages = [each for number in range(3) for each in rounds("openai-chat", number)]
    assert len(compact(messages, "openai-chat", WINDOW)) < len(messages)
    assert asyncio.get_running_loop().is_running()


def test_the_rest_of_the_request_counts() -> None:
    messages = rounds("anthropic", 0)
    call = ModelCall(system="word " * 4_900, tools=(json.dumps(recall_tool_schema()),))
    assert len(compact(messages, "anthropic", WINDOW)) == len(messages)
    assert len(compact(messages, "anthropic", WINDOW, call=call)) < len(messages)


def test_a_size_that_was_reported_before_the_compaction_does_not_count_again() -> None:
    def answered(context: int) -> dict[str, Any]:
        usage = {"input_tokens": context, "output_tokens": 5}
        return {"role": "assistant", "content": "Fine.", "usage": usage}

    messages = [*rounds("anthropic", 0), answered(7_300)]
    compacted = compact(messages, "anthropic", WINDOW)
    assert len(compacted) < len(messages)
    again = [*compacted, *rounds("anthropic", 1)]
    assert compact(again, "anthropic", WINDOW) == again
    fresh = [*again, answered(2_000), said("anthropic", "user", "And now?")]
    assert compact(fresh, "anthropic", WINDOW) == fresh
    full = [*fresh, answered(7_300)]
    assert len(compact(full, "anthropic", WINDOW)) < len(full)


def test_sizes_reported_after_a_compaction_of_the_api_count() -> None:
    def answered(context: int, *blocks: dict[str, str]) -> dict[str, Any]:
        usage = {"input_tokens": context, "output_tokens": 5}
        content = [*blocks, {"type": "text", "text": "Fine."}]
        return {"role": "assistant", "content": content, "usage": usage}

    compacted = answered(9_000, {"type": "compaction", "content": "of the API"})
    long = [each for number in range(4) for each in rounds("anthropic", number)]
    messages = [*long, answered(7_000), said("anthropic", "user", "On."), compacted]
    messages += [
        said("anthropic", "user", "And now?"),
        answered(2_000),
        said("anthropic", "user", "?"),
    ]
    assert compact(messages, "anthropic", WINDOW) == messages


def test_recall_is_not_named_where_nothing_is_kept_that_it_could_read() -> None:
    tools = (json.dumps(recall_tool_schema()),)
    turns = [said("anthropic", "user", f"{n}: " + "x" * 3_000) for n in range(30)]
    sent = compact(turns, "anthropic", WINDOW, call=ModelCall(tools=tools))
    assert "[Compaction 1" in str(sent)
    assert "recall" not in str(sent)
