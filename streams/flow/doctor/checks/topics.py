"""Checks of the topics: do they exist, and do they keep what must be kept."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from schemas.topics import DAY_MS, MIB, Topic
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, known
from streams.flow.doctor.findings import Result, check, error, note, ok, skipped, warning
from streams.flow.doctor.words import age, counted, listed, number, size
from streams.ports.inspection import Configs, Failure, TopicFacts

_SAFE_COPIES = 3
"""With three copies two can be in step while a broker restarts."""

_USUAL_SEGMENT_BYTES = 64 * MIB
_LARGE_SEGMENT_BYTES = 256 * MIB
"""A restore reads the open segment whole: this takes seconds, Kafka's default of 1 GiB minutes."""

_CENTURY_MS = 36_500 * DAY_MS


def _hidden(failures: Iterable[tuple[str, Failure]]) -> Iterator[Result]:
    """Yield a result for each reason why topics could not be examined."""
    names: dict[str, list[str]] = {}
    for name, failure in failures:
        names.setdefault(failure.text, []).append(name)
    for reason, topics in names.items():
        yield skipped(reason, subject=listed(topics))


@check("topics.present")
def present(facts: Facts, expected: Expected) -> Iterator[Result]:
    """No worker starts without its topics."""
    topics = known(facts.kafka.cluster).topics
    answers = {topic.name: topics.get(topic.name) for topic in expected.topics}
    yield from _hidden((n, answer) for n, answer in answers.items() if isinstance(answer, Failure))
    for name in (name for name, answer in answers.items() if answer is None):
        create = "Create it with `contextgauge topics create`"
        if name == expected.commands.name and isinstance(facts.conversations, Failure):
            yield note("does not exist; nothing uses it yet", create, name)
        else:
            yield error("does not exist", f"{create}, or correct CONTEXTGAUGE_TOPIC_PREFIX", name)
    yield ok(f"all {counted(len(answers), 'topic')} exist")


def _existing(facts: Facts, expected: Expected) -> list[tuple[Topic, TopicFacts]]:
    topics = known(facts.kafka.cluster).topics
    existing = [
        (topic, actual)
        for topic in expected.topics
        if isinstance(actual := topics.get(topic.name), TopicFacts)
    ]
    if not existing:
        raise UnknownFactError("the topics do not exist")
    return existing


