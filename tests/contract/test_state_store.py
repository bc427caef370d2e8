"""The contract of the state store: a changelog, on the log in memory and on a real Kafka."""

from collections.abc import Sequence

from streams.flow.derive.state_store import StateStore
from tests.contract.logs import LogUnderTest
from tests.doubles.log import FaultyLog


async def read_back(store: StateStore, partition: int) -> list[tuple[bytes, bytes | None]]:
    entries: list[tuple[bytes, bytes | None]] = []
    done, total = 0, 1
    async for stretch in store.restore(partition):
        assert done < stretch.done <= stretch.total
        done, total = stretch.done, stretch.total
        entries.extend(stretch.entries)
    assert not entries or done <= total
    return entries


def last_values(entries: Sequence[tuple[bytes, bytes | None]]) -> dict[bytes, bytes]:
    return {key: value for key, value in dict(entries).items() if value is not None}


async def test_an_empty_changelog_restores_nothing(under_test: LogUnderTest) -> None:
    store = StateStore(under_test.log, under_test.topic)
    assert await read_back(store, 1) == []
    assert await store.end(1) == 0


async def test_committed_entries_are_restored_in_order(under_test: LogUnderTest) -> None:
    store = StateStore(under_test.log, under_test.topic)
    async with under_test.transactional("a") as producer:
        for changes in ({b"a": b"1", b"b": b"2"}, {b"a": b"3", b"b": None}):
            ends = await producer.commit(store.to_records(1, changes))
    assert await read_back(store, 1) == [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None)]
    assert await read_back(store, 0) == []
    assert await store.end(1) == ends[under_test.topic, 1]


async def test_an_open_transaction_is_not_restored(under_test: LogUnderTest) -> None:
    store = StateStore(under_test.log, under_test.topic)
    async with under_test.transactional("a") as producer:
        await producer.commit(store.to_records(0, {b"a": b"old"}))
    end = await store.end(0)
    await under_test.leave_open(
        under_test.prefix + "a", store.to_records(0, {b"a": b"new", b"b": b"new"})
    )
    assert await store.end(0) == end
    assert last_values(await read_back(store, 0)) == {b"a": b"old"}
    async with under_test.transactional("a"):
        assert last_values(await read_back(store, 0)) == {b"a": b"old"}
        # The abort's marker tells a worker that kept its state that someone else was there.
        assert await store.end(0) > end


async def test_a_long_changelog_is_restored_completely(under_test: LogUnderTest) -> None:
    """Longer than one poll takes, with markers at the end of what is fetched."""
    store = StateStore(under_test.log, under_test.topic)
    changes: dict[bytes, bytes | None] = {b"%05d" % n: b"x" * 100 for n in range(10_000)}
    async with under_test.transactional("a") as producer:
        await producer.commit(store.to_records(0, changes))
        await producer.commit(store.to_records(0, {b"last": b"one"}))
    assert await read_back(store, 0) == [*changes.items(), (b"last", b"one")]


async def test_compaction_leaves_the_last_values(under_test: LogUnderTest) -> None:
    store = StateStore(under_test.log, under_test.topic)
    async with under_test.transactional("a") as producer:
        for number in range(5):
            changes = {b"a": b"%d" % number, b"b": None if number % 2 else b"x"}
            await producer.commit(store.to_records(0, changes))
        await producer.commit(store.to_records(0, {b"c": b"1", b"b": None}))
    end = await store.end(0)
    if isinstance(under_test.log, FaultyLog):
        under_test.log.compact(under_test.topic, 0)
        assert await read_back(store, 0) == [(b"a", b"4"), (b"c", b"1"), (b"b", None)]
    assert last_values(await read_back(store, 0)) == {b"a": b"4", b"c": b"1"}
    assert await store.end(0) == end
