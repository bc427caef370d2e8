"""The engine as an agent loop uses it."""

import asyncio
from dataclasses import replace

import pytest

from contextgauge.compaction.compactor import Compactor
from contextgauge.compaction.engine.plan import PlanRejectedError
from contextgauge.compaction.engine.request_size import ModelCall
from contextgauge.compaction.engine.trigger import Due, Idle
from contextgauge.compaction.events import (
    CompactionDone,
    CompactionNotDone,
    CompactionStarting,
    ContextWarned,
    EngineEvent,
    Hooks,
    ThresholdUnreachable,
)
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ApiUsage, Message, Text, ToolCall
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.profiles import DEFAULT, Override
from contextgauge.compaction.summary_call import NoSummaryError
from contextgauge.errors import ConfigError
from tests.compaction.conversations import call, orphans, result, said, session

WINDOW = 10_000
CALL = ModelCall(window_tokens=WINDOW, reserved_output_tokens=1_000)


class Scripted:
    """A summariser that answers as the test says."""

    name = "scripted"

    def __init__(self, *answers: str | SummaryError) -> None:
        self.answers = list(answers)
        self.requests: list[SummaryRequest] = []

    async def summarise(self, request: SummaryRequest) -> SummaryAnswer:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, SummaryError):
            raise answer
        return SummaryAnswer(answer, input_tokens=100, output_tokens=10)


class Log:
    """The events, in order."""

    def __init__(self) -> None:
        self.events: list[EngineEvent] = []

    def hooks(self) -> Hooks:
        return Hooks(on_event=self.events.append)

    def names(self) -> list[str]:
        return [each.name for each in self.events]


