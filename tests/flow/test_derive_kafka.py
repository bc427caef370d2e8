"""The derive worker on a real Kafka: what only a broker can show."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import structlog

from contextgauge.errors import PositionError
from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.ports import NewRecord
from tests.contract.logs import delete_topics
from tests.flow.derive_kit import DeriveKit, expected, samples, until

MESSAGES = samples(3)


def options(address: str) -> KafkaOptions:
    return KafkaOptions(address, session_timeout_ms=3_000, commit_timeout_s=3, start_timeout_s=10)


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own on the session's broker."""
    kit = DeriveKit(KafkaLog(options(kafka)), prefix)
    await kit.create_topics()
    yield kit
    await kit.log.stop()


async def test_records_equal_direct_derivation_across_restarts(kit: DeriveKit) -> None:
    third = len(MESSAGES) // 3
    restored = 0
    for start in range(0, len(MESSAGES), third):
        await kit.publish(MESSAGES[start : start + third])
        figures = await kit.run_until_caught_up(replace(kit.config, batch_messages=50))
        restored += figures.total("derive_restored_entries")
    assert restored > 0
    assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
async def test_records_are_complete_while_workers_join_and_leave(kit: DeriveKit) -> None:
    config = replace(kit.config, batch_messages=25)
    half = len(MESSAGES) // 2
    async with kit.running(config) as first:
        await kit.publish(MESSAGES[:half])
        async with kit.running(config) as second:
            await until(second.has_partitions)
            await kit.publish(MESSAGES[half:])
            await kit.caught_up(first, second)
        await until(lambda: first.figures.gauges.get(("worker_partitions", "derive")) == 4)
        await kit.publish(MESSAGES)
        await kit.caught_up(first)
    assert first.figures.counts["derive_restores", "kept"] >= 2
    assert await kit.events() == expected([*MESSAGES, *MESSAGES])


@pytest.mark.extended
async def test_a_fenced_partition_is_released_and_taken_over_again(kit: DeriveKit) -> None:
    async with kit.running() as worker:
        await kit.publish(MESSAGES[:100])
        await kit.caught_up(worker)
        for partition in range(4):
            zombie = kit.log.transactional_producer(kit.config.transactional_id(partition))
            await zombie.start()
            await zombie.stop()
        await kit.publish(MESSAGES[100:])
        await kit.caught_up(worker)
    reached = {partition_of(session_id, 4) for session_id, _ in MESSAGES[100:]}
    assert worker.figures.total("worker_fenced") == len(reached) > 1
    assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("agent.messages", "is not the one that was derived: the topic was recreated"),
        ("context.events", "the records derived before are gone"),
        ("context.state", "has no state of them"),
    ],
)
async def test_a_recreated_topic_stops_the_worker(
    kit: DeriveKit, prefix: str, topic: str, reason: str
) -> None:
    await kit.publish(MESSAGES)
    await kit.run_until_caught_up()
    await _recreate(kit, prefix + topic)
    if topic == "agent.messages":
        # The former position is in the middle of the new log.
        await kit.publish([*samples(4), *samples(4), *samples(4)])
    error = await kit.start_worker().failed()
    assert isinstance(error, PositionError)
    assert reason in str(error)
    if topic != "context.events":
        assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
async def test_a_second_group_writes_nothing_twice(kit: DeriveKit) -> None:
    half = len(MESSAGES) // 2
    alone = replace(kit.config, batch_messages=25)
    began_s = time.monotonic()
    await kit.publish(MESSAGES[:half])
    await kit.run_until_caught_up(alone)
    # The one that is fenced pauses for long enough that the other gets something done here.
    first = replace(alone, fenced_pause_s=time.monotonic() - began_s)
    second = replace(first, group=first.group + "-second")

    async def are_all_derived() -> bool:
        counts = [len(await kit.read(kit.config.events_topic, partition)) for partition in range(4)]
        return counts == [len(records) for records in expected(MESSAGES)]

    async def has_noticed() -> bool:
        return any(line["event"].startswith("another group derived") for line in logs)

    with structlog.testing.capture_logs() as logs:
        async with kit.running(first), kit.running(second) as two:
            await until(two.has_partitions)
            await kit.publish(MESSAGES[half:])
            await until(are_all_derived)  # whoever of them
            await until(has_noticed)
    assert await kit.events() == expected(MESSAGES)


