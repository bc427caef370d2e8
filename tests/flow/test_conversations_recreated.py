"""Conversations whose topic was deleted and created again, and writes whose reply was lost."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.core.alerts.rules import Patterns
from streams.core.conversation.opt_in import KeptConversations
from streams.flow.common import topic_watch
from streams.ports import NO_ID, ApplyResult
from tests.flow.conversations_kit import PARTITIONS, ConversationsKit, new_kit, texts_of, user

OTHER = KeptConversations(sessions=Patterns(("s", "s*")))


@pytest.fixture
async def kit(monkeypatch: pytest.MonkeyPatch) -> ConversationsKit:
    monkeypatch.setattr(topic_watch, "LOOK_S", 0.02)
    return await new_kit()


async def recreate(kit: ConversationsKit, *texts: str, name: str = AGENT_MESSAGES.name) -> None:
    """Replace a topic by another one, which outgrows the former position at once."""
    kit.log.delete_topic(name)
    await kit.log.create_topics([AGENT_MESSAGES, CONTEXT_COMMANDS], PARTITIONS)
    await kit.publish(*(user(text) for text in texts))


async def test_a_topic_that_was_recreated_between_two_workers_is_read_from_its_beginning(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("former"), user("too"))
    async with kit.running():
        await kit.caught_up()
    await recreate(kit, "new 1", "new 2", "new 3")
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["new 1", "new 2", "new 3"]
    # What it said in the former topic is gone.
    assert (await kit.conversation()).state == "incomplete"


async def test_a_topic_that_is_recreated_under_a_worker_is_read_from_its_beginning(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("former"), user("too"))
    async with kit.running():
        await kit.caught_up()
        await recreate(kit, "new 1", "new 2", "new 3")
        # For a moment there is none: the former one is dropped first.
        await kit.becomes(lambda each: texts_of(each) == ["new 1", "new 2", "new 3"])
        assert (await kit.conversation()).state == "incomplete"
        await kit.publish(user("new 4"))
        await kit.caught_up()
    assert (await kit.texts())[3:] == ["new 4"]


async def test_a_session_of_a_recreated_topic_stays_incomplete_when_all_is_read_again(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("former"))
    async with kit.running():
        await kit.caught_up()
    await recreate(kit, "new 1", "new 2")
    async with kit.running():
        await kit.caught_up()
    for loss in ("while none runs", "under a worker", "other patterns"):
        if loss == "while none runs":
            kit.store.lose(partition_of("s", PARTITIONS), b"s", entry=True)
        async with kit.running(OTHER if loss == "other patterns" else None):
            await kit.publish(user("more"))
            await kit.caught_up()
            if loss == "under a worker":
                kit.store.lose(partition_of("s", PARTITIONS), b"s", entry=True)
                await kit.publish(user("more"))
                await kit.caught_up()
        assert (await kit.texts())[:2] == ["new 1", "new 2"]
        assert (await kit.conversation()).state == "incomplete"


async def test_what_an_older_build_kept_of_a_quiet_partition_is_bound_to_its_topic(
    kit: ConversationsKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(names: Sequence[str]) -> dict[str, UUID | None]:
        return dict.fromkeys(names, NO_ID)

    await kit.publish(user("former"), user("too"))
    with monkeypatch.context() as patch:
        patch.setattr(kit.log, "topic_ids", unknown)  # older builds did not ask
        async with kit.running():
            await kit.caught_up()
    assert (await kit.conversation()).topic_id == ""
    topic_id = (await kit.log.topic_ids([AGENT_MESSAGES.name]))[AGENT_MESSAGES.name]
    assert topic_id is not None
    async with kit.running():
        await kit.becomes(lambda each: each.topic_id == topic_id.hex)
    await recreate(kit, "new 1", "new 2", "new 3")
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["new 1", "new 2", "new 3"]


async def test_a_recreated_topic_is_known_after_a_worker_that_ended_within_its_drop(
    kit: ConversationsKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.publish(user("former"), user("too"))
    async with kit.running():
        await kit.caught_up()
    await recreate(kit, "new 1")
    drop, dropped = kit.store.drop, asyncio.Event()

    async def end_within(partition: int, since_ms: int | None = None, topic_id: str = "") -> None:
        await drop(partition, since_ms, topic_id)
        dropped.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(kit.store, "drop", end_within)
        async with kit.running():
            await dropped.wait()
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["new 1"]
    assert (await kit.conversation()).state == "incomplete"


async def test_deletions_of_a_recreated_topic_are_followed(kit: ConversationsKit) -> None:
    await kit.delete("other")
    await kit.publish(user("secret", uuid="1"))
    async with kit.running():
        await kit.caught_up()
        await recreate(kit, name=CONTEXT_COMMANDS.name)
        kit.clock.ahead_ms += 10
        await kit.delete()
        await kit.becomes(lambda each: each.state == "incomplete")
        assert await kit.texts() == []


@pytest.mark.parametrize("is_deletion", [True, False])
async def test_a_write_whose_reply_was_lost_is_not_read_again(
    kit: ConversationsKit, monkeypatch: pytest.MonkeyPatch, *, is_deletion: bool
) -> None:
    apply, lost = kit.store.apply, list[ApplyResult]()

    async def lose_reply(*arguments: Any, **options: Any) -> ApplyResult:
        result = await apply(*arguments, **options)
        if options["changes"] and not lost:
            lost.append(result)
            raise RetryError("the reply was lost")
        return result

    await kit.publish(user("a"))
    kit.clock.ahead_ms = 20_000
    await kit.publish(user("b"))
    async with kit.running() as worker:
        await kit.caught_up()
        monkeypatch.setattr(kit.store, "apply", lose_reply)
        if is_deletion:
            kit.clock.ahead_ms = 10_000
            await kit.delete()
            await kit.becomes(lambda each: each.state == "incomplete")
            kit.clock.ahead_ms = 20_000
        await kit.publish(user("c"))
        await kit.caught_up()
    assert lost == ["applied"]
    assert worker.figures.total("conversations_losses") == 0
    assert worker.figures.total("conversations_rereads") == 0
    assert await kit.texts() == (["b", "c"] if is_deletion else ["a", "b", "c"])


async def test_readers_learn_how_far_the_worker_is(kit: ConversationsKit) -> None:
    await kit.publish(user("a"))
    async with kit.running():
        await kit.caught_up()
        await kit.becomes(lambda each: each.behind == 0)
    conversation = await kit.conversation()
    assert conversation.reported_ms is not None
    assert abs(kit.clock.now_ms() - conversation.reported_ms) < 60_000