def talk(count: int, characters: int = 400) -> list[Message]:
    return [
        said(
            "user" if number % 2 == 0 else "assistant", f"{number}: " + "word " * (characters // 5)
        )
        for number in range(count)
    ]


async def test_a_small_conversation_is_sent_as_it_is() -> None:
    history = History(session(3))
    prepared = await Compactor().before_call(history, CALL)
    assert prepared.decision == Idle("below_threshold")
    assert list(prepared.messages) == list(history.active)


async def test_the_warning_comes_first_and_once() -> None:
    log = Log()
    compactor = Compactor(hooks=log.hooks())
    history = History(talk(70))
    await compactor.before_call(history, CALL)
    await compactor.before_call(history, CALL)
    assert log.names() == ["context-warning"]
    assert isinstance(log.events[0], ContextWarned)


async def test_old_results_go_before_any_message_is_archived() -> None:
    summariser = Scripted("never asked")
    history = History(session(12, characters=3_200))
    prepared = await Compactor(summariser=summariser).before_call(history, CALL)
    assert prepared.receipt is not None
    assert [each.rung for each in prepared.receipt.steps] == ["clear-results"]
    assert prepared.receipt.number is None
    assert len(prepared.messages) == 49
    assert summariser.requests == []


async def test_a_full_conversation_is_summarised() -> None:
    log = Log()
    summariser = Scripted("What was said: numbers.")
    compactor = Compactor(summariser=summariser, hooks=log.hooks(), now_ms=lambda: 5_000)
    history = History([said("system", "Be brief."), *talk(90)])
    before = list(history.active)
    prepared = await compactor.before_call(history, CALL)
    assert prepared.decision == Due(overflow=True)
    assert prepared.receipt is not None
    receipt = prepared.receipt
    assert (receipt.number, receipt.summariser, receipt.trigger) == (1, "scripted", "auto")
    assert receipt.tokens_after <= receipt.target_tokens < receipt.tokens_before
    marker = prepared.messages[1].compaction
    assert prepared.messages[0] == before[0]
    latest = list(prepared.messages[2:])
    assert latest == before[-len(latest) :] != []
    assert marker is not None
    assert "What was said: numbers." in marker.summary
    assert marker.timestamp_ms == 5_000
    assert marker.messages_archived == receipt.messages_archived == 90 - len(latest)
    assert log.names() == ["auto-compacting", "compaction-complete"]
    assert [each.id for each in history.archived] == list(receipt.archived_ids)


async def test_the_next_round_gets_the_previous_summary_and_a_number() -> None:
    summariser = Scripted("Round one.", "Round two.")
    compactor = Compactor(summariser=summariser)
    history = History(talk(90))
    await compactor.before_call(history, CALL)
    history.extend([*talk(80), said("assistant", "done")])
    prepared = await compactor.before_call(history, CALL)
    assert prepared.receipt is not None
    assert prepared.receipt.number == 2
    assert summariser.requests[1].previous == "Round one."
    assert sum(each.compaction is not None for each in prepared.messages) == 1


async def test_a_failure_leaves_the_conversation_and_backs_off() -> None:
    log = Log()
    summariser = Scripted(SummaryError("the provider answered 500"))
    now = [0]
    compactor = Compactor(summariser=summariser, hooks=log.hooks(), now_ms=lambda: now[0])
    history = History(talk(78))
    before = list(history.active)
    await compactor.before_call(history, CALL)
    history.extend(talk(1))
    await compactor.before_call(history, CALL)
    assert list(history.active)[:-1] == before
    assert len(summariser.requests) == 1
    failure = log.events[-1]
    assert isinstance(failure, CompactionNotDone)
    assert failure.reason == "the provider answered 500"
    assert failure.retry_at_ms == 30_000
    now[0] = 30_000
    await compactor.before_call(history, CALL)
    assert len(summariser.requests) == 2


async def test_the_floor_is_taken_where_the_window_is_full() -> None:
    summariser = Scripted(SummaryError("no answer within 60 s"))
    history = History(talk(95))
    prepared = await Compactor(summariser=summariser).before_call(history, CALL)
    assert prepared.receipt is not None
    assert prepared.receipt.summariser == "floor"
    assert prepared.receipt.failures == ("no answer within 60 s",)
    assert prepared.receipt.tokens_after <= prepared.receipt.target_tokens


async def test_a_summary_larger_than_what_it_replaces_is_refused() -> None:
    compactor = Compactor(profile="seed-002", summariser=Scripted("word " * 2_000))
    history = History([said("system", "s"), *talk(14, 100)])
    with pytest.raises(NoSummaryError, match="what it replaces"):
        await compactor.compact(history, CALL)
    assert len(history.active) == 15


async def test_nothing_to_compact_gives_no_event() -> None:
    log = Log()
    history = History(talk(2))
    assert await Compactor(hooks=log.hooks()).compact(history, CALL) is None
    assert log.events == []


async def test_instructions_reach_the_summariser() -> None:
    summariser = Scripted("ok then")
    history = History(talk(30))
    receipt = await Compactor(summariser=summariser).compact(
        history, CALL, instructions="keep the numbers"
    )
    assert summariser.requests[0].instructions == "keep the numbers"
    assert receipt is not None
    assert receipt.trigger == "manual"


async def test_a_plan_made_in_the_background_drops_exactly_what_it_covered() -> None:
    compactor = Compactor(summariser=Scripted("sum"))
    history = History(talk(40))
    planning = asyncio.create_task(compactor.plan(history, CALL))
    await asyncio.sleep(0)
    later = [history.append(each) for each in talk(3)]
    plan = await planning
    assert plan is not None
    compactor.apply(history, plan)
    assert list(history.active)[-3:] == later
    assert [each.id for each in history.archived] == list(plan.receipt.archived_ids)


async def test_a_plan_is_rejected_where_its_beginning_was_changed() -> None:
    compactor = Compactor(summariser=Scripted("sum"))
    history = History(talk(40))
    plan = await compactor.plan(history, CALL)
    other = await compactor.plan(history, CALL)
    assert plan is not None
    assert other is not None
    compactor.apply(history, plan)
    with pytest.raises(PlanRejectedError, match="make a new plan"):
        compactor.apply(history, other)


async def test_no_compaction_while_a_call_is_open() -> None:
    history = History([*talk(90), call("a")])
    prepared = await Compactor().before_call(history, CALL)
    assert prepared.decision == Idle("open_calls")
    history.append(result("a"))
    prepared = await Compactor().before_call(history, CALL)
    assert prepared.receipt is not None
    assert orphans(list(prepared.messages)) == set()


async def test_a_threshold_that_the_tools_alone_reach_is_reported_once() -> None:
    log = Log()
    compactor = Compactor(hooks=log.hooks())
    heavy = replace(CALL, tools=("x" * 40_000,))
    history = History(talk(20))
    await compactor.before_call(history, heavy)
    await compactor.before_call(history, heavy)
    assert log.names() == ["threshold-unreachable"]
    assert isinstance(log.events[0], ThresholdUnreachable)


async def test_reported_sizes_count_before_estimates() -> None:
    history = History(talk(20))
    history.append(said("assistant", "short", usage=ApiUsage(9_500, 10)))
    prepared = await Compactor(summariser=Scripted("sum")).before_call(history, CALL)
    assert prepared.receipt is not None
    assert prepared.receipt.tokens_before == 9_510
    assert prepared.receipt.basis == "reported"


async def test_a_switch_to_a_model_with_a_smaller_window_compacts() -> None:
    windows = {"large": 1_000_000, "small": 10_000}
    compactor = Compactor(summariser=Scripted("sum"), window_of=windows.get)
    history = History(talk(90))
    large = await compactor.before_call(history, ModelCall(model="large"))
    small = await compactor.before_call(history, ModelCall(model="small"))
    assert large.receipt is None
    assert small.receipt is not None


async def test_confirmation_and_review_come_before_the_summary_is_used() -> None:
    asked: list[CompactionStarting] = []

    async def confirm(event: CompactionStarting) -> bool:
        asked.append(event)
        return len(asked) > 1

    async def review(text: str) -> str:
        return text + " Reviewed."

    now = [0]
    compactor = Compactor(
        summariser=Scripted("sum"),
        hooks=Hooks(confirm=confirm, review=review),
        now_ms=lambda: now[0],
    )
    history = History(talk(78))
    assert (await compactor.before_call(history, CALL)).receipt is None
    now[0] = 60_000
    prepared = await compactor.before_call(history, CALL)
    marker = next(each.compaction for each in prepared.messages if each.compaction)
    assert marker.summary.endswith("Reviewed.")


async def test_a_refused_summary_leaves_the_conversation() -> None:
    async def review(_text: str) -> None:
        return None

    compactor = Compactor(summariser=Scripted("sum"), hooks=Hooks(review=review))
    history = History(talk(40))
    with pytest.raises(NoSummaryError, match="review"):
        await compactor.compact(history, CALL)


async def test_restored_texts_follow_the_summary() -> None:
    hooks = Hooks(restore=lambda: ["The plan: finish."])
    history = History(talk(40))
    await Compactor(summariser=Scripted("sum"), hooks=hooks).compact(history, CALL)
    (restored,) = history.active[0].blocks[1:]
    assert isinstance(restored, Text)
    assert restored.text.splitlines()[1:-1] == ["The plan: finish."]


async def test_figures_differ_by_project_agent_and_model() -> None:
    compactor = Compactor(
        summariser=Scripted("sum"),
        overrides=[Override({"enabled": False}, project="legacy-*")],
    )
    history = History(talk(90))
    off = await compactor.before_call(history, replace(CALL, project="legacy-billing"))
    on = await compactor.before_call(history, replace(CALL, project="new"))
    assert (off.decision, on.receipt is not None) == (Idle("disabled"), True)


def test_a_wrong_override_is_an_error_at_once() -> None:
    with pytest.raises(ConfigError, match="compact_att"):
        Compactor(overrides=[Override({"compact_att": 0.5}, model="gpt-4o")])
    with pytest.raises(ConfigError, match="compact_to"):
        Compactor(overrides=[Override({"compact_at": 0.3})])


async def test_results_are_cleared_at_a_size_of_their_own() -> None:
    log = Log()
    profile = replace(DEFAULT, clear_at_tokens=3_000, clear_at_least_tokens=500)
    compactor = Compactor(profile=profile, hooks=log.hooks())
    history = History(session(8, characters=2_000))
    prepared = await compactor.before_call(history, CALL)
    assert prepared.decision == Idle("below_threshold")
    assert log.names() == ["compaction-complete"]
    assert isinstance(log.events[0], CompactionDone)
    assert [each.rung for each in log.events[0].receipt.steps] == ["clear-results"]
    assert history.rounds == 0
    assert [type(each) for each in history.active[2].blocks] == [ToolCall]
