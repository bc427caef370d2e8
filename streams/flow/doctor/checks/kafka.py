"""Checks of the Kafka cluster: is it reachable, is access granted, do its limits fit."""

from collections.abc import Iterator, Mapping

from contextgauge.documents import document
from streams.flow.doctor.facts import Expected, Facts, UnknownFactError, known
from streams.flow.doctor.findings import Result, check, error, note, ok, warning
from streams.flow.doctor.words import counted, listed, number, size
from streams.ports.inspection import GROUPS_TOPIC, TRANSACTIONS_TOPIC, Configs, Failure, TopicFacts

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

_GRANT = "Grant this user DescribeConfigs on the topics and the cluster"


@check("kafka.reachable")
def reachable(facts: Facts, _: Expected) -> Iterator[Result]:
    """Clients begin with a configured address: without one none starts, and each that is down delays every start."""  # noqa: E501 -- as in docs/DOCTOR.md
    bootstrap = facts.kafka.bootstrap
    start = (
        "Start it (`contextgauge stack up` starts Kafka and Redis on this machine), or correct "
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS"
    )
    if isinstance(bootstrap, Failure):
        unset = "Start one with `contextgauge stack up`, or set CONTEXTGAUGE_BOOTSTRAP_SERVERS"
        yield error(bootstrap.text, unset if bootstrap.kind == "unset" else start)
        return
    # A broker that refuses access does answer: kafka.access reports it.
    away = [item for item in bootstrap if item.failure and item.failure.kind == "away"]
    for item in away:
        reason = f"does not answer: {item.failure.text}" if item.failure else ""
        if len(away) == len(bootstrap):
            yield error(reason, start, item.address)
        else:
            remedy = "Start it, or remove the address from CONTEXTGAUGE_BOOTSTRAP_SERVERS"
            yield warning(reason, remedy, item.address)
    yield ok(f"{counted(len(bootstrap), 'configured address')}: all answer")


@check("kafka.access")
def access(facts: Facts, _: Expected) -> Iterator[Result]:
    """Workers cannot do what Kafka refuses."""
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
    refused, hidden = _refusals(answers), _refusals(configs)
    if not refused and not hidden:
        known(kafka.cluster)
    for text, subjects in refused.items():
        remedy = (
            "Correct CONTEXTGAUGE_KAFKA_USERNAME and its password or the TLS files, or grant this "
            f"user the rights that {document('DOCTOR.md')} lists"
        )
        yield error(f"refused: {text}", remedy, listed(subjects))
    for subjects in hidden.values():
        text = "configuration not readable, so checks of it are skipped"
        yield note(text, _GRANT, listed(subjects))
    yield ok("no request was refused")


def _refusals(answers: list[tuple[str, object]]) -> Mapping[str, Mapping[str, None]]:
    """Return the subjects of refused requests, by reason."""
    subjects: dict[str, dict[str, None]] = {}
    for subject, answer in answers:
        if isinstance(answer, Failure) and answer.kind == "refused":
            subjects.setdefault(answer.text, {})[subject] = None
    return subjects


@check("kafka.brokers")
def brokers(facts: Facts, _: Expected) -> Iterator[Result]:
    """Clients are redirected to the address that each broker advertises."""
    cluster = known(facts.kafka.cluster)
    figures = {"brokers": len(cluster.brokers), "cluster_id": cluster.cluster_id}
    for broker in cluster.brokers:
        if broker.failure:
            yield error(
                f"broker {broker.node} advertises this address, which does not answer: "
                f"{broker.failure.text}",
                "Start the broker, or set its advertised.listeners to a reachable address",
                broker.address,
                figures,
            )
    reachable_brokers = f"{counted(len(cluster.brokers), 'broker')}, all reachable"
    yield ok(f"{reachable_brokers} at their advertised addresses", figures)


@check("kafka.version")
def version(facts: Facts, _: Expected) -> Iterator[Result]:
    """Topics limit timestamps in the future, which brokers support since Kafka 3.6."""
    answering = [item for item in known(facts.kafka.cluster).brokers if item.failure is None]
    supported = {broker.supported_level for broker in answering}
    levels = sorted(level for level in supported if level is not None)
    level = max((broker.level or 0 for broker in answering), default=0)
    newest, agreed = _release(max(levels, default=1)), _release(level or 1)
    releases = " and ".join(dict.fromkeys(map(_release, levels)))
    figures = {"supported_level": max(levels, default=None), "level": level}
    if not levels:
        api = max((broker.newest_api or 0 for broker in answering), default=0)
        yield note(
            f"release not reported; the brokers support Produce up to version {api}",
            "Upgrade brokers older than 3.6: `contextgauge topics create` requires 3.6",
            figures=figures,
        )
    elif levels[0] < _LEAST_LEVEL:
        text = f"Kafka {releases}, older than 3.6"
        yield warning(text, "Upgrade the brokers to 3.6 or later", figures=figures)
    elif len(supported) > 1:
        text = f"the brokers differ: Kafka {releases}"
        yield note(text, "Finish the rolling upgrade", figures=figures)
    elif level and agreed != newest:
        yield note(
            f"Kafka {releases}, but the cluster still uses the features of {agreed}",
            "Finish the upgrade: `kafka-features.sh --bootstrap-server HOST:PORT upgrade "
            f"--release-version {newest}`",
            figures=figures,
        )
    else:
        yield ok(f"Kafka {releases}", figures)


