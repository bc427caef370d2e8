"""The derive worker, on the log in memory: exactly once whatever happens, and clear ends."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, PositionError, VersionError
from contextgauge.partitioner import partition_of
from schemas.topics import Topic
from streams import codec
from streams.flow.common.topic_watch import LOOK_S, known_topics
from streams.flow.derive.state_store import StateStore
from streams.ports import NewRecord
from tests.doubles.headers import by_name
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, HastyClock, Sent, expected, samples, until

MESSAGES = samples()


async def test_records_equal_direct_derivation(kit: DeriveKit) -> None:
    await kit.publish(MESSAGES)
    figures = await kit.run_until_caught_up()
    events = await kit.events()
    assert events == expected(MESSAGES)
    assert sum(map(len, events)) > 300
    assert await kit.dead_letters() == []
    assert figures.total("derive_messages") == len(MESSAGES)
    assert figures.total("derive_records") == sum(map(len, events))


async def test_a_record_names_its_source_message(kit: DeriveKit) -> None:
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    for partition in range(4):
        messages = {r.offset: r for r in await kit.read(kit.config.messages_topic, partition)}
        for record in await kit.read(kit.config.events_topic, partition):
            headers = by_name(record.headers)
            assert headers["src_topic"] == kit.config.messages_topic.encode()
            assert headers["src_partition"] == b"%d" % partition
            assert messages[int(headers["src_offset"])].key == record.key


@pytest.mark.extended
@pytest.mark.parametrize("batch_messages", [1, 7, 100])
async def test_restarts_and_batch_sizes_change_nothing(kit: DeriveKit, batch_messages: int) -> None:
    config = replace(kit.config, batch_messages=batch_messages)
    messages = MESSAGES if batch_messages > 1 else MESSAGES[:200]
    part = len(messages) // 5
    for start in range(0, len(messages), part):
        await kit.publish(messages[start : start + part])
        figures = await kit.run_until_caught_up(config)
        if start:
            assert figures.total("derive_restored_entries") > 0
    assert await kit.events() == expected(messages)


async def test_a_compacted_changelog_restores_the_same(kit: DeriveKit, log: FaultyLog) -> None:
    half = len(MESSAGES) // 2
    await kit.publish(MESSAGES[:half])
    await kit.run_until_caught_up(replace(kit.config, batch_messages=10))
    for partition in range(4):
        log.compact(kit.config.state_topic, partition)
    await kit.publish(MESSAGES[half:])
    await kit.run_until_caught_up()
    assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
async def test_a_failed_commit_is_derived_again(kit: DeriveKit, log: FaultyLog) -> None:
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        for start in range(0, len(MESSAGES), 200):
            log.cut_commits = 2
            await kit.publish(MESSAGES[start : start + 200])
            await kit.caught_up(worker)
    assert worker.figures.counts["worker_transactions", "failed"] > 4
    assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
async def test_a_fenced_partition_is_released_and_taken_over_again(
    kit: DeriveKit, log: FaultyLog
) -> None:
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        for start in range(0, len(MESSAGES), 200):
            for partition in range(4):
                zombie = log.transactional_producer(kit.config.transactional_id(partition))
                await zombie.start()
            await kit.publish(MESSAGES[start : start + 200])
            await kit.caught_up(worker)
    assert worker.figures.total("worker_fenced") > 4
    assert await kit.events() == expected(MESSAGES)


async def test_records_are_complete_while_workers_join_and_leave(kit: DeriveKit) -> None:
    config = replace(kit.config, batch_messages=10)
    stay = kit.start_worker(config)
    for start in range(0, len(MESSAGES), 150):
        await kit.publish(MESSAGES[start : start + 150])
        async with kit.running(config) as guest:
            await until(guest.has_partitions)
        assert guest.figures.gauges == {("worker_partitions", "derive"): 0}
    await kit.caught_up(stay)
    await stay.stop()
    assert await kit.events() == expected(MESSAGES)


async def test_a_returned_partition_keeps_its_state(kit: DeriveKit) -> None:
    await kit.publish(MESSAGES)
    async with kit.running() as first:
        await kit.caught_up(first)
        entries = first.figures.total("derive_restored_entries")
        async with kit.running() as second:
            await until(lambda: second.figures.counts["derive_restores", "restored"] == 2)
            await until(lambda: first.figures.counts["derive_restores", "kept"] == 2)
        # What the other one had is restored, though it wrote nothing: it might have.
        await until(lambda: first.figures.counts["derive_restores", "kept"] == 4)
        await until(lambda: first.figures.counts["derive_restores", "restored"] == 6)
        assert entries == 0
        await kit.publish(MESSAGES)
        await kit.caught_up(first)
    assert await kit.events() == expected([*MESSAGES, *MESSAGES])


async def test_a_stale_kept_state_is_dropped(kit: DeriveKit, log: FaultyLog) -> None:
    """The changelog's end tells; here another writes while the partition is let go."""
    half = len(MESSAGES) // 2
    await kit.publish(MESSAGES[:half])
    async with kit.running() as worker:
        await kit.caught_up(worker)
        store = StateStore(log, kit.config.state_topic)
        intruder = log.transactional_producer("another")
        await intruder.start()
        for partition in range(4):
            position = (await kit.read(kit.config.state_topic, partition))[-1]
            assert position.key is not None
            changes = {position.key: position.value}
            await intruder.commit(store.to_records(partition, changes))
        async with kit.running() as guest:
            await until(lambda: guest.figures.counts["derive_restores", "restored"] == 2)
        await until(lambda: worker.figures.counts["derive_restores", "restored"] >= 8)
        assert worker.figures.counts["derive_restores", "kept"] == 2
        await kit.publish(MESSAGES[half:])
        await kit.caught_up(worker)
    assert await kit.events() == expected(MESSAGES)


