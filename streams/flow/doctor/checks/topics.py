"""Values of the topics: do they exist, and do they keep what must be kept."""

from collections.abc import Iterator, Mapping

from contextgauge.units import MINUTE_MS
from schemas.topics import DAY_MS, MIB, Topic
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, known
from streams.flow.doctor.rules import Values
from streams.flow.doctor.words import age, counted, number
from streams.ports import UnreadableReason
from streams.ports.inspection import Configs, Failure, OpenTransaction, TopicFacts

_SAFE_COPIES = 3

_USUAL_SEGMENT_BYTES = 64 * MIB
_LARGE_SEGMENT_BYTES = 256 * MIB
"""A restore reads the open segment whole: this takes seconds, Kafka's default of 1 GiB minutes."""

_OVERDUE_MS = MINUTE_MS
"""A coordinator looks every ten seconds for transactions that have passed their timeout."""

_UNREADABLE: Mapping[UnreadableReason, str] = {
    "batch_too_large": "Have its producer send smaller batches; to read it, raise "
    "CONTEXTGAUGE_BATCH_LIMIT_BYTES",
    "batch_damaged": "Fix its producer, or check the disk of the partition's leader: another "
    "replica may have it intact",
}

_CENTURY_MS = 36_500 * DAY_MS


def _topics(facts: Facts, expected: Expected) -> Iterator[Values]:
    topics = known(facts.kafka.cluster).topics
    for topic in expected.topics:
        actual = topics.get(topic.name)
        if isinstance(actual, Failure):
            yield {"subject": topic.name, "unknown": actual.text}
        else:
            is_optional = topic is expected.commands and isinstance(facts.conversations, Failure)
            unused = actual is None and is_optional
            yield {"subject": topic.name, "missing": actual is None, "unused": unused}


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


def _partition_counts(facts: Facts, expected: Expected) -> Iterator[Values]:
    counts = {
        topic.name: len(actual.partitions)
        for topic, actual in _existing(facts, expected)
        if topic in {expected.messages, expected.events, expected.state, expected.commands}
    }
    if not counts:
        raise UnknownFactError("the topics do not exist")
    yield {
        "counts": counts,
        "count_list": ", ".join(f"{name} {count}" for name, count in counts.items()),
        "differ": len(set(counts.values())) > 1,
        "partitions": min(counts.values()),
        "setting": expected.partitions,
        "unlike_setting": min(counts.values()) != expected.partitions,
    }


def _replicas(facts: Facts, expected: Expected) -> Iterator[Values]:
    brokers = len(known(facts.kafka.cluster).brokers)
    for topic, actual in _existing(facts, expected):
        online = [part for part in actual.partitions if part.leader is not None]
        copies = min((part.replicas for part in actual.partitions), default=0)
        yield {
            "subject": topic.name,
            "partitions": len(actual.partitions),
            "offline": [part.partition for part in actual.partitions if part.leader is None],
            "behind": [part.partition for part in online if part.in_sync < part.replicas],
            "copies": copies,
            "expected_copies": min(expected.replicas, brokers),
            "too_few": copies < min(expected.replicas, brokers),
            # One topic stands for all of them.
            "single_broker": brokers == 1 and topic is expected.messages,
        }


def _configurations(facts: Facts, expected: Expected) -> Iterator[Values]:
    for topic, actual in _existing(facts, expected):
        configs = actual.configs
        if isinstance(configs, Failure):
            yield {"subject": topic.name, "unknown": configs.text}
            continue
        copies = min((part.replicas for part in actual.partitions), default=1)
        yield {
            "subject": topic.name,
            "topic": topic,
            "alter": f"`kafka-configs.sh --bootstrap-server {expected.bootstrap_servers} --alter "
            f"--entity-type topics --entity-name {topic.name} --add-config {{}}`".format,
            **_writes(topic, configs, copies),
            **_retention(topic, configs, expected),
            **_timestamps(topic, configs, expected),
            **_segments(topic, configs),
        }


def _writes(topic: Topic, configs: Configs, copies: int) -> Values:
    least = number(configs, "min.insync.replicas", 1)
    limit = number(configs, "max.message.bytes", topic.max_message_bytes)
    return {
        "copies": copies,
        "one_less": max(copies - 1, 1),
        "least_in_sync": least,
        "never_writable": least > copies,
        "all_needed": least == copies > 1,
        "one_enough": least == 1 and copies >= _SAFE_COPIES,
        "unclean": configs.get("unclean.leader.election.enable") == "true",
        "max_message_bytes": limit,
        "rejects_messages": limit < topic.max_message_bytes,
    }


def _retention(topic: Topic, configs: Configs, expected: Expected) -> Values:
    policy = configs.get("cleanup.policy") or topic.cleanup
    policies = sorted({part.strip() for part in policy.split(",")} - {""})
    retained, required = number(configs, "retention.ms", topic.retention_ms), topic.retention_ms
    limit = number(configs, "retention.bytes", -1)
    deletes = topic.cleanup != "compact"
    effects = {
        expected.events.name: "a rebuild of the views lacks older records",
        expected.messages.name: "older messages that are not derived yet are lost",
    }
    return {
        "policy": ",".join(policies),
        "wrong_policy": policies != [topic.cleanup],
        "policy_effect": "only the newest record of each key is kept"
        if deletes
        else "the state of open sessions is deleted by age",
        "retention_ms": retained,
        "retention_bytes": limit,
        "retention": _duration(retained),
        "expected_retention": _duration(required),
        "retention_effect": effects.get(topic.name, "older records are gone"),
        "kept_shorter": deletes and retained >= 0 and not 0 <= required <= retained,
        "events_limited": topic is expected.events and retained >= 0,
        "kept_longer": deletes and retained != required,
        "size_limited": deletes and limit >= 0,
    }


