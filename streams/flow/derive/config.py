"""Derive worker configuration."""

from dataclasses import dataclass

from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DEAD_LETTERS,
    MESSAGE_LIMIT_BYTES,
)

GROUP = "contextgauge-derive"
"""Consumer group of the derive workers, before the prefix of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeriveConfig:
    """Names include their prefixes. Each default is justified in its docstring."""

    messages_topic: str = AGENT_MESSAGES.name
    events_topic: str = CONTEXT_EVENTS.name
    state_topic: str = CONTEXT_STATE.name
    dead_topic: str = DEAD_LETTERS.name
    group: str = GROUP

    instance_id: str | None = None
    """Makes this worker a static member of the group: restarted within the session time-out it
    gets its partitions back without a rebalance. Must differ between workers."""

    processes: int = 1
    """Workers that were started together, for the one of them that checks whether there are
    enough partitions."""

    batch_messages: int = 5_000
    """Most messages of one transaction, which only a backlog reaches: then a session's state is
    written once for more of its messages, and a commit's requests serve more. At 30 000 a
    second a batch of each of four partitions, derived in turns, takes 0.7 s, and for so long its
    first messages wait. Its bytes are bounded by what one fetch brings."""

    commit_pause_s: float = 0.005
    """After a commit, before the next begins. A broker answers before the transaction's markers are
    written, and makes a client that begins another before then wait for longer. More of it makes
    larger batches: fewer transactions and less CPU time, and later records."""

    limit_bytes: int = MESSAGE_LIMIT_BYTES
    """A larger message is a dead letter (R5)."""

    letter_bytes: int = DEAD_LETTERS.max_message_bytes
    """What the topic of dead letters takes: a letter that is larger, as it is written, is cut."""

    poll_timeout_s: float = 0.25
    """How long a poll waits for records; it returns at once when there are any."""

    idle_days: int = 90
    """A session idle for so long of its partition's Kafka time leaves the state."""

    cold_hours: int = 2
    """A session without a message for more hours than these of its partition's Kafka time rests:
    it is held as it is stored, outside of memory, until its next message. To unpack it then takes
    a quarter of a millisecond."""

    allow_dead_letters: bool = False
    """Go on where more than half of the last messages were dead letters."""

    fenced_pause_s: float = 12.0
    """A fenced partition that is still assigned after this pause is taken over again: by then,
    above the session time-out, a worker that lost its place in the group has noticed."""

    revoke_timeout_s: float = 8.0
    """Patience with a running batch when its partition is revoked, below the time that the
    group waits for its members; after it the batch is abandoned and derived again elsewhere."""

    commit_timeout_s: float = 20.0
    """Within this time a commit succeeds or fails: the adapter guarantees it."""

    restore_silence_s: float = 60.0
    """Within this time taking over makes progress: a producer's start, the next entries."""

    def transactional_id(self, partition: int) -> str:
        """Return the transactional id of an input partition: one for each, never per process.

        It follows from the topics, not from the group: what it protects is what is written, and
        workers of another group over the same topics have to be fenced, too.
        """
        return f"{self.state_topic.removesuffix(CONTEXT_STATE.name)}{GROUP}-{partition}"
