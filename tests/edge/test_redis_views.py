"""What only a real Redis does: forgetting scripts, running full, loading, being away."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from contextgauge.errors import ConfigError, RetryError, StopError, VersionError
from schemas.views import STREAM_ENTRIES
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.keys import RedisKeys, entry_id, entry_offset
from streams.edge.redis.view_store import RedisViews
from streams.ports import (
    ApplyResult,
    Entry,
    Generations,
    HeldCheck,
    ViewChanges,
    ViewPosition,
)

NOTHING = ViewChanges({}, {}, {}, (), {}, {}, {}, {}, (), {})
SOMETHING = NOTHING._replace(views={b"a": b"1"})


async def apply(
    store: RedisViews, expected: int | None, offset: int, changes: ViewChanges = NOTHING
) -> ApplyResult:
    position = ViewPosition(offset, 0, 2, caught_up=False)
    return await store.apply(1, 0, expected=expected, position=position, changes=changes)


def as_text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.fixture
async def store(redis_url: str, key_prefix: str) -> AsyncIterator[RedisViews]:
    made = RedisViews(redis_url, key_prefix)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_url)
    yield client
    await client.aclose()


async def test_the_keys_are_those_of_the_specification(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    changes = ViewChanges(
        leaving={},
        views={b"a": b"1"},
        compactions={(b"a", b"1"): b"1"},
        entries=[("events", b"a", Entry(0, b"1")), ("readings", b"a", Entry(7, b"1"))],
        recent={b"a": 1},
        pressure={b"a": 1.5},
        idle={b"a": 1},
        stats={b"total": b"1"},
        live=[Entry(7, b"1")],
        agents={(b"g", b"a"): 1},
    )
    await apply(store, None, 8, changes)
    await store.begin_next(1, "build")
    assert await redis.get(f"{key_prefix}:next") == b"1:build"
    await store.activate(1, "build")
    types = {
        as_text(name).removeprefix(f"{key_prefix}:"): as_text(await redis.type(name))
        async for name in redis.scan_iter(match=f"{key_prefix}:*")
    }
    assert types == {
        "active": "string",
        "{1:0}:pos": "hash",
        "{1:0}:s:a": "string",
        "{1:0}:c:a": "hash",
        "{1:0}:a:g": "zset",
        "{1:0}:e:a": "stream",
        "{1:0}:r:a": "stream",
        "{1:0}:recent": "zset",
        "{1:0}:pressure": "zset",
        "{1:0}:idle": "zset",
        "{1:0}:stats": "hash",
        "{1:0}:live": "stream",
        "{1:0}:held": "hash",
    }
    entries = await redis.xrange(f"{key_prefix}:{{1:0}}:r:a")
    assert entries == [(b"7-0", {b"d": b"1"})]


async def test_the_next_generation_may_be_a_number_alone(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await redis.set(f"{key_prefix}:next", 7)
    assert await store.generations() == Generations(None, 7)
    await store.activate(7, "")
    assert await store.generations() == Generations(7, None)


async def test_a_flushed_script_is_sent_again(store: RedisViews, redis: Redis) -> None:
    await apply(store, None, 0)
    await redis.script_flush()
    assert await apply(store, 0, 1, SOMETHING) == "applied"
    assert await store.views(1, 0, [b"a"]) == [b"1"]


async def test_a_key_of_another_type_is_damage_and_nothing_is_written(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await apply(store, None, 0)
    await redis.set(f"{key_prefix}:{{1:0}}:e:b", "not a stream")
    changes = SOMETHING._replace(entries=[("events", b"b", Entry(0, b"1"))])
    assert await apply(store, 0, 1, changes) == "damaged"
    assert await store.views(1, 0, [b"a"]) == [None]
    assert (await store.position(1, 0)) == ViewPosition(0, 0, 2, caught_up=False)


async def test_more_is_written_and_taken_away_at_once_than_lua_has_room_for(
    store: RedisViews,
) -> None:
    await apply(store, None, 0)
    names = [b"hour:%d" % number for number in range(9_000)]
    changes = NOTHING._replace(stats=dict.fromkeys(names, b"1"), recent=dict.fromkeys(names, 1))
    assert await apply(store, 0, 1, changes) == "applied"
    assert await store.stats(1, 0) == dict.fromkeys(names, b"1")
    assert await store.check(1, 0) == HeldCheck("", 0)
    assert await apply(store, 1, 2, NOTHING._replace(stats=dict.fromkeys(names))) == "applied"
    assert await store.stats(1, 0) == {}
    assert await store.check(1, 0) == HeldCheck("", 0)


async def test_a_stream_is_cut_to_its_latest_entries(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await apply(store, None, 0)
    entries = [Entry(offset, b"%d" % offset) for offset in range(STREAM_ENTRIES + 2)]
    for some in (entries[:7], entries[7:]):
        changes = NOTHING._replace(entries=[("events", b"a", entry) for entry in some])
        assert await apply(store, some[0].offset, some[-1].offset + 1, changes) == "applied"
    stored: Any = await redis.xrange(f"{key_prefix}:{{1:0}}:e:a")
    assert [fields[b"d"] for _, fields in stored] == [entry.document for entry in entries[2:]]
    assert await store.check(1, 0) == HeldCheck("", 0)


async def test_an_unknown_format_is_refused(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await apply(store, None, 0)
    await redis.hset(f"{key_prefix}:{{1:0}}:pos", "format", "99")
    with pytest.raises(VersionError, match=r"format 99.*CONTEXTGAUGE_KEY_PREFIX"):
        await store.position(1, 0)
    assert await apply(store, 0, 1, SOMETHING) == "mismatch"


@pytest.mark.parametrize(
    ("key", "value"), [("next", "held:3:1-a"), ("active", "x"), ("next", b"\xff")]
)
async def test_a_generation_of_an_unknown_form_is_refused(
    store: RedisViews, redis: Redis, key_prefix: str, key: str, value: str | bytes
) -> None:
    await redis.set(f"{key_prefix}:{key}", value)
    with pytest.raises(VersionError, match=f"{key_prefix}:{key} .*delete the key"):
        await store.generations()


async def test_a_full_redis_raises_a_retry_error_and_nothing_is_written(
    own_stack: Callable[..., LocalStack],
) -> None:
    url = own_stack("redis").services()["redis"].address
    store, redis = RedisViews(url), Redis.from_url(url)
    await apply(store, None, 0)
    await redis.config_set("maxmemory-policy", "noeviction")
    await redis.config_set("maxmemory", "1")
    with pytest.raises(RetryError, match="out of memory"):
        await apply(store, 0, 1, SOMETHING)
    await redis.config_set("maxmemory", "0")
    assert await store.views(1, 0, [b"a"]) == [None]
    assert await apply(store, 0, 1, SOMETHING) == "applied"
    await redis.aclose()
    await store.stop()


async def test_an_unavailable_redis_raises_a_retry_error(
    own_stack: Callable[..., LocalStack],
) -> None:
    stack = own_stack("redis")
    store = RedisViews(stack.services()["redis"].address)
    await apply(store, None, 0)
    stack.kill("redis")
    with pytest.raises(RetryError, match="away"):
        await apply(store, 0, 1, SOMETHING)
    with pytest.raises(RetryError, match="away"):
        await store.start()
    stack.start(["redis"])
    assert await apply(store, 0, 1, SOMETHING) in {"applied", "mismatch"}
    await store.stop()


async def test_a_user_without_rights_raises_a_config_error(redis_url: str, redis: Redis) -> None:
    await redis.acl_setuser("reader", enabled=True, passwords=["+secret"], commands=["+get"])
    url = redis_url.replace("redis://", "redis://reader:secret@")
    store = RedisViews(url, "other")
    with pytest.raises(ConfigError, match=r"rights of .*docs"):
        await store.start()
    await store.stop()
    store = RedisViews(redis_url.replace("redis://", "redis://reader:wrong@"), "other")
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_REDIS_URL") as refused:
        await store.start()
    assert "wrong@" not in str(refused.value)
    await store.stop()
    await redis.acl_deluser("reader")


async def test_an_interrupted_drop_leaves_no_position_and_can_be_repeated(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await apply(store, None, 0, SOMETHING)
    await redis.hset(f"{key_prefix}:{{1:0}}:pos", mapping={"offset": -1, "partitions": 0})
    assert await store.position(1, 0) is None
    assert await apply(store, None, 0) == "mismatch"
    assert await store.is_there(1, 0)
    await store.drop(1, 0)
    assert not await store.is_there(1, 0)
    assert await store.views(1, 0, [b"a"]) == [None]
    assert await apply(store, None, 0) == "applied"


async def test_a_partition_of_another_format_can_be_dropped(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await redis.hset(f"{key_prefix}:{{1:0}}:pos", mapping={"offset": 1, "format": 99})
    assert await store.is_there(1, 0)


async def test_a_permanent_redis_error_raises_a_stop_error(
    store: RedisViews, redis: Redis, key_prefix: str
) -> None:
    await redis.set(f"{key_prefix}:{{1:0}}:pos", "not a hash")
    with pytest.raises(StopError, match="WRONGTYPE"):
        await store.position(1, 0)


def test_a_prefix_with_braces_is_refused() -> None:
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_KEY_PREFIX"):
        RedisKeys("a{b}")
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_REDIS_URL"):
        RedisViews("http://nowhere")


@pytest.mark.parametrize("offset", [0, 1, 2**53])
def test_an_entry_id_is_an_offset(offset: int) -> None:
    assert entry_offset(entry_id(offset)) == offset
