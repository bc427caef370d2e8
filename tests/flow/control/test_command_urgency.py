"""A command that becomes urgent while it is carried out."""

import pytest

from schemas.commands import CommandCalled, CommandPlanned
from tests.flow.control.command_kit import CommandKit


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created(12)


async def test_a_model_that_is_waited_for_is_given_up(kit: CommandKit) -> None:
    kit.summaries.open.clear()
    await kit.request(trigger="auto")
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await kit.request(trigger="auto", urgent=True)
        outcome = await kit.outcome()
    assert (outcome.outcome, outcome.attempt) == ("completed", 2)
    called = kit.of(CommandCalled)
    assert {each.summariser for each in called if each.attempt == 2} == {"extractive"}
    assert kit.summaries.calls == 1
    kit.summaries.open.set()
    await kit.check()


async def test_the_urgent_plan_covers_what_came_meanwhile(kit: CommandKit) -> None:
    kit.summaries.open.clear()
    await kit.request(trigger="auto")
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await kit.say(12)
        await kit.request(trigger="auto", urgent=True)
        assert (await kit.outcome()).outcome == "completed"
    plans = kit.of(CommandPlanned)
    assert [each.covers for each in plans] == [24, 48]
    kit.summaries.open.set()
    await kit.check()


async def test_a_pause_after_a_failed_summary_ends(kit: CommandKit) -> None:
    kit.change(pause_s=1_000.0)
    kit.summaries.failures = 1
    await kit.request(trigger="auto")
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1) and not kit.summaries.failures)
        await kit.request(trigger="auto", urgent=True)
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()


async def test_a_swap_waits_for_no_answer_any_more(kit: CommandKit) -> None:
    kit.change(quiet_s=1_000.0)
    await kit.ask()
    await kit.request(trigger="auto")
    async with kit.worker():
        await kit.until(lambda: kit.of(CommandPlanned))
        await kit.request(trigger="auto", urgent=True)
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()


async def test_the_next_owner_knows_that_it_is_urgent(kit: CommandKit) -> None:
    kit.summaries.open.clear()
    await kit.request(trigger="auto")
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
    assert (await kit.carry_out(trigger="auto", urgent=True)).outcome == "completed"
    assert kit.summaries.calls == 1
    kit.summaries.open.set()
    await kit.check()
