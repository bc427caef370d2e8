"""Conversations never claim to be whole where a message is missing; nothing else is kept."""

from dataclasses import replace

import pytest

from contextgauge.partitioner import partition_of
from contextgauge.records import Json
from streams.core.alerts.rules import Patterns
from streams.core.conversation.opt_in import KeptConversations
from tests.flow.conversations_kit import ALL, PARTITIONS, SUMMARY, ConversationsKit, new_kit, user


@pytest.fixture
async def kit() -> ConversationsKit:
    return await new_kit()


async def test_a_session_that_comes_into_a_folder_that_is_kept_is_not_whole(
    kit: ConversationsKit,
) -> None:
    policy = KeptConversations(projects=Patterns(("/shop*",)))
    await kit.publish(user("elsewhere", cwd="/home"), agent="ann")
    async with kit.running(policy):
        await kit.caught_up()
    await kit.publish(user("here", cwd="/shop"), agent="ann")
    async with kit.running(policy):
        await kit.caught_up()
    assert await kit.texts() == ["here"]
    assert (await kit.conversation()).state == "incomplete"


async def test_a_session_that_leaves_for_a_folder_that_is_not_kept_is_dropped_at_once(
    kit: ConversationsKit,
) -> None:
    kit.config = replace(kit.config, expire_s=3_600)
    policy = KeptConversations(projects=Patterns(("!/secret*",)))
    async with kit.running(policy):
        await kit.publish(user("open", cwd="/shop"), user("closed", cwd="/secret"))
        await kit.caught_up()
        assert await kit.store.conversation("s") is None
        await kit.publish(user("open again", cwd="/shop"))
        await kit.caught_up()
    assert await kit.texts() == ["open again"]
    assert (await kit.conversation()).state == "incomplete"


async def test_what_is_known_of_a_session_may_come_in_parts(kit: ConversationsKit) -> None:
    policy = KeptConversations(agents=Patterns(("ann",)), projects=Patterns(("/shop",)))
    await kit.publish(user("lost"), agent="ann")
    await kit.publish(user("kept", cwd="/shop"), user("too"))
    async with kit.running(policy):
        await kit.caught_up()
        await kit.publish(user("later"))
        await kit.caught_up()
    assert await kit.texts() == ["kept", "too", "later"]


@pytest.mark.parametrize("first", [True, False])
async def test_a_message_that_cannot_be_read_leaves_a_gap(
    kit: ConversationsKit, *, first: bool
) -> None:
    if not first:
        await kit.publish(user("a"), *SUMMARY)
    await kit.publish_bytes(b'{"type": "user", "mess')
    await kit.publish(user("b"))
    async with kit.running():
        await kit.caught_up()
        assert await kit.texts() == (["b"] if first else ["[So far.]", "b"])
        assert (await kit.conversation()).state == "incomplete"
        await kit.publish({**SUMMARY[0], "uuid": "b2"}, {**SUMMARY[1], "uuid": "s2"})
        await kit.caught_up()
    assert (await kit.conversation()).state == "whole"


async def test_a_gap_survives_a_cut(kit: ConversationsKit) -> None:
    policy = replace(ALL, max_bytes=20_000)
    long = "x" * 3_000
    await kit.publish(*(user(f"{index} {long}") for index in range(4)), *SUMMARY)
    await kit.publish_bytes(b"{")
    await kit.publish(*(user(f"{index} {long}") for index in range(5, 8)))
    async with kit.running(policy):
        await kit.caught_up()
    assert [text[:2] for text in await kit.texts()] == ["[S", "5 ", "6 ", "7 "]
    assert (await kit.conversation()).state == "incomplete"


async def test_what_begins_again_after_it_was_too_large_stays_whole_when_it_is_cut(
    kit: ConversationsKit,
) -> None:
    policy = replace(ALL, max_bytes=20_000)
    long = "x" * 3_000
    again = ({**SUMMARY[0], "uuid": "b2"}, {**SUMMARY[1], "uuid": "s2"})
    await kit.publish(*(user(f"{index} {long}") for index in range(8)), *SUMMARY)
    await kit.publish(user("9" + "x" * 4_000), *again)
    await kit.publish(*(user(f"{index} {long}") for index in range(20, 25)))
    async with kit.running(policy):
        await kit.caught_up()
    conversation = await kit.conversation()
    assert conversation.state == "whole"
    assert [text[:2] for text in await kit.texts()] == ["[S", "20", "21", "22", "23", "24"]
    assert conversation.reading is not None
    assert conversation.reading.archived_before > 0


async def test_a_message_from_before_a_deletion_that_comes_late_leaves_a_gap(
    kit: ConversationsKit,
) -> None:
    async with kit.running():
        await kit.publish(user("secret"))
        kit.clock.ahead_ms += 1_000
        await kit.delete()
        await kit.becomes(lambda each: each.state == "incomplete")
        kit.clock.ahead_ms += 1_000
        await kit.publish(*SUMMARY)
        await kit.becomes(lambda each: each.state == "whole")
        kit.clock.ahead_ms -= 1_500
        await kit.publish(user("late"))
        await kit.caught_up()
        assert await kit.texts() == ["[So far.]"]
        assert (await kit.conversation()).state == "incomplete"


async def test_a_compaction_that_was_under_way_at_a_deletion_brings_no_text_back(
    kit: ConversationsKit,
) -> None:
    plan: dict[str, Json] = {"covers": 1, "last_id": "m0", "prefix_hash": "of what is gone"}
    own: dict[str, Json] = {"plan": plan, "edit": {"replacement": "secret, in short"}}
    boundary: dict[str, Json] = {**SUMMARY[0], "compact_metadata": {"contextgauge": own}}
    async with kit.running():
        await kit.publish(user("secret"))
        kit.clock.ahead_ms += 10
        await kit.delete()
        await kit.becomes(lambda each: each.state == "incomplete")
        kit.clock.ahead_ms += 10
        await kit.publish(boundary, user("secret, in short", uuid="s", isCompactSummary=True))
        await kit.publish(user("on"))
        await kit.caught_up()
        lines = await kit.store.lines(partition_of("s", PARTITIONS), b"s")
        assert b"secret" not in b"".join(lines)
        assert await kit.texts() == ["on"]
        assert (await kit.conversation()).state == "incomplete"
        runtimes = ({**SUMMARY[0], "uuid": "b2"}, {**SUMMARY[1], "uuid": "s2"})
        await kit.publish(*runtimes, user("further"))
        await kit.caught_up()
    assert await kit.texts() == ["[So far.]", "further"]
    assert (await kit.conversation()).state == "whole"
