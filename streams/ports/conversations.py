"""Conversations: the messages of sessions whose text is kept, as the model should see them now."""

from typing import Protocol

from contextgauge.compaction.session import ConversationState, SessionConversation

__all__ = ["ConversationReader", "ConversationState", "SessionConversation"]


class ConversationReader(Protocol):
    """Reads the conversations that `contextgauge conversations` keeps."""

    async def position(self, partition: int) -> int | None:
        """Return the next offset of `agent.messages` to be folded; None: nothing is kept yet.

        Raises RetryError.
        """

    async def conversation(self, session_id: str) -> SessionConversation | None:
        """Return a session's conversation; None where none is kept. Raises RetryError."""
