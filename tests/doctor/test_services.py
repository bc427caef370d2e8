"""The doctor examines a real Kafka and a real Redis that are wrong on purpose."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from redis import Redis

from contextgauge.clock import SystemClock
from schemas.topics import DAY_MS, TOPICS
from streams.edge.local_stack.stack import LocalStack
from streams.flow import doctor
from streams.settings import Settings
from streams.wiring.doctor import doctor_expected, doctor_services
from tests.commands import Command
from tests.patience import PATIENCE_S

CONTENT = "words-of-a-message"
NOWHERE = "127.0.0.1:1"

Findings = dict[str, list[doctor.Finding]]


async def examine(settings: dict[str, str], **changed: str) -> Findings:
    """Return the findings by check. No finding has a message's content."""
    named: Any = {name.lower(): value for name, value in (settings | changed).items()}
    chosen = Settings(**named)
    expected = doctor_expected(chosen)
    facts = await doctor.gather(doctor_services(chosen, SystemClock()), expected)
    findings: Findings = {}
    for finding in doctor.judge(facts, expected):
        assert CONTENT not in str(finding)
        findings.setdefault(finding.check, []).append(finding)
    return findings


async def eventually(settings: dict[str, str], until: Callable[[Findings], bool]) -> Findings:
    """Examine until it is as expected; return the last findings."""
    deadline = time.monotonic() + PATIENCE_S
    while not until(findings := await examine(settings)):
        assert time.monotonic() < deadline, findings
        await asyncio.sleep(0.2)
    return findings


def worst(findings: Findings, check: str) -> str:
    return findings[check][0].severity


@pytest.mark.extended
async def test_an_installation_from_no_topics_to_a_position_that_was_deleted(
    command: Command, settings: dict[str, str]
) -> None:
    messages = settings["TOPIC_PREFIX"] + "agent.messages"
    findings = await examine(settings)
    assert {item.subject for item in findings["topics.present"]} == {
        settings["TOPIC_PREFIX"] + topic.name for topic in TOPICS
    }

    assert command("topics", "create", **settings).returncode == 0
    await publish(settings, [f"right-{number}" for number in range(40)], keyed=True)
    findings = await examine(settings)
    assert worst(findings, "publishers.keys") == "ok"
    assert findings["publishers.keys"][0].figures["looked"] == 40
    assert worst(findings, "derive.workers") == "error"
    assert findings["derive.workers"][0].figures["members"] == 0
    assert findings["derive.lag"][0].figures["waiting"] == 40

    await publish(settings, [f"wrong-{number}" for number in range(100)], keyed=False)
    findings = await examine(settings)
    (keys,) = findings["publishers.keys"]
    misrouted = keys.figures["without_key"]
    assert keys.severity == "error"
    assert isinstance(misrouted, int)
    assert misrouted + int(keys.figures["right_by_chance"] or 0) == 100
    assert misrouted > 20
    assert "headers made_by" in keys.message

    workers = [
        command.start("derive", "--allow-dead-letters", **settings),
        command.start("project", **settings),
    ]
    findings = await eventually(settings, everything_is_projected)
    errors = {
        item.check for items in findings.values() for item in items if item.severity == "error"
    }
    assert errors == {"publishers.keys", "publishers.dead_letters"}
    assert findings["publishers.dead_letters"][0].figures == {
        "looked": misrouted,
        "misrouted": misrouted,
    }
    assert findings["derive.workers"][0].figures["members"] == 1
    assert "2 of 2 partitions started" in findings["derive.position"][0].message
    assert "sessions" in findings["views.generation"][0].message
    assert findings["activity.records"][0].figures["newest_ms"]

    assert worst(findings, "readers.lag") == "ok"
    await commit_first(settings, "contextgauge-otel")
    await check_behind(settings, "contextgauge-otel")

    for worker in workers:
        worker.terminate()
    await eventually(
        settings,
        lambda seen: worst(seen, "derive.workers") == worst(seen, "project.workers") == "warning",
    )

    producer = await start_producer(settings)
    for _ in range(10):
        await producer.send_and_wait(messages, b"{}", key=b"s", partition=0)
    await producer.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    await admin.delete_records({TopicPartition(messages, 0): RecordsToDelete(before_offset=-1)})
    await admin.close()
    (deleted,) = (await examine(settings))["derive.position"]
    assert (deleted.severity, deleted.subject) == ("error", "partition 0")
    assert "10 offsets were deleted before they were read" in deleted.message


