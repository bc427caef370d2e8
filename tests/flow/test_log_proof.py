"""A stored position counts for the logs that it was stored for, and for no others."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import structlog

from contextgauge import json_codec
from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, PositionError, VersionError
from contextgauge.partitioner import partition_of
from schemas.topics import Topic
from streams.flow.common import topic_watch
from streams.flow.derive import partition_task
from streams.flow.derive.log_proof import LogProof, digest, read_proof
from streams.flow.derive.stored_sessions import POSITION_KEY
from streams.ports import LogRecord, NewRecord
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import (
    DeriveKit,
    HastyClock,
    Sent,
    expected,
    samples,
    until,
)

MESSAGES = samples()
OTHERS = samples(2)


async def _recreate(kit: DeriveKit, log: FaultyLog, name: str) -> None:
    log.delete_topic(name)
    await log.create_topics(kit.topics, kit.partitions)


async def _error(kit: DeriveKit) -> str:
    """Return why a worker stops; nothing is written before."""
    topic = kit.config.events_topic
    await kit.settle()
    before = [await kit.read(topic, partition) for partition in range(4)]
    error = await kit.start_worker().failed()
    assert isinstance(error, PositionError)
    await kit.settle()
    assert [await kit.read(topic, partition) for partition in range(4)] == before
    assert "contextgauge topics create" in str(error)
    assert "contextgauge rebuild" in str(error)
    return str(error)


@pytest.fixture
async def derived(kit: DeriveKit) -> DeriveKit:
    """Topics of which all messages are derived, for longer than metadata may lag behind."""
    await kit.publish(MESSAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_task, "BEHIND_S", -math.inf)
        async with kit.running(replace(kit.config, batch_messages=15)) as worker:
            await kit.caught_up(worker)
    return kit


async def test_messages_that_were_recreated_and_outgrew_the_position_stop_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    await _recreate(derived, log, derived.config.messages_topic)
    await derived.publish([*OTHERS, *OTHERS, *OTHERS])
    error = await _error(derived)
    assert "agent.messages-" in error
    assert "is not the one that was derived: the topic was recreated" in error


async def test_messages_that_were_recreated_with_the_same_ones_stop_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    await asyncio.sleep(0.002)  # their timestamps are others
    await _recreate(derived, log, derived.config.messages_topic)
    await derived.publish([*MESSAGES, *MESSAGES])
    assert "the topic was recreated" in await _error(derived)


async def test_messages_that_were_recreated_and_have_expired_stop_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    topic = derived.config.messages_topic
    ends = [len(await derived.read(topic, partition)) for partition in range(4)]
    await _recreate(derived, log, topic)
    await derived.publish([*MESSAGES, *MESSAGES])
    for partition, end in enumerate(ends):
        log.delete_before(topic, partition, end)
    assert "the stored position belongs to the former one" in await _error(derived)


async def test_messages_that_a_broker_lost_stop_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    topic = derived.config.messages_topic
    for partition in range(4):
        log.truncate(topic, partition, len(await derived.read(topic, partition)) - 2)
    assert "or the broker lost its last messages" in await _error(derived)
    await derived.publish(OTHERS)
    assert "lost its last messages and took others" in await _error(derived)


@pytest.mark.extended
async def test_a_last_message_that_has_expired_is_no_contradiction(
    derived: DeriveKit, log: FaultyLog
) -> None:
    topic = derived.config.messages_topic
    for partition in range(4):
        _, end = await log.reader(topic, [partition]).bounds(partition)
        log.delete_before(topic, partition, end)
    await derived.publish(OTHERS)
    await derived.run_until_caught_up()
    assert await derived.events() == expected([*MESSAGES, *OTHERS])


@pytest.mark.extended
async def test_a_copy_of_the_topics_with_the_same_offsets_is_accepted(
    derived: DeriveKit, log: FaultyLog
) -> None:
    more = samples(3)
    await derived.publish(more)
    await derived.run_until_caught_up()
    copy = FaultyLog(SystemClock())
    # So that its topics get other ids.
    await copy.create_topics([Topic("another", "any", "delete", -1, 1)], 1)
    await copy.create_topics(derived.topics, 4)
    for topic in derived.topics:
        for partition in range(4):
            entries = log.partition(topic.name, partition).entries
            copy.partition(topic.name, partition).entries.extend(entries)
    other = DeriveKit(copy, "")
    await other.publish(OTHERS)
    with structlog.testing.capture_logs() as logs:
        await other.run_until_caught_up()
    assert await other.events() == expected([*MESSAGES, *more, *OTHERS])
    copies = [line for line in logs if line["event"] == "a copy of the topic"]
    assert sorted(line["partition"] for line in copies) == [0, 1, 2, 3]


@pytest.mark.extended
async def test_a_new_worker_that_went_on_in_a_recreated_topic_took_no_copy(log: FaultyLog) -> None:
    kit = DeriveKit(log, "fresh-")
    await kit.create_topics()
    await kit.publish(MESSAGES)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        await _recreate(kit, log, kit.config.messages_topic)
        # It has outgrown the positions before anyone has looked at the topic's id.
        await kit.publish([*OTHERS, *OTHERS, *OTHERS])
        await kit.caught_up(worker)
    assert "nothing that it still holds shows it is a copy" in await _error(kit)


@pytest.mark.extended
@pytest.mark.parametrize("is_seen_late", [False, True])
async def test_what_a_worker_derived_before_tells_a_copy_from_a_recreated_topic(
    derived: DeriveKit, log: FaultyLog, monkeypatch: pytest.MonkeyPatch, *, is_seen_late: bool
) -> None:
    former = await log.topic_ids([topic.name for topic in derived.topics])
    await derived.publish(OTHERS)
    await derived.run_until_caught_up()
    await _recreate(derived, log, derived.config.messages_topic)
    await derived.publish([*MESSAGES, *OTHERS, *MESSAGES])
    topic = derived.config.state_topic
    for partition in range(4):
        # As a worker stores it that has not noticed yet.
        stored = [r for r in await derived.read(topic, partition) if r.key == POSITION_KEY]
        document: Any = json_codec.loads(stored[-1].value or b"")
        messages = await derived.read(derived.config.messages_topic, partition)
        document["log"]["last_digest"] = digest(messages[document["log"]["last_offset"]])
        value = json_codec.dumps(document)
        await derived.append([NewRecord(topic, partition, POSITION_KEY, value)])
    if is_seen_late:
        # Nor does the next worker notice: the broker that it asks has the former ids.
        with monkeypatch.context() as patch:
            patch.setattr(log, "topic_ids", _answering(former))
            await derived.publish(OTHERS)
            await derived.run_until_caught_up()
    assert "a worker went on in it before it noticed" in await _error(derived)


def _answering(ids: Mapping[str, UUID | None]) -> Callable[[Sequence[str]], Any]:
    async def answer(names: Sequence[str]) -> dict[str, UUID | None]:
        return {name: ids[name] for name in names}

    return answer


async def test_records_without_a_state_stops_the_worker(derived: DeriveKit, log: FaultyLog) -> None:
    await _recreate(derived, log, derived.config.state_topic)
    assert "context.state has no state of them" in await _error(derived)


@pytest.mark.extended
async def test_an_older_backup_of_the_state_stops_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    topic = derived.config.state_topic
    ends = [(await log.reader(topic, [at]).bounds(at))[1] for at in range(4)]
    await derived.publish(OTHERS)
    await derived.run_until_caught_up()
    await derived.settle()
    for partition, end in enumerate(ends):
        log.truncate(topic, partition, end)
    assert "context.state knows nothing of" in await _error(derived)


@pytest.mark.extended
@pytest.mark.parametrize("grown", [False, True])
async def test_recreated_records_stop_the_worker(
    derived: DeriveKit, log: FaultyLog, *, grown: bool
) -> None:
    topic = derived.config.events_topic
    await _recreate(derived, log, topic)
    if grown:
        await derived.append(
            NewRecord(topic, number % 4, b"key", b"value") for number in range(4_000)
        )
    reason = "the topic was recreated, and the records derived before are gone"
    assert reason in await _error(derived)


async def test_records_that_a_broker_lost_stop_the_worker(
    derived: DeriveKit, log: FaultyLog
) -> None:
    for partition in range(4):
        _, end = await log.reader(derived.config.events_topic, [partition]).bounds(partition)
        log.truncate(derived.config.events_topic, partition, end - 1)
    assert "the broker lost its last records" in await _error(derived)


def test_a_malformed_proof_is_of_an_unknown_version() -> None:
    documents: list[object] = [None, [], {"events_end": "7"}, {"group": 1}]
    for malformed in documents:
        with pytest.raises(VersionError):
            read_proof(malformed)
    assert read_proof({"group": "g", "of a later build": 1}) == LogProof("g")


def test_a_digest_tells_messages_apart() -> None:
    message = LogRecord(0, 1, b"key", b"value", ())
    others = [
        message._replace(timestamp_ms=2),
        message._replace(key=None),
        message._replace(key=b"keyvalue", value=b""),
        message._replace(value=None),
        message._replace(value=b"valu"),
        message._replace(headers=(("name", b"value"),)),
    ]
    digests = {digest(other) for other in (message, *others)}
    assert len(digests) == 1 + len(others)
    assert digest(message._replace(offset=9)) in digests


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the topics often."""
    monkeypatch.setattr(topic_watch, "LOOK_S", 0.02)


