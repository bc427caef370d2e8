"""The live feed over views that go back: a Redis that lost its end, a log that was made anew."""

import asyncio
from contextlib import aclosing

import pytest

from schemas.records import Record
from streams.serve.feed import feed as feed_module
from streams.serve.feed.feed import FeedPosition
from tests.serve.feed_kit import (
    Server,
    by_partition,
    enough,
    ids,
    place_of,
    take,
    told_by_partition,
)
from tests.serve.kit import GrowingViews

pytestmark = pytest.mark.usefixtures("fast_feed")


async def test_a_returning_listener_waits_for_a_redis_behind_the_ring(
    records: list[Record],
) -> None:
    views = GrowingViews()
    views.add(*records[:-20])
    server = Server(views)
    async with aclosing(server.listen()) as events:
        await take(events, bool)
        place = server.feed.offsets
        views.add(*records[-20:])
        await take(events, enough(20))
    lost = views.go_back(5)
    async with aclosing(server.listen(FeedPosition(1, place))) as events:
        hearing = asyncio.create_task(take(events, enough(20)))
        await asyncio.sleep(0.1)
        views.come_forward(lost)
        found = await hearing
    assert told_by_partition(found, views.count) == by_partition(records[-20:], views.count)
    assert server.count("serve_stream_resets") == 0
    await server.feed.stop()


async def test_a_redis_that_stays_behind_the_ring_resets_returning_listeners(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 0.05)
    views = GrowingViews()
    views.add(*records[:-20])
    server = Server(views)
    async with aclosing(server.listen()) as events:
        await take(events, bool)
        place = server.feed.offsets
        views.add(*records[-20:])
        await take(events, enough(20))
    views.go_back(5)
    async with aclosing(server.listen(FeedPosition(1, place))) as events:
        found = await take(events, lambda found: found[-1].kind == "reset")
    assert "went back" in str(found[-1].document["reason"])
    await server.feed.stop()


async def test_a_feed_beyond_the_log_is_reset(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 0.1)
    views = GrowingViews()
    views.add(*records[:60])
    server = Server(views)
    async with aclosing(server.listen()) as events:
        await take(events, bool)
        # The topic was made anew: offsets begin again.
        again = GrowingViews(views.generation)
        again.add(*records[:3])
        views.partitions = again.partitions
        found = await take(events, lambda found: found[-1].kind == "reset")
        assert "went back" in str(found[-1].document["reason"])
        assert place_of(found).offsets == tuple(again.offsets)
        again.add(*records[3:9])
        after = await take(events, enough(6))
    assert told_by_partition(after, views.count) == by_partition(records[3:9], views.count)
    await server.feed.stop()


async def test_a_redis_that_briefly_lost_its_last_entries_resets_no_listener(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 5.0)
    views = GrowingViews()
    views.add(*records[:30])
    server = Server(views)
    async with aclosing(server.listen()) as events:
        await take(events, bool)
        lost = views.go_back(2)
        await asyncio.sleep(0.1)
        views.come_forward(lost)
        views.add(*records[30:40])
        found = await take(events, enough(10))
    assert [event.kind for event in found] == ["record"] * 10
    await server.feed.stop()


async def test_an_unreadable_entry_is_reported_and_the_feed_continues(
    records: list[Record],
) -> None:
    views = GrowingViews()
    views.add(*records[:20])
    server = Server(views)
    async with aclosing(server.listen()) as events:
        await take(events, bool)
        views.break_live(records[20])
        found = await take(events, lambda found: found[-1].kind == "reset")
        assert "could not be read" in str(found[-1].document["reason"])
        views.add(records[20])
        assert ids(await take(events, enough(1))) == [records[20].id]
    assert [type(error) for error in server.reported] == [KeyError]
    await server.feed.stop()
