"""Seed 001: archive and compact. What its document says, by its profile."""

import json
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction import (
    Compactor,
    History,
    Message,
    ModelCall,
    NoSummaryError,
    Override,
    SummaryError,
    load_history,
    read_messages,
    store_history,
    write_messages,
)
from contextgauge.compaction.displays import marker_text
from contextgauge.compaction.engine.trigger import Due, Idle
from contextgauge.compaction.messages import ApiUsage
from contextgauge.compaction.profiles import SEED_001
from contextgauge.errors import ConfigError
from contextgauge.records import Json
from tests.compaction.conversations import call, result, said
from tests.compaction.test_compactor import Scripted, talk

CALL = ModelCall(window_tokens=200_000)

STORED: Any = [
    {"role": "user", "content": "the task"},
    {"role": "assistant", "content": "half of it"},
    {
        "role": "user",
        "content": [
            {
                "type": "context_compaction",
                "compaction_number": 1,
                "timestamp": "2024-01-15T10:30:00Z",
                "summary": "Half is done.",
                "messages_archived": 2,
                "context_size_before": 150_000,
            },
            {"type": "text", "text": "Go on."},
        ],
    },
    {"role": "user", "content": "and the rest?"},
]


def full(tokens: int = 170_000, count: int = 6) -> History:
    """A conversation whose last answer reported its size."""
    history = History(talk(count))
    history.append(said("assistant", "full", usage=ApiUsage(tokens, 900)))
    return history


async def prepared(history: History, *answers: str | SummaryError, **changes: object) -> Any:
    compactor = Compactor(
        profile=replace(SEED_001, **changes),  # type: ignore[arg-type]
        summariser=Scripted(*answers or ("All of it.",)),
    )
    return await compactor.before_call(history, CALL)


@pytest.mark.parametrize(("tokens", "due"), [(169_999, False), (170_000, True)])
async def test_compaction_is_due_at_exactly_85_percent(tokens: int, due: bool) -> None:
    decision = (await prepared(full(tokens))).decision
    assert isinstance(decision, Due) == due


async def test_the_size_is_the_last_answers_whatever_follows_it() -> None:
    history = full(100_000)
    history.append(said("user", "x" * 400_000))
    assert (await prepared(history)).decision == Idle("below_threshold")
    history.append(said("assistant", "ok", usage=ApiUsage(171_000, 1)))
    assert (await prepared(history)).receipt.tokens_before == 171_000


async def test_without_a_reported_size_there_is_none() -> None:
    assert (await prepared(History(talk(6, 400_000)))).decision == Idle("below_threshold")


async def test_another_threshold_may_be_set() -> None:
    changes = {"compact_at": 0.8, "compact_to": 0.8}
    assert isinstance((await prepared(full(160_000), **changes)).decision, Due)
    compactor = Compactor(
        profile="seed-001",
        summariser=Scripted("All."),
        overrides=[Override(changes, model="small-*")],
    )
    call_ = replace(CALL, model="small-1")
    assert isinstance((await compactor.before_call(full(160_000), call_)).decision, Due)


async def test_each_model_has_its_own_limit() -> None:
    compactor = Compactor(
        profile="seed-001", summariser=Scripted("All."), window_of={"a": 100_000, "b": 300_000}.get
    )
    assert (await compactor.before_call(full(), ModelCall(model="b"))).receipt is None
    assert (await compactor.before_call(full(), ModelCall(model="a"))).receipt is not None


async def test_disabled_management_checks_nothing() -> None:
    history = full(199_000)
    assert (await prepared(history, enabled=False)).decision == Idle("disabled")
    assert len(history.active) == 7
    without_limit = await Compactor(profile="seed-001").before_call(history, ModelCall(model="x"))
    assert without_limit.decision == Idle("unknown_window")


async def test_an_empty_summary_leaves_the_conversation() -> None:
    history = full()
    before = list(history.active)
    compactor = Compactor(profile="seed-001", summariser=Scripted(SummaryError("empty answer")))
    with pytest.raises(NoSummaryError, match="empty answer"):
        await compactor.compact(history, CALL)
    assert list(history.active) == before


async def test_the_first_message_after_a_compaction_is_its_own() -> None:
    history = full()
    await prepared(history)
    history.append(said("assistant", "going on"))
    marker, answer = history.active
    assert marker.compaction is not None
    assert marker.text == (
        "All of it.\nContext has been compacted. Continue the task based on the summary above."
    )
    assert answer.text == "going on"
    assert "All of it." in json.dumps(write_messages(history.active, "anthropic"))


async def test_results_of_archived_tools_are_shown_and_not_sent_again() -> None:
    history = History([said("user", "go"), call("a"), result("a", "the secret of the file " * 9)])
    history.append(said("assistant", "full", usage=ApiUsage(180_000, 1)))
    await prepared(history)
    sent = json.dumps(write_messages(history.active, "anthropic"))
    assert "the secret of the file" not in sent
    assert any(each.results for each in history.everything)