@pytest.mark.extended
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("topic", ["context.events", "context.state", "agent.messages"])
async def test_a_topic_that_is_recreated_under_a_quiet_worker_stops_it(
    derived: DeriveKit, log: FaultyLog, topic: str
) -> None:
    worker = derived.start_worker()
    await until(lambda: worker.figures.total("derive_restores") == 4)
    await _recreate(derived, log, topic)
    error = await worker.failed()
    assert isinstance(error, PositionError)


@pytest.mark.usefixtures("often")
async def test_a_topic_that_is_deleted_under_a_quiet_worker_stops_it(log: FaultyLog) -> None:
    kit = DeriveKit(log, "quiet-", HastyClock())
    await kit.create_topics()
    worker = kit.start_worker()
    await until(lambda: worker.figures.total("derive_restores") == 4)
    log.delete_topic(kit.config.dead_topic)
    error = await worker.failed()
    assert isinstance(error, ConfigError)
    assert "no topic quiet-agent.messages.dead" in str(error)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("topic", ["context.events", "context.state", "agent.messages"])
async def test_partitions_that_are_added_under_a_quiet_worker_stop_it(
    log: FaultyLog, topic: str
) -> None:
    kit = DeriveKit(log, "more-", HastyClock())
    await kit.create_topics()
    worker = kit.start_worker()
    await until(lambda: worker.figures.total("derive_restores") == 4)
    log.add_partitions(f"more-{topic}", 6)
    error = await worker.failed()
    assert isinstance(error, ConfigError)
    assert f"more-{topic} has 6" in str(error)


