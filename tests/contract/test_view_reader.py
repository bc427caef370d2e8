"""What every reader of views answers: the store in memory, a real Redis, and the local file."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.views import LIVE_ENTRIES, STREAM_ENTRIES
from streams.edge.memory.view_store import MemoryViews
from streams.edge.redis.view_store import RedisViews
from streams.edge.sqlite.store import SqliteStore
from streams.edge.sqlite.turns import Turns
from streams.edge.sqlite.view_store import SqliteViews
from streams.ports import (
    Entry,
    Generations,
    LiveBounds,
    LocalChanges,
    ProjectorHeartbeat,
    ViewChanges,
    ViewPosition,
    ViewReader,
    ViewStore,
)
from tests.contract.stores import NOTHING
from tests.patience import PATIENCE_S

HEARTBEAT = ProjectorHeartbeat(1_793_534_400_123, None, 0)
NAMES = [b"plain", b"%_'\"?", b"\x00\r\n\xff", "ü/😀".encode(), b"x" * 10_240]


class Filled:
    """A reader, and how its views are written: partition 0 of generation 1, the only one."""

    def __init__(self, reader: ViewReader, store: ViewStore | SqliteStore) -> None:
        self.reader, self._store = reader, store
        self._offset = 0

    async def write(self, offset: int, changes: ViewChanges = NOTHING) -> None:
        if isinstance(self._store, SqliteStore):
            self._store.commit(LocalChanges(offset, changes, {}, {}, {}, {}))
        else:
            position = ViewPosition(offset, 0, 1, caught_up=False)
            result = await self._store.apply(
                1, 0, expected=self._offset, position=position, changes=changes
            )
            assert result == "applied"
        self._offset = offset


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.service), "sqlite"])
async def filled(
    request: pytest.FixtureRequest, key_prefix: str, tmp_path: Path
) -> AsyncIterator[Filled]:
    """Give each reader in turn, with a generation that is active and has nothing yet."""
    if request.param == "sqlite":
        local = SqliteStore(tmp_path / "local", "tag")
        reader = SqliteViews(tmp_path / "local", lambda: HEARTBEAT, Turns())
        await reader.start()
        yield Filled(reader, local)
        await reader.stop()
        local.close()
        return
    store: ViewStore = MemoryViews()
    if request.param == "redis":
        store = RedisViews(request.getfixturevalue("redis_url"), key_prefix)
    await store.start()
    begin = ViewPosition(0, 0, 1, caught_up=False)
    await store.apply(1, 0, expected=None, position=begin, changes=NOTHING)
    await store.begin_next(1, "")
    await store.activate(1, "")
    await store.report_heartbeat(1, 0, "", HEARTBEAT)
    yield Filled(store, store)
    await store.stop()


def changes_of(session: bytes, *, recent: int = 1, pressure: float | None = None) -> ViewChanges:
    return NOTHING._replace(
        views={session: b"view of " + session},
        recent={session: recent},
        pressure={session: pressure},
    )


async def test_nothing_is_there_before_the_first_write(filled: Filled) -> None:
    reader = filled.reader
    assert await reader.generations() == Generations(1, None)
    position = await reader.position(1, 0)
    assert position is not None
    assert (position.offset, position.partitions, position.heartbeat) == (0, 1, HEARTBEAT)
    assert await reader.views(1, 0, []) == []
    assert await reader.views(1, 0, [b"a"]) == [None]
    assert await reader.ranked(1, 0, "recent", 10) == []
    assert await reader.scores(1, 0, [], "recent") == []
    assert await reader.scores(1, 0, [b"a"], "recent") == [None]
    assert await reader.session_count(1, 0) == 0
    assert await reader.compactions(1, 0, b"a") == {}
    assert await reader.entries(1, 0, "events", b"a", -1) == []
    assert await reader.stats(1, 0) == {}
    assert await reader.agent_sessions(1, 0, b"a", 10) == []
    assert await reader.live(1, 0, -1, 10, 0.02) == []
    assert await reader.live_bounds(1, 0) == LiveBounds(None, is_whole=True)
    assert await reader.position(2, 0) is None


async def test_what_was_written_is_read(filled: Filled) -> None:
    changes = changes_of(b"a", recent=1_793_534_400_123, pressure=45.67)._replace(
        compactions={(b"a", b"1"): b"compaction", (b"a", b"2:sub"): b"other"},
        entries=[
            ("events", b"a", Entry(0, b"e0")),
            ("readings", b"a", Entry(1, b"r1")),
            ("events", b"a", Entry(4, b"e4")),
        ],
        stats={b"total": b"t"},
        live=[Entry(0, b"l0"), Entry(1, b"l1"), Entry(4, b"l4")],
        agents={(b"agent", b"a"): 7},
    )
    await filled.write(5, changes)
    reader = filled.reader
    position = await reader.position(1, 0)
    assert position is not None
    assert position.offset == 5
    assert await reader.views(1, 0, [b"b", b"a"]) == [None, b"view of a"]
    assert await reader.compactions(1, 0, b"a") == {b"1": b"compaction", b"2:sub": b"other"}
    assert await reader.entries(1, 0, "events", b"a", -1) == [Entry(0, b"e0"), Entry(4, b"e4")]
    assert await reader.entries(1, 0, "events", b"a", 0) == [Entry(4, b"e4")]
    assert await reader.entries(1, 0, "readings", b"a", -1) == [Entry(1, b"r1")]
    assert await reader.ranked(1, 0, "recent", 10) == [(b"a", 1_793_534_400_123)]
    assert await reader.ranked(1, 0, "pressure", 10) == [(b"a", 45.67)]
    assert await reader.session_count(1, 0) == 1
    assert await reader.stats(1, 0) == {b"total": b"t"}
    assert await reader.agent_sessions(1, 0, b"agent", 9) == [(b"a", 7)]


async def test_a_later_write_replaces_documents(filled: Filled) -> None:
    for offset, (name, percent) in enumerate([(b"a", 50.0), (b"b", 9.5), (b"c", 120.25)], 1):
        await filled.write(offset, changes_of(name, recent=offset, pressure=percent))
    reader = filled.reader
    assert await reader.ranked(1, 0, "recent", 2) == [(b"c", 3), (b"b", 2)]
    assert await reader.ranked(1, 0, "pressure", 9) == [(b"c", 120.25), (b"a", 50.0), (b"b", 9.5)]
    assert await reader.scores(1, 0, [b"c", b"x", b"b"], "recent") == [3, None, 2]
    assert await reader.scores(1, 0, [b"a", b"c"], "pressure") == [50.0, 120.25]
    await filled.write(4, NOTHING._replace(stats={b"x": b"1", b"y": b"2"}))
    assert await reader.stats(1, 0, [b"y", b"z"]) == {b"y": b"2"}
    assert await reader.stats(1, 0, []) == {}
    again = changes_of(b"c", recent=9)._replace(
        views={b"c": b"new"}, stats={b"x": None}, agents={(b"agent", b"c"): 3}
    )
    await filled.write(5, again)
    await filled.write(6, changes_of(b"a")._replace(agents={(b"agent", b"c"): None}))
    assert await reader.views(1, 0, [b"c"]) == [b"new"]
    assert await reader.ranked(1, 0, "pressure", 9) == [(b"b", 9.5)]
    assert await reader.stats(1, 0) == {b"y": b"2"}
    assert await reader.agent_sessions(1, 0, b"agent", 9) == []


async def test_a_session_that_leaves_takes_all_its_documents(filled: Filled) -> None:
    full = changes_of(b"a", pressure=5.0)._replace(
        compactions={(b"a", b"1"): b"1"},
        entries=[("events", b"a", Entry(0, b"1")), ("readings", b"a", Entry(1, b"1"))],
        agents={(b"g", b"a"): 5},
    )
    await filled.write(2, full)
    await filled.write(3, changes_of(b"b", recent=6))
    await filled.write(4, NOTHING._replace(leaving={b"a": 0}, agents={(b"g", b"a"): None}))
    reader = filled.reader
    assert await reader.views(1, 0, [b"a", b"b"]) == [None, b"view of b"]
    assert await reader.ranked(1, 0, "recent", 9) == [(b"b", 6)]
    assert await reader.ranked(1, 0, "pressure", 9) == []
    assert await reader.session_count(1, 0) == 1
    assert await reader.compactions(1, 0, b"a") == {}
    assert await reader.entries(1, 0, "readings", b"a", -1) == []
    assert await reader.agent_sessions(1, 0, b"g", 9) == []


async def test_streams_are_capped_exactly(filled: Filled) -> None:
    many = STREAM_ENTRIES + 3
    for start in range(0, many, 500):
        part = range(start, min(start + 500, many))
        changes = changes_of(b"a")._replace(
            entries=[("readings", b"a", Entry(n, b"%d" % n)) for n in part],
            live=[Entry(n, b"%d" % n) for n in part],
        )
        await filled.write(part.stop, changes)
    stored = await filled.reader.entries(1, 0, "readings", b"a", -1)
    assert [entry.offset for entry in stored] == list(range(3, many))
    assert len(await filled.reader.live(1, 0, -1, 10 * many)) == many < LIVE_ENTRIES


async def test_a_capped_feed_reports_its_first_offset(filled: Filled) -> None:
    offset = 0
    while offset < LIVE_ENTRIES + 2:
        live = [Entry(n, b"x") for n in range(offset, min(offset + 2_000, LIVE_ENTRIES + 2))]
        offset = live[-1].offset + 1
        await filled.write(offset, NOTHING._replace(live=live))
    bounds = await filled.reader.live_bounds(1, 0)
    assert bounds == LiveBounds(2, is_whole=False)
    assert (bounds.reaches(2), bounds.reaches(1)) == (True, False)
    assert await filled.reader.live(1, 0, 1, 2) == [Entry(2, b"x"), Entry(3, b"x")]


async def test_a_waiting_reader_of_the_feed_is_woken(filled: Filled) -> None:
    waiting = asyncio.create_task(filled.reader.live(1, 0, 3, 10, PATIENCE_S))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await filled.write(5, NOTHING._replace(live=[Entry(4, b"x")]))
    assert await waiting == [Entry(4, b"x")]


@pytest.mark.parametrize("session", NAMES, ids=lambda name: repr(name[:12]))
async def test_a_session_id_may_be_any_bytes(filled: Filled, session: bytes) -> None:
    changes = changes_of(session)._replace(
        compactions={(session, b"1:" + session): b"2"},
        entries=[("events", session, Entry(0, b"3"))],
        stats={b"model:" + session: b"4"},
    )
    await filled.write(1, changes)
    reader = filled.reader
    assert await reader.views(1, 0, [session]) == [b"view of " + session]
    assert await reader.ranked(1, 0, "recent", 1) == [(session, 1)]
    assert await reader.compactions(1, 0, session) == {b"1:" + session: b"2"}
    assert await reader.entries(1, 0, "events", session, -1) == [Entry(0, b"3")]
    assert await reader.stats(1, 0) == {b"model:" + session: b"4"}


async def test_many_sessions_are_read_at_once(filled: Filled) -> None:
    names = [b"%04d" % number for number in range(1_200)]
    for start in range(0, 1_200, 400):
        some = names[start : start + 400]
        changes = NOTHING._replace(
            views=dict.fromkeys(some, b"v"),
            recent={name: int(name) for name in some},
            pressure=dict.fromkeys(some),
        )
        await filled.write(start + 400, changes)
    assert await filled.reader.views(1, 0, names) == [b"v"] * 1_200
    ranked = await filled.reader.ranked(1, 0, "recent", 10_000)
    assert [name for name, _ in ranked] == names[::-1]
