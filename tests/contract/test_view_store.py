"""What every view store does: the twin in memory and the one in a real Redis."""

import pytest

from schemas.topics import DAY_MS
from schemas.views import LEFT_KEPT_MS
from streams.ports import (
    Entry,
    Generations,
    LiveBounds,
    ProjectorHeartbeat,
    ViewChanges,
    ViewPosition,
)
from tests.contract.stores import NOTHING, StoreUnderTest, one_view, store_under_test
from tests.doubles.dump import dump

under_test = store_under_test
NAMES = [b"plain", b"}:{1:0}:s:", b"\x00\r\n\xff", "ü/😀".encode(), b"x" * 10_240]


async def test_an_empty_store_has_nothing(under_test: StoreUnderTest) -> None:
    store = under_test.store
    assert await store.generations() == Generations(None, None)
    assert await store.position(1, 0) is None
    assert await store.views(1, 0, []) == []
    assert await store.views(1, 0, [b"a"]) == [None]
    assert await store.ranked(1, 0, "recent", 10) == []
    assert await store.session_count(1, 0) == 0
    assert await store.compactions(1, 0, b"a") == {}
    assert await store.entries(1, 0, "events", b"a", -1) == []
    assert await store.stats(1, 0) == {}
    assert await store.idle(1, 0, 10**15, 10) == []
    assert await store.left(1, 0, [b"a"]) == [False]
    assert await store.agent_sessions(1, 0, b"a", 10) == []
    assert await store.live(1, 0, -1, 10) == []
    assert await store.live(1, 0, -1, 10, 0.02) == []
    assert await store.live_bounds(1, 0) == LiveBounds(None, is_whole=True)


async def test_a_partition_is_created_once(under_test: StoreUnderTest) -> None:
    assert await under_test.apply(None, 7, one_view(b"a", b"1")) == "applied"
    position = await under_test.store.position(1, 0)
    assert position == ViewPosition(7, 0, 2, caught_up=False)
    assert await under_test.apply(None, 9, one_view(b"a", b"2")) == "mismatch"
    assert await under_test.view(b"a") == b"1"


