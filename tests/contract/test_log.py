"""The contract of the log: the same tests on the log in memory and on a real Kafka."""

import asyncio
import os
from collections.abc import Mapping

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import (
    ConfigError,
    ContextgaugeError,
    FencedError,
    PositionError,
    RetryError,
)
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.kafka.log import KafkaLog
from streams.flow.common.ranges import read_range
from streams.ports import Batch, Ends, NewRecord, UnreadableBatch, UnreadableBatchError
from tests.contract.logs import LogUnderTest
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import until
from tests.patience import PATIENCE_S


async def test_topics_are_created_once_and_counted(under_test: LogUnderTest) -> None:
    topics = [Topic(under_test.prefix + name, "any", "compact", -1, MIB) for name in ("one", "two")]
    names = [topic.name for topic in topics]
    assert await under_test.log.partition_counts(names) == dict.fromkeys(names)
    assert await under_test.log.create_topics(topics[:1], 3) == names[:1]
    assert await under_test.log.create_topics(topics, 5) == names[1:]
    assert await under_test.log.create_topics(topics, 5) == []
    assert await under_test.log.partition_counts(names) == {names[0]: 3, names[1]: 5}


async def test_a_topic_keeps_its_id_until_it_is_deleted(under_test: LogUnderTest) -> None:
    log, topic = under_test.log, under_test.topic
    other, missing = await under_test.create("other"), under_test.prefix + "missing"
    ids = await log.topic_ids([topic, other, missing])
    assert ids == await log.topic_ids([topic, other, missing])
    assert ids[missing] is None
    assert None not in {ids[topic], ids[other]}
    assert ids[topic] != ids[other]
    await under_test.delete(topic)
    assert (await log.topic_ids([topic, other])) == {topic: None, other: ids[other]}
    await under_test.create("records")
    assert (await log.topic_ids([topic]))[topic] not in {None, *ids.values()}
    assert await log.topic_ids([]) == {}


async def test_a_committed_transaction_is_read_as_it_was_written(under_test: LogUnderTest) -> None:
    headers = (("one", b"\x00\xff"), ("one", b""))
    written = [
        NewRecord(under_test.topic, 0, b"key", b"value", headers),
        NewRecord(under_test.topic, 0, b"key", None),
        NewRecord(under_test.topic, 0, None, b""),
        NewRecord(under_test.topic, 1, b"other", b"partition"),
    ]
    async with under_test.transactional("a") as producer:
        await producer.commit(written)
    read = await under_test.committed_records(0)
    assert [(r.key, r.value, r.headers) for r in read] == [w[2:5] for w in written[:3]]
    assert all(record.created and record.timestamp_ms > 0 for record in read)
    assert await under_test.values(1) == [b"partition"]


async def test_markers_take_offsets(under_test: LogUnderTest) -> None:
    topic_partition = (under_test.topic, 0)
    async with under_test.transactional("a") as producer:
        ends = [
            (await producer.commit([NewRecord(*topic_partition, b"key", value)]))[topic_partition]
            for value in (b"1", b"2")
        ]
    offsets = [record.offset for record in await under_test.committed_records()]
    assert offsets[1] > offsets[0] + 1
    assert ends == [offsets[1], offsets[1] + (offsets[1] - offsets[0])]
    async with under_test.reading(0) as reader:
        assert await reader.bounds(0) == (0, ends[1])
        assert (await reader.poll(0, 10, PATIENCE_S)).position == ends[1]


async def test_an_open_transaction_hides_itself_and_later_records(under_test: LogUnderTest) -> None:
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
    record = NewRecord(under_test.topic, 0, b"key", b"of the older")
    async with under_test.transactional("a") as older, under_test.transactional("a") as newer:
        with pytest.raises(FencedError):
            await older.commit([record])
        with pytest.raises(ContextgaugeError):
            await older.commit([record])
        await newer.commit([record._replace(value=b"of the newer")])
    assert await under_test.values() == [b"of the newer"]


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


