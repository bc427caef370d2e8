"""What can be wrong: the check that finds it, the facts, how severe it is, and words it tells."""

from dataclasses import replace

from schemas.topics import DAY_MS, HOUR_MS, MIB
from streams.flow.doctor import Facts
from streams.flow.doctor.facts import DeadLetters, Progress, Wrong
from streams.ports import Generations, ViewPosition
from streams.ports.inspection import (
    TRANSACTIONS_TOPIC,
    Bootstrap,
    ClockReading,
    Failure,
    Group,
    TopicFacts,
)
from tests.doctor.cases import (
    BROKERS,
    NOW,
    broker_configs,
    brokers,
    facts,
    keying,
    partitions,
    redis,
    views,
    with_topic,
)
from tests.doctor.wrong_topics import TOPIC_CASES

AWAY = Failure("away", "no answer within 4 s")
REFUSED = Failure("refused", "TopicAuthorizationFailedError")
CONFIG_REFUSED = Failure("refused", "unknown command 'CONFIG'")
POSITION = ViewPosition(50, 0, 2, caught_up=True)

_UNREACHED = replace(BROKERS[2], failure=AWAY)

CASES: list[tuple[str, Facts, str, str]] = [
    ("kafka.reachable", facts(bootstrap=AWAY), "error", "no answer"),
    ("kafka.reachable", facts(bootstrap=[Bootstrap("a:1", AWAY)]), "error", "does not answer"),
    (
        "kafka.reachable",
        facts(bootstrap=[Bootstrap("a:1", None), Bootstrap("b:1", AWAY)]),
        "warning",
        "does not answer",
    ),
    ("kafka.access", facts(bootstrap=[Bootstrap("a:1", REFUSED)]), "error", "refused"),
    ("kafka.access", facts(derive_group=REFUSED), "error", "refused"),
    ("kafka.access", with_topic("agent.messages", REFUSED), "error", "refused"),
    (
        "kafka.brokers",
        brokers(*BROKERS[:2], replace(BROKERS[2], failure=AWAY)),
        "error",
        "broker 3",
    ),
    (
        "kafka.version",
        brokers(*[replace(item, supported_level=9, level=9) for item in BROKERS]),
        "warning",
        "Kafka 3.5",
    ),
    (
        "kafka.version",
        brokers(BROKERS[0], replace(BROKERS[1], supported_level=25)),
        "note",
        "Kafka 4.0 and 4.1",
    ),
    (
        "kafka.version",
        brokers(*[replace(item, level=21) for item in BROKERS]),
        "note",
        "still works as 3.9",
    ),
    (
        "kafka.version",
        brokers(*[replace(item, supported_level=None, newest_api=9) for item in BROKERS]),
        "note",
        "Produce up to version 9",
    ),
    ("kafka.topic_creation", broker_configs(auto_create_topics_enable="true"), "warning", "early"),
    (
        "kafka.message_size",
        broker_configs(replica_fetch_max_bytes=str(MIB)),
        "note",
        "1 MiB, below the largest message of 10 MiB",
    ),
    (
        "kafka.internal_topics",
        with_topic(TRANSACTIONS_TOPIC, TopicFacts(partitions(replicas=1, in_sync=1), {})),
        "warning",
        "1 of 3 copies",
    ),
    (
        "kafka.internal_topics",
        with_topic(TRANSACTIONS_TOPIC, TopicFacts(partitions(leader=None), {})),
        "error",
        "2 of 2 partitions without a leader",
    ),
    (
        "kafka.session_timeout",
        broker_configs(group_min_session_timeout_ms="20000"),
        "error",
        "20,000 to 1,800,000",
    ),
    (
        "kafka.transaction_timeout",
        broker_configs(transaction_max_timeout_ms="5000"),
        "error",
        "up to 5,000 ms",
    ),
    *TOPIC_CASES,
    ("publishers.keys", keying(keyless=100), "error", "25 % of the newest 400 messages"),
    ("publishers.keys", keying(foreign=1), "warning", "below 1 %"),
    (
        "publishers.keys",
        keying(misplaced=300, newest_wrong=Wrong(1, 77, NOW - 60_000, ("via",))),
        "error",
        "60 s ago, partition 1 offset 77, headers via",
    ),
    ("publishers.keys", keying(lucky=3), "warning", "by chance"),
    (
        "publishers.dead_letters",
        facts(dead=DeadLetters(5, 900, {"misrouted": 4, "not_json": 1}, NOW - 60_000)),
        "error",
        "the newest 5 of about 900: 4 misrouted, 1 not_json; the last one 60 s ago",
    ),
    (
        "publishers.dead_letters",
        facts(dead=DeadLetters(5, 5, {"no_session": 5}, NOW - 5 * HOUR_MS)),
        "warning",
        "5 no_session",
    ),
    (
        "publishers.dead_letters",
        facts(dead=DeadLetters(5, 5, {"too_large": 5}, NOW - 5 * DAY_MS)),
        "note",
        "5 d ago",
    ),
    ("publishers.clocks", keying(ahead=7, most_ahead_ms=90_000), "warning", "by 90 s at most"),
    (
        "derive.workers",
        facts(derive_group=Group("Empty", [], {}), derive={0: Progress(0, 10, None, NOW)}),
        "error",
        "10 messages wait",
    ),
    ("derive.workers", facts(derive_group=Group("Dead", [], {})), "warning", "nothing waits"),
    (
        "derive.workers",
        facts(derive_group=Group("PreparingRebalance", ["a"], {})),
        "note",
        "being balanced",
    ),
    (
        "derive.position",
        facts(derive={0: Progress(500, 900, 100, None)}),
        "error",
        "400 offsets were deleted before they were read",
    ),
    (
        "derive.position",
        facts(derive={0: Progress(0, 10, 100, None)}),
        "error",
        "beyond the end, 10: the topic was made anew",
    ),
    (
        "derive.lag",
        facts(derive={0: Progress(0, 1_500, 500, NOW - 600_000), 1: Progress(0, 5, 5, None)}),
        "warning",
        "about 1,000 messages wait, the oldest for 10 min; most on partition 0 (1,000)",
    ),
    (
        "project.workers",
        facts(project_group=Group("Empty", [], {}), project={0: Progress(0, 10, 3, NOW)}),
        "error",
        "7 records wait",
    ),
    ("project.position", facts(project={0: Progress(500, 900, 1, None)}), "error", "499 offsets"),
    (
        "project.lag",
        facts(project={0: Progress(0, 1_500, 500, NOW - HOUR_MS)}),
        "warning",
        "1,000 records",
    ),
    (
        "views.generation",
        views(generations=Generations(1, 2, f"{NOW - 3 * HOUR_MS}-w"), building={0: None}),
        "warning",
        "generation 2 is being built since 3 h, 0 of 1 partition ready",
    ),
    (
        "views.generation",
        views(generations=Generations(1, 2, f"{NOW - 5_000}-w"), building={0: POSITION}),
        "note",
        "since 5 s, 1 of 1",
    ),
    (
        "views.generation",
        views(
            generations=Generations(1, 2, f"{NOW - 3 * HOUR_MS}-rebuild", held=True),
            building={0: POSITION},
        ),
        "warning",
        "since 3 h, 1 of 1 partition ready, held for a comparison",
    ),
    (
        "views.generation",
        views(active={0: None, 1: POSITION}),
        "error",
        "partition 0 of it is gone",
    ),
    ("views.generation", views(generations=Generations(None, None), active={}), "note", "no views"),
    (
        "views.format",
        facts(views=Failure("unsupported", "the views are of format 9")),
        "error",
        "format 9",
    ),
    (
        "views.format",
        views(active={0: ViewPosition(5, 0, 4, caught_up=True)}),
        "error",
        "of 4 partitions, context.events has 2",
    ),
    ("redis.reachable", facts(store=AWAY), "error", "no answer"),
    ("redis.access", facts(store=Failure("refused", "WRONGPASS")), "error", "WRONGPASS"),
    ("redis.version", redis({"redis_version": "6.0.9"}), "error", "6.0.9"),
    (
        "redis.role",
        redis({"role": "slave", "master_host": "m", "master_port": "1"}),
        "error",
        "replica of m:1",
    ),
    ("redis.cluster", redis({"cluster_enabled": "1"}), "error", "Redis Cluster"),
    ("redis.persistence", redis({"aof_enabled": "0"}), "warning", "a restart empties it"),
    (
        "redis.persistence",
        redis({"aof_enabled": "0"}, configs=CONFIG_REFUSED),
        "warning",
        "last snapshot",
    ),
    ("redis.persistence", redis({"loading": "1"}), "warning", "reading its file"),
    ("redis.persistence", redis({"aof_last_write_status": "err"}), "error", "append-only file"),
    ("redis.persistence", redis({"rdb_last_bgsave_status": "err"}), "error", "last snapshot"),
    ("redis.persistence", redis(configs={"appendfsync": "no"}), "warning", "appendfsync=no"),
    (
        "redis.eviction",
        redis({"evicted_keys": "12"}, configs={"maxmemory-policy": "allkeys-lru"}),
        "error",
        "allkeys-lru: keys may be thrown away, and 12 keys were",
    ),
    (
        "redis.eviction",
        redis({"maxmemory_policy": "volatile-ttl"}, configs=CONFIG_REFUSED),
        "error",
        "volatile-ttl",
    ),
    ("redis.eviction", redis({"evicted_keys": "12"}), "warning", "12 keys were thrown away"),
    ("redis.memory", redis({"used_memory": str(950 * MIB)}), "error", "950 MiB used of 1 GiB"),
    ("redis.memory", redis({"used_memory": str(800 * MIB)}), "warning", "(78%)"),
    ("redis.memory", redis({"maxmemory": "0"}), "note", "maxmemory is not set"),
    (
        "redis.memory",
        redis({"used_memory": str(600 * MIB), "used_memory_dataset": str(500 * MIB)}),
        "warning",
        "too little for a rebuild, which holds the views twice, 1.1 GiB in all",
    ),
    (
        "redis.fragmentation",
        redis({"used_memory_rss": str(300 * MIB)}),
        "warning",
        "300 MiB held for 100 MiB used (3.0 times)",
    ),
    ("redis.latency", redis(pings_ms=(30.0, 31.0, 90.0)), "warning", "31.0 ms, 90.0 ms"),
    ("redis.rights", redis(denied={"EVAL": "NOPERM no"}), "error", "EVAL refused: NOPERM no"),
    ("clock.redis", redis(clock=ClockReading(-90_000, 1)), "warning", "90 s behind this machine's"),
    ("clock.redis", redis(clock=ClockReading(9_000, 1)), "warning", "9 s ahead of"),
    ("clock.kafka", keying(newest_append_ms=NOW + 30_000), "warning", "at least 30 s ahead"),
]
