"""The contract of the store of conversations: the twin in memory and the one in a real Redis."""

from collections.abc import AsyncIterator, Mapping

import pytest
from redis.asyncio import Redis

from contextgauge.errors import ConfigError
from contextgauge.records import Json
from streams.codec.conversations import SessionEntry, write_line, write_session_entry
from streams.edge.memory.conversations import MemoryConversations
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.conversations import RedisConversations
from streams.ports import ApplyResult
from streams.ports.conversations import ConversationStore, LinesChange, Mark
from tests.flow.derive_kit import until
from tests.secure.documented import redis_acl

_PASSWORD = "of-this-test"  # noqa: S105 -- of a Redis that lives as long as a test session
SESSION = b"s"


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.service)])
async def store(
    request: pytest.FixtureRequest, key_prefix: str
) -> AsyncIterator[ConversationStore]:
    """Give each store in turn; that in Redis with the documented rights only."""
    store: ConversationStore
    if request.param == "memory":
        store = MemoryConversations()
    else:
        url: str = request.getfixturevalue("redis_url")
        name = f"conversations-of-{key_prefix}"
        async with Redis.from_url(url) as redis:
            rules = redis_acl("conversations", key_prefix, _PASSWORD)
            await redis.execute_command("ACL", "SETUSER", name, "reset", *rules)  # type: ignore[no-untyped-call]  # redis-py
        access = RedisAccess(username=name, password=_PASSWORD)
        store = RedisConversations(url, key_prefix, access)
    await store.start()
    yield store
    await store.stop()


def line(offset: int, text: str) -> bytes:
    message: dict[str, Json] = {"type": "user", "message": {"role": "user", "content": text}}
    return write_line(offset, 1_000 + offset, message)


def entry(lines: int) -> bytes:
    return write_session_entry(
        SessionEntry(agent_id="a", project=None, first_offset=0, last_ms=1_000, lines=lines)
    )


async def apply(
    store: ConversationStore,
    expected: int | None,
    position: int,
    changes: Mapping[bytes, LinesChange],
    keep_ms: int = 60_000,
    stamp: str | None = None,
) -> ApplyResult:
    """Write with the position as the stamp, if none is given."""
    return await store.apply(
        0,
        expected=None if expected is None else str(expected),
        mark=Mark(position, str(position) if stamp is None else stamp, "t"),
        plan="p",
        since_ms=5,
        keep_ms=keep_ms,
        changes=changes,
    )


async def texts(store: ConversationStore) -> list[str]:
    conversation = await store.conversation("s")
    return [] if conversation is None else [each.text for each in conversation.history.active]


async def test_lines_are_appended_with_the_position_and_read_as_a_conversation(
    store: ConversationStore,
) -> None:
    assert await store.open(0, 1) is None
    assert await store.mark(0) is None
    assert await store.conversation("s") is None
    first = {SESSION: LinesChange(entry(1), 0, [line(0, "go")])}
    assert await apply(store, None, 3, first) == "applied"
    more = {SESSION: LinesChange(entry(2), 1, [line(3, "on")])}
    assert await apply(store, 3, 5, more) == "applied"
    assert await texts(store) == ["go", "on"]
    conversation = await store.conversation("s")
    assert conversation is not None
    assert (conversation.state, conversation.position) == ("whole", 5)
    assert (conversation.agent_id, conversation.first_offset) == ("a", 0)
    assert (conversation.behind, conversation.reported_ms) == (None, None)
    stored = await store.open(0, 1)
    assert stored == (Mark(5, "5", "t"), "p", 5, {SESSION: entry(2)}, "t")
    assert await store.mark(0) == Mark(5, "5", "t")
    assert await store.lines(0, SESSION) == [line(0, "go"), line(3, "on")]


async def test_a_batch_that_was_written_is_not_written_again(store: ConversationStore) -> None:
    await store.open(0, 1)
    changes = {SESSION: LinesChange(entry(1), 0, [line(0, "go")])}
    assert await apply(store, None, 3, changes) == "applied"
    assert await apply(store, None, 3, changes) == "done"
    assert await apply(store, 1, 2, changes) == "mismatch"
    assert await texts(store) == ["go"]


async def test_a_write_is_known_by_its_stamp_and_not_by_its_position(
    store: ConversationStore,
) -> None:
    await store.open(0, 1)
    changes = {SESSION: LinesChange(entry(1), 0, [line(0, "go")])}
    assert await apply(store, None, 3, changes) == "applied"
    # Another worker that came to the same position, and a write that does not move it.
    assert await apply(store, 1, 3, changes, stamp="other.1") == "mismatch"
    deleted = {SESSION: LinesChange(entry(0), 1, (), replaces=True)}
    assert await apply(store, 3, 3, deleted, stamp="own.2") == "applied"
    assert await apply(store, 3, 3, deleted, stamp="own.2") == "done"
    assert await store.lines(0, SESSION) == []


async def test_readers_learn_how_far_the_worker_is_behind(store: ConversationStore) -> None:
    await store.open(0, 1)
    await apply(store, None, 3, {SESSION: LinesChange(entry(1), 0, [line(0, "go")])})
    for end, behind in ((10, 7), (3, 0), (1, 0)):
        await store.report(0, end, 1_000 + end)
        conversation = await store.conversation("s")
        assert conversation is not None
        assert (conversation.behind, conversation.reported_ms) == (behind, 1_000 + end)
    await store.drop(0)
    await apply(store, None, 3, {SESSION: LinesChange(entry(1), 0, [line(0, "go")])})
    again = await store.conversation("s")
    assert again is not None
    assert again.behind is None


