"""What only a real Kafka shows of the log."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.metadata import MetadataRequest

from contextgauge.errors import ConfigError
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import AGENT_MESSAGES, HOUR_MS, MIB, TOPICS, Topic
from streams.edge.kafka.log import KafkaLog
from streams.ports import NO_ID, NewRecord
from tests.codec.batches_kit import WRITER, ForeignName
from tests.contract.logs import Member
from tests.patience import PATIENCE_S

_OF_THE_TOPIC = 1
"""Kafka's source of a config that was set for the topic, and is no default."""


async def test_a_group_of_another_consumer_raises_a_config_error(kafka: str, prefix: str) -> None:
    log = KafkaLog(KafkaOptions(kafka, session_timeout_ms=6_000))
    await log.start()
    topic = Topic(prefix + "records", "any", "delete", -1, MIB)
    await log.create_topics([topic], 1)
    stranger = AIOKafkaConsumer(topic.name, bootstrap_servers=kafka, group_id=prefix)
    await stranger.start()
    member = Member(log.group_reader(topic.name, prefix, None))
    await member.reader.start()
    await member.reader.join(member.on_revoked, member.on_assigned)
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_GROUP_PREFIX"):
        async with asyncio.timeout(PATIENCE_S):
            await member.reader.watch()
    await member.reader.stop()
    await stranger.stop()
    await log.stop()


@pytest.mark.parametrize("newest", [None, 9])
async def test_a_broker_from_before_topic_ids_has_none(
    kafka: str, prefix: str, newest: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    topic = Topic(prefix + "records", "any", "delete", -1, MIB)
    await log.create_topics([topic], 1)
    prepare = Request.prepare

    def as_older(request: Request[RequestStruct], known: dict[int, tuple[int, int]]) -> object:
        older = {api: upto for api, upto in known.items() if api != MetadataRequest.API_KEY}
        if newest is not None:
            older[MetadataRequest.API_KEY] = (0, newest)
        return prepare(request, older)

    monkeypatch.setattr(Request, "prepare", as_older)
    assert await log.topic_ids([topic.name]) == {topic.name: NO_ID}
    monkeypatch.undo()
    assert (await log.topic_ids([topic.name]))[topic.name] not in {None, NO_ID}
    await log.stop()


async def test_a_deleted_topic_that_a_broker_still_lists_is_created(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    topic = Topic(prefix + "records", "any", "delete", -1, MIB)
    ask = log.partition_counts
    stale: list[dict[str, int | None]] = [{topic.name: 1}]

    async def partition_counts(names: Sequence[str]) -> dict[str, int | None]:
        return stale.pop() if stale else await ask(names)

    monkeypatch.setattr(log, "partition_counts", partition_counts)
    assert await log.create_topics([topic], 1) == [topic.name]
    assert await ask([topic.name]) == {topic.name: 1}
    await log.stop()


async def test_kafka_keeps_topics_as_they_are_described(kafka: str, prefix: str) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    topics = [replace(topic, name=prefix + topic.name) for topic in TOPICS]
    await log.create_topics(topics, 1)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    (answer,) = await admin.describe_configs(resources)
    by_topic = {
        name: {config[0]: config[1] for config in configs}
        for _, _, _, name, configs in answer.resources
    }
    sources = {
        name: {config[0]: config[3] for config in configs}
        for _, _, _, name, configs in answer.resources
    }
    for topic in topics:
        configs = by_topic[topic.name]
        assert configs["cleanup.policy"] == topic.cleanup
        assert int(configs["retention.ms"]) == topic.retention_ms
        assert int(configs["max.message.bytes"]) == topic.max_message_bytes
        if topic.max_ahead_ms is not None:
            # Set at the broker: an hour is the default of newer ones only.
            assert int(configs["message.timestamp.after.max.ms"]) == topic.max_ahead_ms
            assert sources[topic.name]["message.timestamp.after.max.ms"] == _OF_THE_TOPIC
        assert (int(configs["segment.bytes"]) < 2**30) == (topic.cleanup == "compact")
    await admin.close()
    await log.stop()


async def test_kafka_accepts_the_largest_message_and_names_one_that_is_too_large(
    kafka: str, prefix: str
) -> None:
    log = KafkaLog(KafkaOptions(kafka, compression=None))
    await log.start()
    topic = Topic(prefix + "large", "any", "delete", -1, 9 * MIB)
    await log.create_topics([topic], 1)
    producer = log.transactional_producer(prefix + "a")
    await producer.start()
    fits = NewRecord(topic.name, 0, b"key", b"x" * (8 * MIB + 1_000))
    small = NewRecord(topic.name, 0, b"key", b"small")
    await producer.commit([small, fits, small])
    reader = log.reader(topic.name, [0])
    await reader.start()
    reader.seek(0, 0)
    sizes: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(sizes) < 3:
            batch = await reader.poll(0, 10, 1.0)
            sizes.extend(len(record.value or b"") for record in batch.records)
    assert sizes == [5, 8 * MIB + 1_000, 5]
    with pytest.raises(ConfigError, match=r"max\.message\.bytes"):
        await producer.commit([fits._replace(value=b"x" * 10 * MIB)])
    await producer.stop()
    await reader.stop()
    await log.stop()


async def test_kafka_refuses_messages_of_a_clock_that_is_far_ahead(
    kafka: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    topic = replace(AGENT_MESSAGES, name=prefix + AGENT_MESSAGES.name)
    await log.create_topics([topic], 1)
    append = BatchBuilder.append

    def ahead(builder: BatchBuilder, **record: object) -> object:
        time_ms = time.time_ns() // 1_000_000 + 2 * HOUR_MS
        return append(builder, **record | {"timestamp": time_ms})

    monkeypatch.setattr(BatchBuilder, "append", ahead)
    producer = log.producer()
    await producer.start()
    await producer.send(NewRecord(topic.name, 0, b"key", b"value"))
    with pytest.raises(ConfigError, match="clock"):
        await producer.flush()
    await producer.stop()
    await log.stop()


async def test_a_name_of_a_header_that_is_not_utf8_stops_no_reader(kafka: str, prefix: str) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    topic = Topic(prefix + "records", "any", "delete", -1, MIB)
    await log.create_topics([topic], 1)
    producer = AIOKafkaProducer(bootstrap_servers=kafka)
    await producer.start()
    batch = producer.create_batch()
    batch._builder = WRITER(2, 0, 0, -1, -1, 0, MIB)  # noqa: SLF001 -- the usual one takes text only
    for headers in ([(ForeignName(), b"1")], [("fine", b"2")]):
        batch.append(timestamp=1_790_000_000_000, key=b"key", value=b"value", headers=headers)
    await (await producer.send_batch(batch, topic.name, partition=0))
    await producer.stop()
    reader = log.reader(topic.name, [0])
    await reader.start()
    reader.seek(0, 0)
    async with asyncio.timeout(PATIENCE_S):
        records = (await reader.poll(0, 10, PATIENCE_S)).records
    assert [record.headers for record in records] == [
        (("\ufffd\ufffdname", b"1"),),
        (("fine", b"2"),),
    ]
    await reader.stop()
    await log.stop()
