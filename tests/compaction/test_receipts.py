"""Receipts: figures that can be compared, and what a compaction left; results without a call."""

from dataclasses import replace

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.linked_messages import results_without_call
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, JsonSource, Message, Opaque
from tests.compaction.conversations import call, result, said, session
from tests.compaction.test_compactor import CALL, Scripted, talk


@pytest.mark.parametrize("reported", [3_000, 5_000, 9_000, 90_000])
async def test_sizes_before_and_after_are_of_the_same_request(reported: int) -> None:
    history = History(talk(40))
    history.append(said("assistant", "short", usage=ApiUsage(reported - 10, 10)))
    receipt = await Compactor().compact(history, replace(CALL, system="x" * 400))
    assert receipt is not None
    assert (receipt.tokens_before, receipt.basis) == (reported, "reported")
    assert 0 < receipt.tokens_after < reported
    assert receipt.tokens_saved == reported - receipt.tokens_after
    first, last = receipt.steps[0].tokens_before, receipt.steps[-1].tokens_after
    if reported > first:
        assert receipt.tokens_saved == first - last
    else:
        assert receipt.tokens_after == reported * (last + 100) // (first + 100)


async def test_a_compaction_that_is_asked_for_summarises_also_where_clearing_is_enough() -> None:
    call_ = ModelCall(window_tokens=20_000)
    automatic = await Compactor().before_call(History(session(20, characters=3_000)), call_)
    assert automatic.receipt is not None
    assert automatic.receipt.number is None
    asked = await Compactor().compact(History(session(20, characters=3_000)), call_)
    assert asked is not None
    assert asked.number == 1


async def test_the_receipt_counts_the_users_turns_in_the_text() -> None:
    history = History(
        [said("user", "Fix the parser. Never touch config.toml. Use tabs."), *talk(40)]
    )
    receipt = await Compactor().compact(history, CALL)
    assert receipt is not None
    marker = history.active[0].compaction
    assert marker is not None
    assert " 1] Fix the parser. Never touch config.toml. Use tabs.\n" in marker.summary
    assert receipt.pins == sum(each.speaker == "user" for each in marker.carried.entries)


async def test_the_first_active_message_has_the_text_of_the_compaction() -> None:
    history = History(talk(40))
    await Compactor(summariser=Scripted("Half is done.")).compact(history, CALL)
    marker = history.active[0].compaction
    assert marker is not None
    assert "Half is done." in history.active[0].text
    assert history.active[0].text == marker.summary


def test_results_without_a_call_before_them_are_named() -> None:
    opaque = Opaque("server_tool_use", 9, JsonSource("anthropic", {"id": "s", "type": "x"}))
    messages = [result("a"), call("a"), result("a"), Message("assistant", (opaque,)), result("s")]
    assert results_without_call(messages) == ["a"]
    assert results_without_call([*messages, result("b"), result("b")]) == ["a", "b"]
    assert results_without_call(session(3)) == []