async def test_a_poll_returns_at_most_the_requested_number(under_test: LogUnderTest) -> None:
    await under_test.write(*[b"%d" % number for number in range(10)])
    async with under_test.reading(0) as reader:
        first = await reader.poll(0, 4, PATIENCE_S)
        second = await reader.poll(0, 4, PATIENCE_S)
    assert [record.value for record in first.records] == [b"0", b"1", b"2", b"3"]
    assert first.position == second.records[0].offset
    assert [record.value for record in second.records] == [b"4", b"5", b"6", b"7"]


async def test_a_poll_returns_when_a_record_arrives(under_test: LogUnderTest) -> None:
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


async def test_a_reader_knows_the_end_of_its_partition(under_test: LogUnderTest) -> None:
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


async def test_a_record_keeps_the_time_that_it_is_given(under_test: LogUnderTest) -> None:
    begin_ms = SystemClock().now_ms()
    given = NewRecord(under_test.topic, 0, b"key", b"given", timestamp_ms=1_600_000_000_123)
    await under_test.append(given, given._replace(value=b"of now", timestamp_ms=None))
    async with under_test.transactional("a") as producer:
        await producer.commit([given])
    times = [record.timestamp_ms for record in await under_test.committed_records()]
    assert times == [given.timestamp_ms, times[1], given.timestamp_ms]
    assert times[1] >= begin_ms


async def test_offsets_are_found_by_time(under_test: LogUnderTest) -> None:
    async with under_test.transactional("a") as producer:
        for times in ((1_000, 2_000), (3_000,), (2_500, 5_000)):
            await producer.commit(
                [NewRecord(under_test.topic, 0, None, b"", timestamp_ms=ms) for ms in times]
            )
    read = await under_test.committed_records()
    assert [record.timestamp_ms for record in read] == [1_000, 2_000, 3_000, 2_500, 5_000]
    offsets = [record.offset for record in read]
    async with under_test.reading(0, 1) as reader:
        _, end = await reader.bounds(0)
        by_time = [await reader.offset_at(0, ms) for ms in (-1, 1_000, 1_001, 2_000)]
        assert by_time == [offsets[0], offsets[0], offsets[1], offsets[1]]
        # A marker carries the time of its writing, which is now, and may be what is found.
        assert offsets[1] < await reader.offset_at(0, 2_400) <= offsets[2]
        assert offsets[1] < await reader.offset_at(0, 4_000) <= offsets[4]
        assert await reader.offset_at(0, 2**42) == end
        assert await reader.offset_at(1, 0) == 0
    lost = NewRecord(under_test.topic, 1, None, b"", timestamp_ms=9_000)
    await under_test.leave_open(under_test.prefix + "dead", [lost])
    async with under_test.reading(1) as reader:
        assert await reader.offset_at(1, 0) == 0


async def test_an_unavailable_broker_raises_a_retry_error() -> None:
    memory = FaultyLog(SystemClock())
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
            await producer.commit([fits])
            with pytest.raises(ConfigError, match=r"max\.message\.bytes"):
                await producer.commit([fits, record])
    async with under_test.transactional("a"):
        values = await under_test.values(topic=topic.name)
        assert values == [noise[:-1024]] * (1 + len(too_large))


