"""A session's text for the routes that read it."""

from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import RetryError
from contextgauge.records import Json
from streams.core.conversation.fold import ConversationFold
from streams.ports.conversations import Mark

LINES: tuple[dict[str, Json], ...] = (
    {
        "type": "user",
        "uuid": "1",
        "message": {"role": "user", "content": "The checkout's tests are red."},
    },
    {"type": "system", "subtype": "compact_boundary", "uuid": "b"},
    {
        "type": "user",
        "uuid": "s",
        "isCompactSummary": True,
        "message": {"role": "user", "content": "So far."},
    },
    {"type": "user", "uuid": "2", "message": {"role": "user", "content": "Mend them."}},
    {
        "type": "assistant",
        "uuid": "3",
        "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "a"}]},
    },
    {
        "type": "assistant",
        "uuid": "4",
        "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "b"}]},
    },
)


class OneConversation:
    """A reader that has the conversation of one session."""

    def __init__(self, session_id: str, conversation: SessionConversation) -> None:
        self.session_id, self.kept = session_id, conversation
        self.away = False

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def mark(self, partition: int) -> Mark:  # noqa: ARG002 -- of any
        return Mark(self.kept.position, "")

    async def conversation(self, session_id: str) -> SessionConversation | None:
        if self.away:
            raise RetryError("away")
        return self.kept if session_id == self.session_id else None


def kept_conversation() -> SessionConversation:
    fold = ConversationFold()
    for offset, line in enumerate(LINES):
        fold.add(line, offset)
    return fold.result