async def test_lines_can_be_replaced_and_a_session_removed(store: ConversationStore) -> None:
    await store.open(0, 1)
    many = [line(index, f"{index}") for index in range(2_500)]
    await apply(store, None, 1, {SESSION: LinesChange(entry(2_500), 0, many)})
    assert len(await texts(store)) == 2_500
    replaced = LinesChange(entry(1), 2_500, [line(7, "left")], replaces=True)
    assert await apply(store, 1, 2, {SESSION: replaced}) == "applied"
    assert await texts(store) == ["left"]
    assert await apply(store, 2, 3, {SESSION: LinesChange(None, 1)}) == "applied"
    assert await store.conversation("s") is None
    assert await store.lines(0, SESSION) == []


async def test_lost_lines_are_noticed_by_writer_and_reader(
    store: ConversationStore, request: pytest.FixtureRequest, key_prefix: str
) -> None:
    await store.open(0, 1)
    await apply(store, None, 1, {SESSION: LinesChange(entry(1), 0, [line(0, "go")])})
    if isinstance(store, MemoryConversations):
        store.lose(0, SESSION, entry=False)
    else:
        async with Redis.from_url(request.getfixturevalue("redis_url")) as redis:
            await redis.delete(f"{key_prefix}:conv:{{0}}:l:s")
    conversation = await store.conversation("s")
    assert conversation is not None
    assert conversation.state == "incomplete"
    more = {SESSION: LinesChange(entry(2), 1, [line(3, "on")])}
    assert await apply(store, 1, 5, more) == "damaged"


async def test_lines_expire_where_no_worker_drops_them_and_can_be_dropped_then(
    store: ConversationStore,
) -> None:
    await store.open(0, 1)
    first = {SESSION: LinesChange(entry(1), 0, [line(0, "go")])}
    await apply(store, None, 1, first, keep_ms=50)
    if isinstance(store, MemoryConversations):
        store.lose(0, SESSION, entry=False)

    async def expired() -> bool:
        return not await store.lines(0, SESSION)

    await until(expired)
    conversation = await store.conversation("s")
    assert conversation is not None
    assert conversation.state == "incomplete"
    dropped = LinesChange(entry(0), 1, (), replaces=True)
    assert await apply(store, 1, 2, {SESSION: dropped}) == "applied"
    again = LinesChange(entry(1), 0, [line(7, "on")])
    assert await apply(store, 2, 3, {SESSION: again}) == "applied"
    assert await texts(store) == ["on"]


async def test_a_lost_session_is_noticed_when_anything_is_written(
    store: ConversationStore, request: pytest.FixtureRequest, key_prefix: str
) -> None:
    await store.open(0, 1)
    await apply(store, None, 1, {SESSION: LinesChange(entry(1), 0, [line(0, "go")])})
    if isinstance(store, MemoryConversations):
        store.lose(0, SESSION, entry=True)
    else:
        async with Redis.from_url(request.getfixturevalue("redis_url")) as redis:
            await redis.hdel(f"{key_prefix}:conv:{{0}}:sessions", "s")
    assert await store.open(0, 1) == (None, "p", 5, {}, "t")
    assert await apply(store, 1, 5, {}) == "damaged"


async def test_dropping_a_partition_leaves_the_others(store: ConversationStore) -> None:
    await store.open(0, 2)
    changes = {SESSION: LinesChange(entry(1), 0, [line(0, "go")])}
    for partition in (0, 1):
        await store.apply(
            partition,
            expected=None,
            mark=Mark(1, "w"),
            plan="p",
            since_ms=None,
            keep_ms=60_000,
            changes=changes,
        )
    await store.drop(0)
    assert await store.open(0, 2) is None
    assert await store.lines(0, SESSION) == []
    assert await store.open(1, 2) == (Mark(1, "w", ""), "p", None, {SESSION: entry(1)}, "")
    # Since when, and of which topic, is noted in the same step.
    await store.drop(1, 7, "t")
    assert await store.mark(1) is None
    assert await store.open(1, 2) == (None, "", 7, {}, "t")
    assert await store.lines(1, SESSION) == []
    again = Mark(2, "v", "u")
    await store.apply(
        1, expected=None, mark=again, plan="p", since_ms=None, keep_ms=60_000, changes={}
    )
    assert await store.open(1, 2) == (again, "p", 7, {}, "u")


@pytest.mark.parametrize("is_dropped", [False, True])
async def test_a_write_that_does_not_know_the_topic_leaves_the_one_that_is_stored(
    store: ConversationStore, *, is_dropped: bool
) -> None:
    async def write(expected: str | None, mark: Mark) -> Mark | None:
        assert (
            await store.apply(
                0, expected=expected, mark=mark, plan="p", since_ms=5, keep_ms=60_000, changes={}
            )
            == "applied"
        )
        return await store.mark(0)

    await store.open(0, 1)
    # A broker may not know it for a while.
    assert await write(None, Mark(1, "a")) == Mark(1, "a")
    assert await write("a", Mark(1, "b", "t")) == Mark(1, "b", "t")
    if is_dropped:
        await store.drop(0, None, "t")
    assert await write(None if is_dropped else "b", Mark(2, "c")) == Mark(2, "c", "t")


async def test_another_number_of_partitions_is_refused(store: ConversationStore) -> None:
    await store.open(0, 2)
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_KEY_PREFIX"):
        await store.open(0, 3)