async def test_a_transaction_is_checked_against_what_was_written_before_it(
    under_test: LogUnderTest,
) -> None:
    topic_partition = (under_test.topic, 0)
    seen: list[tuple[int, list[bytes | None]]] = []

    async def approve(first: Mapping[tuple[str, int], int]) -> bool:
        await under_test.write(b"behind it")
        async with under_test.reading(0) as reader:
            values: list[bytes | None] = []
            position = 0
            async with asyncio.timeout(PATIENCE_S):
                while position < first[topic_partition]:
                    batch = await reader.poll(0, 10, 0.1)
                    values += [record.value for record in batch.records]
                    position = batch.position
            assert await reader.poll(0, 10, 0.1) == Batch([], first[topic_partition])
        seen.append((position, values))
        return len(seen) > 1

    async with under_test.transactional("a") as producer:
        await producer.commit([NewRecord(*topic_partition, b"key", b"earlier")])
        await under_test.write(b"in between")
        both = [
            NewRecord(*topic_partition, b"key", b"one"),
            NewRecord(*topic_partition, b"key", b"two"),
        ]
        assert await producer.commit(both, approve) is None
        assert await under_test.values() == [b"earlier", b"in between", b"behind it"]
        ends = await producer.commit([*both, NewRecord(under_test.topic, 1, None, b"")], approve)
    offsets = {record.value: record.offset for record in await under_test.committed_records()}
    assert ends is not None
    # The other record was written while the transaction was open, and its marker after that.
    assert ends[topic_partition] >= offsets[b"two"] + 2
    assert [values for _, values in seen] == [
        [b"earlier", b"in between"],
        [b"earlier", b"in between", b"behind it"],
    ]
    assert seen[1][0] == offsets[b"one"]
    assert await under_test.values(1) == [b""]


async def test_an_approval_that_fails_leaves_nothing_behind(under_test: LogUnderTest) -> None:
    record = NewRecord(under_test.topic, 0, b"key", b"lost")

    async def approve(_first: Mapping[tuple[str, int], int]) -> bool:
        raise RetryError("the check failed")

    async with under_test.transactional("a") as producer:
        with pytest.raises(RetryError):
            await producer.commit([record], approve)
        with pytest.raises(RetryError):
            await producer.commit([record])
    async with under_test.transactional("a") as producer:
        assert await under_test.values() == []
        await producer.commit([record._replace(value=b"written")])
    assert await under_test.values() == [b"written"]


async def test_who_is_fenced_during_an_approval_commits_nothing(under_test: LogUnderTest) -> None:
    record = NewRecord(under_test.topic, 0, b"key", b"of the older")

    async def approve(_first: Mapping[tuple[str, int], int]) -> bool:
        async with under_test.transactional("a") as newer:
            await newer.commit([record._replace(value=b"of the newer")])
        return True

    async with under_test.transactional("a") as older:
        with pytest.raises(FencedError):
            await older.commit([record], approve)
    assert await under_test.values() == [b"of the newer"]


async def test_a_batch_that_cannot_be_read_is_raised_behind_what_comes_before_it(
    under_test: LogUnderTest,
) -> None:
    await under_test.write(b"1", b"2")
    await under_test.write_bomb(3)
    await under_test.write(b"3")
    async with under_test.reading(0) as reader:
        position, values = 0, list[bytes | None]()
        while position < 2:
            batch = await reader.poll(0, 10, PATIENCE_S)
            values += [record.value for record in batch.records]
            position = batch.position
        assert (values, position) == ([b"1", b"2"], 2)
        for _ in range(2):  # until who reads goes on behind it
            with pytest.raises(UnreadableBatchError, match="2 to 4 cannot be read") as raised:
                await reader.poll(0, 10, PATIENCE_S)
        unreadable = raised.value.batch
        assert (unreadable.topic, unreadable.partition) == (under_test.topic, 0)
        assert (unreadable.first_offset, unreadable.next_offset, unreadable.records) == (2, 5, 3)
        assert unreadable.reason == "batch_too_large"
        assert unreadable.content
        reader.seek(0, 5)
        assert [one.value for one in (await reader.poll(0, 10, PATIENCE_S)).records] == [b"3"]
        reader.seek(0, 3)  # also from within it
        with pytest.raises(UnreadableBatchError):
            await reader.poll(0, 10, PATIENCE_S)
        passed: list[UnreadableBatch] = []
        ranges = read_range(reader, SystemClock(), 0, 0, 6, passed=passed.append)
        values = [record.value async for batch in ranges for record in batch.records]
        assert values == [b"1", b"2", b"3"]
        assert [(batch.first_offset, batch.next_offset) for batch in passed] == [(2, 5)]
        with pytest.raises(UnreadableBatchError):
            async for _ in read_range(reader, SystemClock(), 0, 0, 6):
                pass
