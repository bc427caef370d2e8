"""When the engine waits, and how it says so."""

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.trigger import Idle, Unreachable
from contextgauge.compaction.events import CompactionNotDone
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, Image, Message, Text
from contextgauge.compaction.ports import SummaryError
from tests.compaction.conversations import call, said
from tests.compaction.test_compactor import CALL, Log, Scripted, talk


async def test_a_plan_waits_for_a_calls_result() -> None:
    history = History([*talk(90), call("a")])
    compactor = Compactor()
    assert await compactor.plan(history, CALL) is None
    assert await compactor.compact(history, CALL) is None
    assert compactor.why_not(history, CALL) == "a tool's call has no result yet"


async def test_where_nothing_can_leave_the_request_is_sent_while_it_fits() -> None:
    log = Log()
    history = History([Message("user", (Text("Look."), Image(8_000)))])
    prepared = await Compactor(hooks=log.hooks()).before_call(history, CALL)
    assert prepared.decision == Idle("nothing_to_compact")
    assert log.names() == []


@pytest.mark.parametrize("context", [9_500, 12_500])
async def test_a_full_window_that_nothing_can_leave_is_reported_once(context: int) -> None:
    log = Log()
    compactor = Compactor(hooks=log.hooks())
    answer = said("assistant", "yo", usage=ApiUsage(context, 10))
    history = History([said("user", "hi"), answer, said("user", "hi again")])
    assert (await compactor.before_call(history, CALL)).decision == Unreachable()
    prepared = await compactor.before_call(history, CALL)
    assert prepared.decision == Idle("threshold_unreachable")
    assert log.names() == ["threshold-unreachable"]


async def test_an_error_that_no_repetition_can_mend_rests_until_the_users_turn() -> None:
    log = Log()
    summariser = Scripted(SummaryError("the key is wrong", final=True))
    now = [0]
    compactor = Compactor(summariser=summariser, hooks=log.hooks(), now_ms=lambda: now[0])
    history = History(talk(79))
    await compactor.before_call(history, CALL)
    now[0] = 10**9
    await compactor.before_call(history, CALL)
    assert len(summariser.requests) == 1
    assert log.events[-1] == CompactionNotDone("the key is wrong", None)
    history.append(said("user", "go on"))
    await compactor.before_call(history, CALL)
    assert len(summariser.requests) == 2
