"""The live feed: nothing is lost or sent twice, whatever breaks; what cannot be sent is a reset."""

import asyncio
from contextlib import aclosing

import pytest

from schemas.records import Record
from streams.ports import Entry, ProjectorHeartbeat
from streams.serve.feed import feed as feed_module
from streams.serve.feed.feed import FeedPosition, parse_position
from tests.serve.feed_kit import Heard, Server, enough, ids, place_of, reset_of, take
from tests.serve.kit import GrowingViews

pytestmark = pytest.mark.usefixtures("fast_feed")


async def test_records_are_sent_to_listeners_as_they_arrive(records: list[Record]) -> None:
    async with Server(records[:50]) as server, aclosing(server.listen()) as events:
        first = await take(events, bool)
        assert first == [Heard("", f"1:{','.join(map(str, server.views.offsets))}", {})]
        for record in records[50:]:
            server.views.add(record)
        heard = await take(events, enough(len(records) - 50))
    assert server.reported_by_partition(heard) == server.by_partition(records[50:])
    one = heard[0].document
    assert set(one) >= {"kind", "session_id", "chain", "state", "used_tokens", "used_percent"}


@pytest.mark.parametrize("session_only", [False, True])
async def test_breaks_and_other_servers_and_generations_lose_and_repeat_nothing(
    records: list[Record], session_only: bool
) -> None:
    views = GrowingViews()
    session = records[0].data.session_id if session_only else None
    wanted = [r for r in records if session is None or r.data.session_id == session]
    server, heard = Server(views=views), list[Heard]()
    place: FeedPosition | None = FeedPosition(1, (0,) * views.count)
    added = 0
    for turn in range(6):
        upto = len(records) * (turn + 1) // 6
        middle = (added + upto) // 2
        views.add(*records[added:middle])
        if turn == 2:
            await server.feed.stop()
            server = Server(views=views)
        if turn == 3:
            views.swap()
        async with aclosing(server.listen(place, session)) as events:
            views.add(*records[middle:upto])
            added = upto
            have = {record.id for record in records[:upto]}
            count = sum(record.id in have for record in wanted) - len(ids(heard))
            part = await take(events, enough(max(count - turn, 1))) if count else []
        heard += part
        place = place_of(part) if part else place
    async with server, aclosing(server.listen(place, session)) as events:
        if len(ids(heard)) < len(wanted):
            heard += await take(events, enough(len(wanted) - len(ids(heard))))
    assert [event.kind for event in heard if event.kind not in ("", "record")] == []
    assert server.reported_by_partition(heard) == server.by_partition(wanted)


async def test_a_transaction_is_sent_completely_wherever_reads_cut_it(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "_BATCH", 3)
    async with Server(records[:1]) as server, server.joined() as events:
        server.views.add(*records[1:])
        heard = await take(events, enough(len(records) - 1))
    assert server.reported_by_partition(heard) == server.by_partition(records[1:])


async def test_a_position_older_than_the_feed_is_reset(records: list[Record]) -> None:
    async with Server(records) as server:
        views = server.views
        for partition in range(views.count):
            views.forget_live(partition, 3)
        async with server.since(*[0] * views.count) as events:
            heard = await reset_of(events, "older")
            assert place_of(heard).offsets == tuple(views.offsets)
            views.add(records[0])
            assert ids(await take(events, enough(1))) == [records[0].id]
        assert server.count("serve_stream_resets") == 1


async def test_a_position_of_other_views_is_reset(records: list[Record]) -> None:
    async with Server(records[:9]) as server, server.since(0, 0) as events:
        await reset_of(events, "other views")


