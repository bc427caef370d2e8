"""What a comparison of generations asks of every view store: holding, limits, looks."""

import pytest

from schemas.topics import DAY_MS
from streams.ports import Entry, Generations, SessionSet, SessionSnapshot, ViewChanges, ViewPosition
from tests.contract.stores import NOTHING, StoreUnderTest, store_under_test

under_test = store_under_test

FULL = ViewChanges(
    leaving={},
    views={b"a": b"view", b"b": b"other"},
    compactions={(b"a", b"%d" % n): b"document %d" % n for n in range(600)},
    entries=[
        ("events", b"a", Entry(0, b"e0")),
        ("readings", b"a", Entry(1, b"r1")),
        ("events", b"a", Entry(4, b"e4")),
    ],
    recent={b"a": 5, b"b": 7},
    pressure={b"a": 45.67},
    idle={b"a": 10, b"b": 10},
    stats={b"total": b"t"},
    live=[Entry(0, b"l0"), Entry(4, b"l4")],
    agents={(b"g", b"a"): 5},
)
"""More compactions than Redis keeps in the order of their writing."""

PARTS = {"compactions", "events", "readings", "recent", "pressure", "idle", "left"}


async def fill(
    under_test: StoreUnderTest, generation: int, changes: ViewChanges, to: int = 5
) -> None:
    for expected, offset, some in ((None, 0, NOTHING), (0, to, changes)):
        position = ViewPosition(offset, 0, 2, caught_up=False)
        result = await under_test.store.apply(
            generation, 0, expected=expected, position=position, changes=some
        )
        assert result == "applied"


async def look(under_test: StoreUnderTest, generation: int, session: bytes) -> SessionSnapshot:
    return (await under_test.store.look(generation, 0, [session])).sessions[0]


async def test_equal_sessions_compare_equal_in_any_write_order(
    under_test: StoreUnderTest,
) -> None:
    await fill(under_test, 1, FULL)
    backwards = dict(reversed(list(FULL.compactions.items())))
    await fill(under_test, 2, FULL._replace(compactions=backwards))
    one, other = [await under_test.store.look(g, 0, [b"a", b"b", b"none"]) for g in (1, 2)]
    assert one == other
    assert one.offset == 5
    assert [found.view for found in one.sessions] == [b"view", b"other", None]
    assert set(one.sessions[0].parts) == PARTS
    present = {name for name, part in one.sessions[0].parts.items() if part is not None}
    assert present == PARTS - {"left"}
    assert not any(one.sessions[2].parts.values())


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("compactions", FULL._replace(compactions={**FULL.compactions, (b"a", b"7"): b"changed"})),
        ("compactions", FULL._replace(compactions={**FULL.compactions, (b"a", b"x"): b"more"})),
        ("compactions", FULL._replace(compactions={})),
        ("events", FULL._replace(entries=FULL.entries[1:])),
        ("events", FULL._replace(entries=[*FULL.entries[:2], ("events", b"a", Entry(4, b"x"))])),
        ("events", FULL._replace(entries=[*FULL.entries[:2], ("events", b"a", Entry(3, b"e4"))])),
        ("readings", FULL._replace(entries=[FULL.entries[0], FULL.entries[2]])),
        ("recent", FULL._replace(recent={b"a": 6, b"b": 7})),
        ("pressure", FULL._replace(pressure={b"a": 45.68})),
        ("pressure", FULL._replace(pressure={})),
        ("idle", FULL._replace(idle={b"a": 11, b"b": 10})),
    ],
)
async def test_a_differing_part_is_named(
    under_test: StoreUnderTest, part: str, changed: ViewChanges
) -> None:
    await fill(under_test, 1, FULL)
    await fill(under_test, 2, changed)
    one, other = [await look(under_test, generation, b"a") for generation in (1, 2)]
    assert one.view == other.view
    assert [name for name in PARTS if one.parts[name] != other.parts[name]] == [part]


async def test_a_session_that_left_has_only_its_mark(under_test: StoreUnderTest) -> None:
    await fill(under_test, 1, FULL)
    await under_test.apply(5, 6, NOTHING._replace(leaving={b"a": DAY_MS}))
    found = await look(under_test, 1, b"a")
    assert found.view is None
    assert {name for name, part in found.parts.items() if part is not None} == {"left"}


async def test_a_partition_is_seen_whole(under_test: StoreUnderTest) -> None:
    store = under_test.store
    empty = await store.look_at_partition(1, 0)
    assert (empty.offset, empty.stats, list(empty.live)) == (None, {}, [])
    assert (await store.look(1, 0, [b"a"])).offset is None
    await fill(under_test, 1, FULL)
    await under_test.apply(5, 6, NOTHING._replace(leaving={b"b": DAY_MS}))
    found = await store.look_at_partition(1, 0)
    assert (found.offset, found.stats, list(found.live)) == (6, FULL.stats, FULL.live)
    assert found.counts == {"recent": 1, "pressure": 1, "idle": 1, "left": 1}


@pytest.mark.parametrize("of", ["recent", "left"])
async def test_all_sessions_of_a_set_are_in_its_pages(
    under_test: StoreUnderTest, of: SessionSet
) -> None:
    names = {b"session %d" % number: number for number in range(2_500)}
    changes = NOTHING._replace(recent=names) if of == "recent" else NOTHING._replace(leaving=names)
    await fill(under_test, 1, changes)
    pages = [page async for page in under_test.store.pages(1, 0, of)]
    assert {name for page in pages for name in page} == set(names)
    assert [page async for page in under_test.store.pages(1, 1, of)] == [[]]


async def test_a_held_build_is_released_or_abandoned(under_test: StoreUnderTest) -> None:
    store = under_test.store
    await store.begin_next(3, "a:b", held=True)
    assert await store.generations() == Generations(None, 3, "a:b", held=True)
    await store.begin_next(4, "c")
    for other in ((3, "c"), (4, "a:b")):
        await store.release(*other)
        await store.abandon(*other)
    assert await store.generations() == Generations(None, 3, "a:b", held=True)
    await store.release(3, "a:b")
    await store.release(3, "a:b")
    assert await store.generations() == Generations(None, 3, "a:b")
    # The workers need it now.
    await store.abandon(3, "a:b")
    assert await store.generations() == Generations(None, 3, "a:b")
    await store.activate(3, "a:b")
    for _ in range(2):
        await store.begin_next(5, "d", held=True)
        await store.abandon(5, "d")
        assert await store.generations() == Generations(3, None)
    # Who had seen it before does not make readers use what is deleted.
    await store.activate(5, "d")
    assert await store.generations() == Generations(3, None)
    await store.begin_next(5, "d", held=True)
    await store.activate(5, "d")
    assert await store.generations() == Generations(5, None)


async def test_a_limit_is_of_one_build_and_stays_while_documents_are_written(
    under_test: StoreUnderTest,
) -> None:
    store = under_test.store
    await store.limit(1, 0, "build", 5)
    assert await store.position(1, 0) is None
    position = ViewPosition(0, 0, 2, caught_up=False, build="build")
    await store.apply(1, 0, expected=None, position=position, changes=NOTHING)
    await store.limit(1, 0, "another", 5)
    assert await store.position(1, 0) == position
    await store.limit(1, 0, "build", 0)
    assert await store.position(1, 0) == position._replace(limit=0)
    further = position._replace(offset=3)
    assert await store.apply(1, 0, expected=0, position=further, changes=NOTHING) == "applied"
    assert await store.position(1, 0) == further._replace(limit=0)
    await store.limit(1, 0, "build", None)
    assert await store.position(1, 0) == further
