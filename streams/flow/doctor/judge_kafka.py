"""Judges the cluster: whether it can be reached, its version, and its bounds."""

from collections.abc import Sequence

from streams.flow.doctor.catalogue import CheckId, Figures, Report
from streams.flow.doctor.facts import Expected, Facts
from streams.flow.doctor.words import listed, size, some
from streams.ports.inspection import (
    GROUPS_TOPIC,
    TRANSACTIONS_TOPIC,
    Broker,
    Cluster,
    Failure,
    TopicFacts,
)

_RELEASES: dict[int, str] = dict.fromkeys(range(1, 4), "3.0 to 3.2") | {
    **dict.fromkeys(range(4, 8), "3.3"),
    8: "3.4",
    **dict.fromkeys(range(9, 12), "3.5"),
    **dict.fromkeys(range(12, 15), "3.6"),
    **dict.fromkeys(range(15, 20), "3.7"),
    20: "3.8",
    21: "3.9",
    **dict.fromkeys(range(22, 26), "4.0"),
    **dict.fromkeys(range(26, 28), "4.1"),
}
"""Kafka's releases by their levels of `metadata.version`."""

_LEAST_LEVEL = 12
"""Kafka 3.6: the first that knows `message.timestamp.after.max.ms`."""

_SAFE_COPIES = 3
"""One may be restarted while another fails."""

START = (
    "Is it running? `contextgauge stack up` starts Kafka and Redis on this machine; for others "
    "correct CONTEXTGAUGE_BOOTSTRAP_SERVERS"
)
_RIGHTS = (
    "Correct CONTEXTGAUGE_KAFKA_USERNAME and its password, the TLS files, or give this user the "
    "right: docs/DOCTOR.md lists what each worker needs"
)

_OF_CLUSTER: tuple[CheckId, ...] = (
    "kafka.brokers",
    "kafka.version",
    "kafka.topic_creation",
    "kafka.message_size",
    "kafka.internal_topics",
    "kafka.session_timeout",
    "kafka.transaction_timeout",
)


def judge_kafka(report: Report, facts: Facts, expected: Expected) -> None:
    """Judge all that is about the cluster itself."""
    _reachable(report, facts)
    _access(report, facts)
    cluster = facts.cluster
    if isinstance(cluster, Failure):
        report.skip(cluster.text, *_OF_CLUSTER)
        return
    _brokers(report, cluster)
    _version(report, cluster.brokers)
    _topic_creation(report, cluster.brokers)
    _message_size(report, cluster.brokers, expected)
    _internal_topics(report, cluster)
    _bounds(report, cluster.brokers, expected)


def _reachable(report: Report, facts: Facts) -> None:
    if isinstance(facts.bootstrap, Failure):
        report.add("kafka.reachable", "error", facts.bootstrap.text, mend=START)
        return
    away = [item for item in facts.bootstrap if item.failure and item.failure.kind == "away"]
    answering = len(facts.bootstrap) - len(away)
    if not away:
        addresses = some(len(facts.bootstrap), "address")
        report.ok("kafka.reachable", f"{addresses} of the settings: answering")
    for item in away:
        report.add(
            "kafka.reachable",
            "warning" if answering else "error",
            f"does not answer: {item.failure.text if item.failure else ''}",
            subject=item.address,
            mend="Take it out of CONTEXTGAUGE_BOOTSTRAP_SERVERS, or start it"
            if answering
            else START,
        )


def _access(report: Report, facts: Facts) -> None:
    asked: list[tuple[str, object]] = []
    hidden: list[tuple[str, object]] = []
    if not isinstance(facts.bootstrap, Failure):
        asked += [(item.address, item.failure) for item in facts.bootstrap]
    if not isinstance(facts.cluster, Failure):
        asked += [(broker.address, broker.failure) for broker in facts.cluster.brokers]
        hidden += [(f"broker {broker.node}", broker.configs) for broker in facts.cluster.brokers]
        for name, topic in facts.cluster.topics.items():
            if isinstance(topic, TopicFacts):
                hidden.append((name, topic.configs))
            else:
                asked.append((name, topic))
    asked += [("derive group", facts.derive_group), ("project group", facts.project_group)]
    asked += [("reading messages", facts.keying), ("reading dead letters", facts.dead)]
    asked += [("reading records", facts.newest_record_ms), ("reading positions", facts.derive)]
    refused = _refused(asked)
    for text, names in refused.items():
        report.add("kafka.access", "error", f"refused: {text}", subject=names, mend=_RIGHTS)
    for names in _refused(hidden).values():
        # No worker needs it: what could not be looked at is all there is to it.
        report.add(
            "kafka.access",
            "note",
            "the configuration may not be seen: checks of it are skipped",
            subject=names,
            mend="Give this user DescribeConfigs on the topics and the cluster",
        )
    if report.has("kafka.access"):
        return
    if isinstance(facts.cluster, Failure):
        report.skip(facts.cluster.text, "kafka.access")
    else:
        report.ok("kafka.access", "nothing that was asked for was refused")


