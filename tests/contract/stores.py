"""The view stores under test: the twin in memory and the one in a real Redis."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from streams.edge.memory.view_store import MemoryViews
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.view_store import RedisViews
from streams.ports import ApplyResult, ViewChanges, ViewPosition, ViewStore
from tests.secure.documented import redis_acl

_PASSWORD = "of-this-test"  # noqa: S105 -- of a Redis that lives as long as a test session

NOTHING = ViewChanges({}, {}, {}, (), {}, {}, {}, {}, (), {})


@dataclass
class StoreUnderTest:
    """A store, and what its tests do with partition 0 of generation 1, of two partitions."""

    store: ViewStore

    async def apply(
        self,
        expected: int | None,
        offset: int,
        changes: ViewChanges = NOTHING,
        partitions: int = 2,
    ) -> ApplyResult:
        return await self.store.apply(
            1,
            0,
            expected=expected,
            position=ViewPosition(offset, 0, partitions, caught_up=False),
            changes=changes,
        )

    async def offset(self) -> int | None:
        position = await self.store.position(1, 0)
        return None if position is None else position.offset

    async def view(self, session: bytes) -> bytes | None:
        return (await self.store.views(1, 0, [session]))[0]


@pytest.fixture(
    params=[
        "memory",
        pytest.param("redis", marks=pytest.mark.service),
        pytest.param("redis with the documented rights", marks=pytest.mark.service),
    ]
)
async def store_under_test(
    request: pytest.FixtureRequest, key_prefix: str
) -> AsyncIterator[StoreUnderTest]:
    """Give each store in turn."""
    store: ViewStore
    if request.param == "memory":
        store = MemoryViews()
    else:
        url: str = request.getfixturevalue("redis_url")
        limited = request.param != "redis"
        access = await _projector(url, key_prefix) if limited else NO_ACCESS
        store = RedisViews(url, key_prefix, access)
    await store.start()
    yield StoreUnderTest(store)
    await store.stop()


async def _projector(url: str, key_prefix: str) -> RedisAccess:
    """Make a user that may do what docs/CONNECTING.md lets a projector do, and no more."""
    name = f"projector-of-{key_prefix}"
    async with Redis.from_url(url) as redis:
        rules = redis_acl("projector", key_prefix, _PASSWORD)
        await redis.execute_command("ACL", "SETUSER", name, "reset", *rules)  # type: ignore[no-untyped-call]  # redis-py
    return RedisAccess(username=name, password=_PASSWORD)


def one_view(session: bytes, document: bytes) -> ViewChanges:
    """Return changes that write one view."""
    return NOTHING._replace(views={session: document})
