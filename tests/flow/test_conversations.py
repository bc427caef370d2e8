"""The worker that keeps conversations, on log and store in memory."""

from dataclasses import replace
from pathlib import Path

import pytest

from contextgauge.errors import ConfigError
from contextgauge.partitioner import partition_of
from contextgauge.units import DAY_MS
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams.core.alerts.rules import Patterns
from streams.core.conversation.opt_in import KeptConversations
from streams.ports import NewRecord
from streams.settings import Settings
from streams.wiring.workers import conversations_config
from tests.flow.conversations_kit import ALL, PARTITIONS, SUMMARY, ConversationsKit, new_kit, user
from tests.flow.derive_kit import until


@pytest.fixture
async def kit() -> ConversationsKit:
    return await new_kit()


async def test_messages_become_a_conversation_and_a_restart_goes_on(kit: ConversationsKit) -> None:
    await kit.publish(user("a", uuid="1"), agent="ann")
    async with kit.running():
        await kit.caught_up()
    await kit.publish(user("b", uuid="2", cwd="/shop"), user("a", uuid="1"))
    async with kit.running() as worker:
        await kit.caught_up()
    assert await kit.texts() == ["a", "b"]
    conversation = await kit.conversation()
    assert (conversation.state, conversation.agent_id) == ("whole", "ann")
    assert conversation.project == "/shop"
    assert worker.figures.total("conversations_messages") == 2


async def test_messages_of_a_subagents_file_are_no_part_of_the_conversation(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("go", uuid="a"))
    await kit.publish(user("look", uuid="b"), thread="a7")
    await kit.publish(user("on", uuid="c"))
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["go", "on"]


async def test_only_sessions_that_fit_the_patterns_are_kept(kit: ConversationsKit) -> None:
    policy = KeptConversations(agents=Patterns(("ann",)), projects=Patterns(("/shop*",)))
    await kit.publish(user("mine", cwd="/shop/a"), session="one", agent="ann")
    await kit.publish(user("other folder", cwd="/home"), session="two", agent="ann")
    await kit.publish(user("other agent", cwd="/shop"), session="three", agent="bob")
    async with kit.running(policy):
        await kit.caught_up()
    assert await kit.texts("one") == ["mine"]
    assert await kit.store.conversation("two") is None
    assert await kit.store.conversation("three") is None


async def test_a_session_that_was_decided_late_is_not_whole(kit: ConversationsKit) -> None:
    policy = KeptConversations(projects=Patterns(("/shop",)))
    await kit.publish(user("lost"))
    async with kit.running(policy):
        await kit.caught_up()
    await kit.publish(user("kept", cwd="/shop"))
    async with kit.running(policy):
        await kit.caught_up()
    assert await kit.texts() == ["kept"]
    assert (await kit.conversation()).state == "incomplete"


async def test_other_patterns_are_applied_to_the_whole_log(kit: ConversationsKit) -> None:
    await kit.publish(user("a"), session="one")
    await kit.publish(user("b"), session="two")
    async with kit.running(KeptConversations(sessions=Patterns(("one",)))):
        await kit.caught_up()
    assert await kit.store.conversation("two") is None
    async with kit.running(KeptConversations(sessions=Patterns(("two",)))):

        async def done() -> bool:
            return await kit.store.conversation("two") is not None

        await until(done)
    assert (await kit.conversation("two")).state == "whole"
    assert await kit.store.conversation("one") is None


async def test_a_command_that_another_program_wrote_deletes_nothing(kit: ConversationsKit) -> None:
    producer = kit.log.producer()
    partition = partition_of("s", PARTITIONS)
    await producer.send(
        NewRecord(CONTEXT_COMMANDS.name, partition, b"s", b"{}", (("ce_type", None),))
    )
    await kit.publish(user("a"))
    async with kit.running():
        await kit.caught_up()
        await producer.send(
            NewRecord(CONTEXT_COMMANDS.name, partition, b"s", b"{}", (("ce_type", None),))
        )
        await kit.publish(user("b"))
        await kit.caught_up()
    assert await kit.texts() == ["a", "b"]


async def test_text_that_was_deleted_does_not_come_back_with_a_rebuild(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("secret", uuid="1"))
    async with kit.running():
        await kit.caught_up()
        kit.clock.ahead_ms += 10
        await kit.delete()
        await kit.becomes(lambda each: each.state == "incomplete")
        assert await kit.texts() == []
        kit.clock.ahead_ms += 10
        await kit.publish(user("after", uuid="2"))
        await kit.caught_up()
    for partition in range(PARTITIONS):
        await kit.store.drop(partition)
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["after"]
    assert (await kit.conversation()).state == "incomplete"
    assert not (await kit.conversation()).history.archived
    await kit.publish(*SUMMARY)
    async with kit.running():
        await kit.caught_up()
    assert (await kit.conversation()).state == "whole"