async def commit_first(settings: dict[str, str], group: str) -> None:
    """Let a group have begun to read the records, and be gone."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings["BOOTSTRAP_SERVERS"],
        group_id=settings["GROUP_PREFIX"] + group,
        enable_auto_commit=False,
    )
    await consumer.start()
    topic = settings["TOPIC_PREFIX"] + "context.events"
    partitions = [TopicPartition(topic, number) for number in range(2)]
    consumer.assign(partitions)
    await consumer.commit(dict.fromkeys(partitions, 0))
    await consumer.stop()


async def check_behind(settings: dict[str, str], group: str) -> None:
    """Check what is found of a group that is gone, and for which records wait."""
    (behind,) = (await examine(settings))["readers.lag"]
    assert (behind.severity, behind.subject) == ("warning", settings["GROUP_PREFIX"] + group)
    assert behind.remedy.startswith("Start `contextgauge otel`")


async def start_producer(settings: dict[str, str]) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await producer.start()
    return producer


async def publish(settings: dict[str, str], sessions: list[str], *, keyed: bool) -> None:
    """Publish a message of each session; without keys, to each partition in turn."""
    producer = await start_producer(settings)
    for number, session in enumerate(sessions):
        message = {"type": "system", "subtype": "init", "session_id": session, "cwd": CONTENT}
        await producer.send(
            settings["TOPIC_PREFIX"] + "agent.messages",
            json.dumps(message).encode(),
            key=session.encode() if keyed else None,
            partition=None if keyed else number % 2,
            headers=[("made_by", CONTENT.encode())],
        )
    await producer.flush()
    await producer.stop()


def everything_is_projected(findings: Findings) -> bool:
    return (
        worst(findings, "derive.workers") == worst(findings, "project.workers") == "ok"
        and worst(findings, "views.generation") == "ok"
        and findings["derive.lag"][0].figures.get("waiting") == 0
        and findings["project.lag"][0].figures.get("waiting") == 0
    )


@pytest.fixture
def own_redis(own_stack: Callable[..., LocalStack]) -> Iterator[tuple[str, Any]]:
    """A Redis of this test's own, and a client of it."""
    address = own_stack("redis").services()["redis"].address
    client: Any = Redis.from_url(address)
    yield address, client
    client.close()


