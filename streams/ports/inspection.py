"""Read-only inspection of the services, for `contextgauge doctor`.

Nothing here raises because a service is down or refuses access: each answer is independent, so it
is either the facts or a `Failure`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from streams.ports.deployment import Deployment

FailureKind: TypeAlias = Literal["unset", "away", "refused", "unsupported"]
"""`unset`: the settings name no service; `away`: nothing answers, or not in time; `refused`: rights
or credentials are lacking; `unsupported`: the service does not know the request, or this version
not its answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something is unknown."""

    kind: FailureKind
    text: str


Configs: TypeAlias = Mapping[str, str]
"""A resource's configuration in force, by Kafka's or Redis's own names."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """One configured address; `failure` is None where a broker answers there."""

    address: str
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker of the cluster, at the address that it advertises.

    `supported_level` is the highest `metadata.version` that its software supports, `level` the
    one that the cluster has agreed on; None where it is not reported. `newest_api` is the highest
    version of Produce that it supports: all that an old broker reports of its age.
    """

    node: int
    address: str
    failure: Failure | None
    supported_level: int | None = None
    level: int | None = None
    newest_api: int | None = None
    configs: Configs | Failure = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """One partition: its leader (None: offline), and how many replicas it has and are in sync."""

    partition: int
    leader: int | None
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """An existing topic."""

    partitions: Sequence[TopicPartition]
    configs: Configs | Failure


GROUPS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
"""Kafka's own topics, created when they are first needed."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster: its brokers, the requested topics and Kafka's own two (None: does not exist)."""

    cluster_id: str | None
    brokers: Sequence[Broker]
    topics: Mapping[str, TopicFacts | Failure | None]


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group: its state as Kafka names it, its members' hosts, its committed offsets.

    `configurations` are the hosts by the digest of their configuration, where members have one.
    """

    state: str
    hosts: Sequence[str]
    committed: Mapping[tuple[str, int], int] | Failure
    configurations: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in a partition from the offset `start` on.

    `wrote_ms` is the timestamp of its producer's last record there. The last three are what its
    coordinator says: since when it is open, and how long that may be; None where no coordinator
    that answers has such a transaction of this partition, or this user may not see it.
    """

    producer_id: int
    producer_epoch: int
    start: int
    wrote_ms: int
    transactional_id: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None

    @property
    def since_ms(self) -> int:
        """Since when it is open, as far as is known."""
        return self.wrote_ms if self.started_ms is None else self.started_ms


OpenTransactions: TypeAlias = Mapping[tuple[str, int], Sequence[OpenTransaction]]
"""By topic and partition."""


class BrokerInspector(Protocol):
    """Inspects Kafka. Bounded in time: each answer takes some seconds at most."""

    async def bootstrap(self) -> Sequence[Bootstrap]:
        """Try each address of the settings."""

    async def cluster(self, topics: Sequence[str]) -> ClusterFacts | Failure:
        """Return the brokers and these topics."""

    async def group(self, name: str) -> Group | Failure:
        """Return a consumer group; one without any member so far is `Dead`."""

    async def transactions(
        self, partitions: Mapping[str, Sequence[int]]
    ) -> OpenTransactions | Failure:
        """Return the open transactions of partitions of topics that `cluster` was asked for."""

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ClockReading:
    """How far another clock is ahead of this one, plus or minus `uncertainty_ms`."""

    ahead_ms: int
    uncertainty_ms: int


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Redis. `info` is the reply to INFO, `configs` that to CONFIG GET, `pings_ms` round trips.

    `denied` are the commands in use that Redis would refuse now, with its reasons; `deployment` is
    whose the keys of our prefix are, None where none has noted it.
    """

    info: Mapping[str, str] | Failure
    configs: Configs | Failure
    pings_ms: Sequence[float]
    clock: ClockReading | Failure
    denied: Mapping[str, str] | Failure
    deployment: Deployment | Failure | None = None


@dataclass(frozen=True, slots=True)
class IngestFacts:
    """The server that takes messages over HTTP: `reasons` why it is not ready; None, where it is.

    `is_there`: something answers at its address.
    """

    address: str
    is_there: bool
    reasons: str | None = None


class IngestInspector(Protocol):
    """Asks the server that takes messages over HTTP. Bounded in time."""

    async def look(self) -> IngestFacts:
        """Return the facts."""


@dataclass(frozen=True, slots=True)
class TranscriptFacts:
    """The transcripts on this machine: `looked` of `files` were looked into, the newest first.

    `unreadable` are files and folders that cannot be read, and why.
    """

    files: int
    looked: int
    unreadable: Mapping[str, str]


class TranscriptInspector(Protocol):
    """Looks into the transcripts on this machine. Bounded in time."""

    async def look(self) -> TranscriptFacts:
        """Return the facts."""


class StoreInspector(Protocol):
    """Inspects Redis. Bounded in time: some seconds at most."""

    async def look(self) -> StoreFacts | Failure:
        """Return the facts."""

    async def stop(self) -> None: ...
