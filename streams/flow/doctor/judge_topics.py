"""Judges the topics: whether they are there, and keep what must be kept."""

from schemas.topics import DAY_MS, MIB, Topic
from streams.flow.doctor.catalogue import NO_FIGURES, CheckId, Figures, Report, Severity
from streams.flow.doctor.facts import Expected, Facts
from streams.flow.doctor.words import age, listed, size, some
from streams.ports.inspection import Cluster, Configs, Failure, TopicFacts

_SAFE_COPIES = 3
_LARGE_SEGMENT_BYTES = 256 * MIB
"""A restore reads the open segment whole: this much takes seconds, the broker's default of 1 GiB
minutes."""

_CHECKS: tuple[CheckId, ...] = (
    "topics.present",
    "topics.partitions",
    "topics.replication",
    "topics.in_sync",
    "topics.health",
    "topics.message_size",
    "topics.cleanup",
    "topics.retention",
    "topics.timestamps",
    "topics.segments",
    "topics.elections",
)

_CREATE = "`contextgauge topics create` makes what is missing"


def judge_topics(report: Report, facts: Facts, expected: Expected) -> None:
    """Judge all topics."""
    cluster = facts.cluster
    if isinstance(cluster, Failure):
        report.skip(cluster.text, *_CHECKS)
        return
    _present(report, cluster, expected)
    _partitions(report, cluster, expected)
    found = {
        topic.name: (topic, there)
        for topic in expected.topics
        if isinstance(there := cluster.topics.get(topic.name), TopicFacts)
    }
    for topic, there in found.values():
        one = _Topic(report, topic, there, expected)
        one.judge_copies(len(cluster.brokers))
        if isinstance(there.configs, Failure):
            continue
        one.judge_configs(there.configs)
    silent = [name for name, (_, there) in found.items() if isinstance(there.configs, Failure)]
    for check in _CHECKS:
        if report.has(check):
            continue
        if not found or silent:
            reason = "the topics are missing" if not found else "no configuration is told"
            report.skip(f"{reason}{': ' + listed(silent) if silent else ''}", check)
        else:
            report.ok(check, f"as it should be on {some(len(found), 'topic')}")


def _present(report: Report, cluster: Cluster, expected: Expected) -> None:
    for topic in expected.topics:
        there = cluster.topics.get(topic.name)
        if isinstance(there, Failure):
            report.skip(f"{topic.name}: {there.text}", "topics.present")
        elif there is None:
            unused = topic is expected.commands
            report.add(
                "topics.present",
                "note" if unused else "error",
                "is not there" + (": nothing uses it yet" if unused else ""),
                subject=topic.name,
                mend=f"{_CREATE}; is CONTEXTGAUGE_TOPIC_PREFIX the one that the others use?",
            )


def _partitions(report: Report, cluster: Cluster, expected: Expected) -> None:
    counts = {
        topic.name: len(there.partitions)
        for topic in expected.co_partitioned
        if isinstance(there := cluster.topics.get(topic.name), TopicFacts)
    }
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    if not counts:
        return
    if len(set(counts.values())) > 1:
        report.add(
            "topics.partitions",
            "error",
            f"the numbers of partitions differ: {told}",
            mend="Kafka cannot take partitions away: create topics under another "
            "CONTEXTGAUGE_TOPIC_PREFIX and publish again, or delete the wrong one where it is "
            "still empty and run `contextgauge topics create`",
            figures=dict(counts),
        )
    elif (count := next(iter(counts.values()))) != expected.partitions:
        report.add(
            "topics.partitions",
            "note",
            f"{some(count, 'partition')} each; the setting, for topics that are made, says "
            f"{expected.partitions}",
            mend=f"Set CONTEXTGAUGE_PARTITIONS={count}, so that a topic that is made later fits",
        )
    else:
        report.ok(
            "topics.partitions", f"{some(count, 'partition')} each", figures={"partitions": count}
        )


