"""What can be wrong with topics; see `tests.doctor.wrong`."""

from schemas.topics import DAY_MS, HOUR_MS, MIB
from streams.flow.doctor import Facts
from streams.ports.inspection import TopicFacts
from tests.doctor.cases import partitions, topic, topic_configs, with_topic

TOPIC_CASES: list[tuple[str, Facts, str, str]] = [
    ("topics.present", with_topic("context.state", None), "error", "is not there"),
    ("topics.present", with_topic("context.commands", None), "note", "nothing uses it"),
    (
        "topics.partitions",
        with_topic("context.events", TopicFacts(partitions(3), topic_configs("context.events"))),
        "error",
        "context.events 3",
    ),
    (
        "topics.replication",
        with_topic(
            "context.events",
            TopicFacts(partitions(replicas=1, in_sync=1), topic_configs("context.events")),
        ),
        "warning",
        "1 of 3 wanted copies",
    ),
    (
        "topics.in_sync",
        topic("context.events", **{"min.insync.replicas": "1"}),
        "warning",
        "min.insync.replicas=1 of 3 copies",
    ),
    (
        "topics.in_sync",
        topic("context.events", **{"min.insync.replicas": "3"}),
        "warning",
        "while one broker is away",
    ),
    (
        "topics.in_sync",
        topic("context.events", **{"min.insync.replicas": "4"}),
        "error",
        "nothing can be written",
    ),
    (
        "topics.health",
        with_topic(
            "context.events", TopicFacts(partitions(leader=None), topic_configs("context.events"))
        ),
        "error",
        "no leader for partition 0, 1 of 2",
    ),
    (
        "topics.health",
        with_topic(
            "context.events", TopicFacts(partitions(in_sync=2), topic_configs("context.events"))
        ),
        "warning",
        "copies are behind",
    ),
    (
        "topics.message_size",
        topic("agent.messages", **{"max.message.bytes": "1048588"}),
        "error",
        "max.message.bytes=1048588 (1 MiB) is below 9437184 (9 MiB)",
    ),
    (
        "topics.cleanup",
        topic("context.state", **{"cleanup.policy": "compact,delete"}),
        "error",
        "compact,delete: the state of sessions that are still open",
    ),
    ("topics.cleanup", topic("context.state", **{"cleanup.policy": "delete"}), "error", "by age"),
    (
        "topics.cleanup",
        topic("context.events", **{"cleanup.policy": "compact"}),
        "error",
        "newest record of each key",
    ),
    (
        "topics.retention",
        topic("context.events", **{"retention.ms": str(7 * DAY_MS)}),
        "warning",
        "kept 7 d, the settings say for ever: a rebuild",
    ),
    (
        "topics.retention",
        topic("agent.messages", **{"retention.ms": str(HOUR_MS)}),
        "warning",
        "not derived yet is lost",
    ),
    (
        "topics.retention",
        topic("agent.messages", **{"retention.ms": str(90 * DAY_MS)}),
        "note",
        "kept 90 d",
    ),
    (
        "topics.retention",
        topic("context.events", **{"retention.bytes": str(MIB)}),
        "warning",
        "each partition keeps 1 MiB",
    ),
    (
        "topics.timestamps",
        topic("agent.messages", **{"message.timestamp.type": "LogAppendTime"}),
        "warning",
        "LogAppendTime",
    ),
    (
        "topics.timestamps",
        topic("agent.messages", **{"message.timestamp.after.max.ms": str(2**63 - 1)}),
        "warning",
        "any time ahead",
    ),
    (
        "topics.segments",
        topic("context.state", **{"segment.bytes": str(1024 * MIB)}),
        "warning",
        "1 GiB",
    ),
    (
        "topics.segments",
        topic("context.events", **{"segment.bytes": str(MIB)}),
        "error",
        "below the largest message",
    ),
    (
        "topics.segments",
        topic("context.state", **{"min.compaction.lag.ms": str(3 * DAY_MS)}),
        "warning",
        "for 3 d",
    ),
    (
        "topics.elections",
        topic("context.state", **{"unclean.leader.election.enable": "true"}),
        "warning",
        "unclean",
    ),
]