async def test_documents_and_position_are_written_together(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    changes = ViewChanges(
        leaving={},
        views={b"a": b"view"},
        compactions={(b"a", b"1"): b"compaction", (b"a", b"2:sub"): b"other"},
        entries=[
            ("events", b"a", Entry(0, b"e0")),
            ("readings", b"a", Entry(1, b"r1")),
            ("events", b"a", Entry(4, b"e4")),
        ],
        recent={b"a": 1_793_534_400_123},
        pressure={b"a": 45.67},
        idle={b"a": 1_793_534_400_999},
        stats={b"total": b"t"},
        live=[Entry(0, b"l0"), Entry(1, b"l1"), Entry(4, b"l4")],
        agents={(b"agent", b"a"): 1_793_534_400_123},
    )
    assert await under_test.apply(0, 5, changes) == "applied"
    store = under_test.store
    assert await under_test.offset() == 5
    assert await store.views(1, 0, [b"b", b"a"]) == [None, b"view"]
    assert await store.compactions(1, 0, b"a") == {b"1": b"compaction", b"2:sub": b"other"}
    assert await store.pick_compactions(1, 0, [(b"a", b"2:sub"), (b"a", b"3")]) == [b"other", None]
    assert await store.entries(1, 0, "events", b"a", -1) == [Entry(0, b"e0"), Entry(4, b"e4")]
    assert await store.entries(1, 0, "events", b"a", 0) == [Entry(4, b"e4")]
    assert await store.entries(1, 0, "readings", b"a", -1) == [Entry(1, b"r1")]
    assert await store.ranked(1, 0, "recent", 10) == [(b"a", 1_793_534_400_123)]
    assert await store.ranked(1, 0, "pressure", 10) == [(b"a", 45.67)]
    assert await store.session_count(1, 0) == 1
    assert await store.stats(1, 0) == {b"total": b"t"}
    assert await store.agent_sessions(1, 0, b"agent", 9) == [(b"a", 1_793_534_400_123)]
    assert (await dump(store, 1, 0)).live == list(changes.live)


async def test_repeating_a_call_after_a_lost_reply_is_safe(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    entry = NOTHING._replace(live=[Entry(0, b"x")])
    assert await under_test.apply(0, 3, entry) == "applied"
    assert await under_test.apply(0, 3, entry) == "done"
    assert (await dump(under_test.store, 1, 0)).live == [Entry(0, b"x")]


@pytest.mark.parametrize("expected", [None, 2, 4])
async def test_another_position_writes_nothing(
    under_test: StoreUnderTest, expected: int | None
) -> None:
    await under_test.apply(None, 0)
    await under_test.apply(0, 3, one_view(b"a", b"1"))
    assert await under_test.apply(expected, 9, one_view(b"a", b"2")) == "mismatch"
    assert await under_test.offset() == 3
    assert await under_test.view(b"a") == b"1"


async def test_a_missing_position_is_a_mismatch(under_test: StoreUnderTest) -> None:
    assert await under_test.apply(5, 9, one_view(b"a", b"1")) == "mismatch"
    assert await under_test.offset() is None
    assert await under_test.view(b"a") is None


async def test_another_number_of_partitions_is_a_mismatch(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    assert await under_test.apply(0, 3, one_view(b"a", b"1"), partitions=3) == "mismatch"
    assert await under_test.view(b"a") is None


async def test_entries_ahead_of_the_position_are_damage_and_nothing_is_written(
    under_test: StoreUnderTest,
) -> None:
    await under_test.apply(None, 0)
    ahead = NOTHING._replace(entries=[("events", b"a", Entry(8, b"x"))])
    assert await under_test.apply(0, 3, ahead) == "applied"
    again = one_view(b"b", b"1")._replace(entries=[("events", b"a", Entry(5, b"y"))])
    assert await under_test.apply(3, 6, again) == "damaged"
    assert await under_test.offset() == 3
    assert await under_test.view(b"b") is None
    live = NOTHING._replace(live=[Entry(8, b"x")])
    assert await under_test.apply(3, 4, live) == "applied"
    assert await under_test.apply(4, 5, live._replace(live=[Entry(8, b"y")])) == "damaged"
    assert await under_test.offset() == 4


async def test_rankings_and_stats_can_be_removed(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    first = NOTHING._replace(
        recent={b"a": 1, b"b": 3, b"c": 2},
        pressure={b"a": 50.0, b"b": 9.5, b"c": 120.25},
        stats={b"x": b"1", b"y": b"2"},
    )
    await under_test.apply(0, 1, first)
    store = under_test.store
    assert await store.ranked(1, 0, "recent", 2) == [(b"b", 3), (b"c", 2)]
    assert await store.ranked(1, 0, "pressure", 9) == [(b"c", 120.25), (b"a", 50.0), (b"b", 9.5)]
    second = NOTHING._replace(pressure={b"c": None, b"d": None}, stats={b"x": None, b"z": None})
    await under_test.apply(1, 2, second)
    assert await store.ranked(1, 0, "pressure", 9) == [(b"a", 50.0), (b"b", 9.5)]
    assert await store.stats(1, 0) == {b"y": b"2"}
    assert await store.stats(1, 0, [b"x", b"y", b"y"]) == {b"y": b"2"}
    assert await store.stats(1, 0, []) == {}


async def test_idle_sessions_leave_with_all_their_documents(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    full = ViewChanges(
        leaving={},
        views={b"a": b"1", b"b": b"1"},
        compactions={(b"a", b"1"): b"1"},
        entries=[("events", b"a", Entry(0, b"1")), ("readings", b"a", Entry(1, b"1"))],
        recent={b"a": 5, b"b": 6},
        pressure={b"a": 5.0},
        idle={b"a": 10, b"b": 20, b"c": 10},
        stats={},
        live=(),
        agents={(b"g", b"a"): 5, (b"g", b"b"): 6, (b"h", b"a"): 5},
    )
    await under_test.apply(0, 2, full)
    store = under_test.store
    assert await store.idle(1, 0, 20, 10) == [b"a", b"c"]
    assert await store.idle(1, 0, 21, 2) == [b"a", b"c"]
    assert await store.idle(1, 0, 10, 10) == []
    # It leaves, and comes back within the same call.
    assert await store.agent_sessions(1, 0, b"g", 9) == [(b"b", 6), (b"a", 5)]
    assert await store.agent_sessions(1, 0, b"g", 1) == [(b"b", 6)]
    back = NOTHING._replace(
        leaving={b"a": DAY_MS, b"c": DAY_MS},
        agents={(b"g", b"a"): 7, (b"h", b"a"): None, (b"g", b"c"): None},
        views={b"a": b"2"},
        entries=[("events", b"a", Entry(2, b"2"))],
        idle={b"a": DAY_MS},
    )
    assert await under_test.apply(2, 3, back) == "applied"
    documents = await dump(store, 1, 0)
    assert documents.views == {b"a": b"2", b"b": b"1"}
    assert documents.compactions == {}
    assert documents.entries == {"events": {b"a": [Entry(2, b"2")]}, "readings": {}}
    assert documents.rankings == {"recent": {b"b": 6}, "pressure": {}}
    assert documents.idle == {b"a": DAY_MS, b"b": 20}
    # The last session of an agent takes the agent with it.
    assert documents.agents == {b"g": {b"a": 7, b"b": 6}}
    assert await store.left(1, 0, [b"a", b"b", b"c"]) == [True, False, True]


async def test_sessions_that_left_are_eventually_forgotten(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    await under_test.apply(0, 1, NOTHING._replace(leaving={b"a": 5}))
    await under_test.apply(1, 2, NOTHING._replace(leaving={b"b": 4 + LEFT_KEPT_MS}))
    assert await under_test.store.left(1, 0, [b"a", b"b"]) == [True, True]
    await under_test.apply(2, 3, NOTHING._replace(leaving={b"c": 5 + LEFT_KEPT_MS}))
    assert await under_test.store.left(1, 0, [b"a", b"b"]) == [False, True]


async def test_a_session_that_came_back_has_not_left(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    await under_test.apply(0, 1, NOTHING._replace(leaving={b"a": 5, b"b": 5}))
    await under_test.apply(1, 2, NOTHING._replace(views={b"a": b"1"}, recent={b"a": 6}))
    assert await under_test.store.left(1, 0, [b"a", b"b"]) == [False, True]


@pytest.mark.parametrize("session", NAMES, ids=lambda name: repr(name[:12]))
async def test_a_session_id_may_be_any_bytes(under_test: StoreUnderTest, session: bytes) -> None:
    await under_test.apply(None, 0)
    changes = one_view(session, b"1")._replace(
        compactions={(session, b"1:" + session): b"2"},
        entries=[("events", session, Entry(0, b"3"))],
        recent={session: 1},
        idle={session: 1},
        stats={b"model:" + session: b"4"},
    )
    assert await under_test.apply(0, 1, changes) == "applied"
    store = under_test.store
    assert await under_test.view(session) == b"1"
    documents = await dump(store, 1, 0)
    assert documents.views == {session: b"1"}
    assert documents.compactions == {session: {b"1:" + session: b"2"}}
    assert documents.stats == {b"model:" + session: b"4"}
    assert (await dump(store, 1, 1)).views == {}
    assert (await dump(store, 2, 0)).views == {}


async def test_catching_up_marks_a_position_that_is_there(under_test: StoreUnderTest) -> None:
    store = under_test.store
    await store.caught_up(1, 0, "")
    assert await store.position(1, 0) is None
    await under_test.apply(None, 0)
    await store.caught_up(1, 0, "")
    await under_test.apply(0, 4)
    assert await store.position(1, 0) == ViewPosition(4, 0, 2, caught_up=True)


async def test_another_build_is_neither_marked_nor_written_to(
    under_test: StoreUnderTest,
) -> None:
    store = under_test.store
    position = ViewPosition(0, 0, 2, caught_up=False, build="new")
    await store.apply(1, 0, expected=None, position=position, changes=NOTHING)
    await store.caught_up(1, 0, "old")
    assert await store.position(1, 0) == position
    assert await under_test.apply(0, 3, one_view(b"a", b"1")) == "mismatch"
    assert await under_test.view(b"a") is None
    await store.caught_up(1, 0, "new")
    assert await store.position(1, 0) == position._replace(caught_up=True)


async def test_a_large_batch_is_one_call(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    document = b"x" * 4_000
    changes = NOTHING._replace(views={b"%d" % number: document for number in range(500)})
    assert await under_test.apply(0, 500, changes) == "applied"
    assert await under_test.view(b"499") == document


async def test_the_live_feed_is_read_from_an_offset(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    store, entries = under_test.store, [Entry(n, b"%d" % n) for n in (0, 1, 5, 9)]
    await under_test.apply(0, 10, NOTHING._replace(live=entries))
    assert await store.live(1, 0, -1, 10) == entries
    assert await store.live(1, 0, 0, 2) == entries[1:3]
    assert await store.live(1, 0, 0, 2, 1.0) == entries[1:3]
    assert await store.live(1, 0, -1, 1, 1.0) == entries[:1]
    assert await store.live(1, 0, 9, 10) == []
    assert await store.live_bounds(1, 0) == LiveBounds(0, is_whole=True)


async def test_a_heartbeat_is_stored_with_the_position(under_test: StoreUnderTest) -> None:
    store, heartbeat = under_test.store, ProjectorHeartbeat(1_793_534_400_123, 7, 250)
    await store.report_heartbeat(1, 0, "", heartbeat)
    assert await store.position(1, 0) is None
    await under_test.apply(None, 0)
    await store.report_heartbeat(1, 0, "another build", heartbeat)
    assert await store.position(1, 0) == ViewPosition(0, 0, 2, caught_up=False)
    await store.report_heartbeat(1, 0, "", heartbeat)
    await under_test.apply(0, 4)
    assert await store.position(1, 0) == ViewPosition(4, 0, 2, caught_up=False, heartbeat=heartbeat)
    await store.report_heartbeat(1, 0, "", ProjectorHeartbeat(5, None, 0))
    position = await store.position(1, 0)
    assert position is not None
    assert position.heartbeat == ProjectorHeartbeat(5, None, 0)