async def test_a_kept_state_is_used_once(kit: DeriveKit, log: FaultyLog) -> None:
    """Fenced by one that wrote nothing: the changelog is the same, the state in memory is not."""
    half = len(MESSAGES) // 2
    await kit.publish(MESSAGES[:half])
    async with kit.running() as worker:
        await kit.caught_up(worker)
        async with kit.running() as guest:
            await until(guest.has_partitions)
        await until(lambda: worker.figures.counts["derive_restores", "kept"] >= 4)
        for partition in range(4):
            await log.transactional_producer(kit.config.transactional_id(partition)).start()
        await kit.publish(MESSAGES[half:])
        await kit.caught_up(worker)
    reached = {partition_of(session_id, 4) for session_id, _ in MESSAGES[half:]}
    assert worker.figures.total("worker_fenced") == len(reached) > 1
    assert await kit.events() == expected(MESSAGES)


async def test_a_worker_waits_for_an_unavailable_broker(kit: DeriveKit, log: FaultyLog) -> None:
    log.away = True
    async with kit.running() as worker:
        await until(lambda: worker.figures.total("worker_retries") > 3)
        log.away = False
        await kit.publish(MESSAGES[:300])
        await kit.caught_up(worker)
        log.away = True
        before = worker.figures.total("worker_retries")
        log.partition(kit.config.messages_topic, 0).append(None, None)
        await until(lambda: worker.figures.total("worker_retries") > before)
        log.away = False
        await kit.publish(MESSAGES[300:])
        await kit.caught_up(worker)
    assert await kit.events() == expected(MESSAGES)
    assert isinstance(kit.clock, HastyClock)
    assert kit.clock.pauses[:4] == [0.25, 0.5, 1.0, 2.0]


async def test_after_a_success_pauses_are_short_again(kit: DeriveKit, log: FaultyLog) -> None:
    """Of a partition whose commits fail now and then."""
    assert isinstance(kit.clock, HastyClock)
    pauses = kit.clock.pauses
    async with kit.running() as worker:
        for _ in range(3):
            log.cut_commits = 1
            await kit.publish(MESSAGES[:1])
            await kit.caught_up(worker)
        assert [pause for pause in pauses if pause != LOOK_S] == [0.25] * 3


async def test_a_marker_alone_moves_the_stored_position(kit: DeriveKit, log: FaultyLog) -> None:
    """Or retention would overtake a position that stands before the last marker."""
    log.partition(kit.config.messages_topic, 2).append(None, None)
    async with kit.running() as worker:
        await kit.caught_up(worker)
    log.delete_before(kit.config.messages_topic, 2, 1)
    await kit.run_until_caught_up()
    assert (await log.committed(kit.config.group, kit.config.messages_topic))[2] == 1


async def test_missing_topics_stop_the_worker(log: FaultyLog) -> None:
    kit = DeriveKit(log, "none-", HastyClock())
    error = await kit.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert "none-agent.messages, " in str(error)
    assert "contextgauge topics create" in str(error)