async def test_system_messages_are_not_archived() -> None:
    """Working memory, such as file trees and plans, is in the system prompt and stays."""
    history = History([said("system", "The plan and the file tree."), *talk(6)])
    history.append(said("assistant", "full", usage=ApiUsage(170_000, 900)))
    await prepared(history)
    assert [each.role for each in history.active] == ["system", "user"]


async def test_several_compactions_are_numbered_and_each_counts_all_messages() -> None:
    history = full()
    await prepared(history, "First.")
    history.extend(talk(3))
    history.append(said("assistant", "full again", usage=ApiUsage(175_000, 1)))
    await prepared(history, "Second.")
    markers = [each.compaction for each in history.everything if each.compaction]
    assert [(each.number, each.summary) for each in markers] == [(1, "First."), (2, "Second.")]
    assert [each.messages_archived for each in markers] == [7, 12]
    assert [each.context_size_before for each in markers] == [170_000, 175_000]
    assert len(history.active) == 1
    assert len(history.archived) == 11


async def test_the_answer_that_asked_for_the_summary_causes_no_second_one() -> None:
    history = full()
    compactor = Compactor(profile="seed-001", summariser=Scripted("All of it."))
    assert (await compactor.before_call(history, CALL)).receipt is not None
    for _ in range(3):
        assert (await compactor.before_call(history, CALL)).decision == Idle("below_threshold")
    assert history.rounds == 1


async def test_request_and_answer_of_the_summary_are_in_the_receipt_only() -> None:
    history = full()
    receipt = (await prepared(history)).receipt
    assert (receipt.summary_input_tokens, receipt.summary_output_tokens) == (100, 10)
    assert len(history.everything) == 8


async def test_nothing_is_compacted_in_the_middle_of_a_tool_call() -> None:
    history = full()
    history.append(
        Message("assistant", call("a").blocks, usage=ApiUsage(190_000, 1)),
    )
    assert (await prepared(history)).decision == Idle("open_calls")
    history.append(result("a"))
    assert isinstance((await prepared(history)).decision, Due)


async def test_played_back_messages_stay_as_recorded_with_management_off() -> None:
    history = History()
    for message in full(199_000).everything:
        history.append(message)
        sent = await prepared(history, enabled=False)
        assert list(sent.messages) == list(history.everything)


def test_a_stored_conversation_continues_after_its_last_compaction() -> None:
    history = History([said("system", "s"), *read_messages(STORED, "plain")])
    assert [each.text for each in history.active] == ["s", "Half is done.\nGo on.", "and the rest?"]
    assert [each.text for each in history.archived] == ["the task", "half of it"]
    assert history.rounds == 1
    assert len(history.everything) == 5


def test_an_edited_history_needs_no_positions() -> None:
    history = History(read_messages(STORED[1:], "plain"))
    assert [each.text for each in history.active] == ["Half is done.\nGo on.", "and the rest?"]


async def test_a_session_is_resumed_with_its_markers() -> None:
    history = full()
    await prepared(history)
    history.append(said("user", "next"))
    again = load_history(store_history(history))
    assert list(again.active) == list(history.active)
    assert list(again.everything) == list(history.everything)
    assert again.rounds == 1


async def test_people_see_all_messages_and_the_marker_and_the_model_the_active_ones() -> None:
    history = full()
    await prepared(history)
    shown = [
        marker_text(each.compaction) if each.compaction else each.text
        for each in history.everything
    ]
    assert len(shown) == 8
    assert shown[-1].splitlines() == [
        "🗃️  Context Compacted #1",
        "7 messages archived, 170,000 tokens before",
        "All of it.",
    ]
    assert len(history.active) == 1


async def test_a_marker_has_its_five_fields_when_stored() -> None:
    history = full()
    await prepared(history)
    (written,) = write_messages(history.active, "plain")
    message: Any = written
    block, text = message["content"]
    assert [
        block[name]
        for name in ("type", "compaction_number", "messages_archived", "context_size_before")
    ] == ["context_compaction", 1, 7, 170_000]
    assert block["summary"] == "All of it."
    assert block["timestamp"].endswith("Z")
    assert text == {
        "type": "text",
        "text": "Context has been compacted. Continue the task based on the summary above.",
    }


def test_the_time_of_a_marker_is_one_that_can_be_written() -> None:
    block: Json = {
        "type": "context_compaction",
        "compaction_number": 1,
        "timestamp": {"secs_since_epoch": 10**17, "nanos_since_epoch": 0},
        "summary": "s",
        "messages_archived": 1,
        "context_size_before": 1,
    }
    with pytest.raises(ConfigError, match="timestamp: expected a time"):
        read_messages([{"role": "user", "content": [block]}], "plain")
