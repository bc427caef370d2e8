"""The contract of what agents asked for: the same tests on the twin in memory and on Redis."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from contextgauge.clock import SystemClock
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.asked_contexts import RedisAskedContexts
from streams.ports import AskedContexts
from tests.doubles.asked_contexts import MemoryAskedContexts
from tests.secure.documented import redis_acl

_PASSWORD = "of-this-test"  # noqa: S105 -- of a Redis that lives as long as a test session


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.service)])
async def asked(request: pytest.FixtureRequest, key_prefix: str) -> AsyncIterator[AskedContexts]:
    made: AskedContexts = MemoryAskedContexts(SystemClock())
    if request.param == "redis":
        made = RedisAskedContexts(request.getfixturevalue("redis_url"), key_prefix)
    yield made
    await made.stop()


async def test_an_agent_that_never_asked_is_unknown(asked: AskedContexts) -> None:
    await asked.note("other", "m1", 0)
    assert await asked.asked("s") is None


async def test_an_agent_that_asks_again_for_the_same_waits(asked: AskedContexts) -> None:
    await asked.note("s", "m1", 0)
    first = await asked.asked("s")
    assert first is not None
    assert (first.last_id, first.times, first.is_waiting) == ("m1", 1, False)
    await asked.note("s", "m1", 0)
    again = await asked.asked("s")
    assert again is not None
    assert (again.times, again.is_waiting) == (2, True)
    assert again._replace(age_ms=60_000).is_waiting is False


@pytest.mark.parametrize(("last_id", "compactions"), [("m2", 0), ("m1", 1)])
async def test_another_message_or_compaction_is_another_context(
    asked: AskedContexts, last_id: str, compactions: int
) -> None:
    await asked.note("s", "m1", 0)
    await asked.note("s", "m1", 0)
    await asked.note("s", last_id, compactions)
    context = await asked.asked("s")
    assert context is not None
    assert (context.last_id, context.times) == (last_id, 1)


@pytest.mark.service
async def test_the_documented_rights_suffice(redis_url: str, key_prefix: str) -> None:
    stores = {}
    async with Redis.from_url(redis_url) as redis:
        for user in ("server", "controller"):
            name = f"{user}-of-{key_prefix}"
            rules = redis_acl(user, key_prefix, _PASSWORD)
            await redis.execute_command("ACL", "SETUSER", name, "reset", *rules)  # type: ignore[no-untyped-call]  # redis-py
            access = RedisAccess(username=name, password=_PASSWORD)
            stores[user] = RedisAskedContexts(redis_url, key_prefix, access)
    for _ in range(2):
        await stores["server"].note("s", "m1", 0)
    context = await stores["controller"].asked("s")
    assert context is not None
    assert context.is_waiting
    for store in stores.values():
        await store.stop()
