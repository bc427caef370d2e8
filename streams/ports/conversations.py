"""Conversations: the messages of sessions whose text is kept, as the model should see them now."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from streams.ports.view_store import ApplyResult

if TYPE_CHECKING:  # all commands import the ports, and few of them the compaction engine
    from contextgauge.compaction.reading.session_conversation import SessionConversation


class Mark(NamedTuple):
    """What a write of a partition leaves behind, each with a `stamp` that no other write has.

    `position` is the next offset to be folded, `topic_id` the identity of the topic in Kafka, empty
    where it is not known.
    """

    position: int
    stamp: str
    topic_id: str = ""


class ConversationReader(Protocol):
    """Reads the conversations that `contextgauge conversations` keeps."""

    async def mark(self, partition: int) -> Mark | None:
        """Return the mark of the last write; None: nothing is kept yet. Raises RetryError."""

    async def conversation(self, session_id: str) -> "SessionConversation | None":
        """Return a session's conversation; None where none is kept. Raises RetryError.

        Its position is that of its partition, read in one step with it.
        """

    async def start(self) -> None:
        """Connect. Raises RetryError or ConfigError."""

    async def stop(self) -> None: ...


ASKED_MS: Final = 7 * 24 * 3_600 * 1_000
"""A session's agent is known to ask for its context for so long after it last did."""

_POLLED_MS: Final = 2_000
"""An agent that waits asks again within this."""


class Asked(NamedTuple):
    """The last request of a session's agent for its context.

    `last_id` is the last message that it was given, `times` how often in a row it was given the
    same, `age_ms` for how long it has not asked.
    """

    last_id: str
    times: int
    age_ms: int

    @property
    def is_waiting(self) -> bool:
        """Whether the agent asks again and again, so that it is not calling its model."""
        return self.times > 1 and self.age_ms <= _POLLED_MS


class AskedContexts(Protocol):
    """Remembers which sessions' agents ask for the context that their model should see."""

    async def note(self, session_id: str, last_id: str, compactions: int) -> None:
        """Note what an agent was given: up to which message, after how many compactions.

        Raises RetryError or ConfigError.
        """

    async def asked(self, session_id: str) -> Asked | None:
        """Return the last request; None: there was none in `ASKED_MS`. Raises RetryError."""

    async def stop(self) -> None: ...


class LinesChange(NamedTuple):
    """What happens to a session: its entry, None to remove it, and lines after its `expected`.

    `replaces`: the lines stand in place of those that are there.
    """

    entry: bytes | None
    expected: int
    lines: Sequence[bytes] = ()
    replaces: bool = False


class StoredConversations(NamedTuple):
    """What is kept of a partition, without lines.

    `mark` is None where sessions were lost, or another build wrote them: all is to be read again.
    `plan` names whose text is kept. `since_ms` is the Kafka time of the first message that was
    read, where the log had lost messages before it; None where it had not. `topic_id` is the
    topic's of what was kept, also where that was dropped.
    """

    mark: Mark | None
    plan: str
    since_ms: int | None
    entries: Mapping[bytes, bytes]
    topic_id: str = ""


class ConversationStore(ConversationReader, Protocol):
    """Keeps the lines of conversations, with the position in `agent.messages`."""

    async def open(self, partition: int, partitions: int) -> StoredConversations | None:
        """Return what is kept of a partition; None where there is nothing.

        Raises RetryError, ConfigError where it was kept for another number of partitions.
        """

    async def lines(self, partition: int, session: bytes) -> Sequence[bytes]:
        """Return a session's lines, oldest first. Raises RetryError."""

    async def apply(
        self,
        partition: int,
        *,
        expected: str | None,
        mark: Mark,
        plan: str,
        since_ms: int | None,
        keep_ms: int,
        changes: Mapping[bytes, LinesChange],
    ) -> ApplyResult:
        """Write changes with the mark after them, or nothing. Raises RetryError.

        `expected` is the stamp that must be stored, None: none is. `mismatch`: another one is;
        `done`: this write was made before; `damaged`: sessions or lines were lost. Lines that were
        not written to for `keep_ms` expire, so that no text stays where no worker is left. A
        topic's id and a `since_ms` that are known stay where the write has none.
        """

    async def report(self, partition: int, end: int, now_ms: int) -> None:
        """Note where the partition of the log ends, for readers. Raises RetryError."""

    async def drop(self, partition: int, since_ms: int | None = None, topic_id: str = "") -> None:
        """Delete all that is kept of a partition. Raises RetryError.

        In the same step, before anything else, it notes since when messages are known and which
        topic they were of, for the next worker.
        """