@check("topics.partitions")
def partitions(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A session's messages, records and state are on partitions of the same number."""
    counts = {
        topic.name: len(actual.partitions)
        for topic, actual in _existing(facts, expected)
        if topic in {expected.messages, expected.events, expected.state, expected.commands}
    }
    if not counts:
        raise UnknownFactError("the topics do not exist")
    least = min(counts.values())
    figures = {**counts, "partitions": least}
    if len(set(counts.values())) > 1:
        texts = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield error(
            f"partition counts differ: {texts}",
            "Create topics under another CONTEXTGAUGE_TOPIC_PREFIX and publish again, or delete "
            "the wrong topic if it is empty and run `contextgauge topics create`",
            figures=figures,
        )
    elif least != expected.partitions:
        yield note(
            f"{counted(least, 'partition')} each, but the setting for new topics is "
            f"{expected.partitions}",
            f"Set CONTEXTGAUGE_PARTITIONS={least}, so that new topics match",
            figures=figures,
        )
    yield ok(f"{counted(least, 'partition')} each", figures)


def _copies(actual: TopicFacts, default: int) -> int:
    return min((part.replicas for part in actual.partitions), default=default)


@check("topics.replication")
def replication(facts: Facts, expected: Expected) -> Iterator[Result]:
    """With a single copy, losing a broker's disk loses the log."""
    brokers = len(known(facts.kafka.cluster).brokers)
    topics = _existing(facts, expected)
    required = min(expected.replicas, brokers)
    for topic, actual in topics:
        copies = _copies(actual, 0)
        figures = {"copies": copies}
        if copies < required:
            yield warning(
                f"{copies} of {counted(required, 'expected copy')}",
                "Add replicas with `kafka-reassign-partitions.sh`, or set "
                f"CONTEXTGAUGE_REPLICAS={copies} if this is intended",
                topic.name,
                figures,
            )
        elif brokers == 1 and topic is expected.messages:  # one topic stands for all of them
            yield note(
                "there is one broker, so one copy of each partition",
                "Run three brokers to survive the loss of a disk",
                topic.name,
                figures,
            )
        yield ok(f"{counted(len(topics), 'topic')} replicated as expected", figures)


@check("topics.health")
def health(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A partition without a leader is unavailable; one with replicas behind may be next."""
    topics = _existing(facts, expected)
    for topic, actual in topics:
        count = len(actual.partitions)
        offline = [part.partition for part in actual.partitions if part.leader is None]
        behind = [
            part.partition
            for part in actual.partitions
            if part.leader is not None and part.in_sync < part.replicas
        ]
        if offline:
            text = f"no leader for partition {listed(offline)} of {count}"
            yield error(text, "Start the brokers that hold its replicas", topic.name)
        if behind:
            text = f"replicas are behind on partition {listed(behind)} of {count}"
            yield warning(text, "Find the broker that is down or too slow", topic.name)
    yield ok(f"{counted(len(topics), 'topic')} with leaders and all replicas in sync")


class _Configured(NamedTuple):
    """A topic, its configuration as it is, and how many copies it has."""

    topic: Topic
    configs: Configs
    copies: int
    bootstrap_servers: str

    @property
    def name(self) -> str:
        return self.topic.name

    def number(self, name: str, default: int) -> int:
        return number(self.configs, name, default)

    def alter(self, config: str) -> str:
        """Return the command that corrects the configuration."""
        return (
            f"`kafka-configs.sh --bootstrap-server {self.bootstrap_servers} --alter "
            f"--entity-type topics --entity-name {self.name} --add-config {config}`"
        )


def _configurations(facts: Facts, expected: Expected) -> tuple[list[_Configured], list[Result]]:
    """Return the topics with their configurations, and what is skipped for lack of one."""
    existing = _existing(facts, expected)
    configured = [
        _Configured(topic, actual.configs, _copies(actual, 1), expected.bootstrap_servers)
        for topic, actual in existing
        if not isinstance(actual.configs, Failure)
    ]
    hidden = _hidden(
        (topic.name, actual.configs)
        for topic, actual in existing
        if isinstance(actual.configs, Failure)
    )
    return configured, list(hidden)


@check("topics.in_sync")
def in_sync(facts: Facts, expected: Expected) -> Iterator[Result]:
    """If one copy is enough, acknowledged batches can be lost; if all must, a restart blocks."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    for topic in topics:
        least = topic.number("min.insync.replicas", 1)
        text = f"min.insync.replicas={least} of {counted(topic.copies, 'copy')}: "
        one_less = topic.alter(f"min.insync.replicas={max(topic.copies - 1, 1)}")
        if least > topic.copies:
            yield error(text + "nothing can be written", one_less, topic.name)
        elif least == topic.copies > 1:
            text += "nothing can be written while one broker is down"
            yield warning(text, one_less, topic.name)
        elif least == 1 and topic.copies >= _SAFE_COPIES:
            text += "a batch is acknowledged when one broker has it, and lost with that broker"
            yield warning(text, topic.alter("min.insync.replicas=2"), topic.name)
    yield ok(f"{counted(len(topics), 'topic')} with a safe min.insync.replicas")


@check("topics.message_size")
def message_size(facts: Facts, expected: Expected) -> Iterator[Result]:
    """An allowed message must fit with its headers: a record that doesn't stops the worker."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    for topic in topics:
        required = topic.topic.max_message_bytes
        limit = topic.number("max.message.bytes", required)
        figures = {"max_message_bytes": limit}
        if limit < required:
            yield error(
                f"max.message.bytes={limit} ({size(limit)}) is below {required} ({size(required)})",
                topic.alter(f"max.message.bytes={required}")
                + ", or lower CONTEXTGAUGE_MESSAGE_LIMIT_BYTES to shorten larger messages",
                topic.name,
                figures,
            )
        yield ok(f"{counted(len(topics), 'topic')} with room for the largest message", figures)


@check("topics.cleanup")
def cleanup(facts: Facts, expected: Expected) -> Iterator[Result]:
    """State must be kept while its session is open; the other topics need every record."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    for topic in topics:
        required = topic.topic.cleanup
        policy = topic.configs.get("cleanup.policy") or required
        policies = sorted({part.strip() for part in policy.split(",")} - {""})
        if policies != [required]:
            effect = "only the newest record of each key is kept"
            if required == "compact":
                effect = "the state of open sessions is deleted by age"
            text = f"cleanup.policy={','.join(policies)}: {effect}"
            yield error(text, topic.alter(f"cleanup.policy={required}"), topic.name)
    yield ok(f"{counted(len(topics), 'topic')} with the expected policy")


@check("topics.retention")
def retention(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Messages deleted before they are derived are lost; rebuilds lack deleted records."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    effects = {
        expected.events.name: "a rebuild of the views lacks older records",
        expected.messages.name: "older messages that are not derived yet are lost",
    }
    for topic in topics:
        required_ms = topic.topic.retention_ms
        kept_ms = topic.number("retention.ms", required_ms)
        limit = topic.number("retention.bytes", -1)
        figures = {"retention_ms": kept_ms, "retention_bytes": limit}
        deletes = topic.topic.cleanup != "compact"
        effect = effects.get(topic.name, "older records are gone")
        differs = f"kept {_duration(kept_ms)}, the settings require {_duration(required_ms)}"
        alter = topic.alter(f"retention.ms={required_ms}")
        if deletes and kept_ms >= 0 and not 0 <= required_ms <= kept_ms:
            yield warning(f"{differs}: {effect}", alter, topic.name, figures)
        elif topic.topic is expected.events and kept_ms >= 0:
            text = f"kept {_duration(kept_ms)}, as configured: {effect}"
            forever = topic.alter("retention.ms=-1")
            remedy = f"Set CONTEXTGAUGE_EVENTS_RETENTION_DAYS=-1, and {forever}"
            yield note(text, remedy, topic.name, figures)
        elif deletes and kept_ms != required_ms:
            yield note(differs, f"{alter}, or change the setting", topic.name, figures)
        if deletes and limit >= 0:
            yield warning(
                f"retention.bytes={limit}: each partition keeps at most {size(limit)}, whatever "
                f"its age; {effect}",
                topic.alter("retention.bytes=-1"),
                topic.name,
                figures,
            )
        yield ok(f"{counted(len(topics), 'topic')} kept for as long as configured", figures)


def _duration(duration_ms: int) -> str:
    return "forever" if duration_ms < 0 else age(duration_ms)


@check("topics.timestamps")
def timestamps(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Idle sessions are detected by the publishers' timestamps: future ones must be rejected."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    for topic in topics:
        if topic.topic is not expected.messages:
            continue
        limit_ms = topic.topic.max_ahead_ms
        ahead_ms = topic.number("message.timestamp.after.max.ms", limit_ms or 0)
        if topic.configs.get("message.timestamp.type") == "LogAppendTime":
            yield warning(
                "message.timestamp.type=LogAppendTime: the time of a live message is lost",
                topic.alter("message.timestamp.type=CreateTime"),
                topic.name,
            )
        elif limit_ms is not None and ahead_ms > limit_ms:
            ahead = "any time" if ahead_ms > _CENTURY_MS else age(ahead_ms)
            text = f"a message may be {ahead} ahead of the broker's clock"
            remedy = topic.alter(f"message.timestamp.after.max.ms={limit_ms}")
            yield warning(text, remedy, topic.name)
    yield ok("timestamps are set by publishers, and limited")


@check("topics.segments")
def segments(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A worker that takes over a partition reads all state that is not compacted yet."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    for topic in topics:
        compacted = topic.topic.cleanup == "compact"
        segment_bytes = topic.number("segment.bytes", _LARGE_SEGMENT_BYTES)
        lag_ms = topic.number("min.compaction.lag.ms", 0)
        text = f"segment.bytes={segment_bytes} ({size(segment_bytes)})"
        remedy = topic.alter(f"segment.bytes={_USUAL_SEGMENT_BYTES}")
        if segment_bytes < topic.topic.max_message_bytes:
            yield error(f"{text} is below the largest message", remedy, topic.name)
        elif compacted and segment_bytes > _LARGE_SEGMENT_BYTES:
            yield warning(f"{text}: a restore reads this much", remedy, topic.name)
        if compacted and lag_ms > DAY_MS:
            late = f"min.compaction.lag.ms={lag_ms}: nothing is compacted for {age(lag_ms)}"
            yield warning(late, topic.alter("min.compaction.lag.ms=0"), topic.name)
    yield ok(f"{counted(len(topics), 'topic')} with suitable segments")


@check("topics.elections")
def elections(facts: Facts, expected: Expected) -> Iterator[Result]:
    """A leader that was not in sync has lost acknowledged records."""
    topics, hidden = _configurations(facts, expected)
    yield from hidden
    name = "unclean.leader.election.enable"
    for topic in topics:
        if topic.configs.get(name) == "true":
            yield warning(f"{name}=true", topic.alter(f"{name}=false"), topic.name)
    yield ok(f"{counted(len(topics), 'topic')} without unclean leader elections")


CHECKS = (
    present,
    partitions,
    replication,
    in_sync,
    health,
    message_size,
    cleanup,
    retention,
    timestamps,
    segments,
    elections,
)
