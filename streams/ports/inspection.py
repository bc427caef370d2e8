"""Looking into the services themselves, read only: what `contextgauge doctor` judges by.

Nothing here raises because a service is away or refuses: each answer stands by itself, so it is
either the facts or a `Failure`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be read.

    `away`: nothing answers, or not in time; `refused`: rights or credentials are lacking;
    `unsupported`: the service does not know the request.
    """

    kind: Literal["away", "refused", "unsupported"]
    text: str


Configs: TypeAlias = Mapping[str, str]
"""A resource's configuration in force, by Kafka's or Redis's own names."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """One address of the settings; `failure` is None where a broker answers there."""

    address: str
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker of the cluster, at the address that it advertises.

    `supported_level` is the highest `metadata.version` that its software knows, `level` the one
    that the cluster has agreed on; None where unknown. `newest_api` is the highest
    version of Produce that it speaks: an old broker's only sign of its age.
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
    """One topic that is there."""

    partitions: Sequence[TopicPartition]
    configs: Configs | Failure


GROUPS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
"""Kafka's own topics, made when they are first needed."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster: its brokers, the topics asked for and Kafka's own two (None: not there)."""

    cluster_id: str | None
    brokers: Sequence[Broker]
    topics: Mapping[str, TopicFacts | Failure | None]


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group: Kafka's word for its state, its members' hosts, and what it committed."""

    state: str
    hosts: Sequence[str]
    committed: Mapping[tuple[str, int], int] | Failure


class BrokerInspector(Protocol):
    """Looks into Kafka. Bounded in time: each answer takes some seconds at most."""

    async def bootstrap(self) -> Sequence[Bootstrap]:
        """Try each address of the settings."""

    async def cluster(self, topics: Sequence[str]) -> Cluster | Failure:
        """Return the brokers and these topics."""

    async def group(self, name: str) -> Group | Failure:
        """Return a consumer group; one without any member ever is `Dead`."""

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Another clock, read between two readings of this one: `ahead_ms` of it, give or take."""

    ahead_ms: int
    uncertainty_ms: int


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """Redis. `info` is the reply of INFO, `configs` of CONFIG GET.

    `pings_ms` are round trips; `denied` are the commands, of those that are used, that Redis
    would not run now, with its error.
    """

    info: Mapping[str, str] | Failure
    configs: Configs | Failure
    pings_ms: Sequence[float]
    clock: ClockReading | Failure
    denied: Mapping[str, str] | Failure


class StoreInspector(Protocol):
    """Looks into Redis. Bounded in time: some seconds at most."""

    async def look(self) -> StoreFacts | Failure:
        """Return what there is to know."""

    async def stop(self) -> None: ...