async def test_topics_and_a_redis_with_wrong_configurations(
    settings: dict[str, str], own_redis: tuple[str, Any]
) -> None:
    """One of the two brokers in the settings is down, too."""
    await create_topic(settings, "agent.messages", 3, max_message_bytes="1000000")
    await create_topic(settings, "context.events", 2, retention_ms=str(7 * DAY_MS))
    await create_topic(settings, "context.state", 2, cleanup_policy="delete")
    await create_topic(settings, "agent.messages.dead", 2, cleanup_policy="compact,delete")
    address, client = own_redis
    for name, value in (
        ("maxmemory-policy", "allkeys-lru"),
        ("maxmemory", "1500000"),
        ("appendonly", "no"),
    ):
        client.config_set(name, value)
    servers = f"{NOWHERE},{settings['BOOTSTRAP_SERVERS']}"

    findings = await examine(settings, REDIS_URL=address, BOOTSTRAP_SERVERS=servers)

    assert worst(findings, "kafka.reachable") == "warning"
    assert [item.subject for item in findings["kafka.reachable"]] == [NOWHERE]
    assert worst(findings, "kafka.version") == "ok"
    for check in ("partitions", "message_size", "cleanup"):
        assert worst(findings, f"topics.{check}") == "error"
    assert "max.message.bytes=1000000" in findings["topics.message_size"][0].message
    assert "max.message.bytes=9437184" in findings["topics.message_size"][0].remedy
    policies = {
        item.subject.removeprefix(settings["TOPIC_PREFIX"]): item.message
        for item in findings["topics.cleanup"]
    }
    assert set(policies) == {"context.state", "agent.messages.dead"}
    assert "open sessions" in policies["context.state"]
    retention = next(
        item for item in findings["topics.retention"] if item.subject.endswith("events")
    )
    assert retention.severity == "warning"
    assert "retention.ms=-1" in retention.remedy
    assert worst(findings, "topics.segments") == "warning"
    assert worst(findings, "redis.eviction") == "error"
    assert "maxmemory-policy noeviction" in findings["redis.eviction"][0].remedy
    assert "a restart empties it" in findings["redis.persistence"][0].message
    assert findings["redis.memory"][0].figures["limit_bytes"] == 1_500_000
    assert worst(findings, "redis.rights") == "ok"
    assert client.dbsize() == 0


async def create_topic(
    settings: dict[str, str], name: str, partitions: int, **configs: str
) -> None:
    """Create a topic by hand; `_` in a configuration's name stands for a dot."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    topic_configs = {key.replace("_", "."): value for key, value in configs.items()}
    topic = NewTopic(settings["TOPIC_PREFIX"] + name, partitions, 1, topic_configs=topic_configs)
    answer = await admin.create_topics([topic])
    await admin.close()
    assert [code for _, code, *_ in answer.topic_errors] == [0]


async def test_a_redis_of_few_rights_and_a_replica(own_redis: tuple[str, Any]) -> None:
    """Kafka is down: that hides nothing of Redis."""
    address, client = own_redis
    client.config_set("maxmemory-policy", "volatile-lru")
    rights = ["~*", "+@all", "-eval", "-xadd", "-config"]
    client.execute_command("ACL", "SETUSER", "worker", "on", ">secret-word", *rights)
    user = address.replace("redis://", "redis://worker:secret-word@")
    settings = {"BOOTSTRAP_SERVERS": NOWHERE}

    findings = await examine(settings, REDIS_URL=user)
    assert worst(findings, "kafka.reachable") == "error"
    assert findings["kafka.reachable"][0].subject == NOWHERE
    assert worst(findings, "topics.present") == "skipped"
    assert worst(findings, "redis.persistence") == "ok"
    assert worst(findings, "clock.redis") == "ok"
    assert worst(findings, "redis.role") == "ok"
    assert "volatile-lru" in findings["redis.eviction"][0].message  # INFO reports it as well
    assert worst(findings, "redis.rights") == "error"
    assert "XADD, EVAL refused" in findings["redis.rights"][0].message

    findings = await examine(settings, REDIS_URL=user.replace("secret", "other"))
    assert worst(findings, "redis.access") == "error"
    assert "invalid username-password pair" in findings["redis.access"][0].message
    assert "other-word" not in str(findings)

    client.replicaof("127.0.0.1", "1")
    assert worst(await examine(settings, REDIS_URL=address), "redis.role") == "error"


async def test_redis_away_hides_nothing_of_kafka(
    command: Command, settings: dict[str, str]
) -> None:
    assert command("topics", "create", **settings).returncode == 0
    findings = await examine(settings, REDIS_URL=f"redis://{NOWHERE}/0")
    assert worst(findings, "redis.reachable") == "error"
    assert worst(findings, "topics.present") == "ok"
    assert worst(findings, "derive.lag") == "ok"
    assert worst(findings, "project.lag") == "skipped"