def _refused(asked: Sequence[tuple[str, object]]) -> dict[str, str]:
    """Return what was refused: the names, by commas, by what was said."""
    found: dict[str, list[str]] = {}
    for what, answer in asked:
        if isinstance(answer, Failure) and answer.kind == "refused":
            found.setdefault(answer.text, []).append(what)
    return {text: listed(list(dict.fromkeys(names))) for text, names in found.items()}


def _brokers(report: Report, cluster: Cluster) -> None:
    lost = [broker for broker in cluster.brokers if broker.failure is not None]
    for broker in lost:
        report.add(
            "kafka.brokers",
            "error",
            f"broker {broker.node} advertises this address, which does not answer from here: "
            f"{broker.failure.text if broker.failure else ''}",
            subject=broker.address,
            mend="Start the broker, or set its advertised.listeners to an address that clients "
            "reach",
        )
    if not lost:
        report.ok(
            "kafka.brokers",
            f"{some(len(cluster.brokers), 'broker')}, all reached at the addresses they advertise",
            figures={"brokers": len(cluster.brokers), "cluster_id": cluster.cluster_id},
        )


def _version(report: Report, brokers: Sequence[Broker]) -> None:
    reached = [broker for broker in brokers if broker.failure is None]
    levels = {broker.supported_level for broker in reached}
    known = sorted(level for level in levels if level is not None)
    if not known:
        newest = max((broker.newest_api or 0 for broker in reached), default=0)
        report.add(
            "kafka.version",
            "note",
            f"the brokers do not tell their release; they speak Produce up to version {newest}",
            mend="If it is older than 3.6, upgrade it: `contextgauge topics create` needs that",
        )
        return
    names = " and ".join(dict.fromkeys(release(level) for level in known))
    agreed = max((broker.level or 0 for broker in reached), default=0)
    figures: Figures = {"supported_level": known[-1], "level": agreed}
    if known[0] < _LEAST_LEVEL:
        report.add(
            "kafka.version",
            "warning",
            f"Kafka {names}, older than 3.6",
            mend="Upgrade the brokers to 3.6 or later",
            figures=figures,
        )
    elif len(levels) > 1:
        report.add(
            "kafka.version",
            "note",
            f"the brokers differ: Kafka {names}",
            mend="Finish the rolling upgrade",
            figures=figures,
        )
    elif agreed and release(agreed) != release(known[-1]):
        report.add(
            "kafka.version",
            "note",
            f"Kafka {names}; the cluster still works as {release(agreed)} does",
            mend="Finish the upgrade: `kafka-features.sh --bootstrap-server HOST:PORT upgrade "
            f"--release-version {release(known[-1])}`",
            figures=figures,
        )
    else:
        report.ok("kafka.version", f"Kafka {names}", figures=figures)


def release(level: int) -> str:
    """Return the release that a level of `metadata.version` came with."""
    return _RELEASES.get(level, f"newer than {_RELEASES[max(_RELEASES)]}")


def _told(report: Report, brokers: Sequence[Broker], *checks: CheckId) -> list[Broker]:
    """Return the brokers that tell their configuration; without any, the checks are skipped."""
    found = [item for item in brokers if not isinstance(item.configs, Failure) and item.configs]
    if not found:
        reasons = [item.configs.text for item in brokers if isinstance(item.configs, Failure)]
        said = f": {reasons[0]}" if reasons else ""
        report.skip(f"the brokers do not tell their configuration{said}", *checks)
    return found


def _number(broker: Broker, name: str) -> int | None:
    if isinstance(broker.configs, Failure):
        return None
    value = broker.configs.get(name, "")
    return int(value) if value.lstrip("-").isdigit() else None


