"""Conversations: the messages of sessions whose text is kept, as the model should see them now."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from contextgauge.compaction.session import ConversationState, SessionConversation
from streams.ports.views import ApplyResult

__all__ = [
    "ConversationReader",
    "ConversationState",
    "ConversationStore",
    "LinesChange",
    "SessionConversation",
    "StoredConversations",
]


class ConversationReader(Protocol):
    """Reads the conversations that `contextgauge conversations` keeps."""

    async def position(self, partition: int) -> int | None:
        """Return the next offset of `agent.messages` to be folded; None: nothing is kept yet.

        Raises RetryError.
        """

    async def conversation(self, session_id: str) -> SessionConversation | None:
        """Return a session's conversation; None where none is kept. Raises RetryError.

        Its position is that of its partition, read in one step with it.
        """

    async def start(self) -> None:
        """Connect. Raises RetryError or ConfigError."""

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

    `position` is the next offset to be folded, `plan` names whose text is kept. `since_ms` is the
    Kafka time of the first message that was read, where the log had lost messages before it; None
    where it had not.
    """

    position: int
    plan: str
    since_ms: int | None
    entries: Mapping[bytes, bytes]


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
        expected: int | None,
        position: int,
        plan: str,
        since_ms: int | None,
        keep_ms: int,
        changes: Mapping[bytes, LinesChange],
    ) -> ApplyResult:
        """Write changes with the position after them, or nothing. Raises RetryError.

        `expected` is the position that must be stored, None: none is. `mismatch`: another one is;
        `damaged`: sessions or lines were lost. Lines that were not written to for `keep_ms` expire,
        so that no text stays where no worker is left.
        """

    async def drop(self, partition: int) -> None:
        """Delete all that is kept of a partition. Raises RetryError."""