@pytest.mark.parametrize("topic", ["context.events", "context.state", "agent.messages"])
async def test_partitions_that_are_added_while_a_worker_joins_stop_it(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    kit, count = DeriveKit(log, "more-", HastyClock()), log.partition_counts
    await kit.create_topics()

    async def counted(names: Sequence[str]) -> dict[str, int | None]:
        counts = await count(names)
        log.add_partitions(f"more-{topic}", 6)
        return counts

    monkeypatch.setattr(log, "partition_counts", counted)
    error = await kit.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert f"more-{topic} has 6" in str(error)


@pytest.mark.extended
async def test_records_recreated_under_a_busy_worker_are_not_continued(
    derived: DeriveKit, log: FaultyLog
) -> None:
    worker = derived.start_worker()
    await until(lambda: worker.figures.total("derive_restores") == 4)
    await _recreate(derived, log, derived.config.events_topic)
    await derived.publish(OTHERS)
    error = await worker.failed()
    assert isinstance(error, PositionError)
    assert await derived.events() == [[]] * 4


@pytest.mark.extended
async def test_a_second_group_over_the_same_topics_writes_nothing_twice(log: FaultyLog) -> None:
    kit = DeriveKit(log, "", HastyClock())
    await kit.create_topics()
    second = replace(kit.config, group="another-derive", batch_messages=20)
    first = replace(kit.config, batch_messages=20)
    with structlog.testing.capture_logs() as logs:
        workers = [kit.start_worker(config) for config in (first, second)]
        for begin in range(0, len(MESSAGES), 100):
            await kit.publish(MESSAGES[begin : begin + 100])
            await asyncio.sleep(0.02)
        await kit.caught_up(*workers)
        for worker in workers:
            await worker.stop()
    assert await kit.events() == expected(MESSAGES)
    assert "another group derived this partition before: only one may" in {
        line["event"] for line in logs
    }


@pytest.mark.extended
async def test_a_write_by_something_else_is_noticed_before_the_next_commit(
    derived: DeriveKit,
) -> None:
    with structlog.testing.capture_logs() as logs:
        worker = derived.start_worker()
        await until(lambda: worker.figures.total("derive_restores") == 4)
        partition = partition_of(OTHERS[0].session_id, 4)
        (last, *_) = reversed(await derived.read(derived.config.state_topic, partition))
        await derived.append(
            [NewRecord(derived.config.state_topic, partition, last.key, last.value)]
        )
        await derived.publish([Sent(*OTHERS[0])])
        await until(lambda: worker.figures.total("derive_restores") == 5)
        await derived.publish(OTHERS[1:])
        await derived.caught_up(worker)
        await worker.stop()
    assert await derived.events() == expected([*MESSAGES, *OTHERS])
    (said,) = [line["error"] for line in logs if line["event"] == "trying again"]
    assert said.startswith(f"something else wrote to context.state-{partition}")
