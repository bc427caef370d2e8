"""Callbacks that raise, and two calls at once: neither breaks a compaction."""

import asyncio
import logging
from dataclasses import replace

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.counting import ESTIMATE
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.trigger import Due, Idle
from contextgauge.compaction.events import (
    CompactionNotDone,
    CompactionStarting,
    EngineEvent,
    Hooks,
)
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message
from contextgauge.compaction.ports import SummaryAnswer, SummaryRequest
from contextgauge.compaction.store.stored_history import load_history, store_history
from contextgauge.compaction.summary_call import NoSummaryError
from contextgauge.errors import ConfigError
from tests.compaction.conversations import said
from tests.compaction.test_compactor import CALL, Log, Scripted, talk


class Held:
    """A summariser that answers when the test says so."""

    name = "held"

    def __init__(self) -> None:
        self.asked, self.answer, self.requests = asyncio.Event(), asyncio.Event(), 0

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        self.requests += 1
        self.asked.set()
        await self.answer.wait()
        return SummaryAnswer(f"Round {request.number}.")


def bad_event(_event: EngineEvent) -> None:
    raise RuntimeError("on_event")


def bad_restore() -> list[str]:
    raise RuntimeError("restore")


@pytest.mark.parametrize(
    ("hooks", "name"),
    [(Hooks(on_event=bad_event), "on_event"), (Hooks(restore=bad_restore), "restore")],
)
async def test_a_hook_that_raises_is_logged_and_changes_nothing(
    hooks: Hooks, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    histories = [History(talk(90)) for _ in range(2)]
    for history, each in zip(histories, (hooks, Hooks()), strict=True):
        compactor = Compactor(summariser=Scripted("sum"), hooks=each, now_ms=lambda: 0)
        assert (await compactor.before_call(history, CALL)).receipt is not None
    assert list(histories[0].active) == list(histories[1].active)
    assert {each.getMessage() for each in caplog.records} == {f"{name} raised an error"}
    assert all(each.levelno == logging.ERROR and each.exc_info for each in caplog.records)


async def test_a_look_up_of_windows_that_raises_leaves_the_window_unknown() -> None:
    def window_of(_model: str) -> int:
        raise OSError("no catalog")

    compactor = Compactor(summariser=Scripted("sum"), window_of=window_of)
    history = History(talk(1_200))
    prepared = await compactor.before_call(history, ModelCall(model="some"))
    assert prepared.receipt is not None
    assert prepared.receipt.window == (128_000, "assumed")


async def test_what_a_counter_cannot_count_is_estimated() -> None:
    class Picky:
        def text(self, text: str) -> int:
            raise ValueError(text)

        def message(self, message: Message) -> int:
            if message.text.startswith("3:"):
                raise ValueError(message)
            return ESTIMATE.message(message)

    history, other = History(talk(90)), History(talk(90))
    prepared = await Compactor(counter=Picky(), now_ms=lambda: 0).before_call(history, CALL)
    assert prepared.receipt is not None
    await Compactor(now_ms=lambda: 0).before_call(other, CALL)
    assert list(history.active) == list(other.active)


async def test_a_confirmation_that_raises_declines_and_a_review_that_raises_refuses() -> None:
    async def bad(_given: object) -> bool:
        raise RuntimeError("no")

    async def bad_review(_text: str) -> str:
        raise RuntimeError("no")

    log, history = Log(), History(talk(80))
    hooks = replace(log.hooks(), confirm=bad)
    await Compactor(summariser=Scripted("sum"), hooks=hooks).before_call(history, CALL)
    assert isinstance(log.events[-1], CompactionNotDone)
    assert log.events[-1].reason == "declined"
    compactor = Compactor(summariser=Scripted("sum"), hooks=Hooks(review=bad_review))
    with pytest.raises(NoSummaryError, match="review"):
        await compactor.compact(history, CALL)
    assert history.rounds == 0


@pytest.mark.parametrize("answer", [False, True, 5, b"text"])
async def test_a_review_that_returns_no_text_refuses(
    answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def review(_text: str) -> str:
        return answer  # type: ignore[return-value]

    log, history = Log(), History(talk(80))
    hooks = replace(log.hooks(), review=review)
    await Compactor(summariser=Scripted("sum"), hooks=hooks).before_call(history, CALL)
    assert isinstance(log.events[-1], CompactionNotDone)
    assert "refused in its review" in log.events[-1].reason
    assert f"review returned {type(answer).__name__}, not a text or None" in caplog.messages


async def test_a_hook_that_is_no_async_function_is_an_error() -> None:
    hooks = Hooks(confirm=lambda _starting: True)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="async def"):
        await Compactor(hooks=hooks).before_call(History(talk(80)), CALL)


async def test_two_calls_at_once_make_one_compaction() -> None:
    summariser, history = Held(), History(talk(90))
    compactors = [Compactor(summariser=summariser) for _ in range(2)]
    calls = [asyncio.create_task(each.before_call(history, CALL)) for each in compactors]
    await summariser.asked.wait()
    summariser.answer.set()
    first, second = await asyncio.gather(*calls)
    assert (summariser.requests, history.rounds) == (1, 1)
    assert first.receipt is not None
    assert second.receipt is None
    assert first.messages == second.messages


async def test_after_a_call_that_was_cancelled_the_next_compacts() -> None:
    summariser, history = Held(), History(talk(90))
    compactor = Compactor(summariser=summariser)
    call = asyncio.create_task(compactor.before_call(history, CALL))
    await summariser.asked.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    summariser.answer.set()
    assert (await compactor.before_call(history, CALL)).receipt is not None


async def test_a_hook_may_compact_the_conversation_itself() -> None:
    history = History(talk(80))

    async def confirm(_starting: CompactionStarting) -> bool:
        return await compactor.compact(history, CALL, instructions="mine") is None

    compactor = Compactor(summariser=Scripted("sum"), hooks=Hooks(confirm=confirm))
    await asyncio.wait_for(compactor.before_call(history, CALL), 60)
    assert history.rounds == 1


async def test_a_conversation_that_changes_under_the_plan_is_compacted_if_it_must_fit() -> None:
    for count, decision in ((80, Due(overflow=False)), (95, Due(overflow=True))):
        log, summariser, history = Log(), Held(), History(talk(count))
        compactor = Compactor(summariser=summariser, hooks=log.hooks())
        call = asyncio.create_task(compactor.before_call(history, CALL))
        await summariser.asked.wait()
        history.amend(replace(history.active[0], blocks=said("user", "Never mind.").blocks))
        summariser.answer.set()
        prepared = await call
        assert prepared.decision == decision
        assert (prepared.receipt is not None) == decision.overflow
        assert "compaction-failed" in log.names()


async def test_what_came_while_the_summary_was_written_has_to_fit_too() -> None:
    summariser, history = Held(), History(talk(80))
    call = asyncio.create_task(Compactor(summariser=summariser).before_call(history, CALL))
    await summariser.asked.wait()
    history.append(said("user", "Read this. " + "word " * 12_000))
    summariser.answer.set()
    prepared = await call
    assert sum(map(ESTIMATE.message, prepared.messages)) < 9_000
    assert history.rounds == 2


async def test_a_stored_pause_is_over_where_the_clock_was_set_back() -> None:
    class Down:
        name = "down"

        async def summarise(self, _request: SummaryRequest) -> SummaryAnswer:
            raise ConnectionError

    now, history = [4_000_000_000_000], History(talk(80))
    await Compactor(summariser=Down(), now_ms=lambda: now[0]).before_call(history, CALL)
    again = load_history(store_history(history))
    compactor = Compactor(summariser=Scripted("sum"), now_ms=lambda: now[0])
    assert (await compactor.before_call(again, CALL)).decision == Idle("pause_after_failure")
    now[0] = 1_795_000_000_000
    assert (await compactor.before_call(again, CALL)).receipt is not None


async def test_pauses_do_not_heed_a_clock_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    class Down:
        name = "down"

        async def summarise(self, _request: SummaryRequest) -> SummaryAnswer:
            raise ConnectionError

    history, compactor = History(talk(80)), Compactor(summariser=Down())
    await compactor.before_call(history, CALL)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert (await compactor.before_call(history, CALL)).decision == Idle("pause_after_failure")
    monkeypatch.setattr("time.monotonic_ns", lambda: 10**18)
    assert (await compactor.before_call(history, CALL)).decision == Due(overflow=False)
