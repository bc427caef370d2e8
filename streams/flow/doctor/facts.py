"""What is judged: what was found in the services, and what the settings expect there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.topics import Topic
from streams.ports import Generations, ViewPosition
from streams.ports.inspection import Bootstrap, Cluster, Failure, Group, StoreFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the settings say. Topics have their full names, and the figures in force."""

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
    bootstrap_servers: str = "HOST:PORT"

    @property
    def topics(self) -> tuple[Topic, ...]:
        """All topics, in the order of the flow."""
        return (self.messages, self.events, self.state, self.dead, self.commands)

    @property
    def co_partitioned(self) -> tuple[Topic, ...]:
        """Topics whose partition counts must be equal."""
        return (self.messages, self.events, self.state)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrongly keyed message, to look at: where it is and when it came."""

    partition: int
    offset: int
    timestamp_ms: int
    headers: tuple[str, ...]
    """Names only; they may tell the program that wrote it."""


@dataclass(frozen=True, slots=True)
class Keying:
    """How the newest messages are keyed. A message counts in one of the wrong kinds at most.

    `keyless`: without a key; `foreign`: the key is not the message's own session, and the
    partition is wrong; `misplaced`: the key is right and the partition is not, so the partitioner
    is not murmur2; `lucky`: wrongly keyed, and on the right partition by chance.
    `ahead`: messages whose time is ahead of this clock by more than `AHEAD_MS`.
    """

    looked: int
    keyless: int
    foreign: int
    misplaced: int
    lucky: int
    newest_wrong: Wrong | None
    ahead: int
    most_ahead_ms: int
    newest_ms: int | None
    newest_append_ms: int | None
    """Of records that carry the broker's own time."""

    @property
    def dead(self) -> int:
        """Messages that are dead letters for where they are."""
        return self.keyless + self.foreign + self.misplaced


AHEAD_MS = 2_000
"""Clocks that are kept right differ by milliseconds; a message's way takes time only backwards."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The newest dead letters by reason; `kept` is about how many the topic has."""

    looked: int
    kept: int
    reasons: Mapping[str, int]
    newest_ms: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a partition is read: `position` is None where nothing was ever read.

    `first` and `end` are the log's, `waiting_ms` the Kafka time of the first record that waits.
    """

    first: int
    end: int
    position: int | None
    waiting_ms: int | None

    @property
    def waiting(self) -> int:
        """How many offsets wait."""
        begin = self.first if self.position is None else max(self.position, self.first)
        return max(self.end - begin, 0)


@dataclass(frozen=True, slots=True)
class Views:
    """The views: generations, the active one's positions, the next one's, the newest activity."""

    generations: Generations
    active: Mapping[int, ViewPosition | None]
    building: Mapping[int, ViewPosition | None]
    sessions: int
    newest_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that was found, each part by itself."""

    now_ms: int
    bootstrap: Sequence[Bootstrap] | Failure
    cluster: Cluster | Failure
    derive_group: Group | Failure
    project_group: Group | Failure
    keying: Keying | Failure
    dead: DeadLetters | Failure
    derive: Mapping[int, Progress] | Failure
    project: Mapping[int, Progress] | Failure
    newest_record_ms: int | Failure | None
    store: StoreFacts | Failure
    views: Views | Failure
