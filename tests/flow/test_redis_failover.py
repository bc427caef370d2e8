"""A failover of Redis behind a name that moves: earlier connections lead to a replica."""

import asyncio
from collections.abc import AsyncIterator
from itertools import zip_longest
from pathlib import Path

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import WrongServerError
from schemas.commands import ControlView
from streams.edge.alerts.memories import RedisAlertMemory
from streams.edge.memory.log import MemoryLog
from streams.edge.redis.control import RedisControlStore
from streams.edge.redis.conversations import RedisConversations
from streams.edge.redis.view_store import RedisViews
from streams.ports import Health, ViewPosition
from tests.contract.stores import one_view
from tests.failover_kit import RedisPair, is_waited_at, promote, replicate
from tests.flow.derive_kit import until
from tests.flow.project_kit import ProjectKit, sample_records

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]

_CONNECTIONS = 5

pytestmark = pytest.mark.service


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[RedisPair]:
    pair = RedisPair(tmp_path)
    yield pair
    pair.stop()


async def test_the_project_worker_goes_on_after_a_failover(pair: RedisPair) -> None:
    store = RedisViews(pair.url)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        await pair.fail_over()
        await kit.append(MORE)
        # The name leads to the former primary still: a replica, which a worker waits for.
        await until(lambda: worker.figures.total("worker_retries") > 0)
        pair.move_name()
        assert await kit.caught_up(worker) == 1
        assert kit.health.ready().ok
    assert await kit.documents(1) == await kit.expected()
    await store.stop()


@pytest.mark.extended
async def test_a_worker_that_only_a_replica_answers_is_not_live(pair: RedisPair) -> None:
    """At first it is not ready; a restart may help where its settings have changed since."""
    store = RedisViews(pair.url)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    kit.health = Health("project", SystemClock(), 1.0)
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        assert kit.health.live().ok
        await pair.fail_over()
        await kit.append(MORE)
        await until(lambda: not kit.health.ready().ok)
        assert kit.health.live().ok
        await until(lambda: not kit.health.live().ok)
        assert "READONLY" in str(kit.health.live().document["reasons"])
        pair.move_name()
        await kit.caught_up(worker)
        await until(lambda: kit.health.ready().ok and kit.health.live().ok)
    await store.stop()


class _Clients:
    """All that writes to Redis: what each would do next, and what must come of it."""

    def __init__(self, url: str) -> None:
        self.views, self.control = RedisViews(url), RedisControlStore(url)
        self.conversations, self.memory = RedisConversations(url), RedisAlertMemory(url, "cg")

    async def stop(self) -> None:
        for client in (self.views, self.control, self.conversations, self.memory):
            await client.stop()

    async def write(self, number: int) -> None:
        """Write something with each client, by a script, a transaction or a command."""
        position = ViewPosition(number, 0, 1, caught_up=False, writer="w")
        view = one_view(b"s", b"%d" % number)
        expected = number - 1 if number > 1 else None
        await self.views.apply(1, 0, expected=expected, position=position, changes=view)
        await self.control.put(0, {"s": ControlView(session_id="s")}, number, number)
        await self.conversations.drop(0, since_ms=number)
        await self.memory.remember(f"alert {number}")

    async def read(self, number: int) -> None:
        """Read it back with each client, over several connections at once."""
        for _ in range(2):
            reads = [self.views.views(1, 0, [b"s"]) for _ in range(_CONNECTIONS)]
            assert await asyncio.gather(*reads) == [[b"%d" % number]] * _CONNECTIONS
        assert await self.control.control_seen_ms(0) == number
        stored = await self.conversations.open(0, 1)
        assert stored is not None
        assert stored.since_ms == number
        assert await self.memory.knows(f"alert {number}")


async def test_every_client_of_redis_reaches_the_promoted_server_at_once(pair: RedisPair) -> None:
    """Also where connections idle that have not been refused: what they read would be old."""
    clients = _Clients(pair.url)
    await clients.write(1)
    await clients.read(1)
    await pair.fail_over()
    with pytest.raises(WrongServerError, match="READONLY"):
        await clients.write(2)
    pair.move_name()
    await clients.write(2)
    await clients.read(2)
    await clients.stop()


async def test_a_waiting_reader_of_the_live_feed_reaches_the_promoted_server(
    pair: RedisPair,
) -> None:
    """A server that becomes a replica ends waiting for data by an error of its own."""
    views = RedisViews(pair.url)
    await views.start()
    await replicate(pair.first, pair.second)
    waiting = asyncio.create_task(views.live(1, 0, -1, 10, 2.0))
    await is_waited_at(pair.first)
    pair.move_name()
    await promote(pair.second, pair.first)
    assert await waiting == []
    await views.stop()
