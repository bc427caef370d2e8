"""Inbound messages: what a runtime published, before anything is known of its provider.

The body is any JSON object: unknown types, subtypes and fields are ignored and a wrong type in
a known field makes that field absent (R3), so no stricter shape is declared. What can be
relied on is the wrapping below, which says where the body came from.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from contextgauge.units import MIB

AGENT_MESSAGES_TOPIC: Final = "agent.messages"
"""Topic that publishers write to; a prefix of the settings comes before the name."""

MESSAGE_LIMIT_BYTES: Final = 8 * MIB
"""Largest message that is derived from (R5)."""

OBSERVED_HEADER: Final = "observed"
"""Kafka header; the value `live` says that the record's CreateTime is when it was seen (R28)."""
OBSERVED_LIVE: Final = b"live"
TASK_ID_HEADER: Final = "task_id"
"""Kafka header, or field of the message, by which a publisher names a task."""
AGENT_ID_HEADER: Final = "agent_id"
"""Kafka header by which a publisher names the agent that runs the session: one agent has many
sessions. It is not the `agent_id` in a message, which names a subagent's chain (R2)."""
THREAD_ID_HEADER: Final = "thread_id"
"""Kafka header of a line of a Codex subagent's rollout: its thread. The key is then the session of
the thread that started it, and the line belongs to a chain of that session (R30)."""
INHERITED_HEADER: Final = "inherited"
"""Kafka header of a line of a Codex rollout that begins with another thread's lines: whether this
one is such a copy, `true` or `false`. Publishers that have the other rollout too can tell (R30)."""
SETTINGS_HEADER: Final = "compaction_settings"
"""Kafka header of some lines of a transcript that is published while it is written: what the
runtime's own settings say of its next compaction, a JSON object as in `session_info` (R33)."""
REDRIVEN_HEADER: Final = "redriven_from"
"""Kafka header of a message that was a dead letter: which one, as `PARTITION:OFFSET`. It
names the origin of the message, and changes no record."""

DeadReason: TypeAlias = Literal[
    "not_utf8",
    "byte_order_mark",
    "not_json",
    "not_object",
    "too_deep",
    "too_large",
    "no_session",
    "misrouted",
    "batch_too_large",
    "batch_damaged",
]
"""Why a message cannot be derived from, or no message of a batch (R5). Nothing else is a dead
letter."""

MAX_DEPTH: Final = 1024
"""Deepest nesting that is read (R5); the outermost object is 1."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that cannot be derived from: the reason, and a sentence that says what to do."""

    reason: DeadReason
    detail: str


NO_SESSION: Final = DeadLetter(
    "no_session",
    "neither the message nor its key names a session: key messages by their session id, "
    "of at most 16 384 characters",
)