def _timestamps(topic: Topic, configs: Configs, expected: Expected) -> Values:
    live = topic is expected.messages
    limit_ms = topic.max_ahead_ms
    ahead_ms = number(configs, "message.timestamp.after.max.ms", limit_ms or 0)
    return {
        "restamped": live and configs.get("message.timestamp.type") == "LogAppendTime",
        "ahead": "any time" if ahead_ms > _CENTURY_MS else age(ahead_ms),
        "future_allowed": live and limit_ms is not None and ahead_ms > limit_ms,
    }


def _segments(topic: Topic, configs: Configs) -> Values:
    segment_bytes = number(configs, "segment.bytes", _LARGE_SEGMENT_BYTES)
    lag_ms = number(configs, "min.compaction.lag.ms", 0)
    compacted = topic.cleanup == "compact"
    return {
        "usual_segment_bytes": _USUAL_SEGMENT_BYTES,
        "segment_bytes": segment_bytes,
        "segment_too_small": segment_bytes < topic.max_message_bytes,
        "segment_too_large": compacted and segment_bytes > _LARGE_SEGMENT_BYTES,
        "compaction_lag_ms": lag_ms,
        "compacted_late": compacted and lag_ms > DAY_MS,
    }


def _transactions(facts: Facts, expected: Expected) -> Iterator[Values]:
    """Yield, of each topic, the producers with an open transaction; then where none is known."""
    by_producer: dict[tuple[str, int], dict[int, OpenTransaction]] = {}
    unknown: dict[tuple[str, str], list[int]] = {}
    unsettled = known(facts.kafka.unsettled)
    for (topic, partition), part in unsettled.items():
        if isinstance(part.transactions, Failure):
            unknown.setdefault((topic, part.transactions.text), []).append(partition)
            continue
        for each in part.transactions:
            by_producer.setdefault((topic, each.producer_id), {})[partition] = each
    none: Values = {"hangs": False, "late": False, "unknown_producer": ""}
    for (topic, _), places in by_producer.items():
        yield {**none, **_held(topic, places, facts, expected)}
    for (topic, reason), partitions in unknown.items():
        parts = {number: unsettled[topic, number] for number in partitions}
        yield {
            **none,
            "subject": topic,
            "partitions": partitions,
            "waiting": sum(part.high - part.stable for part in parts.values()),
            "producer_id": None,
            "transactional_id": None,
            "open_ms": None,
            "unknown_producer": reason,
            "stable": ", ".join(f"{at}: {part.stable}" for at, part in parts.items()),
            "servers": expected.bootstrap_servers,
        }


def _held(
    topic: str, places: Mapping[int, OpenTransaction], facts: Facts, expected: Expected
) -> Values:
    """Return the values of a producer's open transaction, by partition."""
    unsettled = known(facts.kafka.unsettled)
    each = next(iter(places.values()))
    open_ms = max(facts.now_ms - min(at.since_ms for at in places.values()), 0)
    left_ms = None if each.timeout_ms is None else each.timeout_ms - open_ms
    overdue = left_ms is not None and left_ms < -_OVERDUE_MS
    late = open_ms > expected.transaction_timeout_ms
    first, at = min(places.items())
    name = "whose transactional id no coordinator names, or not to this user"
    if each.transactional_id is not None:
        name = f"with the transactional id {each.transactional_id}"
    if overdue:
        name += f", which Kafka has not aborted after its timeout of {age(each.timeout_ms or 0)}"
    return {
        "subject": topic,
        "partitions": sorted(places),
        "waiting": sum(
            max(unsettled[topic, number].high - place.start, 0) for number, place in places.items()
        ),
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "transactional_id": each.transactional_id,
        "name": name,
        "open_ms": open_ms,
        "hangs": late and (left_ms is None or overdue),
        "late": late,
        "ends": "" if left_ms is None else age(max(left_ms, 0)),
        "timeout": "" if each.timeout_ms is None else age(each.timeout_ms),
        "abort": f"`kafka-transactions.sh --bootstrap-server {expected.bootstrap_servers} abort "
        f"--topic {topic} --partition {first} --start-offset {at.start}`",
        "others": "".join(
            f"; partition {number}: --start-offset {place.start}"
            for number, place in sorted(places.items())
            if number != first
        ),
    }


def _duration(duration_ms: int) -> str:
    return "forever" if duration_ms < 0 else age(duration_ms)


def _unreadable(facts: Facts, expected: Expected) -> Iterator[Values]:
    batches = known(facts.kafka.unreadable)
    for topic in expected.topics:
        of_topic = [batch for batch in batches if batch.topic == topic.name]
        if not of_topic:
            continue
        first, end = of_topic[0], of_topic[0].next_offset
        yield {
            "subject": topic.name,
            "batches": len(of_topic),
            "reason": first.reason,
            "text": f"{counted(len(of_topic), 'batch')} cannot be read, the first one on "
            f"partition {first.partition} from offset {first.first_offset} "
            f"{'on' if end is None else f'to {end - 1}'}: {first.detail}",
            "remedy": _UNREADABLE[first.reason],
            "is_kept": topic is expected.messages,
        }


ITEMS = {
    "unreadable": _unreadable,
    "topics": _topics,
    "partition_counts": _partition_counts,
    "replicas": _replicas,
    "configurations": _configurations,
    "transactions": _transactions,
}
