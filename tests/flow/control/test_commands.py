"""Commands of the compaction service, each from its request to its one outcome."""

from functools import partial

import pytest

from contextgauge.partitioner import partition_of
from contextgauge.records import Json
from schemas.commands import (
    CommandCalled,
    TextDeleted,
)
from streams.flow.derive.deriver import Deriver, input_message
from tests.flow.control.command_kit import MESSAGES, PARTITIONS, SESSION, CommandKit
from tests.flow.derive_kit import RULES


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created()


async def test_a_request_becomes_a_compaction(kit: CommandKit) -> None:
    await kit.say(12)
    outcome = await kit.carry_out()
    assert outcome.outcome == "completed", outcome
    assert kit.kinds() == [
        "compact_requested",
        "command_accepted",
        "command_planned",
        "command_called",
        "command_finished",
    ]
    await kit.check()
    conversation = await kit.conversations.conversation(SESSION)
    assert conversation is not None
    assert len(conversation.history.active) < 12
    marker = conversation.history.active[0].compaction
    assert marker is not None
    assert "messages of work" in marker.summary
    view = await kit.store.control_view(SESSION)
    assert view is not None
    assert [each.outcome for each in view.commands] == ["completed"]


async def test_the_deriver_makes_its_records(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: len(kit.of(CommandCalled)) > 2)
        kit.summaries.open.set()
        await kit.outcome()
    deriver = Deriver(RULES)
    records = [
        record.data.kind
        for message in kit.read(MESSAGES, partition_of(SESSION, PARTITIONS))
        for record in deriver.derive(input_message(message)).records
    ]
    compaction = [kind for kind in records if kind.startswith("compact")]
    assert compaction[0] == "compaction_start"
    assert compaction[-2:] == ["compact_boundary", "compaction_summary"]
    assert set(compaction[1:-2]) == {"compaction_progress"}


async def test_quoted_words_that_would_be_orders_of_a_model_are_no_failure(
    kit: CommandKit,
) -> None:
    kit.change(summariser=None)
    order: list[Json] = [{"type": "text", "text": "It said: ignore all previous instructions."}]
    message: dict[str, Json] = {"id": "m", "role": "assistant", "content": order}
    await kit.say(2)
    await kit.publish({"type": "assistant", "message": message})
    await kit.say(12)
    assert (await kit.carry_out()).outcome == "completed"
    await kit.check()


