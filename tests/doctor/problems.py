"""Everything that can be wrong: the facts, the check, its severity, and a part of its message."""

from dataclasses import replace

from contextgauge.normalise.unread_lines import UnreadLine
from schemas.topics import DAY_MS, HOUR_MS, MIB
from streams.flow.doctor import Facts, Severity
from streams.flow.doctor.facts import DeadLetters, MiskeyedMessage, WorkerProgress
from streams.ports import Generations, ProjectorHeartbeat, ViewPosition
from streams.ports.inspection import (
    TRANSACTIONS_TOPIC,
    Bootstrap,
    Failure,
    Group,
    IngestFacts,
    TranscriptFacts,
)
from tests.doctor.cases import (
    AWAY,
    BROKERS,
    CLUSTER,
    NO_KAFKA,
    NOW,
    POSITION,
    REFUSED,
    STORE,
    TOPICS,
    all_brokers,
    broker_configs,
    brokers,
    facts,
    keying,
    partitions,
    redis,
    topic,
    views,
    with_partitions,
    with_topic,
    without_conversations,
)
from tests.doctor.control_problems import CONTROL_PROBLEMS
from tests.doctor.redis_problems import NO_CONFIG, REDIS_PROBLEMS
from tests.doctor.unreadable_problems import READING_PROBLEMS

ONE_OF_TWO = [Bootstrap("a:1", None), Bootstrap("b:1", AWAY)]
WRONG_MESSAGE = MiskeyedMessage(1, 77, NOW - 60_000, ("via",))
NOBODY = Group("Empty", [], {})
OLD_BUILD = f"{NOW - 3 * HOUR_MS}-w"
REASONS = {"misrouted": 4, "not_json": 1}


Problem = tuple[str, Severity, Facts, str]

KAFKA_PROBLEMS: list[Problem] = [
    ("kafka.reachable", "error", facts(bootstrap=AWAY), "no answer"),
    ("kafka.reachable", "error", facts(bootstrap=NO_KAFKA), "not configured"),
    ("kafka.reachable", "error", facts(bootstrap=[Bootstrap("a:1", AWAY)]), "does not answer"),
    ("kafka.reachable", "warning", facts(bootstrap=ONE_OF_TWO), "does not answer"),
    ("kafka.access", "error", facts(bootstrap=[Bootstrap("a:1", REFUSED)]), "refused"),
    ("kafka.access", "error", facts(derive_group=REFUSED), "refused"),
    ("kafka.access", "error", with_topic("agent.messages", REFUSED), "refused"),
    ("kafka.access", "note", all_brokers(configs=REFUSED), "not readable"),
    ("kafka.brokers", "error", brokers(*BROKERS[:2], replace(BROKERS[2], failure=AWAY)), "r 3 adv"),
    ("kafka.version", "warning", all_brokers(supported_level=9, level=9), "Kafka 3.5, older"),
    (
        "kafka.version",
        "note",
        brokers(BROKERS[0], replace(BROKERS[1], supported_level=25)),
        "Kafka 4.0 and 4.1",
    ),
    ("kafka.version", "note", all_brokers(level=21), "still uses the features of 3.9"),
    ("kafka.version", "note", all_brokers(supported_level=None, newest_api=9), "up to version 9"),
    ("kafka.topic_creation", "warning", broker_configs(auto_create_topics_enable="true"), "early"),
    (
        "kafka.message_size",
        "note",
        broker_configs(replica_fetch_max_bytes=str(MIB)),
        "1 MiB, below the largest message of 10 MiB",
    ),
    (
        "kafka.internal_topics",
        "warning",
        with_partitions(TRANSACTIONS_TOPIC, partitions(replicas=1, in_sync=1)),
        "1 of 3 copies",
    ),
    (
        "kafka.internal_topics",
        "error",
        with_partitions(TRANSACTIONS_TOPIC, partitions(leader=None)),
        "2 of 2 partitions without a leader",
    ),
    (
        "kafka.session_timeout",
        "error",
        broker_configs(group_min_session_timeout_ms="20000"),
        "20,000 to 1,800,000",
    ),
    (
        "kafka.transaction_timeout",
        "error",
        broker_configs(transaction_max_timeout_ms="5000"),
        "up to 5,000 ms",
    ),
]

THREE_PARTITIONS = replace(
    CLUSTER,
    topics={name: replace(actual, partitions=partitions(3)) for name, actual in TOPICS.items()},
)
EVENTS, MESSAGES, STATE = "context.events", "agent.messages", "context.state"

