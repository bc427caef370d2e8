"""The contract of consumer groups: the same tests on the log in memory and on a real Kafka."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from contextgauge.errors import RetryError
from streams.ports import Ends
from tests.contract.logs import LogUnderTest, Member
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S


@asynccontextmanager
async def joined(under_test: LogUnderTest, instance: str | None = None) -> AsyncIterator[Member]:
    member = Member(
        under_test.log.group_reader(under_test.topic, under_test.prefix + "group", instance)
    )
    await member.reader.start()
    await member.reader.join(member.on_revoked, member.on_assigned)
    try:
        yield member
    finally:
        await member.reader.stop()


async def test_a_member_commits_offsets_of_its_partitions(under_test: LogUnderTest) -> None:
    group, topic = under_test.prefix + "group", under_test.topic
    assert await under_test.log.committed(group, topic) == {}
    async with joined(under_test) as member:
        await member.until(2)
        await member.reader.commit_offsets({0: 7, 1: 11})
        await member.reader.commit_offsets({1: 12})
        assert await under_test.log.committed(group, topic) == {0: 7, 1: 12}
        assert await under_test.log.committed(group, "another") == {}


async def test_offsets_committed_during_revocation_count(under_test: LogUnderTest) -> None:
    class Telling(Member):
        async def on_revoked(self, partitions: frozenset[int]) -> None:
            if partitions:
                await self.reader.commit_offsets(dict.fromkeys(partitions, 5))
            await super().on_revoked(partitions)

    group = under_test.prefix + "group"
    member = Telling(under_test.log.group_reader(under_test.topic, group, None))
    await member.reader.start()
    await member.reader.join(member.on_revoked, member.on_assigned)
    await member.until(2)
    async with joined(under_test) as second:
        gone = next(iter(await second.until(1)))
        assert await under_test.log.committed(group, under_test.topic) == {0: 5, 1: 5}
        await member.until(1)
        with pytest.raises(RetryError):
            await member.reader.commit_offsets({gone: 6})
        assert await under_test.log.committed(group, under_test.topic) == {0: 5, 1: 5}
    await member.reader.stop()


@pytest.mark.extended
async def test_members_share_the_partitions_eagerly(under_test: LogUnderTest) -> None:
    async with joined(under_test) as first:
        assert await first.until(2) == {0, 1}
        async with joined(under_test) as second:
            shares = {*await first.until(1), *await second.until(1)}
            assert shares == {0, 1}
            assert first.revoked[-1] == {0, 1}
        assert await first.until(2) == {0, 1}


@pytest.mark.extended
async def test_a_rebalance_moves_as_little_as_it_can(under_test: LogUnderTest) -> None:
    under_test.topic = await under_test.create("wide", 4)
    async with joined(under_test) as first:
        await first.until(4)
        async with joined(under_test) as second:
            had = [await first.until(2), await second.until(2)]
            async with joined(under_test) as third:
                moved = await third.until(1)
                await until(lambda: len(first.partitions | second.partitions) == 3)
                has = [first.partitions, second.partitions]
                assert has == [share - moved for share in had]


async def test_an_assigned_partition_is_paused_until_resumed(under_test: LogUnderTest) -> None:
    await under_test.write(b"one", b"two")
    async with joined(under_test) as member:
        await member.until(2)
        _, end = await member.reader.bounds(0)
        assert end == 2
        member.reader.seek(0, 1)
        assert not (await member.reader.poll(0, 10, 0.3)).records
        member.reader.resume(0)
        batch = await member.reader.poll(0, 10, PATIENCE_S)
        assert [record.value for record in batch.records] == [b"two"]


async def test_a_rebalance_ends_a_poll(under_test: LogUnderTest) -> None:
    """Revocation waits for the partition's task, so its poll must not wait for the rebalance."""

    class Polling(Member):
        poll: asyncio.Task[object] | None = None

        async def on_revoked(self, partitions: frozenset[int]) -> None:
            if self.poll is not None:
                await self.poll
            await super().on_revoked(partitions)

    member = Polling(
        under_test.log.group_reader(under_test.topic, under_test.prefix + "group", None)
    )
    await member.reader.start()
    await member.reader.join(member.on_revoked, member.on_assigned)
    await member.until(2)
    for partition in (0, 1):
        member.reader.seek(partition, 0)
        member.reader.resume(partition)
    member.poll = asyncio.create_task(member.reader.poll(0, 10, 10 * PATIENCE_S))
    async with joined(under_test) as second:
        await second.until(1)
        assert member.poll.done()
        gone = next(iter(second.partitions))
        assert not (await member.reader.poll(gone, 10, PATIENCE_S)).records
        member.reader.seek(gone, 0)
        member.reader.resume(gone)
    await member.reader.stop()


async def test_a_revoked_partition_keeps_its_sought_position(under_test: LogUnderTest) -> None:
    """A partition revoked while it is taken over must not get an older position."""
    async with joined(under_test) as member:
        await member.until(2)
        member.reader.seek(0, 100)
        member.reader.seek(1, 100)
        async with joined(under_test) as second:
            (gone,) = await second.until(1)
            member.reader.seek(gone, 50)
            assert await member.reader.poll(gone, 10, PATIENCE_S) == ((), 50)


async def test_a_static_member_gets_its_partitions_back(under_test: LogUnderTest) -> None:
    async with joined(under_test, "one") as first:
        await first.until(2)
    async with joined(under_test, "one") as again:
        assert await again.until(2) == {0, 1}


async def test_a_watch_ends_with_the_membership_only(under_test: LogUnderTest) -> None:
    async with joined(under_test) as member:
        watch = asyncio.create_task(member.reader.watch())
        async with joined(under_test) as second:
            await second.until(1)
        await member.until(2)
        assert not watch.done()
        watch.cancel()
        await asyncio.wait([watch])
    assert watch.cancelled()


async def test_the_end_of_an_unassigned_partition_is_unknown(under_test: LogUnderTest) -> None:
    await under_test.write(b"one")
    async with joined(under_test) as member:
        await member.until(2)
        assert member.reader.ends(7) is None
        member.reader.seek(0, 0)
        member.reader.resume(0)
        await member.reader.poll(0, 10, PATIENCE_S)
        assert member.reader.ends(0) == Ends(1, 1)
