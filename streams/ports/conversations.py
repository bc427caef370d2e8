"""Conversations: the messages of sessions whose text is kept, as the model should see them now."""

from typing import Literal, NamedTuple, Protocol, TypeAlias

from contextgauge.compaction.history import History

ConversationState: TypeAlias = Literal["whole", "incomplete", "too_large", "without_text"]
"""`incomplete`: the beginning is not there (expired, deleted, or not kept then); `too_large`: more
than is kept of a session; `without_text`: the publisher sent it without text. Only a `whole` one
can be compacted."""


class SessionConversation(NamedTuple):
    """A session's conversation, by all messages before `position` of its partition.

    `first_offset` is that of the first message of the session that it knows.
    """

    history: History
    state: ConversationState
    model: str | None
    agent_id: str | None
    project: str | None
    first_offset: int
    position: int


class ConversationReader(Protocol):
    """Reads the conversations that `contextgauge conversations` keeps."""

    async def position(self, partition: int) -> int | None:
        """Return the next offset of `agent.messages` to be folded; None: nothing is kept yet.

        Raises RetryError.
        """

    async def conversation(self, session_id: str) -> SessionConversation | None:
        """Return a session's conversation; None where none is kept. Raises RetryError."""
