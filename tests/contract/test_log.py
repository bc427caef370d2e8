"""The contract of the log: the same tests on the log in memory and on a real Kafka."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schemas.topics import MIB, Topic
from streams.core.errors import (
    ConfigError,
    ContextgaugeError,
    FencedError,
    PositionError,
    RetryError,
)
from streams.edge.clock import SystemClock
from streams.edge.kafka_common import KafkaOptions
from streams.edge.kafka_log import KafkaLog
from streams.edge.memory_log import MemoryLog
from streams.ports import Batch, Ends, NewRecord
from tests.contract.logs import PATIENCE_S, LogUnderTest, Member
from tests.flow.derive_kit import until


async def test_topics_are_created_once_and_counted(under_test: LogUnderTest) -> None:
    topics = [Topic(under_test.prefix + name, "any", "compact", -1, MIB) for name in ("one", "two")]
    names = [topic.name for topic in topics]
    assert await under_test.log.partition_counts(names) == dict.fromkeys(names)
    assert await under_test.log.create_topics(topics[:1], 3) == names[:1]
    assert await under_test.log.create_topics(topics, 5) == names[1:]
    assert await under_test.log.create_topics(topics, 5) == []
    assert await under_test.log.partition_counts(names) == {names[0]: 3, names[1]: 5}


async def test_a_committed_transaction_is_read_as_it_was_written(under_test: LogUnderTest) -> None:
    headers = (("one", b"\x00\xff"), ("one", b""))
    written = [
        NewRecord(under_test.topic, 0, b"key", b"value", headers),
        NewRecord(under_test.topic, 0, b"key", None),
        NewRecord(under_test.topic, 0, None, b""),
        NewRecord(under_test.topic, 1, b"other", b"partition"),
    ]
    async with under_test.transactional("a") as producer:
        await producer.commit(written, "group", {})
    read = await under_test.committed_records(0)
    assert [(r.key, r.value, r.headers) for r in read] == [w[2:5] for w in written[:3]]
    assert all(record.created and record.timestamp_ms > 0 for record in read)
    assert await under_test.values(1) == [b"partition"]


async def test_markers_take_offsets(under_test: LogUnderTest) -> None:
    at = (under_test.topic, 0)
    async with under_test.transactional("a") as producer:
        ends = [
            (await producer.commit([NewRecord(*at, b"key", value)], "group", {}))[at]
            for value in (b"1", b"2")
        ]
    offsets = [record.offset for record in await under_test.committed_records()]
    assert offsets[1] > offsets[0] + 1
    assert ends == [offsets[1], offsets[1] + (offsets[1] - offsets[0])]
    async with under_test.reading(0) as reader:
        assert await reader.bounds(0) == (0, ends[1])
        assert (await reader.poll(0, 10, PATIENCE_S)).position == ends[1]


async def test_an_open_transaction_hides_itself_and_what_follows(under_test: LogUnderTest) -> None:
    await under_test.write(b"before")
    lost = NewRecord(under_test.topic, 0, b"key", b"lost")
    await under_test.leave_open(under_test.prefix + "dead", [lost])
    await under_test.write(b"after")
    assert await under_test.values() == [b"before"]
    async with under_test.transactional("dead"):
        assert await under_test.values() == [b"before", b"after"]


async def test_an_aborted_transaction_moves_the_position_only(under_test: LogUnderTest) -> None:
    lost = [NewRecord(under_test.topic, 0, b"key", b"lost")] * 3
    await under_test.leave_open(under_test.prefix + "dead", lost)
    async with under_test.transactional("dead"), under_test.reading(0) as reader:
        _, end = await reader.bounds(0)
        assert end > len(lost)
        position = 0
        async with asyncio.timeout(PATIENCE_S):
            while position < end:
                batch = await reader.poll(0, 10, 0.1)
                assert not batch.records
                position = batch.position


async def test_a_newer_producer_fences_the_older(under_test: LogUnderTest) -> None:
    group = under_test.prefix + "group"
    record = NewRecord(under_test.topic, 0, b"key", b"of the older")
    async with under_test.transactional("a") as older, under_test.transactional("a") as newer:
        with pytest.raises(FencedError):
            await older.commit([record], group, {(under_test.topic, 0): 99})
        with pytest.raises(ContextgaugeError):
            await older.commit([record], "group", {})
        await newer.commit([record._replace(value=b"of the newer")], "group", {})
    assert await under_test.values() == [b"of the newer"]
    assert await under_test.log.committed(group, under_test.topic) == {}


async def test_group_offsets_commit_with_the_transaction(under_test: LogUnderTest) -> None:
    group, at = under_test.prefix + "group", (under_test.topic, 1)
    assert await under_test.log.committed(group, under_test.topic) == {}
    async with under_test.transactional("a") as producer:
        await producer.commit([NewRecord(*at, b"key", b"value")], group, {at: 7})
        await producer.commit([NewRecord(*at, b"key", b"value")], group, {at: 12})

    async def told() -> bool:
        return await under_test.log.committed(group, under_test.topic) == {1: 12}

    # A broker answers the commit, and writes the markers that make it seen a moment later.
    await until(told)
    assert await under_test.log.committed(group, "another") == {}


async def test_published_records_keep_their_order(under_test: LogUnderTest) -> None:
    producer = under_test.log.producer()
    await producer.start()
    values = [b"%05d" % number + b"x" * 2_000 for number in range(5_000)]
    for number, value in enumerate(values):
        await producer.send(NewRecord(under_test.topic, number % 2, b"key", value))
    await producer.flush()
    await producer.stop()
    assert await under_test.values(0) == values[::2]
    assert await under_test.values(1) == values[1::2]


async def test_a_poll_takes_no_more_than_it_was_told(under_test: LogUnderTest) -> None:
    await under_test.write(*[b"%d" % number for number in range(10)])
    async with under_test.reading(0) as reader:
        first = await reader.poll(0, 4, PATIENCE_S)
        second = await reader.poll(0, 4, PATIENCE_S)
    assert [record.value for record in first.records] == [b"0", b"1", b"2", b"3"]
    assert first.position == second.records[0].offset
    assert [record.value for record in second.records] == [b"4", b"5", b"6", b"7"]


async def test_a_poll_ends_when_something_comes(under_test: LogUnderTest) -> None:
    async with under_test.reading(0) as reader:
        assert (await reader.poll(0, 10, 0.0)).records == []
        poll = asyncio.create_task(reader.poll(0, 10, 10 * PATIENCE_S))
        await under_test.write(b"late")
        async with asyncio.timeout(PATIENCE_S):
            batch = await poll
    assert [record.value for record in batch.records] == [b"late"]


async def test_partitions_are_read_apart_and_again(under_test: LogUnderTest) -> None:
    await under_test.write(b"0a", b"0b", partition=0)
    await under_test.write(b"1a", partition=1)
    async with under_test.reading(0, 1) as reader:
        one = await reader.poll(1, 10, PATIENCE_S)
        zero = await reader.poll(0, 10, PATIENCE_S)
        reader.seek(0, zero.records[1].offset)
        again = await reader.poll(0, 10, PATIENCE_S)
    assert [record.value for record in one.records] == [b"1a"]
    assert [record.value for record in zero.records] == [b"0a", b"0b"]
    assert again.records == zero.records[1:]


async def test_a_position_out_of_range_is_an_error(under_test: LogUnderTest) -> None:
    await under_test.write(b"one")
    async with under_test.reading(0) as reader:
        reader.seek(0, 1_000)
        with pytest.raises(PositionError):
            await reader.poll(0, 10, PATIENCE_S)


async def test_a_reader_knows_where_its_partition_ended(under_test: LogUnderTest) -> None:
    await under_test.write(b"one", b"two")
    async with under_test.reading(0) as reader:
        assert (await reader.poll(0, 10, PATIENCE_S)).position == 2
        assert reader.ends(0) == Ends(2, 2)
        open_one = NewRecord(under_test.topic, 0, b"key", b"open")
        await under_test.leave_open(under_test.prefix + "hanging", [open_one])
        await under_test.write(b"behind it")

        async def seen() -> bool:
            assert await reader.poll(0, 10, 0.1) == Batch([], 2)
            return reader.ends(0) == Ends(2, 4)

        await until(seen)


async def test_where_a_partition_of_anothers_ends_is_not_known(under_test: LogUnderTest) -> None:
    await under_test.write(b"one")
    async with joined(under_test) as member:
        await member.until(2)
        assert member.reader.ends(7) is None
        member.reader.seek(0, 0)
        member.reader.resume(0)
        await member.reader.poll(0, 10, PATIENCE_S)
        assert member.reader.ends(0) == Ends(1, 1)


async def test_a_record_keeps_the_time_that_it_is_given(under_test: LogUnderTest) -> None:
    begin_ms = SystemClock().now_ms()
    given = NewRecord(under_test.topic, 0, b"key", b"given", timestamp_ms=1_600_000_000_123)
    await under_test.append(given, given._replace(value=b"of now", timestamp_ms=None))
    async with under_test.transactional("a") as producer:
        await producer.commit([given], "group", {})
    times = [record.timestamp_ms for record in await under_test.committed_records()]
    assert times == [given.timestamp_ms, times[1], given.timestamp_ms]
    assert times[1] >= begin_ms


async def test_a_time_leads_to_an_offset(under_test: LogUnderTest) -> None:
    async with under_test.transactional("a") as producer:
        for times in ((1_000, 2_000), (3_000,), (2_500, 5_000)):
            await producer.commit(
                [NewRecord(under_test.topic, 0, None, b"", timestamp_ms=ms) for ms in times],
                "group",
                {},
            )
    read = await under_test.committed_records()
    assert [record.timestamp_ms for record in read] == [1_000, 2_000, 3_000, 2_500, 5_000]
    offsets = [record.offset for record in read]
    async with under_test.reading(0, 1) as reader:
        _, end = await reader.bounds(0)
        found = [await reader.offset_at(0, ms) for ms in (-1, 1_000, 1_001, 2_000)]
        assert found == [offsets[0], offsets[0], offsets[1], offsets[1]]
        # A marker carries the time of its writing, which is now, and may be what is found.
        assert offsets[1] < await reader.offset_at(0, 2_400) <= offsets[2]
        assert offsets[1] < await reader.offset_at(0, 4_000) <= offsets[4]
        assert await reader.offset_at(0, 2**42) == end
        assert await reader.offset_at(1, 0) == 0
    lost = NewRecord(under_test.topic, 1, None, b"", timestamp_ms=9_000)
    await under_test.leave_open(under_test.prefix + "dead", [lost])
    async with under_test.reading(1) as reader:
        assert await reader.offset_at(1, 0) == 0


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


async def test_members_share_the_partitions_eagerly(under_test: LogUnderTest) -> None:
    async with joined(under_test) as first:
        assert await first.until(2) == {0, 1}
        async with joined(under_test) as second:
            shares = {*await first.until(1), *await second.until(1)}
            assert shares == {0, 1}
            assert first.revoked[-1] == {0, 1}
        assert await first.until(2) == {0, 1}


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


async def test_a_partition_of_anothers_is_where_it_was_sought(under_test: LogUnderTest) -> None:
    """One that is revoked while it is taken over must not be told an older position."""
    async with joined(under_test) as member:
        await member.until(2)
        member.reader.seek(0, 100)
        member.reader.seek(1, 100)
        async with joined(under_test) as second:
            (gone,) = await second.until(1)
            member.reader.seek(gone, 50)
            assert await member.reader.poll(gone, 10, PATIENCE_S) == ((), 50)


async def test_a_static_member_comes_back_to_its_partitions(under_test: LogUnderTest) -> None:
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


async def test_a_broker_that_is_away_is_a_retry() -> None:
    memory = MemoryLog(SystemClock())
    memory.away = True
    kafka = KafkaLog(KafkaOptions("127.0.0.1:1", start_timeout_s=5))
    for log in (memory, kafka):
        with pytest.raises(RetryError):
            await log.start()
        with pytest.raises(RetryError):
            await log.partition_counts(["any"])
        for made in (
            log.transactional_producer("any"),
            log.producer(),
            log.reader("any", [0]),
            log.group_reader("any", "any", None),
        ):
            with pytest.raises(RetryError):
                await made.start()
            await made.stop()
        await log.stop()


async def test_a_record_that_is_too_large_is_refused(under_test: LogUnderTest) -> None:
    topic = Topic(under_test.prefix + "small", "any", "delete", -1, 64 * 1024)
    await under_test.log.create_topics([topic], 1)
    # Noise, which no compression makes smaller.
    noise, more = os.urandom(64 * 1024), os.urandom(2048)
    fits = NewRecord(topic.name, 0, b"key", noise[:-1024])
    too_large = [
        fits._replace(value=noise),
        fits._replace(key=more),
        fits._replace(headers=(("name", more),)),
    ]
    await under_test.write(noise[:-1024], topic=topic.name)
    for record in too_large:
        with pytest.raises(ConfigError, match=r"max\.message\.bytes"):
            await under_test.append(record)
        async with under_test.transactional("a") as producer:
            await producer.commit([fits], "group", {})
            with pytest.raises(ConfigError, match=r"max\.message\.bytes"):
                await producer.commit([fits, record], "group", {})
    async with under_test.transactional("a"):
        values = await under_test.values(topic=topic.name)
        assert values == [noise[:-1024]] * (1 + len(too_large))