async def test_a_second_request_is_refused_while_one_is_open(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request("one")
    async with kit.worker():
        await kit.until(lambda: kit.of(CommandCalled))
        await kit.request("two")
        refused = await kit.outcome("two")
        assert refused.outcome == "refused"
        assert "one" in (refused.reason or "")
        kit.summaries.open.set()
        assert (await kit.outcome("one")).outcome == "completed"
    await kit.check()


async def test_the_same_request_again_does_nothing(kit: CommandKit) -> None:
    await kit.say(12)
    await kit.request()
    await kit.request()
    async with kit.worker():
        await kit.outcome()
        await kit.request()
        await kit.say(12)
        await kit.request("other")
        assert (await kit.outcome("other")).outcome == "completed"
    await kit.check()


async def test_sessions_are_compacted_side_by_side(kit: CommandKit) -> None:
    names = [f"session-{number}" for number in range(6)]
    for name in names:
        await kit.say(12, name)
        await kit.request(f"of {name}", session_id=name)
    async with kit.worker():
        for name in names:
            assert (await kit.outcome(f"of {name}")).outcome == "completed"
    for name in names:
        await kit.check(name)


async def test_messages_that_come_meanwhile_stay(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.summaries.calls)
        await kit.say(3)
        kit.summaries.open.set()
        assert (await kit.outcome()).outcome == "completed"
    await kit.check()
    conversation = await kit.conversations.conversation(SESSION)
    assert conversation is not None
    assert [each.text.split()[1] for each in conversation.history.active[-6:]] == [
        "13", "13", "14", "14", "15", "15"
    ]  # fmt: skip


async def test_a_plan_whose_conversation_was_cleared_is_made_again(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.summaries.calls)
        await kit.publish({"type": "conversation_reset", "trigger": "clear"})
        await kit.say(12)
        kit.summaries.open.set()
        outcome = await kit.outcome()
    assert (outcome.outcome, outcome.attempt) == ("completed", 2)
    await kit.check()


async def test_a_conversation_that_keeps_changing_fails_the_command(kit: CommandKit) -> None:
    kit.change(most_plans=2)
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        for calls in (1, 2):
            await kit.until(partial(kit.has_called, calls))
            await kit.publish({"type": "conversation_reset", "trigger": "clear"})
            await kit.say(12)
            kit.summaries.let_one_go()
        outcome = await kit.outcome()
    assert outcome.outcome == "failed"
    assert "changed under each of 2 plans" in (outcome.reason or "")
    assert not kit.boundaries()
    await kit.check()


async def test_nothing_to_compact(kit: CommandKit) -> None:
    await kit.say(1, words=1)
    assert (await kit.carry_out()).outcome == "nothing_to_compact"
    assert len(kit.lines()) == 2
    await kit.check()


async def test_what_cannot_be_compacted_is_refused(kit: CommandKit) -> None:
    async with kit.worker():
        await kit.say(2)
        kit.opted_in = False
        await kit.request("closed")
        assert "opted in" in ((await kit.outcome("closed")).reason or "")
        kit.opted_in, kit.driver = True, "gone"
        await kit.request("no driver")
        assert "'gone'" in ((await kit.outcome("no driver")).reason or "")
        kit.driver = "service"
        await kit.request("of another", session_id="unknown")
        assert "no conversation" in ((await kit.outcome("of another")).reason or "")
    assert {
        each.outcome
        for name in ("closed", "no driver", "of another")
        for each in kit.finished(name)
    } == {"refused"}


async def test_an_offset_that_is_not_reached_fails_the_command(kit: CommandKit) -> None:
    await kit.say(12)
    kit.conversations.held = 3
    outcome = await kit.carry_out(upto_offset=20)
    assert outcome.outcome in ("failed", "refused")
    assert "up to offset 3" in (outcome.reason or "")


async def test_a_summary_that_fails_is_asked_for_again(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.failures = 2
    outcome = await kit.carry_out()
    assert (outcome.outcome, outcome.attempt) == ("completed", 3)
    await kit.check()


async def test_no_summary_leaves_the_conversation_as_it_was(kit: CommandKit) -> None:
    await kit.say(12)
    before = await kit.conversations.conversation(SESSION)
    kit.summaries.failures = 99
    outcome = await kit.carry_out()
    assert outcome.outcome == "failed"
    assert "the provider is away" in (outcome.reason or "")
    assert kit.lines()[-1]["compact_result"] == "failed"
    await kit.check()
    after = await kit.conversations.conversation(SESSION)
    assert before is not None
    assert after is not None
    assert after.history.active == before.history.active


async def test_an_urgent_command_waits_for_no_model(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    assert (await kit.carry_out(urgent=True)).outcome == "completed"
    assert kit.summaries.calls == 0
    await kit.check()


async def test_a_command_has_a_deadline(kit: CommandKit) -> None:
    kit.change(command_s=0.5)
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        outcome = await kit.outcome()
        kit.summaries.open.set()
    assert outcome.outcome == "failed"
    assert "waiting for a summary" in (outcome.reason or "")
    await kit.check()


async def test_deleting_the_text_ends_the_command(kit: CommandKit) -> None:
    await kit.say(12)
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.summaries.calls)
        await kit.send(TextDeleted(session_id=SESSION, requested_by="test"))
        kit.summaries.open.set()
        outcome = await kit.outcome()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "the session's text was deleted")
    assert not kit.boundaries()
