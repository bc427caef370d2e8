"""Facts of a healthy installation, and functions that change some of them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
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
from streams.flow.doctor import Expected, Facts
from streams.flow.doctor.facts import (
    Conversations,
    DeadLetters,
    KafkaFacts,
    Keying,
    OpenCommands,
    Unsettled,
    Views,
    WorkerProgress,
)
from streams.ports import Generations, UnreadableBatch, ViewPosition
from streams.ports.deployment import Deployment
from streams.ports.inspection import (
    GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    Bootstrap,
    Broker,
    ClockReading,
    ClusterFacts,
    Failure,
    Group,
    IngestFacts,
    OpenTransaction,
    StoreFacts,
    TopicFacts,
    TopicPartition,
    TranscriptFacts,
)

NOW = 1_800_000_000_000

AWAY = Failure("away", "no answer within 4 s")
NO_KAFKA = Failure("unset", "Kafka is not configured")
NO_REDIS = Failure("unset", "Redis is not configured")
REFUSED = Failure("refused", "TopicAuthorizationFailedError")

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
    readers={"otel-group": "otel"},
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
BROKERS = tuple(
    Broker(node, f"kafka-{node}:9092", None, 27, 27, 13, BROKER_CONFIGS) for node in (1, 2, 3)
)


def partitions(
    count: int = 2, *, replicas: int = 3, in_sync: int = 3, leader: int | None = 1
) -> list[TopicPartition]:
    return [TopicPartition(number, leader, replicas, in_sync) for number in range(count)]


TOPICS = {
    topic.name: TopicFacts(
        partitions(),
        {
            "cleanup.policy": topic.cleanup,
            "retention.ms": str(topic.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(topic.max_message_bytes),
            "min.insync.replicas": "2",
            "segment.bytes": str(64 * MIB),
            "message.timestamp.type": "CreateTime",
            "message.timestamp.after.max.ms": str(HOUR_MS),
            "unclean.leader.election.enable": "false",
        },
    )
    for topic in EXPECTED.topics
}
INTERNAL_TOPICS = {
    name: TopicFacts(partitions(4), {}) for name in (GROUPS_TOPIC, TRANSACTIONS_TOPIC)
}
CLUSTER = ClusterFacts("cluster", BROKERS, TOPICS | INTERNAL_TOPICS)

STORE_INFO = {
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
}
STORE = StoreFacts(
    info=STORE_INFO,
    configs={"maxmemory-policy": "noeviction", "appendfsync": "everysec", "save": ""},
    pings_ms=(0.1, 0.2, 0.1),
    clock=ClockReading(3, 1),
    denied={},
    deployment=Deployment("cluster", ""),
)

POSITION = ViewPosition(50, 0, 2, caught_up=True)
KEYING = Keying(looked=400, newest_ms=NOW - 3_000)
VIEWS = Views(Generations(1, None), {0: POSITION, 1: POSITION}, {}, 12, NOW - 4_000)

HEALTHY = Facts(
    NOW,
    KafkaFacts(
        bootstrap=[Bootstrap("kafka:9092", None)],
        cluster=CLUSTER,
        derive_group=Group("Stable", ["10.0.0.1"], {}),
        project_group=Group("Stable", ["10.0.0.1"], {}),
        keying=KEYING,
        dead=DeadLetters(0, 0, {}, None),
        newest_record_ms=NOW - 3_500,
        derive={number: WorkerProgress(0, 100, 100, None) for number in range(2)},
        commands=OpenCommands(0, None),
        other_groups={},
        control_groups={},
        unsettled={},
        unreadable=[],
        readers={},
    ),
    project={number: WorkerProgress(0, 50, 50, None) for number in range(2)},
    conversations=Conversations({number: WorkerProgress(0, 100, 100, None) for number in range(2)}),
    store=STORE,
    views=VIEWS,
    ingest=IngestFacts("127.0.0.1:8643", is_there=True),
    transcripts=TranscriptFacts(3, 3, {}),
)
KAFKA_FIELDS = {field.name for field in fields(KafkaFacts)}


def facts(**changed: Any) -> Facts:
    """Healthy facts except for these."""
    kafka = {name: value for name, value in changed.items() if name in KAFKA_FIELDS}
    others = {name: value for name, value in changed.items() if name not in KAFKA_FIELDS}
    return replace(HEALTHY, kafka=replace(HEALTHY.kafka, **kafka), **others)


def topic(name: str, **configs: str) -> Facts:
    """One topic with another configuration; `_` stands for a dot."""
    changed = {key.replace("_", "."): value for key, value in configs.items()}
    healthy: Any = TOPICS[name].configs
    return with_topic(name, replace(TOPICS[name], configs=healthy | changed))


def with_partitions(name: str, parts: list[TopicPartition]) -> Facts:
    """One topic with other partitions."""
    return with_topic(name, replace((TOPICS | INTERNAL_TOPICS)[name], partitions=parts))


def with_topic(name: str, actual: TopicFacts | Failure | None) -> Facts:
    """Another topic, or none."""
    return facts(cluster=replace(CLUSTER, topics={**CLUSTER.topics, name: actual}))


def brokers(*changed: Broker) -> Facts:
    return facts(cluster=replace(CLUSTER, brokers=changed))


def all_brokers(**changed: Any) -> Facts:
    return brokers(*[replace(broker, **changed) for broker in BROKERS])


def broker_configs(**configs: str) -> Facts:
    """All brokers with another configuration; `_` stands for a dot."""
    changed = {name.replace("_", "."): value for name, value in configs.items()}
    return all_brokers(configs=BROKER_CONFIGS | changed)


def keying(**changed: Any) -> Facts:
    return facts(keying=replace(KEYING, **changed))


def redis(info: Mapping[str, str] | None = None, **changed: Any) -> Facts:
    """Redis with other INFO, or other facts."""
    return facts(store=replace(STORE, info=STORE_INFO | dict(info or {}), **changed))


def views(**changed: Any) -> Facts:
    return facts(views=replace(VIEWS, **changed))


def kept(progress: WorkerProgress, former: Iterable[int] = ()) -> Facts:
    return facts(conversations=Conversations({0: progress}, frozenset(former)))


def open_on(topic: str, *partitions: int, **changed: Any) -> Facts:
    """A transaction that has been open for 70 s on partitions of a topic, behind offset 20."""
    since = {"started_ms": NOW - 70_000, "timeout_ms": 240_000, "transactional_id": "their-app"}
    held = OpenTransaction(4_000, 3, 20, NOW - 60_000, **{**since, **changed})
    return facts(
        unsettled={(topic, partition): Unsettled(20, 60, [held]) for partition in partitions}
    )


def held_up(given: Facts) -> Facts:
    """Let the workers have read all that is settled, of partitions with a transaction too."""
    waiting = {0: WorkerProgress(0, 20, 20, None), 1: WorkerProgress(0, 20, 20, None, unsettled=40)}
    kafka = replace(given.kafka, derive=waiting)
    return replace(given, kafka=kafka, project=waiting, conversations=Conversations(waiting))


def without_conversations(topic: str) -> Facts:
    return replace(with_topic(topic, None), conversations=Failure("away", "none are kept"))


def unreadable(topic: str) -> UnreadableBatch:
    """Return a batch that was passed over."""
    return UnreadableBatch(topic, 1, 20, 30, 10, NOW, b"", "batch_too_large", "it is too large")