def _release(level: int) -> str:
    return _RELEASES[max(first for first in _RELEASES if first <= level)]


def _configurations(facts: Facts) -> Mapping[int, Configs]:
    """Return the configuration that each broker reports."""
    cluster_brokers = known(facts.kafka.cluster).brokers
    reported = {
        broker.node: broker.configs
        for broker in cluster_brokers
        if broker.configs and not isinstance(broker.configs, Failure)
    }
    if not reported:
        failures = [
            item.configs.text for item in cluster_brokers if isinstance(item.configs, Failure)
        ]
        reason = "".join(f": {text}" for text in failures[:1])
        raise UnknownFactError(f"the brokers do not report their configuration{reason}")
    return reported


def _numbers(facts: Facts, name: str, default: int) -> list[int]:
    return [number(configs, name, default) for configs in _configurations(facts).values()]


@check("kafka.topic_creation")
def topic_creation(facts: Facts, _: Expected) -> Iterator[Result]:
    """Automatically created topics have wrong partition counts and retention."""
    name = "auto.create.topics.enable"
    creating = [n for n, configs in _configurations(facts).items() if configs.get(name) == "true"]
    if creating:
        yield warning(
            f"{name}=true on broker {listed(creating)}: a producer that starts early or misspells "
            "a name creates a topic",
            f"Set {name}=false on the brokers, and create topics with `contextgauge topics create`",
        )
    yield ok("brokers do not create topics automatically")


@check("kafka.message_size")
def message_size(facts: Facts, expected: Expected) -> Iterator[Result]:
    """The largest allowed message must be replicated to other brokers."""
    largest = max(topic.max_message_bytes for topic in expected.topics)
    fetched = min(_numbers(facts, "replica.fetch.max.bytes", largest))
    limit = min(_numbers(facts, "message.max.bytes", largest))
    figures = {"message_max_bytes": limit, "replica_fetch_max_bytes": fetched}
    if len(known(facts.kafka.cluster).brokers) > 1 and fetched < largest:
        yield note(
            f"replica.fetch.max.bytes is {size(fetched)}, below the largest message of "
            f"{size(largest)}: such a message is replicated alone, and slowly",
            f"Set replica.fetch.max.bytes={largest} on the brokers",
            figures=figures,
        )
    yield ok(f"the default limit is {size(limit)}; each topic has its own", figures)


@check("kafka.internal_topics")
def internal_topics(facts: Facts, _: Expected) -> Iterator[Result]:
    """All workers stop if the outcome of transactions or the offsets of groups are lost."""
    cluster = known(facts.kafka.cluster)
    safe_copies = min(_SAFE_COPIES, len(cluster.brokers))
    for name, setting in (
        (GROUPS_TOPIC, "offsets.topic.replication.factor"),
        (TRANSACTIONS_TOPIC, "transaction.state.log.replication.factor"),
    ):
        topic = cluster.topics.get(name)
        if not isinstance(topic, TopicFacts):  # it is created when first needed
            continue
        copies = min((part.replicas for part in topic.partitions), default=safe_copies)
        offline = sum(part.leader is None for part in topic.partitions)
        if offline:
            text = f"{offline} of {counted(len(topic.partitions), 'partition')} without a leader"
            yield error(text, "Start the brokers that hold its replicas", name)
        elif copies < safe_copies:
            yield warning(
                f"{copies} of {safe_copies} copies",
                f"Set {setting}={safe_copies} on new clusters; add replicas here with "
                "`kafka-reassign-partitions.sh`",
                name,
            )
    yield ok("no replica of groups and transactions is missing")


@check("kafka.session_timeout")
def session_timeout(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Brokers reject workers whose session timeout is out of bounds: none would start."""
    session_ms = expected.session_timeout_ms
    least_ms = max(_numbers(facts, "group.min.session.timeout.ms", 0))
    most_ms = min(_numbers(facts, "group.max.session.timeout.ms", 1_800_000))
    text = f"{session_ms:,} ms; brokers allow {least_ms:,} to {most_ms:,} ms"
    if not least_ms <= session_ms <= most_ms:
        fitting_ms = min(max(session_ms, least_ms), most_ms)
        yield error(
            text,
            f"Set CONTEXTGAUGE_SESSION_TIMEOUT_MS={fitting_ms}, or group.min.session.timeout.ms "
            "and group.max.session.timeout.ms on the brokers",
        )
    yield ok(text)


@check("kafka.transaction_timeout")
def transaction_timeout(facts: Facts, expected: Expected) -> Iterator[Result]:
    """Brokers reject derive workers whose transaction timeout exceeds their limit."""
    most_ms = min(_numbers(facts, "transaction.max.timeout.ms", 900_000))
    text = f"{expected.transaction_timeout_ms:,} ms; brokers allow up to {most_ms:,} ms"
    if expected.transaction_timeout_ms > most_ms:
        yield error(
            text,
            f"Set CONTEXTGAUGE_TRANSACTION_TIMEOUT_MS={most_ms}, or transaction.max.timeout.ms on "
            "the brokers",
        )
    yield ok(text)


CHECKS = (
    reachable,
    access,
    brokers,
    version,
    topic_creation,
    message_size,
    internal_topics,
    session_timeout,
    transaction_timeout,
)