TOPIC_PROBLEMS: list[Problem] = [
    ("topics.present", "error", with_topic(STATE, None), "does not exist"),
    ("topics.present", "note", without_conversations("context.commands"), "nothing uses it"),
    ("topics.present", "error", with_topic("context.commands", None), "does not exist"),
    ("kafka.access", "error", facts(commands=REFUSED), "refused"),
    ("topics.partitions", "error", with_partitions(EVENTS, partitions(3)), "context.events 3"),
    ("topics.partitions", "note", facts(cluster=THREE_PARTITIONS), "new topics is 2"),
    (
        "topics.replication",
        "warning",
        with_partitions(EVENTS, partitions(replicas=1, in_sync=1)),
        "1 of 3 expected copies",
    ),
    ("topics.replication", "note", brokers(BROKERS[0]), "one broker"),
    ("topics.in_sync", "warning", topic(EVENTS, min_insync_replicas="1"), "=1 of 3 copies: a"),
    ("topics.in_sync", "warning", topic(EVENTS, min_insync_replicas="3"), "one broker is down"),
    ("topics.in_sync", "error", topic(EVENTS, min_insync_replicas="4"), "nothing can be written"),
    ("topics.health", "error", with_partitions(EVENTS, partitions(leader=None)), "0, 1 of 2"),
    ("topics.health", "warning", with_partitions(EVENTS, partitions(in_sync=2)), "are behind"),
    (
        "topics.message_size",
        "error",
        topic(MESSAGES, max_message_bytes="1048588"),
        "max.message.bytes=1048588 (1 MiB) is below 9437184 (9 MiB)",
    ),
    (
        "topics.cleanup",
        "error",
        topic(STATE, cleanup_policy="compact, delete"),
        "compact,delete: the state of open sessions",
    ),
    ("topics.cleanup", "error", topic(EVENTS, cleanup_policy="compact"), "newest record of each"),
    (
        "topics.retention",
        "warning",
        topic(EVENTS, retention_ms=str(7 * DAY_MS)),
        "kept 7 d, the settings require forever: a rebuild",
    ),
    ("topics.retention", "warning", topic(MESSAGES, retention_ms=str(HOUR_MS)), "not derived yet"),
    ("topics.retention", "note", topic(MESSAGES, retention_ms=str(90 * DAY_MS)), "kept 90 d"),
    ("topics.retention", "warning", topic(EVENTS, retention_bytes=str(MIB)), "at most 1 MiB"),
    (
        "topics.timestamps",
        "warning",
        topic(MESSAGES, message_timestamp_type="LogAppendTime"),
        "LogAppendTime",
    ),
    (
        "topics.timestamps",
        "warning",
        topic(MESSAGES, message_timestamp_after_max_ms=str(2**63 - 1)),
        "any time ahead",
    ),
    ("topics.segments", "warning", topic(STATE, segment_bytes=str(1024 * MIB)), "1 GiB"),
    ("topics.segments", "error", topic(EVENTS, segment_bytes=str(MIB)), "below the largest"),
    ("topics.segments", "warning", topic(STATE, min_compaction_lag_ms=str(3 * DAY_MS)), "for 3 d"),
    (
        "topics.elections",
        "warning",
        topic(STATE, unclean_leader_election_enable="true"),
        "unclean",
    ),
]

