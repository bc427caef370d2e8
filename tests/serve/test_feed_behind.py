"""The live feed over views that go back: a Redis that lost its end, a log that was recreated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schemas.records import Record
from streams.serve.feed import feed as feed_module
from tests.serve.feed_kit import Server, enough, ids, place_of, reset_of, take
from tests.serve.kit import GrowingViews

pytestmark = pytest.mark.usefixtures("fast_feed")


@asynccontextmanager
async def _left(records: list[Record]) -> AsyncIterator[tuple[Server, tuple[int, ...]]]:
    """A server whose listener left, and its position: the last 20 records came after that."""
    async with Server(records[:-20]) as server:
        async with server.joined() as events:
            place = server.feed.offsets
            server.views.add(*records[-20:])
            await take(events, enough(20))
        yield server, tuple(place)


async def test_a_returning_listener_waits_for_a_redis_behind_the_ring(
    records: list[Record],
) -> None:
    async with _left(records) as (server, place):
        lost = server.views.go_back(5)
        async with server.since(*place) as events:
            hearing = asyncio.create_task(take(events, enough(20)))
            await asyncio.sleep(0.1)
            server.views.come_forward(lost)
            heard = await hearing
    assert server.reported_by_partition(heard) == server.by_partition(records[-20:])
    assert server.count("serve_stream_resets") == 0


async def test_a_redis_that_stays_behind_the_ring_resets_returning_listeners(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 0.05)
    async with _left(records) as (server, place):
        server.views.go_back(5)
        async with server.since(*place) as events:
            await reset_of(events, "went back")


async def test_a_feed_beyond_the_log_is_reset(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 0.1)
    async with Server(records[:60]) as server, server.joined() as events:
        # The topic was recreated: offsets begin again.
        again = GrowingViews(server.views.generation)
        again.add(*records[:3])
        server.views.partitions = again.partitions
        heard = await reset_of(events, "went back")
        assert place_of(heard).offsets == tuple(again.offsets)
        again.add(*records[3:9])
        after = await take(events, enough(6))
    assert server.reported_by_partition(after) == server.by_partition(records[3:9])


async def test_a_redis_that_briefly_lost_its_last_entries_resets_no_listener(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 5.0)
    async with Server(records[:30]) as server, server.joined() as events:
        lost = server.views.go_back(2)
        await asyncio.sleep(0.1)
        server.views.come_forward(lost)
        server.views.add(*records[30:40])
        heard = await take(events, enough(10))
    assert [event.kind for event in heard] == ["record"] * 10


async def test_an_unreadable_entry_is_reported_and_the_feed_continues(
    records: list[Record],
) -> None:
    async with Server(records[:20]) as server, server.joined() as events:
        server.views.break_live(records[20])
        await reset_of(events, "could not be read")
        server.views.add(records[20])
        assert ids(await take(events, enough(1))) == [records[20].id]
    assert [type(error) for error in server.reported] == [KeyError]
