"""The engine where something is large, late, broken or interrupted."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.compaction import (
    ApiUsage,
    Compactor,
    History,
    Hooks,
    Message,
    ModelCall,
    NoSummaryError,
    Override,
    SummaryAnswer,
    SummaryRequest,
)
from contextgauge.compaction.carried.audit import audit
from contextgauge.compaction.carried.compaction_text import compose
from contextgauge.compaction.engine import preparation
from contextgauge.compaction.engine.trigger import Due, Idle
from contextgauge.compaction.events import CompactionStarting
from contextgauge.compaction.messages import Text, ToolCall, ToolResult
from contextgauge.compaction.profiles import DEFAULT
from contextgauge.errors import ConfigError
from tests.compaction.conversations import call, orphans, result, said, session
from tests.compaction.test_compactor import CALL, Scripted, talk


def size(messages: tuple[Message, ...]) -> int:
    return sum(-(-len(block.text) // 4) for each in messages for block in each.results) + sum(
        -(-len(each.text) // 4) for each in messages
    )


@pytest.mark.parametrize(
    "messages",
    [
        [said("user", "read it"), call("a"), result("a", "x" * 2_000_000)],
        [said("user", "y " * 1_000_000)],
        [
            said("user", "write it"),
            Message("assistant", (ToolCall("a", "write", '{"text":"' + "z" * 900_000 + '"}'),)),
            result("a"),
        ],
    ],
    ids=["result", "turn", "arguments"],
)
async def test_one_huge_message_of_a_short_conversation_is_cut(messages: list[Message]) -> None:
    history = History(messages)
    prepared = await Compactor().before_call(history, ModelCall(window_tokens=100_000))
    assert prepared.decision == Due(overflow=True)
    assert prepared.receipt is not None
    assert prepared.receipt.tokens_after <= prepared.receipt.target_tokens
    assert len(prepared.messages) == len(messages)
    assert orphans(list(prepared.messages)) == set()
    assert history.everything[-1].blocks == messages[-1].blocks


async def test_compactions_that_help_go_on_within_one_turn_of_the_user() -> None:
    """Each answer brings results of half the window: that is work, no lack of progress."""
    history = History([said("user", "read all of it")])
    compactor, receipts = Compactor(), 0
    for number in range(30):
        history.append(
            Message("assistant", (ToolCall(f"c{number}", "read", "{}"),), usage=ApiUsage(3_000, 9))
        )
        history.append(result(f"c{number}", f"{number} " * 30_000))
        prepared = await compactor.before_call(history, ModelCall(window_tokens=20_000))
        receipts += prepared.receipt is not None
        assert prepared.decision != Idle("no_progress")
    assert receipts > 10


async def test_the_users_last_turn_is_whole_however_large_the_system_prompt() -> None:
    text = "Please rename the function parse to read_lines in all files. " * 5
    history = History([*talk(20, 800), said("user", text)])
    call_ = ModelCall(system="s" * 17_000, window_tokens=12_000)
    prepared = await Compactor().before_call(history, call_)
    assert prepared.receipt is not None
    assert prepared.messages[-1].text == text


async def test_constraints_stay_through_compactions_of_few_messages() -> None:
    rules = [said("user", f"Never change the file config/part_{n}.yaml.") for n in range(30)]
    history = History([*rules, *talk(30, 400)])
    compactor = Compactor()
    for _ in range(4):
        await compactor.compact(history, ModelCall(window_tokens=16_000))
        marker = next(each.compaction for each in history.active if each.compaction)
        assert audit(marker.summary, marker.carried) == []
        assert marker.summary.count("] Never change the file config/part_") == 30
        history.extend(talk(6, 400))


async def test_reported_sizes_still_count_after_results_were_cleared() -> None:
    profile = replace(DEFAULT, clear_at_tokens=4_000, clear_at_least_tokens=500)
    history = History(session(10, characters=2_000))
    history.append(said("assistant", "so far", usage=ApiUsage(9_000, 10)))
    compactor = Compactor(profile=profile)
    prepared = await compactor.before_call(history, ModelCall(window_tokens=100_000))
    (cleared,) = history.receipts
    assert cleared.tokens_before == 9_010
    assert prepared.decision == Idle("below_threshold")
    again = await compactor.before_call(history, ModelCall(window_tokens=8_000))
    assert again.receipt is not None
    assert again.receipt.basis == "reported"
    assert again.receipt.tokens_before == cleared.tokens_after


async def test_results_that_the_model_has_not_read_are_not_cleared() -> None:
    calls = tuple(ToolCall(f"p{n}", "read", "{}") for n in range(8))
    results = tuple(ToolResult(f"p{n}", (Text(f"{n} " * 1_500),)) for n in range(8))
    history = History([*session(4), Message("assistant", calls), Message("user", results)])
    prepared = await Compactor().before_call(history, ModelCall(window_tokens=10_000))
    assert prepared.receipt is not None
    assert all(not each.text.startswith("[Result of") for each in prepared.messages[-1].results)


async def test_an_interrupted_call_does_not_stop_compactions() -> None:
    history = History([said("user", "go"), call("lost"), *talk(100)])
    prepared = await Compactor().before_call(history, CALL)
    assert prepared.receipt is not None


class Broken:
    """A summariser of the caller's own that fails in a way of its own."""

    name = "broken"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()
        return SummaryAnswer(str(request.number))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionError("10.0.0.1"), "the summariser broken raised ConnectionError"),
        (TimeoutError("its own"), "the summariser broken raised TimeoutError"),
        (None, "no summary within 0 s"),
    ],
)
async def test_whatever_a_summariser_raises_is_a_failure_and_no_crash(
    error: Exception | None, reason: str
) -> None:
    compactor = Compactor(summariser=Broken(error), deadline_s=0.01)
    history = History(talk(40))
    with pytest.raises(NoSummaryError, match=reason):
        await compactor.compact(history, CALL)
    history.extend(talk(60))
    prepared = await compactor.before_call(history, CALL)
    assert prepared.receipt is not None
    assert prepared.receipt.summariser == "floor"
    assert prepared.receipt.failures == (reason,)