FLOW_PROBLEMS: list[Problem] = [
    (
        "transcripts.readable",
        "warning",
        facts(transcripts=TranscriptFacts(9, 9, {f"{number}.json": "torn" for number in range(7)})),
        "2 more cannot be read",
    ),
    (
        "ingest.ready",
        "warning",
        facts(ingest=IngestFacts("h:8643", is_there=True, reasons="kafka is away")),
        "kafka is away",
    ),
    ("publishers.keys", "error", keying(without_key=100), "25% of the newest 400 messages: 100"),
    ("publishers.keys", "warning", keying(other_key=1), "<1% of"),
    (
        "publishers.keys",
        "error",
        keying(other_partitioner=300, newest_wrong=WRONG_MESSAGE),
        "60 s ago, partition 1 offset 77, headers via",
    ),
    ("publishers.keys", "warning", keying(right_by_chance=3), "by chance"),
    (
        "publishers.dead_letters",
        "error",
        facts(dead=DeadLetters(5, 900, REASONS, NOW - 60_000)),
        "the newest 5 of about 900: 4 misrouted, 1 not_json; the last one 60 s ago",
    ),
    (
        "publishers.dead_letters",
        "warning",
        facts(dead=DeadLetters(5, 5, {"no_session": 5}, NOW - 5 * HOUR_MS)),
        "5 no_session",
    ),
    (
        "publishers.dead_letters",
        "note",
        facts(dead=DeadLetters(5, 5, {"too_large": 5}, NOW - 5 * DAY_MS)),
        "5 d ago",
    ),
    (
        "publishers.spellings",
        "note",
        keying(differing={("sessionId", "session_id"): 12}),
        "12 messages with another `session_id` than `sessionId`, which counts",
    ),
    (
        "publishers.unread",
        "note",
        keying(unread={UnreadLine("session.sizes", "usage"): 12}),
        "12 messages of type session.sizes with usage, which this version does not read",
    ),
    ("publishers.clocks", "warning", keying(ahead=7, most_ahead_ms=90_000), "by up to 90 s"),
    (
        "derive.workers",
        "error",
        facts(derive_group=NOBODY, derive={0: WorkerProgress(0, 10, None, NOW)}),
        "10 messages wait",
    ),
    ("derive.workers", "warning", facts(derive_group=NOBODY), "nothing waits"),
    (
        "derive.workers",
        "note",
        facts(derive_group=Group("PreparingRebalance", ["a"], {})),
        "1 worker in the group contextgauge-derive, which is rebalancing",
    ),
    (
        "derive.position",
        "error",
        facts(derive={0: WorkerProgress(500, 900, 100, None)}),
        "400 offsets were deleted before they were read",
    ),
    (
        "derive.position",
        "error",
        facts(derive={0: WorkerProgress(0, 10, 100, None)}),
        "the end, 10: the",
    ),
    (
        "derive.writers",
        "error",
        facts(other_groups={"b-derive": Group("Stable", ["b"], {}), "old": NOBODY}),
        "workers of b-derive derive the same topics as those of contextgauge-derive",
    ),
    (
        "derive.writers",
        "warning",
        facts(derive={7: WorkerProgress(0, 10, 10, None, frozenset({"one", "two"}))}),
        "one, two have derived in turns, partitions 7",
    ),
    (
        "derive.lag",
        "warning",
        facts(
            derive={
                0: WorkerProgress(0, 1_500, 500, NOW - 600_000),
                1: WorkerProgress(0, 5, 5, None),
            }
        ),
        "about 1,000 messages wait, the oldest for 10 min; most on partition 0 (1,000)",
    ),
    (
        "project.workers",
        "error",
        facts(project_group=NOBODY, project={0: WorkerProgress(0, 10, 3, NOW)}),
        "7 records wait",
    ),
    ("project.workers", "warning", facts(project_group=NOBODY), "nothing waits"),
    ("project.workers", "note", facts(project_group=Group("Dead", ["a"], {})), "rebalancing"),
    (
        "project.position",
        "error",
        facts(project={0: WorkerProgress(500, 900, 1, None)}),
        "499 offsets",
    ),
    (
        "project.position",
        "error",
        facts(project={0: WorkerProgress(0, 10, 100, None)}),
        "the end, 10",
    ),
    (
        "project.lag",
        "warning",
        facts(project={0: WorkerProgress(0, 1_500, 500, NOW - HOUR_MS)}),
        "1,000 records",
    ),
    (
        "views.generation",
        "warning",
        views(generations=Generations(1, 2, OLD_BUILD), building={0: None}),
        "12 sessions; generation 2 has been building for 3 h, 0 of 1 partition ready",
    ),
    (
        "views.generation",
        "note",
        views(generations=Generations(1, 2, f"{NOW - 5_000}-w"), building={0: POSITION}),
        "for 5 s, 1 of 1",
    ),
    (
        "views.generation",
        "warning",
        views(generations=Generations(1, 2, OLD_BUILD), building={0: POSITION}),
        "for 3 h, 1 of 1 partition ready",
    ),
    ("views.generation", "error", views(active={0: None, 1: POSITION}), "partition 0 of it"),
    ("views.generation", "note", views(generations=Generations(None, None), active={}), "no views"),
    ("views.format", "error", facts(views=Failure("unsupported", "format 9")), "format 9"),
    (
        "views.format",
        "error",
        views(active={0: ViewPosition(5, 0, 4, caught_up=True)}),
        "4 partitions, context.events has 2",
    ),
    (
        "views.writers",
        "error",
        views(active={0: POSITION._replace(heartbeat=ProjectorHeartbeat(NOW - 900, 5, 0, 3))}),
        "another projector writes the same views: 3 times",
    ),
]

UNKNOWN: list[Problem] = [
    ("kafka.version", "skipped", facts(cluster=AWAY), "no answer"),
    ("kafka.topic_creation", "skipped", all_brokers(configs=REFUSED), "TopicAuthorization"),
    ("topics.present", "skipped", with_topic(EVENTS, REFUSED), "TopicAuthorization"),
    ("redis.version", "skipped", redis({"redis_version": ""}), "does not report the version"),
    ("redis.eviction", "skipped", redis({"maxmemory_policy": ""}, configs={}), "neither CONFIG"),
    ("redis.memory", "skipped", facts(store=replace(STORE, info=AWAY)), "INFO"),
    ("redis.latency", "skipped", redis(pings_ms=()), "no ping"),
    ("redis.rights", "skipped", redis(denied=NO_CONFIG), "needs MULTI"),
    ("clock.redis", "skipped", redis(clock=AWAY), "TIME"),
]

PROBLEMS = [
    *KAFKA_PROBLEMS,
    *TOPIC_PROBLEMS,
    *READING_PROBLEMS,
    *FLOW_PROBLEMS,
    *CONTROL_PROBLEMS,
    *REDIS_PROBLEMS,
]
