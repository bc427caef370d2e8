"""Values of the Kafka cluster: is it reachable, is access granted, do its limits fit."""

from collections.abc import Iterator

from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, known
from streams.flow.doctor.rules import Values
from streams.flow.doctor.words import listed, number
from streams.ports.inspection import GROUPS_TOPIC, TRANSACTIONS_TOPIC, Failure, TopicFacts

_RELEASES = {
    1: "3.0 to 3.2",
    4: "3.3",
    8: "3.4",
    9: "3.5",
    12: "3.6",
    15: "3.7",
    20: "3.8",
    21: "3.9",
    22: "4.0",
    26: "4.1",
    28: "newer than 4.1",
}
"""Kafka's releases, by the first level of `metadata.version` that each introduced."""

_LEAST_LEVEL = 12
"""Kafka 3.6, the first with `message.timestamp.after.max.ms`."""

_SAFE_COPIES = 3
"""One broker can restart while another one is down."""


def _addresses(facts: Facts, _: Expected) -> Iterator[Values]:
    bootstrap = facts.kafka.bootstrap
    if isinstance(bootstrap, Failure):
        is_unset = bootstrap.kind == "unset"
        yield {"reason": bootstrap.text, "unset": is_unset, "only_failures": True}
        return
    # A broker that refuses access does answer: kafka.access reports it.
    reasons = [
        f"does not answer: {item.failure.text}"
        if item.failure and item.failure.kind == "away"
        else ""
        for item in bootstrap
    ]
    for item, reason in zip(bootstrap, reasons, strict=True):
        yield {
            "subject": item.address,
            "reason": reason,
            "unset": False,
            "only_failures": all(reasons),
        }


def _refusals(facts: Facts, _: Expected) -> list[Values]:
    kafka = facts.kafka
    answers: list[tuple[str, object]] = []
    configs: list[tuple[str, object]] = []
    if not isinstance(kafka.bootstrap, Failure):
        answers += [(item.address, item.failure) for item in kafka.bootstrap]
    if not isinstance(kafka.cluster, Failure):
        answers += [(broker.address, broker.failure) for broker in kafka.cluster.brokers]
        answers += kafka.cluster.topics.items()
        configs += [(f"broker {broker.node}", broker.configs) for broker in kafka.cluster.brokers]
        configs += [
            (name, getattr(topic, "configs", None)) for name, topic in kafka.cluster.topics.items()
        ]
    answers += [("derive group", kafka.derive_group), ("project group", kafka.project_group)]
    answers += [("reading messages", kafka.keying), ("reading dead letters", kafka.dead)]
    answers += [("reading records", kafka.newest_record_ms), ("reading positions", kafka.derive)]
    answers += [("reading commands", kafka.commands)]
    subjects: dict[tuple[str, bool], list[str]] = {}
    for only_configs, pairs in ((False, answers), (True, configs)):
        for subject, answer in pairs:
            if isinstance(answer, Failure) and answer.kind == "refused":
                subjects.setdefault((answer.text, only_configs), []).append(subject)
    if not subjects:
        known(kafka.cluster)
    return [
        {"subject": listed(dict.fromkeys(names)), "text": text, "only_configs": only_configs}
        for (text, only_configs), names in subjects.items()
    ]


def _brokers(facts: Facts, _: Expected) -> list[Values]:
    cluster = known(facts.kafka.cluster)
    return [
        {
            "subject": broker.address,
            "node": broker.node,
            "reason": broker.failure.text if broker.failure else "",
            "brokers": len(cluster.brokers),
            "cluster_id": cluster.cluster_id,
        }
        for broker in cluster.brokers
    ]


def _versions(facts: Facts, _: Expected) -> Iterator[Values]:
    brokers = [item for item in known(facts.kafka.cluster).brokers if item.failure is None]
    supported = {broker.supported_level for broker in brokers}
    levels = sorted(level for level in supported if level is not None)
    level = max((broker.level or 0 for broker in brokers), default=0)
    newest, agreed = _release(max(levels, default=1)), _release(level or 1)
    yield {
        "not_reported": not levels,
        "newest_api": max((broker.newest_api or 0 for broker in brokers), default=0),
        "releases": " and ".join(dict.fromkeys(map(_release, levels))),
        "too_old": min(levels, default=0) < _LEAST_LEVEL,
        "mixed": len(supported) > 1,
        "newest": newest,
        "agreed": agreed,
        "not_finalized": level and agreed != newest,
        "supported_level": max(levels, default=None),
        "level": level,
    }


def _release(level: int) -> str:
    return _RELEASES[max(first for first in _RELEASES if first <= level)]


def _limits(facts: Facts, expected: Expected) -> Iterator[Values]:
    brokers = known(facts.kafka.cluster).brokers
    reported = {
        broker.node: broker.configs
        for broker in brokers
        if broker.configs and not isinstance(broker.configs, Failure)
    }
    if not reported:
        failures = [item.configs.text for item in brokers if isinstance(item.configs, Failure)]
        reason = "".join(f": {text}" for text in failures[:1])
        raise UnknownFactError(f"the brokers do not report their configuration{reason}")

    def numbers(name: str, default: int) -> list[int]:
        return [number(configs, name, default) for configs in reported.values()]

    automatic = "auto.create.topics.enable"
    largest_message = max(topic.max_message_bytes for topic in expected.topics)
    fetched_bytes = min(numbers("replica.fetch.max.bytes", largest_message))
    session_ms, transaction_ms = expected.session_timeout_ms, expected.transaction_timeout_ms
    least_session_ms = max(numbers("group.min.session.timeout.ms", 0))
    most_session_ms = min(numbers("group.max.session.timeout.ms", 1_800_000))
    most_transaction_ms = min(numbers("transaction.max.timeout.ms", 900_000))
    yield {
        "creating": [node for node, found in reported.items() if found.get(automatic) == "true"],
        "largest_message": largest_message,
        "message_max_bytes": min(numbers("message.max.bytes", largest_message)),
        "replica_fetch_max_bytes": fetched_bytes,
        "slow_replication": len(brokers) > 1 and fetched_bytes < largest_message,
        "session_ms": session_ms,
        "least_session_ms": least_session_ms,
        "most_session_ms": most_session_ms,
        "session_rejected": not least_session_ms <= session_ms <= most_session_ms,
        "fitting_session_ms": min(max(session_ms, least_session_ms), most_session_ms),
        "transaction_ms": transaction_ms,
        "most_transaction_ms": most_transaction_ms,
        "transaction_rejected": transaction_ms > most_transaction_ms,
    }


def _internal_topics(facts: Facts, _: Expected) -> Iterator[Values]:
    cluster = known(facts.kafka.cluster)
    safe_copies = min(_SAFE_COPIES, len(cluster.brokers))
    for name, setting in (
        (GROUPS_TOPIC, "offsets.topic.replication.factor"),
        (TRANSACTIONS_TOPIC, "transaction.state.log.replication.factor"),
    ):
        topic = cluster.topics.get(name)
        if isinstance(topic, TopicFacts):  # else it is created when first needed
            copies = min((part.replicas for part in topic.partitions), default=safe_copies)
            yield {
                "subject": name,
                "setting": setting,
                "offline": sum(part.leader is None for part in topic.partitions),
                "partitions": len(topic.partitions),
                "copies": copies,
                "safe_copies": safe_copies,
                "too_few": copies < safe_copies,
            }


ITEMS = {
    "addresses": _addresses,
    "refusals": _refusals,
    "brokers": _brokers,
    "versions": _versions,
    "limits": _limits,
    "internal_topics": _internal_topics,
}