def _topic_creation(report: Report, brokers: Sequence[Broker]) -> None:
    told = _told(report, brokers, "kafka.topic_creation")
    creating = [
        str(broker.node)
        for broker in told
        if not isinstance(broker.configs, Failure)
        and broker.configs.get("auto.create.topics.enable") == "true"
    ]
    if creating:
        report.add(
            "kafka.topic_creation",
            "warning",
            f"auto.create.topics.enable=true on broker {listed(creating)}: a producer with a "
            "typing error, or one that is early, makes a topic of its own",
            mend="Set auto.create.topics.enable=false on the brokers, and make topics by "
            "`contextgauge topics create`",
        )
    elif told:
        report.ok("kafka.topic_creation", "brokers make no topics by themselves")


def _message_size(report: Report, brokers: Sequence[Broker], expected: Expected) -> None:
    largest = max(topic.max_message_bytes for topic in expected.topics)
    told = _told(report, brokers, "kafka.message_size")
    if not told:
        return
    least = min(_number(broker, "message.max.bytes") or largest for broker in told)
    fetched = min(_number(broker, "replica.fetch.max.bytes") or largest for broker in told)
    figures: Figures = {"message_max_bytes": least, "replica_fetch_max_bytes": fetched}
    if len(brokers) > 1 and fetched < largest:
        report.add(
            "kafka.message_size",
            "note",
            f"replica.fetch.max.bytes is {size(fetched)}, below the largest message of "
            f"{size(largest)}: such a message is copied alone, and slowly",
            mend=f"Set replica.fetch.max.bytes={largest} on the brokers",
            figures=figures,
        )
    else:
        report.ok(
            "kafka.message_size",
            f"brokers take {size(least)} by default; each topic has its own limit",
            figures=figures,
        )


def _internal_topics(report: Report, cluster: Cluster) -> None:
    wanted = min(_SAFE_COPIES, len(cluster.brokers))
    fine = True
    for name, setting in (
        (GROUPS_TOPIC, "offsets.topic.replication.factor"),
        (TRANSACTIONS_TOPIC, "transaction.state.log.replication.factor"),
    ):
        topic = cluster.topics.get(name)
        if not isinstance(topic, TopicFacts):
            continue  # made when it is first needed
        offline = [part for part in topic.partitions if part.leader is None]
        copies = min((part.replicas for part in topic.partitions), default=wanted)
        if offline:
            fine = False
            report.add(
                "kafka.internal_topics",
                "error",
                f"{len(offline)} of {some(len(topic.partitions), 'partition')} without a leader",
                subject=name,
                mend="Start the brokers that have its copies",
            )
        elif copies < wanted:
            fine = False
            report.add(
                "kafka.internal_topics",
                "warning",
                f"{copies} of {wanted} copies",
                subject=name,
                mend=f"Set {setting}={wanted} on new clusters; here add copies by "
                "`kafka-reassign-partitions.sh`",
            )
    if fine:
        report.ok("kafka.internal_topics", "groups and transactions are kept as they should be")


def _bounds(report: Report, brokers: Sequence[Broker], expected: Expected) -> None:
    told = _told(report, brokers, "kafka.session_timeout", "kafka.transaction_timeout")
    if not told:
        return
    least = max(_number(item, "group.min.session.timeout.ms") or 0 for item in told)
    most = min(_number(item, "group.max.session.timeout.ms") or 1_800_000 for item in told)
    asked = expected.session_timeout_ms
    said = f"{asked:,} ms; brokers allow {least:,} to {most:,} ms"
    if least <= asked <= most:
        report.ok("kafka.session_timeout", said)
    else:
        report.add(
            "kafka.session_timeout",
            "error",
            said,
            mend=f"Set CONTEXTGAUGE_SESSION_TIMEOUT_MS={min(max(asked, least), most)}, or "
            "group.min.session.timeout.ms and group.max.session.timeout.ms on the brokers",
        )
    longest = min(_number(item, "transaction.max.timeout.ms") or 900_000 for item in told)
    said = f"{expected.transaction_timeout_ms:,} ms; brokers allow up to {longest:,} ms"
    if expected.transaction_timeout_ms <= longest:
        report.ok("kafka.transaction_timeout", said)
    else:
        report.add(
            "kafka.transaction_timeout",
            "error",
            said,
            mend=f"Set CONTEXTGAUGE_TRANSACTION_TIMEOUT_MS={longest}, or "
            "transaction.max.timeout.ms on the brokers",
        )
