"""How every view store begins, activates and drops generations: the twin and a real Redis."""

import asyncio

import pytest

from streams.ports import Entry, Generations, ViewPosition
from tests.contract.stores import NOTHING, StoreUnderTest, one_view, store_under_test
from tests.doubles.dump import dump

under_test = store_under_test


async def test_a_generation_begins_once_and_is_activated_once(
    under_test: StoreUnderTest,
) -> None:
    store = under_test.store
    await store.begin_next(1, "a")
    await store.begin_next(2, "b")
    assert await store.generations() == Generations(None, 1, "a")
    await store.activate(1, "a")
    assert await store.generations() == Generations(1, None)
    await store.begin_next(2, "c:d")
    await store.activate(1, "a")
    await store.activate(1, "c:d")
    assert await store.generations() == Generations(1, 2, "c:d")
    await store.activate(2, "c:d")
    await store.activate(1, "a")
    assert await store.generations() == Generations(2, None)


async def test_a_dropped_partition_is_gone_whole(under_test: StoreUnderTest) -> None:
    store = under_test.store
    for generation in (1, 11):
        await store.apply(
            generation,
            0,
            expected=None,
            position=ViewPosition(3, 0, 2, caught_up=False),
            # A document that no index names.
            changes=one_view(b"a", b"1")._replace(entries=[("events", b"b", Entry(1, b"2"))]),
        )
    await store.drop(1, 0)
    assert await store.position(1, 0) is None
    empty = await dump(store, 1, 0)
    assert not any((empty.views, *empty.entries.values(), empty.stats))
    assert (await dump(store, 11, 0)).views == {b"a": b"1"}
    assert await under_test.apply(3, 4) == "mismatch"
    await store.drop(1, 0)
    assert await under_test.apply(None, 0) == "applied"


@pytest.mark.parametrize("how", ["missing", "behind", "another build", "dropped"])
async def test_a_generation_becomes_active_with_all_its_partitions_only(
    under_test: StoreUnderTest, how: str
) -> None:
    store, changes = under_test.store, one_view(b"a", b"1")
    await store.begin_next(1, "b")
    for partition in range(2 if how != "missing" else 1):
        build = "other" if partition and how == "another build" else "b"
        position = ViewPosition(3, 0, 2, caught_up=False, build=build)
        await store.apply(1, partition, expected=None, position=position, changes=changes)
        if not partition or how != "behind":
            await store.caught_up(1, partition, build)
    if how == "dropped":
        assert await store.drop(1, 1, "b")
    await store.activate(1, "b", 2)
    assert (await store.generations()).active is None
    await store.activate(1, "b", 1)
    assert (await store.generations()).active == 1


async def test_what_readers_use_is_never_dropped(under_test: StoreUnderTest) -> None:
    store = under_test.store
    await under_test.apply(None, 3, one_view(b"a", b"1"))
    await store.begin_next(1, "test")
    await store.activate(1, "test")
    assert not await store.drop(1, 0)
    assert not await store.drop(1, 0, "test")
    assert await under_test.view(b"a") == b"1"


async def test_a_generation_that_is_built_is_dropped_by_its_build_only(
    under_test: StoreUnderTest,
) -> None:
    store = under_test.store
    await under_test.apply(None, 3, one_view(b"a", b"1"))
    assert not await store.drop(1, 0, "mine")
    await store.begin_next(1, "mine")
    assert not await store.drop(1, 0)
    assert not await store.drop(1, 0, "another")
    assert await under_test.view(b"a") == b"1"
    assert await store.drop(1, 0, "mine")
    assert not await store.is_there(1, 0)


async def test_a_partition_that_is_being_dropped_has_no_position(
    under_test: StoreUnderTest,
) -> None:
    store = under_test.store
    await under_test.apply(None, 0)
    whole = await store.position(1, 0)
    for start in range(0, 5_000, 500):
        views = {b"%d" % number: b"x" for number in range(start, start + 500)}
        await under_test.apply(start, start + 500, NOTHING._replace(views=views))
    dropping = asyncio.create_task(store.drop(1, 0))
    seen = set()
    while not dropping.done():
        position = await store.position(1, 0)
        seen.add(position and position.partitions)
        await asyncio.sleep(0)
    await dropping
    assert whole is not None
    assert seen <= {None, whole.partitions}
    assert not await store.is_there(1, 0)