class _Topic:
    """Judges one topic that is there."""

    def __init__(self, report: Report, topic: Topic, there: TopicFacts, expected: Expected) -> None:
        self._report, self._topic, self._there = report, topic, there
        self._expected = expected

    def _add(
        self,
        check: CheckId,
        severity: Severity,
        found: str,
        mend: str,
        figures: Figures = NO_FIGURES,
    ) -> None:
        self._report.add(
            check, severity, found, subject=self._topic.name, mend=mend, figures=figures
        )

    def _alter(self, setting: str) -> str:
        return (
            f"`kafka-configs.sh --bootstrap-server {self._expected.bootstrap_servers} --alter "
            f"--entity-type topics --entity-name {self._topic.name} --add-config {setting}`"
        )

    def judge_copies(self, brokers: int) -> None:
        """Judge replicas, and how many of them are in sync."""
        parts = self._there.partitions
        offline = [str(part.partition) for part in parts if part.leader is None]
        behind = [
            str(part.partition)
            for part in parts
            if part.leader is not None and part.in_sync < part.replicas
        ]
        if offline:
            self._add(
                "topics.health",
                "error",
                f"no leader for partition {listed(offline)} of {len(parts)}",
                "Start the brokers that have its copies",
            )
        if behind:
            self._add(
                "topics.health",
                "warning",
                f"copies are behind on partition {listed(behind)} of {len(parts)}",
                "Look at the brokers: one is away or too slow",
            )
        copies = min((part.replicas for part in parts), default=0)
        wanted = min(self._expected.replicas, brokers)
        if copies < wanted:
            self._add(
                "topics.replication",
                "warning",
                f"{copies} of {some(wanted, 'wanted copy')}",
                "Add copies by `kafka-reassign-partitions.sh`, or set CONTEXTGAUGE_REPLICAS="
                f"{copies} if that is meant",
                figures={"copies": copies},
            )
        elif brokers == 1 and self._topic is self._expected.messages:
            self._add(
                "topics.replication",
                "note",
                "one broker, so one copy of each partition",
                "Run three brokers where a disk's loss must not be the log's",
                figures={"copies": copies},
            )

    def judge_configs(self, configs: Configs) -> None:
        """Judge the topic's configuration in force."""
        self._in_sync(configs)
        self._message_size(configs)
        self._cleanup(configs)
        self._retention(configs)
        self._timestamps(configs)
        self._segments(configs)
        if configs.get("unclean.leader.election.enable") == "true":
            self._add(
                "topics.elections",
                "warning",
                "unclean.leader.election.enable=true",
                self._alter("unclean.leader.election.enable=false"),
            )

    def _in_sync(self, configs: Configs) -> None:
        least = _number(configs, "min.insync.replicas", 1)
        copies = min((part.replicas for part in self._there.partitions), default=1)
        said = f"min.insync.replicas={least} of {some(copies, 'copy')}"
        if least > copies:
            self._add(
                "topics.in_sync",
                "error",
                f"{said}: nothing can be written",
                self._alter(f"min.insync.replicas={max(copies - 1, 1)}"),
            )
        elif least == copies > 1:
            self._add(
                "topics.in_sync",
                "warning",
                f"{said}: nothing can be written while one broker is away",
                self._alter(f"min.insync.replicas={copies - 1}"),
            )
        elif least == 1 and copies >= _SAFE_COPIES:
            self._add(
                "topics.in_sync",
                "warning",
                f"{said}: a batch that one broker alone has is acknowledged, and lost with it",
                self._alter("min.insync.replicas=2"),
            )

    def _message_size(self, configs: Configs) -> None:
        limit = _number(configs, "max.message.bytes", self._topic.max_message_bytes)
        wanted = self._topic.max_message_bytes
        if limit < wanted:
            self._add(
                "topics.message_size",
                "error",
                f"max.message.bytes={limit} ({size(limit)}) is below {wanted} ({size(wanted)})",
                f"{self._alter(f'max.message.bytes={wanted}')}, or lower "
                "CONTEXTGAUGE_MESSAGE_LIMIT_BYTES, so that larger messages are shortened",
                figures={"max_message_bytes": limit},
            )

    def _cleanup(self, configs: Configs) -> None:
        found = {part.strip() for part in configs.get("cleanup.policy", "").split(",")} - {""}
        if not found or found == {self._topic.cleanup}:
            return
        policy = ",".join(sorted(found))
        losing = (
            "the state of sessions that are still open is deleted by age"
            if self._topic.cleanup == "compact"
            else "only the newest record of each key is kept"
        )
        self._add(
            "topics.cleanup",
            "error",
            f"cleanup.policy={policy}: {losing}",
            self._alter(f"cleanup.policy={self._topic.cleanup}"),
        )

    def _retention(self, configs: Configs) -> None:
        topic, expected = self._topic, self._expected
        if topic.cleanup == "compact":
            return
        kept = _number(configs, "retention.ms", topic.retention_ms)
        bytes_kept = _number(configs, "retention.bytes", -1)
        told = "for ever" if kept < 0 else age(kept)
        wanted = "for ever" if topic.retention_ms < 0 else age(topic.retention_ms)
        lost = (
            "a rebuild of the views lacks what is older"
            if topic is expected.events
            else "what is older and not derived yet is lost"
            if topic is expected.messages
            else "what is older is gone"
        )
        if kept >= 0 and (topic.retention_ms < 0 or kept < topic.retention_ms):
            self._add(
                "topics.retention",
                "warning",
                f"kept {told}, the settings say {wanted}: {lost}",
                self._alter(f"retention.ms={topic.retention_ms}"),
                figures={"retention_ms": kept},
            )
        elif topic is expected.events and kept >= 0:
            self._add(
                "topics.retention",
                "note",
                f"kept {told}, as set: {lost}",
                "Set CONTEXTGAUGE_EVENTS_RETENTION_DAYS=-1, and " + self._alter("retention.ms=-1"),
                figures={"retention_ms": kept},
            )
        elif kept != topic.retention_ms:
            self._add(
                "topics.retention",
                "note",
                f"kept {told}, the settings say {wanted}",
                f"{self._alter(f'retention.ms={topic.retention_ms}')}, or change the setting",
                figures={"retention_ms": kept},
            )
        if bytes_kept >= 0:
            self._add(
                "topics.retention",
                "warning",
                f"retention.bytes={bytes_kept}: each partition keeps {size(bytes_kept)} at most, "
                f"however old; {lost}",
                self._alter("retention.bytes=-1"),
                figures={"retention_bytes": bytes_kept},
            )

    def _timestamps(self, configs: Configs) -> None:
        if self._topic is not self._expected.messages:
            return
        if configs.get("message.timestamp.type") == "LogAppendTime":
            self._add(
                "topics.timestamps",
                "warning",
                "message.timestamp.type=LogAppendTime: when a live message was seen is lost",
                self._alter("message.timestamp.type=CreateTime"),
            )
        limit = self._topic.max_ahead_ms
        ahead = configs.get("message.timestamp.after.max.ms")
        if limit is None or ahead is None or int(ahead) <= limit:
            return
        told = "any time" if int(ahead) > DAY_MS * 36_500 else age(int(ahead))
        self._add(
            "topics.timestamps",
            "warning",
            f"a message may lie {told} ahead of the broker's clock",
            self._alter(f"message.timestamp.after.max.ms={limit}"),
        )

    def _segments(self, configs: Configs) -> None:
        segment = _number(configs, "segment.bytes", _LARGE_SEGMENT_BYTES)
        if segment < self._topic.max_message_bytes:
            self._add(
                "topics.segments",
                "error",
                f"segment.bytes={segment} ({size(segment)}) is below the largest message",
                self._alter(f"segment.bytes={64 * MIB}"),
            )
        if self._topic.cleanup != "compact":
            return
        if segment > _LARGE_SEGMENT_BYTES:
            self._add(
                "topics.segments",
                "warning",
                f"segment.bytes={segment} ({size(segment)}): so much is read for a restore",
                self._alter(f"segment.bytes={64 * MIB}"),
            )
        lag = _number(configs, "min.compaction.lag.ms", 0)
        if lag > DAY_MS:
            self._add(
                "topics.segments",
                "warning",
                f"min.compaction.lag.ms={lag}: nothing is compacted for {age(lag)}",
                self._alter("min.compaction.lag.ms=0"),
            )


def _number(configs: Configs, name: str, default: int) -> int:
    value = configs.get(name, "")
    return int(value) if value.lstrip("-").isdigit() else default