@pytest.mark.parametrize("question", ["partition_counts", "topic_ids"])
async def test_topics_that_a_broker_does_not_know_yet_are_waited_for(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    kit, ask, unknown = DeriveKit(log, "new-", HastyClock()), getattr(log, question), [3]
    await kit.create_topics()

    async def answered(names: Sequence[str]) -> dict[str, Any]:
        unknown[0] -= 1
        answer: dict[str, Any] = await ask(names)
        return answer | ({names[0]: None} if unknown[0] >= 0 else {})

    monkeypatch.setattr(log, question, answered)
    topics = await known_topics(log, kit.clock, [topic.name for topic in kit.topics])
    assert None not in {each.id for each in topics.values()}
    unknown[0] = 3
    await kit.publish(MESSAGES[:50])
    await kit.run_until_caught_up()


async def test_differing_partition_counts_stop_the_worker(log: FaultyLog) -> None:
    kit = DeriveKit(log, "odd-")
    odd = Topic("odd-context.state", "any", "compact", -1, 1)
    await log.create_topics([odd], 3)
    await kit.create_topics()
    error = await kit.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert "odd-agent.messages has 4" in str(error)
    assert "odd-context.state has 3" in str(error)


async def test_a_changed_partition_count_stops_the_worker(kit: DeriveKit) -> None:
    await kit.publish(MESSAGES[:50])
    await kit.run_until_caught_up()
    moved = FaultyLog(SystemClock())
    await moved.create_topics(kit.topics, 5)
    wider = DeriveKit(moved, "")
    for partition in range(4):
        for record in await kit.read(kit.config.state_topic, partition):
            await wider.append(
                [NewRecord(kit.config.state_topic, partition, record.key, record.value)]
            )
    error = await wider.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert "written with 4 partitions, now there are 5" in str(error)


async def test_a_position_that_retention_overtook_stops_the_worker(
    kit: DeriveKit, log: FaultyLog
) -> None:
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    await kit.publish(MESSAGES)
    _, end = await log.reader(kit.config.messages_topic, [1]).bounds(1)
    log.delete_before(kit.config.messages_topic, 1, end)
    error = await kit.start_worker().failed()
    assert isinstance(error, PositionError)
    assert "deleted before they were derived" in str(error)


async def test_a_new_worker_starts_at_the_first_message_kept(
    kit: DeriveKit, log: FaultyLog
) -> None:
    await kit.publish(MESSAGES)
    log.delete_before(kit.config.messages_topic, 0, 3)
    records = await kit.read(kit.config.messages_topic, 0)
    await kit.run_until_caught_up()
    sent = [Sent((record.key or b"").decode(), record.value or b"") for record in records]
    assert (await kit.events())[0] == expected(sent)[0]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (["position"], {"v": 99, "position": 0}, "version 99"),
        (["position"], {"position": 0}, "version None"),
        (["position"], {"v": 1, "partitions": 4}, "cannot be read"),
        (["s", "session"], [99, 1, None], "version 99; this build of contextgauge reads version 5"),
        (["s", "session"], 7, "version None"),
        (["s", "session"], [4, 1, None], "version 4"),
        (["s", "session"], [5, 1], "its last activity is missing"),
        (["s", "known:0"], [5, 0], "its last activity is missing"),
        (["s", "chain:main", "?"], {"v": 1}, "does not know"),
        (["s", 5], {"v": 1}, "does not know"),
        ({"s": 1, "session": 2}, {"v": 1}, "does not know"),
        ("ab", {"v": 1}, "does not know"),
        (5, {"v": 1}, "does not know"),
        (None, {"v": 1}, "does not know"),
    ],
)
async def test_an_unknown_version_refuses_the_partition(
    kit: DeriveKit, key: object, value: object, words: str
) -> None:
    entry = NewRecord(kit.config.state_topic, 1, codec.dumps(key), codec.dumps(value))
    await kit.append([entry])
    error = await kit.start_worker().failed()
    assert isinstance(error, VersionError)
    assert words in str(error)
    assert await kit.events() == [[], [], [], []]


@pytest.mark.extended
async def test_stopping_finishes_the_work_in_progress(kit: DeriveKit) -> None:
    """Every message that was polled is committed or will be derived again: no third way."""
    config = replace(kit.config, batch_messages=25)
    await kit.publish(MESSAGES)
    total = 0
    while total < len(MESSAGES):
        async with kit.running(config) as worker:
            await until(partial(worker.has_derived, min(50, len(MESSAGES) - total - 1)))
        committed = await kit.log.committed(kit.config.group, kit.config.messages_topic)
        done = [
            [Sent((r.key or b"").decode(), r.value or b"") for r in records[: committed.get(p, 0)]]
            for p in range(4)
            for records in [await kit.read(kit.config.messages_topic, p)]
        ]
        total = sum(map(len, done))
        assert await kit.events() == [expected(done[p])[p] for p in range(4)]
