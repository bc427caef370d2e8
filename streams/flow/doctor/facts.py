"""Facts: the services to examine, what they reported, and what the settings expect of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from contextgauge.normalise.unread_lines import UnreadLine
from schemas.topics import Topic
from streams.ports import (
    Clock,
    ConversationReader,
    Generations,
    Log,
    UnreadableBatch,
    ViewPosition,
    ViewReader,
)
from streams.ports.inspection import (
    Bootstrap,
    BrokerInspector,
    ClusterFacts,
    Failure,
    FailureKind,
    Group,
    IngestFacts,
    IngestInspector,
    OpenTransaction,
    StoreFacts,
    StoreInspector,
    TranscriptFacts,
    TranscriptInspector,
)

_T = TypeVar("_T")

NOT_ASKED = Failure("unset", "not asked")

AHEAD_MS = 2_000
"""Synchronised clocks differ by milliseconds, and delivery only makes a message look older."""


class UnknownFactError(Exception):
    """A fact could not be read: a check that needs it is skipped."""

    def __init__(self, reason: str, kind: FailureKind = "away") -> None:
        super().__init__(reason)
        self.failure = Failure(kind, reason)


def known(fact: _T | Failure) -> _T:
    """Return a fact. Raises UnknownFactError where there is a failure instead."""
    if isinstance(fact, Failure):
        raise UnknownFactError(fact.text, fact.kind)
    return fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services to examine; a Failure where the settings do not name one properly."""

    brokers: BrokerInspector | Failure
    log: Log | Failure
    store: StoreInspector | Failure
    views: ViewReader | Failure
    conversations: ConversationReader | Failure
    clock: Clock
    ingest: IngestInspector | Failure = NOT_ASKED
    transcripts: TranscriptInspector | Failure = NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the settings require. Topics have their full names and effective configuration."""

    messages: Topic
    events: Topic
    state: Topic
    dead: Topic
    commands: Topic
    partitions: int
    replicas: int
    session_timeout_ms: int
    transaction_timeout_ms: int
    message_limit_bytes: int
    derive_group: str
    project_group: str
    control_groups: Sequence[str] = ()
    readers: Mapping[str, str] = field(default_factory=dict)
    """Commands whose workers read records, besides the projection, by their groups."""
    topic_prefix: str = ""
    bootstrap_servers: str = "HOST:PORT"

    @property
    def topics(self) -> tuple[Topic, ...]:
        """All topics, in the order of the flow."""
        return (self.messages, self.events, self.state, self.dead, self.commands)


@dataclass(frozen=True, slots=True)
class MiskeyedMessage:
    """Where one wrongly keyed message is. `headers` are names, which may identify its producer."""

    partition: int
    offset: int
    timestamp_ms: int
    headers: tuple[str, ...]


Miskeying: TypeAlias = Literal["without_key", "other_key", "other_partitioner", "right_by_chance"]
"""What is wrong with a message's key or partition: the fields of `Keying` that count it."""


@dataclass(slots=True, kw_only=True)
class Keying:
    """How the newest messages are keyed. A wrong message counts in exactly one of four fields.

    `other_key`: the key isn't the session that the message names, and the partition is wrong;
    `other_partitioner`: the key is right and the partition isn't what murmur2 gives;
    `right_by_chance`: wrongly keyed, but on the right partition.
    `ahead` counts messages timestamped more than `AHEAD_MS` ahead of this machine's clock;
    `newest_append_ms` is the newest timestamp that a broker set. `differing` counts messages whose
    two spellings of a field differ, by the name that counts and the one that does not, `unread`
    those whose figures this version does not read.
    """

    looked: int = 0
    without_key: int = 0
    other_key: int = 0
    other_partitioner: int = 0
    right_by_chance: int = 0
    newest_wrong: MiskeyedMessage | None = None
    ahead: int = 0
    most_ahead_ms: int = 0
    newest_ms: int | None = None
    newest_append_ms: int | None = None
    differing: dict[tuple[str, str], int] = field(default_factory=dict)
    unread: dict[UnreadLine, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The newest dead letters by reason; `total` is about how many the topic holds."""

    looked: int
    total: int
    reasons: Mapping[str, int]
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """How far a partition is read; `position` is None before its first record is processed.

    `first` and `end` are the log's offsets, `waiting_ms` the timestamp of the oldest record that
    waits; `groups` stored the newest positions, where these name their writer. `unsettled` offsets
    follow the end: they are of open transactions, or wait behind them.
    """

    first: int
    end: int
    position: int | None
    waiting_ms: int | None
    groups: frozenset[str] = frozenset()
    unsettled: int = 0

    @property
    def waiting(self) -> int:
        """How many offsets wait."""
        begin = self.first if self.position is None else max(self.position, self.first)
        return max(self.end - begin, 0) + self.unsettled


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """A group that reads records, and how far it has read the partitions on which it began."""

    group: Group
    progress: Mapping[int, WorkerProgress]


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What no reader of a partition sees yet: the offsets from `stable` to `high`, and why."""

    stable: int
    high: int
    transactions: Sequence[OpenTransaction] | Failure


@dataclass(frozen=True, slots=True)
class Conversations:
    """How far conversations are kept; `former` are partitions of a topic that is no more."""

    progress: Mapping[int, WorkerProgress]
    former: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class OpenCommands:
    """Commands of the newest entries that have no outcome, and since when the oldest is there.

    `undone`: sessions of which a compaction had no effect, and none was made since;
    `without_driver`: sessions above their threshold of a runtime that compacts itself.
    """

    open: int
    oldest_ms: int | None
    undone: int = 0
    without_driver: int = 0


@dataclass(frozen=True, slots=True)
class Views:
    """The generations, the positions of the active and the next one, and the newest activity."""

    generations: Generations
    active: Mapping[int, ViewPosition | None]
    building: Mapping[int, ViewPosition | None]
    sessions: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """What Kafka reported, and what its topics contain."""

    bootstrap: Sequence[Bootstrap] | Failure
    cluster: ClusterFacts | Failure
    derive_group: Group | Failure
    project_group: Group | Failure
    keying: Keying | Failure
    dead: DeadLetters | Failure
    newest_record_ms: int | Failure | None
    derive: Mapping[int, WorkerProgress] | Failure
    commands: OpenCommands | Failure
    other_groups: Mapping[str, Group | Failure] | Failure
    """Groups that stored newest positions, and are not that of the settings."""
    control_groups: Mapping[str, Group | Failure] | Failure
    unsettled: Mapping[tuple[str, int], Unsettled] | Failure
    """By topic and partition, where transactions are open."""
    unreadable: Sequence[UnreadableBatch] | Failure
    """Batches that cannot be read, among those that were looked at."""
    readers: Mapping[str, ReaderFacts] | Failure
    """By group, what reads records besides the projection; of those that ever began."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts; each is independent of the others, and may be a failure instead."""

    now_ms: int
    kafka: KafkaFacts
    project: Mapping[int, WorkerProgress] | Failure
    conversations: Conversations | Failure
    store: StoreFacts | Failure
    views: Views | Failure
    ingest: IngestFacts | Failure = NOT_ASKED
    transcripts: TranscriptFacts | Failure = NOT_ASKED