async def test_a_store_that_was_emptied_is_filled_again(kit: ConversationsKit) -> None:
    await kit.publish(user("a"))
    async with kit.running() as worker:
        await kit.caught_up()
        for partition in range(PARTITIONS):
            await kit.store.drop(partition)
        await kit.publish(user("b"))
        await kit.caught_up()
        assert await kit.texts() == ["a", "b"]
    assert worker.figures.total("conversations_rereads") > 0


@pytest.mark.parametrize("entry", [True, False])
async def test_what_was_lost_is_read_again(kit: ConversationsKit, *, entry: bool) -> None:
    await kit.publish(user("a"))
    async with kit.running() as worker:
        await kit.caught_up()
        kit.store.lose(partition_of("s", PARTITIONS), b"s", entry=entry)
        await kit.publish(user("b"))
        await kit.caught_up()
        await kit.becomes(lambda each: each.state == "whole")
        assert await kit.texts() == ["a", "b"]
    assert worker.figures.total("conversations_losses") == 1


async def test_a_log_that_lost_its_beginning_gives_no_whole_conversation(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("gone"), user("left"))
    partition = partition_of("s", PARTITIONS)
    kit.log.delete_before(AGENT_MESSAGES.name, partition, 1)
    kit.clock.ahead_ms += 1
    await kit.publish(user("begins", uuid="1", parentUuid=None), session="s3")
    async with kit.running():
        await kit.caught_up()
    assert await kit.texts() == ["left"]
    assert (await kit.conversation()).state == "incomplete"
    assert partition_of("s3", PARTITIONS) == partition
    assert (await kit.conversation("s3")).state == "whole"


async def test_an_idle_session_expires_and_is_incomplete_when_it_comes_back(
    kit: ConversationsKit,
) -> None:
    await kit.publish(user("a"))
    async with kit.running() as worker:
        await kit.caught_up()
        kit.clock.ahead_ms += 8 * DAY_MS

        async def gone() -> bool:
            return await kit.store.conversation("s") is None

        await until(gone)
        await kit.publish(user("b"))
        await kit.caught_up()
        assert await kit.texts() == ["b"]
        assert (await kit.conversation()).state == "incomplete"
    assert worker.figures.total("conversations_expired") == 1


async def test_archived_messages_go_first_where_there_are_too_many_bytes(
    kit: ConversationsKit,
) -> None:
    policy = replace(ALL, max_bytes=20_000)
    long = "x" * 3_000
    await kit.publish(*(user(f"{index} {long}") for index in range(4)), *SUMMARY)
    await kit.publish(*(user(f"{index} {long}") for index in range(5, 8)))
    async with kit.running(policy):
        await kit.caught_up()
    conversation = await kit.conversation()
    assert conversation.state == "whole"
    assert [text[:2] for text in await kit.texts()] == ["[S", "5 ", "6 ", "7 "]
    assert conversation.history.archived == []
    assert conversation.reading is not None
    assert conversation.reading.archived_before == 4


async def test_a_conversation_that_is_too_large_begins_at_its_next_compaction(
    kit: ConversationsKit,
) -> None:
    policy = replace(ALL, max_bytes=20_000)
    long = "x" * 3_000
    await kit.publish(*(user(f"{index} {long}") for index in range(8)))
    async with kit.running(policy):
        await kit.caught_up()
        assert (await kit.conversation()).state == "too_large"
        assert await kit.texts() == []
        await kit.publish(*SUMMARY, user("on"))
        await kit.caught_up()
    assert (await kit.conversation()).state == "whole"
    assert await kit.texts() == ["[So far.]", "on"]


async def test_two_workers_on_one_partition_lose_nothing(kit: ConversationsKit) -> None:
    for index in range(10):
        await kit.publish(user(f"{index}"))
    async with kit.running(), kit.running():
        await kit.caught_up()
        await kit.publish(user("last"))
        await kit.caught_up()
    assert await kit.texts() == [*(f"{index}" for index in range(10)), "last"]


@pytest.mark.parametrize(("messages", "commands"), [(60, 30), (-1, 30), (31, 30)])
def test_deletions_are_kept_for_as_long_as_messages(
    tmp_path: Path, messages: int, commands: int
) -> None:
    file = tmp_path / "compaction.toml"
    file.write_text('[conversations]\nsessions = ["*"]\n')
    given = Settings(
        compaction_file=file, messages_retention_days=messages, commands_retention_days=commands
    )
    with pytest.raises(ConfigError, match=f"CONTEXTGAUGE_COMMANDS_RETENTION_DAYS to {messages}"):
        conversations_config(given)
    for days in (messages, -1):
        equal = given.model_copy(update={"commands_retention_days": days})
        assert conversations_config(equal).messages_topic == AGENT_MESSAGES.name
