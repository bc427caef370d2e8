"""Batches that cannot be read, on the log in memory: each worker goes on, and nothing is hidden."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from contextgauge.partitioner import partition_of
from streams.flow.dead_letters.letters import Origin, letter_of
from streams.flow.replay.topic import TopicReplay
from streams.ports import LogRecord, NewRecord, UnreadableBatch, UnreadableBatchError, started
from tests.contract.logs import unreadable
from tests.doubles.headers import by_name
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.conversations_kit import new_kit, user
from tests.flow.dead_kit import NOW_MS, died, reading, redriven
from tests.flow.derive_kit import RULES, DeriveKit, expected, samples, until
from tests.flow.project_kit import ProjectKit, sample_records
from tests.hostile_batches import bomb, damaged

MESSAGES = samples(2)
HALF = len(MESSAGES) // 2


@pytest.fixture
async def mixed(kit: DeriveKit, log: FaultyLog) -> DeriveKit:
    """Give a log with batches that cannot be read between messages, on two partitions."""
    topic = kit.config.messages_topic
    await kit.publish(MESSAGES[:HALF])
    for partition, records in ((0, 700), (2, 1), (2, 5)):
        log.partition(topic, partition).append_unreadable(unreadable(records, topic, partition))
    await kit.publish(MESSAGES[HALF:])
    return kit


async def test_a_batch_is_one_dead_letter_with_its_offsets_and_bytes(mixed: DeriveKit) -> None:
    figures = await mixed.run_until_caught_up()
    assert await mixed.events() == expected(MESSAGES)
    letters = [letter_of(0, record) for record in await mixed.dead_letters()]
    assert [(letter.reason, letter.value, letter.key) for letter in letters] == [
        ("batch_too_large", b"content", None)
    ] * 3
    assert all("unpacks to more than 64 bytes" in letter.detail for letter in letters)
    origins = [letter.origin for letter in letters if letter.origin is not None]
    assert [(each.partition, each.last_offset) for each in origins] == [
        (each.partition, each.offset + records - 1)
        for each, records in zip(origins, (700, 1, 5), strict=True)
    ]
    assert figures.counts["derive_dead_letters", "batch_too_large"] == 3
    # As one message: 700 of them would be a flood.
    assert figures.total("derive_messages") == len(MESSAGES) + 3
    again = await mixed.run_until_caught_up()
    assert again.total("derive_dead_letters") == 0
    assert len(await mixed.dead_letters()) == 3


@pytest.mark.extended
async def test_a_letter_of_a_batch_is_committed_once_whatever_commit_is_cut(
    mixed: DeriveKit, log: FaultyLog
) -> None:
    log.cut_commits = 6
    await mixed.run_until_caught_up(replace(mixed.config, batch_messages=10))
    assert log.cut_commits == 0
    assert await mixed.events() == expected(MESSAGES)
    assert len(await mixed.dead_letters()) == 3


async def test_a_batch_whose_end_is_not_known_stops_the_worker_by_name(
    kit: DeriveKit, log: FaultyLog
) -> None:
    topic = kit.config.messages_topic
    part = log.partition(topic, 1)
    part.append_unreadable(unreadable(2, topic, 1))
    for entry in part.entries:
        if entry.unreadable is not None:
            entry.unreadable = entry.unreadable._replace(next_offset=None)
    error = await kit.start_worker().failed()
    assert isinstance(error, UnreadableBatchError)
    assert f"{topic}-1: the records at offsets from 0 on cannot be read" in str(error)


async def test_state_that_cannot_be_read_stops_the_worker_by_name(
    kit: DeriveKit, log: FaultyLog
) -> None:
    topic = kit.config.state_topic
    log.partition(topic, 3).append_unreadable(unreadable(2, topic, 3))
    error = await kit.start_worker().failed()
    assert isinstance(error, UnreadableBatchError)
    assert f"{topic}-3: the records at offsets 0 to 1 cannot be read" in str(error)


async def test_replay_shows_the_same_letters_and_records(mixed: DeriveKit) -> None:
    partitions = range(mixed.partitions)
    passed: list[UnreadableBatch] = []
    async with started(mixed.log.reader(mixed.config.messages_topic, partitions)) as reader:
        replay = TopicReplay(reader, mixed.clock, passed=passed.append)
        await replay.begin(partitions)
        parts = [part async for part in replay.derived(RULES, mixed.config, mixed.partitions)]
    origins = [letter.origin for part in parts for letter in part.dead]
    assert [each and each.last_offset is not None for each in origins] == [True] * 3
    records = sum(len(part.records) for part in parts)
    assert records == sum(len(each) for each in expected(MESSAGES))
    assert passed == []
    # Of one session: of a batch it is not known whose messages it has.
    session = next(one.session_id for one in MESSAGES if partition_of(one.session_id, 4) == 2)
    async with started(mixed.log.reader(mixed.config.messages_topic, [2])) as reader:
        replay = TopicReplay(reader, mixed.clock, session, passed=passed.append)
        await replay.begin([2])
        parts = [part async for part in replay.derived(RULES, mixed.config, mixed.partitions)]
        assert sum(len(part.dead) for part in parts) == 2
        assert await replay.sessions_beginning(session) == {session}
    assert [batch.records for batch in passed] in ([1, 5], [])


async def test_a_topic_of_records_is_replayed_without_them(kit: DeriveKit, log: FaultyLog) -> None:
    topic = kit.config.events_topic
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    log.partition(topic, 0).append_unreadable(unreadable(4, topic))
    passed: list[UnreadableBatch] = []
    async with started(kit.log.reader(topic, range(4))) as reader:
        replay = TopicReplay(reader, kit.clock, passed=passed.append)
        await replay.begin(range(4))
        records = [record async for part in replay.records() for record in part.records]
    assert len(records) == sum(len(each) for each in expected(MESSAGES))
    assert [batch.records for batch in passed] == [4]


async def test_views_are_of_the_records_around_it(log: FaultyLog) -> None:
    kit = ProjectKit(log, FaultyViews())
    await kit.create_topic()
    records = [record for session in sample_records() for record in session]
    topic = kit.config.events_topic
    await kit.append(records[: len(records) // 2])
    log.partition(topic, 0).append_unreadable(unreadable(3, topic))
    await kit.append(records[len(records) // 2 :])
    with capture_logs() as logs:
        async with kit.running() as worker:
            assert await kit.caught_up(worker) == 1
    assert worker.figures.counts["worker_unreadable_batches", topic] >= 1
    warnings = [entry for entry in logs if entry["event"] == "records are passed over"]
    assert {(entry["topic"], entry["reason"]) for entry in warnings} == {(topic, "batch_too_large")}
    assert worker.figures.total("project_records") == len(records)


async def test_conversations_are_of_the_messages_around_it() -> None:
    kit = await new_kit()
    topic, partition = kit.config.messages_topic, partition_of("s", 2)
    await kit.publish(user("Before."))
    kit.log.partition(topic, partition).append_unreadable(unreadable(3, topic, partition))
    await kit.publish(user("After."))
    async with kit.running() as worker:
        await kit.caught_up()
        assert await kit.texts() == ["Before.", "After."]
    assert worker.figures.counts["worker_unreadable_batches", topic] == 1


def letter_of_batch(batch: bytes, first: int, last: int) -> NewRecord:
    """Return the letter of a batch of which messages from an offset on were not derived yet."""
    letter = died(reason="batch_too_large", value=batch, key=None)
    headers = tuple(
        (name, b"%d" % first if name == "src_offset" else value) for name, value in letter.headers
    )
    return letter._replace(headers=(*headers, ("src_last_offset", b"%d" % last)))


async def test_a_batch_is_redriven_message_by_message_once_it_can_be_read(kit: DeriveKit) -> None:
    await kit.append([letter_of_batch(bomb("gzip", 5, 2_000), 2, 4)])
    result = await redriven(kit)
    assert (result.messages, result.sessions, result.skipped) == (3, {"s"}, {})
    (messages,) = [
        records
        for partition in range(4)
        if (records := await kit.read(kit.config.messages_topic, partition))
    ]
    assert len(messages) == 3
    assert by_name(messages[0].headers)["redriven_from"] == b"0:0"


async def test_a_batch_that_still_cannot_be_read_stays(kit: DeriveKit) -> None:
    bad = letter_of_batch(damaged(), 0, 0)
    torn = bytearray(bomb("zstd", 5, 2_000))
    torn[70] ^= 1
    await kit.append([bad, letter_of_batch(bytes(torn), 0, 4)])
    result = await redriven(kit)
    assert result.messages == 0
    assert result.skipped["batch_damaged"].letters == 2
    assert result.skipped["batch_damaged"].examples == ["0:0", "0:1"]


def test_the_letter_of_a_batch_says_what_it_is() -> None:
    written = letter_of_batch(b"batch", 3, 9)
    read = LogRecord(4, NOW_MS, written.key, written.value, written.headers)
    assert letter_of(0, read).origin == Origin("agent.messages", 0, 3, NOW_MS, 9)


async def test_letters_around_a_batch_are_listed(kit: DeriveKit, log: FaultyLog) -> None:
    topic = kit.config.dead_topic
    await kit.append([died(0, value=b"1")])
    log.partition(topic, 0).append_unreadable(unreadable(3, topic))
    await kit.append([died(0, value=b"2")])
    async with reading(kit) as letters:
        values = [letter.value async for letter in letters.newest_first()]
    assert values == [b"2", b"1"]


async def test_workers_wait_for_nothing_behind_it(kit: DeriveKit, log: FaultyLog) -> None:
    """A partition that ends with such a batch is derived to its end."""
    topic = kit.config.messages_topic
    async with kit.running() as worker:
        await until(lambda: worker.figures.total("derive_restores") == 4)
        log.partition(topic, 0).append_unreadable(unreadable(3, topic))
        await kit.caught_up(worker)
    assert len(await kit.dead_letters()) == 1