async def test_an_empty_summary_is_refused() -> None:
    compactor = Compactor(profile="seed-002", summariser=Scripted("  \n"))
    with pytest.raises(NoSummaryError, match="empty"):
        await compactor.compact(History(talk(30)), CALL)


def test_overrides_that_contradict_one_another_are_an_error_at_once() -> None:
    overrides = [
        Override({"compact_to": 0.8}, project="big"),
        Override({"compact_at": 0.7}, model="gpt-*"),
    ]
    with pytest.raises(ConfigError, match="compact_to"):
        Compactor(overrides=overrides)


async def test_restored_texts_have_a_share_of_the_room() -> None:
    hooks = Hooks(restore=lambda: ["The plan.", "## File f\n" + "f" * 40_000, "g\n" * 40_000])
    history = History(talk(40))
    receipt = await Compactor(hooks=hooks).compact(history, CALL)
    assert receipt is not None
    assert (receipt.restored, receipt.restore_omitted) == (1, ("File f", "g"))
    assert receipt.tokens_after <= receipt.target_tokens


async def test_a_size_reported_for_the_conversation_before_a_plan_is_none_of_it_now() -> None:
    history, compactor = History(talk(30)), Compactor()
    await compactor.before_call(history, CALL)
    plan = await compactor.plan(history, CALL)  # while the model is called
    assert plan is not None
    compactor.apply(history, plan)
    history.append(said("assistant", "late", usage=ApiUsage(9_500, 10)))
    assert history.tokens.input == 9_500
    prepared = await compactor.before_call(history, CALL)
    assert prepared.decision == Idle("below_threshold")
    history.append(said("assistant", "next", usage=ApiUsage(9_500, 10)))
    assert (await compactor.before_call(history, CALL)).decision != Idle("below_threshold")


async def test_a_declined_compaction_rests_until_the_next_turn_or_the_full_window() -> None:
    asked: list[CompactionStarting] = []

    async def confirm(event: CompactionStarting) -> bool:
        asked.append(event)
        return False

    now = [0]
    compactor = Compactor(hooks=Hooks(confirm=confirm), now_ms=lambda: now[0])
    history = History(talk(80))
    for _ in range(3):
        await compactor.before_call(history, CALL)
        history.extend([call(f"c{len(history.active)}"), result(f"c{len(history.active)}")])
        assert len(asked) == 1
    history.append(said("user", "And now?"))
    await compactor.before_call(history, CALL)
    assert len(asked) == 2
    now[0] = 600_000
    history.append(said("assistant", "Hm."))
    await compactor.before_call(history, CALL)
    assert len(asked) == 3
    assert history.rounds == 0
    history.extend([said("user", "Go on."), *talk(20)])
    prepared = await compactor.before_call(history, CALL)
    assert len(asked) == 4
    assert prepared.receipt is not None
    assert prepared.receipt.summariser == "floor"


async def test_the_floor_is_composed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    composed: list[int] = []

    def counting(*arguments: Any, **named: Any) -> str:
        composed.append(1)
        return compose(*arguments, **named)

    monkeypatch.setattr(preparation, "compose", counting)
    monkeypatch.setattr(preparation, "audit", lambda text, _: [] if "old" not in text else ["it"])
    history = History(talk(95))
    prepared = await Compactor(summariser=Scripted("old")).before_call(history, CALL)
    assert prepared.receipt is not None
    assert (prepared.receipt.summariser, len(composed)) == ("floor", 2)


async def test_a_review_that_makes_the_summary_too_large_is_refused() -> None:
    async def review(text: str) -> str:
        return text + "more " * 50_000

    compactor = Compactor(summariser=Scripted("sum"), hooks=Hooks(review=review))
    with pytest.raises(NoSummaryError, match="after its review"):
        await compactor.compact(History(talk(40)), CALL)


async def test_what_a_review_took_out_does_not_come_back() -> None:
    async def review(text: str) -> str:
        return text.replace("SECRETWORD", "a word").replace("Never use port 8080.", "")

    summariser = Scripted("It is SECRETWORD.", "Round two.")
    compactor = Compactor(summariser=summariser, hooks=Hooks(review=review))
    history = History([said("user", "Never use port 8080."), *talk(40)])
    await compactor.compact(history, CALL)
    history.extend(talk(40))
    await compactor.compact(history, CALL)
    previous = summariser.requests[1].previous
    marker = next(each.compaction for each in history.active if each.compaction)
    assert previous is not None
    assert "SECRETWORD" not in previous
    assert "8080" not in marker.summary


def test_ids_of_the_engine_give_way_to_the_callers() -> None:
    history = History([said("user", "a"), said("user", "b", id="m1"), said("user", "c", id="1")])
    assert [each.id for each in history.active][1:] == ["m1", "1"]
