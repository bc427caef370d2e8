"""A session's conversation, as the log gives it."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:  # a server that keeps no texts needs neither
    from contextgauge.compaction.history import History
    from contextgauge.compaction.reading.conversation import ConversationReading

ConversationState: TypeAlias = Literal["whole", "incomplete", "too_large", "without_text"]
"""`incomplete`: the beginning is not there (expired, deleted, or not kept then); `too_large`: more
than is kept of a session; `without_text`: the publisher sent it without text. Only a `whole` one
can be compacted."""


class SessionConversation(NamedTuple):
    """A session's conversation, by all messages before `position` of its partition.

    `first_offset` is that of the first message of the session that it knows. `reading` is what
    reading on needs besides the history; None where only the history is known. `oldest_ms` is
    the Kafka time of the first message that the model sees; None where it is not known. `behind`
    is how many messages of the partition had not been read at `reported_ms`, when the worker last
    reported; `topic_id` is the identity of the topic that they are of, empty if not known.
    """

    history: "History"
    state: ConversationState
    model: str | None
    agent_id: str | None
    project: str | None
    first_offset: int
    position: int
    reading: "ConversationReading | None" = None
    oldest_ms: int | None = None
    behind: int | None = None
    reported_ms: int | None = None
    topic_id: str = ""