@pytest.mark.extended
async def test_a_write_by_something_else_is_noticed_before_the_commit(kit: DeriveKit) -> None:
    half = len(MESSAGES) // 2
    with structlog.testing.capture_logs() as logs:
        await kit.publish(MESSAGES[:half])
        await kit.run_until_caught_up()
        await kit.settle()
        async with kit.running() as worker:
            await until(lambda: worker.figures.total("derive_restores") == 4)
            for partition in range(4):
                (*_, last) = await kit.read(kit.config.state_topic, partition)
                await kit.append(
                    [NewRecord(kit.config.state_topic, partition, last.key, last.value)]
                )
            await kit.publish(MESSAGES[half:])
            await kit.caught_up(worker)
    assert await kit.events() == expected(MESSAGES)
    reached = {partition_of(session_id, 4) for session_id, _ in MESSAGES[half:]}
    errors = [line["error"] for line in logs if line["event"] == "trying again"]
    assert len(errors) == len(reached) > 1
    assert all(error.startswith("something else wrote to ") for error in errors)


async def _recreate(kit: DeriveKit, topic: str) -> None:
    """Have a topic deleted and created again."""
    assert isinstance(kit.log, KafkaLog)
    await delete_topics(kit.log.options.bootstrap_servers, topic)

    async def is_gone() -> bool:
        return (await kit.log.partition_counts([topic]))[topic] is None

    await until(is_gone)
    await kit.create_topics()


async def test_dead_letters_are_kept_whole(kit: DeriveKit) -> None:
    headers = (("a", b"\x00\xff"),)
    largest = b"{" + b"x" * (8 * 2**20)
    bad = [
        NewRecord(kit.config.messages_topic, 1, None, b"\xff", headers),
        NewRecord(kit.config.messages_topic, 1, b"\xff", largest, headers),
    ]
    tombstone = NewRecord(kit.config.messages_topic, 1, b"key", None)
    await kit.append([*bad, tombstone])
    await kit.run_until_caught_up()
    dead = await kit.dead_letters()
    assert [(r.key, r.value, r.headers[:1]) for r in dead] == [
        (r.key, r.value, headers) for r in bad
    ]
    assert [dict(r.headers)["dead_reason"] for r in dead] == [b"not_utf8", b"too_large"]


@pytest.mark.extended
async def test_a_worker_survives_broker_outages(killable_kafka: LocalStack, prefix: str) -> None:
    """At the start, and when it crashes with batches under way."""
    stack = killable_kafka
    kit = DeriveKit(KafkaLog(options(stack.services()["kafka"].address)), prefix)
    await kit.create_topics()
    third = len(MESSAGES) // 3
    await kit.publish(MESSAGES[:third])
    await kit.log.stop()
    stack.kill("kafka")
    config = replace(kit.config, batch_messages=10, commit_pause_s=0.05)  # under way for a second
    async with kit.running(config) as worker:
        retries = worker.figures.total
        await until(lambda: retries("worker_retries") > 1)
        await asyncio.to_thread(stack.start, ["kafka"])
        await kit.caught_up(worker)
        await kit.publish(MESSAGES[third : 2 * third])
        # What was not fetched waits for the broker, without a retry.
        await until(lambda: worker.has_derived(third))
        before = retries("worker_retries")
        stack.kill("kafka")
        await until(lambda: retries("worker_retries") > before + 1)
        await asyncio.to_thread(stack.start, ["kafka"])
        await kit.publish(MESSAGES[2 * third :])
        await kit.caught_up(worker)
    assert await kit.events() == expected(MESSAGES)
    await kit.log.stop()
