"""The topics as data: names, keys, partitions, retention, sizes.

`agent.messages`, `context.events`, `context.state` and `context.commands` have equal partition
counts and the same partitioner, murmur2 of the session id: all of a session is on one number.
Names carry the prefix of the settings in front. All figures here are defaults; settings win.
"""

from dataclasses import dataclass
from typing import Final, Literal

from contextgauge.messages import AGENT_MESSAGES_TOPIC, MESSAGE_LIMIT_BYTES
from contextgauge.units import DAY_MS, HOUR_MS, MIB

RECORD_ROOM_BYTES: Final = MIB // 2
"""How much larger than a message a derived record's data may be; key and headers take the rest
of what the topics take more."""

DEFAULT_PARTITIONS: Final = 4


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. `retention_ms` -1 keeps for ever; `max_message_bytes` is the broker's limit.

    `max_ahead_ms`: how far a record's time may lie ahead of the broker's clock; None: any time.
    """

    name: str
    key: str
    cleanup: Literal["delete", "compact"]
    retention_ms: int
    max_message_bytes: int
    max_ahead_ms: int | None = None


AGENT_MESSAGES: Final = Topic(
    AGENT_MESSAGES_TOPIC, "session id", "delete", 30 * DAY_MS, 9 * MIB, max_ahead_ms=HOUR_MS
)
"""Others than we write to it, so a clock that is far ahead is refused: sessions are judged idle by
the time of the messages, and retention goes by it too."""
CONTEXT_EVENTS: Final = Topic("context.events", "session id", "delete", -1, 9 * MIB)
"""Kept for ever: a rebuild of the projection needs it whole."""
CONTEXT_STATE = Topic("context.state", "session id and part; position", "compact", -1, 9 * MIB)
"""Compacted only: deleting by age would lose sessions that are still open."""
DEAD_LETTERS: Final = Topic("agent.messages.dead", "as received", "delete", 90 * DAY_MS, 10 * MIB)
"""A mebibyte more than its source: the headers that tell why must fit too."""
CONTEXT_COMMANDS: Final = Topic("context.commands", "session id", "delete", 30 * DAY_MS, MIB)

TOPICS: tuple[Topic, ...] = (
    AGENT_MESSAGES,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DEAD_LETTERS,
    CONTEXT_COMMANDS,
)

CO_PARTITIONED: tuple[Topic, ...] = (
    AGENT_MESSAGES,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    CONTEXT_COMMANDS,
)
"""Topics whose partition counts must be equal."""

__all__ = [
    "AGENT_MESSAGES",
    "CONTEXT_COMMANDS",
    "CONTEXT_EVENTS",
    "CONTEXT_STATE",
    "CO_PARTITIONED",
    "DAY_MS",
    "DEAD_LETTERS",
    "DEFAULT_PARTITIONS",
    "HOUR_MS",
    "MESSAGE_LIMIT_BYTES",
    "MIB",
    "RECORD_ROOM_BYTES",
    "TOPICS",
    "Topic",
]
