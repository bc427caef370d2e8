"""What all adapters to Kafka share: the options, and Kafka's errors put in this project's words."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiokafka import errors

from contextgauge.documents import document
from contextgauge.errors import ConfigError, FencedError, PositionError, RecordError, RetryError
from contextgauge.kafka import sasl_sessions  # noqa: F401 -- every client's connections
from contextgauge.kafka.security import KafkaSecurity
from contextgauge.units import MIB


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How this process talks to the broker. Each default has its reason in its docstring."""

    bootstrap_servers: str
    client_id: str = "contextgauge"

    session_timeout_ms: int = 10_000
    """A worker that is silent for so long loses its partitions. Brokers allow 6 s and more."""

    rebalance_timeout_ms: int = 15_000
    """How long the group waits in a rebalance for a member that still finishes its batches. One
    that is dead holds it up for its session time-out only."""

    transaction_timeout_ms: int = 10_000
    """The broker aborts a transaction that is open for so long: until then readers of the
    records wait behind a dead worker's transaction, if no one takes its partition over."""

    commit_timeout_s: float = 20.0
    """Patience with a commit, above the transaction's own time-out: by then its fate is sealed
    and only a new producer can learn it."""

    start_timeout_s: float = 30.0
    """Patience with a producer's start, which waits until the id's last transaction is settled."""

    request_timeout_ms: int = 30_000
    """Above the time that a group may take to rebalance, which one request waits for."""

    fetch_bytes: int = 10 * MIB
    """Most that one fetch brings of a partition, as it is compressed: the largest message and its
    headers fit. Once so much was unpacked, no further batch is taken by the same poll."""

    batch_limit_bytes: int = 64 * MIB
    """Most that a batch may unpack to, some kilobytes of which can become gigabytes. It holds a
    message of the largest size and others besides, and is what reading it takes in memory."""

    fetch_wait_ms: int = 25
    """How long the broker holds a fetch that finds nothing. One fetch at a time serves a broker's
    partitions, so one that has just been read empty waits for it; an idle worker asks 40 times a
    second."""

    retry_backoff_ms: int = 10
    """Kafka 4 refuses the first write of a transaction while it still verifies it, and the
    producer waits this long: 100 ms, the default, is the whole latency at the 99th percentile."""

    batch_bytes: int = MIB
    """Most bytes of one record batch that a producer builds."""

    publish_linger_ms: int = 5
    """How long a published record may wait for others to share its batch."""

    publish_buffer_bytes: int = 64 * MIB
    """What a publisher may hold unacknowledged, before compression, until `send` waits: a second
    of what a broker takes, so that it never waits for the publisher."""

    compression: str | None = "zstd"
    """Of all that is produced. Here it shrinks transcripts best and at 600 MB/s; aiokafka's lz4,
    at its highest level, makes 40."""

    replicas: int = 3
    """Of topics that are created, at most as many as there are brokers: one can be away while
    another is restarted."""

    security: KafkaSecurity = field(default_factory=KafkaSecurity)
    """Credentials and TLS."""

    def connection(self) -> dict[str, Any]:
        """Return what every client of aiokafka takes to connect."""
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "request_timeout_ms": self.request_timeout_ms,
            **self.security.arguments(),
        }


_RIGHTS = f"Kafka does not allow it: give this user the rights of {document('CONNECTING.md')}"
"""Which rights each command needs is a table there, which a test goes by."""

_CONFIG_ERRORS: dict[type[errors.KafkaError], str] = {
    errors.AuthenticationFailedError: "",
    errors.AuthenticationMethodNotSupported: "",
    errors.ClusterAuthorizationFailedError: f"{_RIGHTS} on the cluster",
    errors.GroupAuthorizationFailedError: f"{_RIGHTS} on the consumer group",
    errors.IllegalSaslStateError: "",
    errors.IncompatibleBrokerVersion: "",
    errors.InconsistentGroupProtocolError: "another kind of consumer is in this group: give each "
    "its own CONTEXTGAUGE_GROUP_PREFIX",
    errors.InvalidConfigurationError: "the broker does not take a topic's settings: make the "
    f"topics by hand, as in {document('CONNECTING.md')}",
    errors.InvalidGroupIdError: "",
    errors.InvalidReplicationFactorError: "",
    errors.InvalidSessionTimeoutError: "the broker's group.min.session.timeout.ms and "
    "group.max.session.timeout.ms do not allow this session time-out: change the setting",
    errors.InvalidTimestampError: "a record's time is further ahead of the broker's clock than the "
    "topic's message.timestamp.after.max.ms allows, or further behind than its "
    "message.timestamp.before.max.ms: set this machine's clock right, or that limit",
    errors.InvalidTopicError: "",
    errors.InvalidTransactionTimeout: "above the broker's transaction.max.timeout.ms: lower the "
    "transaction time-out",
    errors.PolicyViolationError: "",
    errors.SaslAuthenticationFailed: "",
    errors.TopicAuthorizationFailedError: f"{_RIGHTS} on the topic",
    errors.TransactionalIdAuthorizationFailed: f"{_RIGHTS} on the transactional id",
    errors.UnsupportedSaslMechanismError: "",
    errors.UnsupportedVersionError: "",
}
"""Errors that retrying does not fix, with what to do where the broker does not say it."""

_RECORD_ERRORS: dict[type[errors.KafkaError], str] = {
    errors.MessageSizeTooLargeError: "a record is larger than the topic's max.message.bytes: "
    "raise it to what `contextgauge topics create` sets; `contextgauge doctor` names the topic",
    errors.RecordListTooLargeError: "records are larger than the topic's segment: raise its "
    "segment.bytes",
}
"""Errors that are one record's own."""


def _reason(error: Exception) -> str:
    """Return what is wrong; aiokafka lists the addresses, which the action names already."""
    if isinstance(error, errors.KafkaConnectionError) and "Unable to bootstrap" in str(error):
        return "no broker answers"
    return repr(error)


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise Kafka's errors as this project's, each named by the reaction that it demands."""
    try:
        yield
    except errors.ProducerFenced as error:
        raise FencedError(f"{action}: another producer took the transactional id over") from error
    except errors.OffsetOutOfRangeError as error:
        raise PositionError(f"{action}: the position is out of the log's range: {error}") from error
    except tuple(_RECORD_ERRORS) as error:
        hint = _RECORD_ERRORS[type(error)]
        raise RecordError(f"{action}: {type(error).__name__}: {hint}") from error
    except tuple(_CONFIG_ERRORS) as error:
        reason = " ".join(map(str, error.args)).rstrip(".")
        text = "; ".join(part for part in (reason, _CONFIG_ERRORS.get(type(error))) if part)
        raise ConfigError(f"{action}: {type(error).__name__}: {text or error}") from error
    except (errors.KafkaError, errors.IllegalOperation, errors.ConsumerStoppedError) as error:
        raise RetryError(f"{action}: {_reason(error)}") from error
    except OSError as error:
        raise RetryError(f"{action}: {error}") from error