async def test_a_position_beyond_the_views_waits_and_then_is_reset(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Server(records[:30]) as server:
        views = server.views
        ahead = tuple(offset + 2 for offset in views.offsets)
        expected = [part[2:] for part in server.by_partition(records[30:])]
        async with server.since(*ahead) as events:
            hearing = asyncio.create_task(take(events, enough(sum(map(len, expected)))))
            # It has joined the ring before what it has already comes there.
            await asyncio.sleep(0.1)
            views.add(*records[30:])
            heard = await hearing
        for event in heard:
            # No one goes back behind what it has.
            offsets = place_of([event]).offsets if event.place else ahead
            assert all(map(int.__ge__, offsets, ahead))
        assert server.reported_by_partition(heard) == expected
        monkeypatch.setattr(feed_module, "AHEAD_S", 0.05)
        async with server.since(*(offset + 400 for offset in views.offsets)) as events:
            await reset_of(events, "ahead")
            views.add(records[0])
            assert ids(await take(events, enough(1))) == [records[0].id]


async def test_a_position_far_beyond_the_log_is_reset_at_once(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 1_000.0)
    async with Server(records[:30]) as server:
        views = server.views
        async with server.since(99_999, *views.offsets[1:]) as events:
            heard = await reset_of(events, "ahead")
            assert [event.kind for event in heard] == ["reset"]
            assert place_of(heard).offsets == tuple(views.offsets)
            views.add(*records[30:40])
            sent = await take(events, enough(10))
    assert server.reported_by_partition(sent) == server.by_partition(records[30:40])


async def test_after_a_reset_no_record_is_withheld_for_an_old_position(
    records: list[Record],
) -> None:
    async with Server(records) as server:
        views = server.views
        views.forget_live(1, 1)
        # Of one partition it lacks what is gone, of another it has more than there is.
        async with server.since(views.offsets[0] + 400, 0, views.offsets[2]) as events:
            await reset_of(events, "older")
            views.add(*records[:20])
            sent = await take(events, enough(20))
    assert server.reported_by_partition(sent) == server.by_partition(records[:20])


async def test_a_position_from_a_response_is_never_taken_as_ahead_of_the_views(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "AHEAD_S", 0.02)
    async with Server(records[:30]) as server:
        views = server.views
        await server.feed.start()
        views.add(*records[30:40])
        # Markers lie behind the last records: positions are beyond what the feed tells of.
        views.offsets = [offset + 6 for offset in views.offsets]
        views.report_heartbeat(ProjectorHeartbeat(1, None, 0))
        async with server.since(*views.offsets) as events:
            listening_ = asyncio.create_task(take(events, lambda heard: bool(ids(heard))))
            await asyncio.sleep(0.3)
            views.add(records[40])
            heard = await listening_
    assert [event.kind for event in heard] == ["record"]


async def test_a_slow_listener_is_disconnected_with_the_reason(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "RING_EVENTS", 20)
    async with Server() as server, server.joined() as slow, server.joined() as quick:
        sent = []
        for start in range(0, 60, 10):
            server.views.add(*records[start : start + 10])
            sent += await take(quick, enough(10))
        left = [event async for event in slow]
        assert [event.kind for event in left] == ["cut_off"]
        assert "slow" in str(left[0].document["reason"])
        assert len(ids(sent)) == 60
    assert server.count("serve_stream_cut_off", reason="slow") == 1


async def test_a_server_that_missed_more_than_the_feed_keeps_resets_all(
    records: list[Record],
) -> None:
    async with Server(records[:20]) as server, server.joined() as events:
        views = server.views
        views.away = True
        await asyncio.sleep(0.1)
        views.add(*records[20:])
        for partition in range(views.count):
            views.forget_live(partition, 2)
        views.away = False
        await reset_of(events, "no longer has all events")


async def test_an_outage_within_the_feed_loses_nothing(records: list[Record]) -> None:
    async with Server(records[:20]) as server, server.joined() as events:
        server.views.away = True
        await asyncio.sleep(0.1)
        server.views.add(*records[20:])
        server.views.away = False
        heard = await take(events, enough(len(records) - 20))
    assert server.reported_by_partition(heard) == server.by_partition(records[20:])


@pytest.mark.extended
async def test_redis_is_read_once_for_all_listeners(records: list[Record]) -> None:
    views = Counting()
    server = Server(views=views)
    listeners = [server.listen() for _ in range(50)]
    for events in listeners:
        await take(events, bool)
    views.waits = 0
    views.add(*records)
    heard = await asyncio.gather(*(take(events, enough(len(records))) for events in listeners))
    assert all(len(ids(events)) == len(records) for events in heard)
    # A few turns of three tails, whoever listens.
    assert views.waits < 3 * 25
    for events in listeners:
        await events.aclose()
    await server.feed.stop()


class Counting(GrowingViews):
    """Counts the questions that are asked of the feed."""

    waits = 0

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        self.waits += 1
        return await super().live(generation, partition, after, limit, wait_s)


async def test_listeners_are_disconnected_when_the_feed_stops(records: list[Record]) -> None:
    server = Server(records[:5])
    async with server.joined() as events:
        ending = asyncio.create_task(take(events, lambda _: False))
        await asyncio.sleep(0.05)
        await server.feed.stop()
        assert await ending == []


@pytest.mark.parametrize(
    "text", ["", "1", "1:", "1:a", "x:1", "1:1,,2", "1:-1", "1:1;2", "1:²", "1:" + "9" * 30]
)
def test_an_invalid_position_is_rejected(text: str) -> None:
    assert parse_position(text) is None


def test_a_position_round_trips() -> None:
    assert parse_position("3:0,120,7") == FeedPosition(3, (0, 120, 7))
