"""Topics that are deleted and created again under control workers, or between two of them."""

import asyncio

import pytest

from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from schemas.commands import CommandAccepted
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS, CONTEXT_EVENTS
from streams.flow.common.topic_watch import known_topics
from tests.flow.control.command_kit import (
    COMMANDS,
    MESSAGES,
    PARTITIONS,
    SESSION,
    CommandKit,
)
from tests.flow.control.control_kit import TOPIC, ControlKit, pressured
from tests.patience import PATIENCE_S


@pytest.fixture
async def service() -> CommandKit:
    return await CommandKit.created(12)


async def recreate(kit: CommandKit, topic: str) -> None:
    kit.log.delete_topic(topic)
    await kit.log.create_topics([AGENT_MESSAGES, CONTEXT_COMMANDS], PARTITIONS)


async def run_until_recreated(kit: ControlKit) -> None:
    """Run a worker, and raise what it raises once its topic is another one."""
    async with kit.running() as running:
        await kit.until_acknowledged()
        kit.log.delete_topic(TOPIC)
        await kit.log.create_topics([CONTEXT_EVENTS], 2)
        await asyncio.wait_for(running.task, PATIENCE_S)


async def test_a_worker_ends_when_its_topic_is_recreated_and_the_next_one_alerts(
    kit: ControlKit,
) -> None:
    await kit.write([*pressured(90), *pressured(90, session="s2")])
    with pytest.raises(RetryError, match=r"created again\. Create what .* start the worker"):
        await run_until_recreated(kit)
    taken = list(kit.receivers["ops"].taken)
    assert len(taken) == 2
    kit.acknowledged.clear()  # as Kafka does with the positions of a topic that is deleted
    kit.topics = await known_topics(kit.log, kit.clock, [TOPIC])
    # The same records are no new alerts, and the others are not skipped.
    await kit.write([*pressured(90), *pressured(95, session="s3")])
    async with kit.running():
        await kit.until_taken(3)
        await kit.until_acknowledged()
    assert kit.receivers["ops"].bodies[2]["session_id"] == "s3"
    assert len(kit.receivers["ops"].taken) == 3


async def test_a_log_of_commands_that_was_recreated_is_read_from_its_beginning(
    service: CommandKit,
) -> None:
    async with service.worker():
        await service.request("first")
        assert (await service.outcome("first")).outcome == "completed"
        await recreate(service, COMMANDS)
        await service.say(12)
        await service.request("second")
        assert (await service.outcome("second")).outcome == "completed"
    commands = {getattr(entry, "command_id", None) for entry in service.entries()}
    assert commands == {"second"}


async def test_nothing_is_written_where_the_log_of_commands_became_shorter(
    service: CommandKit,
) -> None:
    service.summaries.open.clear()
    async with service.worker():
        await service.request("first")
        await service.until(lambda: service.has_called(1))
        partition = service.log.partition(COMMANDS, partition_of(SESSION, PARTITIONS))
        before = partition.next_offset
        await recreate(service, COMMANDS)
        service.summaries.open.set()
        await service.request("second")
        assert (await service.outcome("second")).outcome == "completed"
    assert before > 1
    assert {getattr(entry, "command_id", None) for entry in service.entries()} == {"second"}
    assert len(service.boundaries()) == 1


async def test_a_conversation_of_a_former_topic_is_not_compacted(service: CommandKit) -> None:
    service.conversations.topic_id = "former"
    outcome = await service.carry_out()
    assert outcome.outcome == "failed"
    assert "of a topic that was deleted and created again" in (outcome.reason or "")
    assert service.boundaries() == []


@pytest.mark.parametrize("is_read_again", [True, False])
async def test_a_session_of_a_new_topic_waits_until_its_conversation_is_kept(
    service: CommandKit, *, is_read_again: bool
) -> None:
    service.conversations.is_former = True
    await service.request()
    async with service.worker():
        await service.until(lambda: service.conversations.looks > 2 or service.finished())
        service.conversations.is_former = not is_read_again
        outcome = await service.outcome()
    assert outcome.outcome == ("completed" if is_read_again else "failed")
    assert is_read_again or "of a topic that was deleted and created again" in str(outcome.reason)


async def test_what_was_accepted_of_a_former_topic_fails_with_the_reason(
    service: CommandKit,
) -> None:
    service.conversations.held = 0
    await service.request()
    async with service.worker():
        await service.until(lambda: service.of(CommandAccepted))
        await recreate(service, MESSAGES)
        await service.say(2)
        outcome = await service.outcome()
    assert outcome.outcome == "failed"
    assert "ends at 4, and 24 is needed: it was deleted and created" in str(outcome.reason)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_plan_for_a_former_topic_has_no_effect_in_the_new_one(
    service: CommandKit, *, is_known: bool
) -> None:
    if is_known:
        topic_id = (await service.log.topic_ids([MESSAGES]))[MESSAGES]
        assert topic_id is not None
        service.conversations.topic_id = topic_id.hex
    service.summaries.open.clear()
    await service.request()
    async with service.worker():
        await service.until(lambda: service.has_called(1))
        await recreate(service, MESSAGES)
        await service.say(20 if is_known else 2)
        service.summaries.open.set()
        outcome = await service.outcome()
    assert outcome.outcome == "failed"
    assert "deleted and created again" in (outcome.reason or "")
    assert service.boundaries() == []
