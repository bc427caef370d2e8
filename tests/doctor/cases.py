"""Facts of a healthy installation, and ways to change single ones."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DEAD_LETTERS,
    HOUR_MS,
    MIB,
)
from streams.flow.doctor import Expected, Facts, Finding, judge
from streams.flow.doctor.facts import DeadLetters, Keying, Progress, Views
from streams.ports import Generations, ViewPosition
from streams.ports.inspection import (
    GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    Bootstrap,
    Broker,
    ClockReading,
    Cluster,
    Failure,
    Group,
    StoreFacts,
    TopicFacts,
    TopicPartition,
)

NOW = 1_800_000_000_000

EXPECTED = Expected(
    messages=AGENT_MESSAGES,
    events=CONTEXT_EVENTS,
    state=CONTEXT_STATE,
    dead=DEAD_LETTERS,
    commands=CONTEXT_COMMANDS,
    partitions=2,
    replicas=3,
    session_timeout_ms=10_000,
    transaction_timeout_ms=10_000,
    message_limit_bytes=8 * MIB,
    derive_group="contextgauge-derive",
    project_group="contextgauge-project",
    bootstrap_servers="kafka:9092",
)

BROKER_CONFIGS = {
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "message.max.bytes": "1048588",
    "replica.fetch.max.bytes": str(16 * MIB),
    "transaction.max.timeout.ms": "900000",
}


def partitions(
    count: int = 2, *, replicas: int = 3, in_sync: int = 3, leader: int | None = 1
) -> list[TopicPartition]:
    return [TopicPartition(number, leader, replicas, in_sync) for number in range(count)]


def topic_configs(name: str) -> dict[str, str]:
    topic = next(topic for topic in EXPECTED.topics if topic.name == name)
    return {
        "cleanup.policy": topic.cleanup,
        "retention.ms": str(topic.retention_ms),
        "retention.bytes": "-1",
        "max.message.bytes": str(topic.max_message_bytes),
        "min.insync.replicas": "2",
        "segment.bytes": str(64 * MIB),
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(HOUR_MS),
        "unclean.leader.election.enable": "false",
    }


BROKERS = tuple(
    Broker(node, f"kafka-{node}:9092", None, 27, 27, 13, BROKER_CONFIGS) for node in (1, 2, 3)
)

CLUSTER = Cluster(
    "cluster",
    BROKERS,
    {topic.name: TopicFacts(partitions(), topic_configs(topic.name)) for topic in EXPECTED.topics}
    | {name: TopicFacts(partitions(4), {}) for name in (GROUPS_TOPIC, TRANSACTIONS_TOPIC)},
)

KEYING = Keying(
    looked=400,
    keyless=0,
    foreign=0,
    misplaced=0,
    lucky=0,
    newest_wrong=None,
    ahead=0,
    most_ahead_ms=-5,
    newest_ms=NOW - 3_000,
    newest_append_ms=None,
)

STORE = StoreFacts(
    info={
        "redis_version": "7.0.15",
        "role": "master",
        "connected_slaves": "1",
        "cluster_enabled": "0",
        "loading": "0",
        "aof_enabled": "1",
        "aof_last_write_status": "ok",
        "rdb_last_bgsave_status": "ok",
        "maxmemory_policy": "noeviction",
        "evicted_keys": "0",
        "used_memory": str(100 * MIB),
        "used_memory_rss": str(110 * MIB),
        "maxmemory": str(1_024 * MIB),
        "total_system_memory": str(4_096 * MIB),
    },
    configs={"maxmemory-policy": "noeviction", "appendfsync": "everysec", "save": ""},
    pings_ms=(0.1, 0.2, 0.1),
    clock=ClockReading(3, 1),
    denied={},
)

VIEWS = Views(
    generations=Generations(1, None),
    active={number: ViewPosition(50, 0, 2, caught_up=True) for number in range(2)},
    building={},
    sessions=12,
    newest_ms=NOW - 4_000,
)

HEALTHY = Facts(
    now_ms=NOW,
    bootstrap=[Bootstrap("kafka:9092", None)],
    cluster=CLUSTER,
    derive_group=Group("Stable", ["10.0.0.1"], {}),
    project_group=Group("Stable", ["10.0.0.1"], {}),
    keying=KEYING,
    dead=DeadLetters(0, 0, {}, None),
    derive={number: Progress(0, 100, 100, None) for number in range(2)},
    project={number: Progress(0, 50, 50, None) for number in range(2)},
    newest_record_ms=NOW - 3_500,
    store=STORE,
    views=VIEWS,
)


def facts(**changed: Any) -> Facts:
    """Healthy facts but for these."""
    return replace(HEALTHY, **changed)


def topic(name: str, **configs: str) -> Facts:
    """One topic with another configuration."""
    return with_topic(name, TopicFacts(partitions(), topic_configs(name) | configs))


def with_topic(name: str, there: TopicFacts | Failure | None) -> Facts:
    """One topic that is another, or none."""
    return facts(cluster=replace(CLUSTER, topics={**CLUSTER.topics, name: there}))


def brokers(*found: Broker) -> Facts:
    return facts(cluster=replace(CLUSTER, brokers=found))


def broker_configs(**configs: str) -> Facts:
    """All brokers with another configuration; `_` stands for a dot."""
    changed = BROKER_CONFIGS | {name.replace("_", "."): value for name, value in configs.items()}
    return brokers(*[replace(item, configs=changed) for item in BROKERS])


def keying(**changed: Any) -> Facts:
    return facts(keying=replace(KEYING, **changed))


def redis(info: Mapping[str, str] | None = None, **changed: Any) -> Facts:
    """Redis with other INFO, or other facts."""
    assert STORE.info is not None
    known = dict(STORE.info)  # type: ignore[arg-type]  # of the healthy one
    return facts(store=replace(STORE, info=known | dict(info or {}), **changed))


def views(**changed: Any) -> Facts:
    return facts(views=replace(VIEWS, **changed))


def found(given: Facts, check: str) -> list[Finding]:
    return [item for item in judge(given, EXPECTED) if item.check == check]
