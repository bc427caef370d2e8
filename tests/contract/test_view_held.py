"""What every view store notices of documents that are gone: the twin, and a real Redis."""

from typing import Any

import pytest

from schemas.views import STREAM_ENTRIES
from streams.edge.memory.view_store import MemoryViews
from streams.ports import Entry, HeldCheck, ViewChanges, ViewPosition
from tests.contract.stores import NOTHING, StoreUnderTest, store_under_test

under_test = store_under_test

SESSIONS = [b"a", b"b \x00\xff"]
LOSSES = ["recent", "pressure", "idle", "left", "stats", "live", "held"]
OF_SESSION = ["s:", "c:", "e:", "r:"]


def changes(offset: int, sessions: list[bytes] = SESSIONS) -> ViewChanges:
    """Return changes of sessions, each with everything that a session may have."""
    entries: list[Any] = []
    for number, session in enumerate(sessions):
        entry_offset = offset + 2 * number
        entries.append(("events", session, Entry(entry_offset, b"event")))
        entries.append(("readings", session, Entry(entry_offset + 1, b"reading")))
    return NOTHING._replace(
        views=dict.fromkeys(sessions, b"view %d" % offset),
        compactions={(session, b"%d" % offset): b"compaction" for session in sessions},
        entries=entries,
        recent=dict.fromkeys(sessions, offset),
        pressure=dict.fromkeys(sessions, 50.5),
        idle=dict.fromkeys(sessions, offset),
        stats={b"partition": b"%d" % offset, b"hour:%d" % offset: b"1"},
        live=[entry for _, _, entry in entries],
        agents={(b"agent \x01", session): offset for session in sessions},
    )


async def filled(under_test: StoreUnderTest) -> None:
    """Write what has every kind of document: one session has left."""
    await under_test.apply(None, 0)
    assert await under_test.apply(0, 10, changes(0, [*SESSIONS, b"gone"])) == "applied"
    leaving = changes(10)._replace(leaving={b"gone": 5}, agents={(b"agent \x01", b"gone"): None})
    assert await under_test.apply(10, 20, leaving) == "applied"


async def lose(under_test: StoreUnderTest, name: bytes) -> None:
    """Delete one key."""
    store: Any = under_test.store
    if not isinstance(store, MemoryViews):
        assert await store._redis.unlink(store._keys.of(1, 0).base + name) == 1  # noqa: SLF001 -- past the port
        return
    stored = store.partitions[1, 0]
    kinds: dict[bytes, Any] = {
        b"s:": stored.held.views,
        b"c:": stored.held.compactions,
        b"e:": stored.held.entries["events"],
        b"r:": stored.held.entries["readings"],
        b"a:": stored.held.agents,
    }
    if name[:2] in kinds:
        del kinds[name[:2]][name[2:]]
    elif name == b"held":
        stored.counts.sessions.clear()
    else:
        places: Any = {**stored.held.rankings, **stored.held._asdict()}
        places[name.decode()].clear()


async def test_nothing_differs_where_nothing_is_lost(under_test: StoreUnderTest) -> None:
    assert await under_test.store.check(1, 0) == HeldCheck()
    await filled(under_test)
    assert await under_test.store.check(1, 0) == HeldCheck()


@pytest.mark.parametrize("name", [*LOSSES, *(kind + "a" for kind in OF_SESSION), "a:agent \x01"])
async def test_each_key_that_is_lost_is_noticed(under_test: StoreUnderTest, name: str) -> None:
    await filled(under_test)
    await lose(under_test, name.encode())
    assert (await under_test.store.check(1, 0)).difference


async def test_a_loss_shows_for_ever(under_test: StoreUnderTest) -> None:
    """Even once the key is there again, with less in it."""
    await filled(under_test)
    await lose(under_test, b"e:a")
    other = changes(20, [SESSIONS[1]])
    assert await under_test.apply(20, 30, other) == "applied"
    assert (await under_test.store.check(1, 0)).difference
    await lose(under_test, b"recent")
    store: Any = under_test.store
    if not isinstance(store, MemoryViews):
        keys = store._keys.of(1, 0)  # noqa: SLF001 -- past the port
        await store._redis.zadd(keys.ranking("recent"), {b"c": 1})  # noqa: SLF001 -- past the port
        assert await under_test.apply(30, 40, changes(30, [SESSIONS[1]])) == "applied"
    assert (await store.check(1, 0)).difference == "recent"


async def test_streams_are_counted_up_to_their_cap(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    many: Any = [("events", b"a", Entry(offset, b"e")) for offset in range(STREAM_ENTRIES + 10)]
    filling: Any = changes(0, [b"a"])._replace(entries=many)
    assert await under_test.apply(0, 10_000, filling) == "applied"
    assert await under_test.store.check(1, 0) == HeldCheck()
    assert await under_test.apply(10_000, 10_010, changes(10_000, [b"a"])) == "applied"
    assert await under_test.store.check(1, 0) == HeldCheck()


async def test_sessions_are_checked_some_at_a_time(under_test: StoreUnderTest) -> None:
    sessions = [b"s-%d" % number for number in range(1_000)]
    await under_test.apply(None, 0)
    for first in range(0, 1_000, 500):
        some = sessions[first : first + 500]
        assert await under_test.apply(first * 4, (first + 500) * 4, changes(first * 4, some)) == (
            "applied"
        )
    await lose(under_test, b"r:s-777")
    check, calls = await under_test.store.check(1, 0), 1
    while not check.difference:
        assert check.cursor
        check, calls = await under_test.store.check(1, 0, check.cursor), calls + 1
        assert calls < 50
    assert "s-777" in check.difference


async def test_a_batch_is_done_only_for_its_own_writer(under_test: StoreUnderTest) -> None:
    await under_test.apply(None, 0)
    position = ViewPosition(5, 0, 2, caught_up=False, writer="one")
    store, nothing = under_test.store, NOTHING

    async def write(as_writer: str) -> str:
        own = position._replace(writer=as_writer)
        return await store.apply(1, 0, expected=0, position=own, changes=nothing)

    assert await write("one") == "applied"
    assert await write("one") == "done"
    assert await write("two") == "mismatch"
