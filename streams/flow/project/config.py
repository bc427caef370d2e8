"""Project worker configuration."""

from dataclasses import dataclass

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS
from schemas.views import SESSION_IDLE_MS
from streams.flow.derive.config import GROUP as DERIVE_GROUP

GROUP = "contextgauge-project"
"""Consumer group of the project workers, before the prefix of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectConfig:
    """Names include their prefixes. Each default is justified in its docstring."""

    events_topic: str = CONTEXT_EVENTS.name
    group: str = GROUP

    messages_topic: str = AGENT_MESSAGES.name
    derive_group: str = DERIVE_GROUP
    """Whose lag on which topic readers learn of, besides the projection's own."""

    instance_id: str | None = None
    """Makes this worker a static member of the group; must differ between workers."""

    batch_records: int = 2_000
    """Most records folded at once: some 40 ms, so that partitions take fair turns."""

    poll_timeout_s: float = 0.25
    """How long a poll waits for records; it returns at once when there are any."""

    open_timeout_s: float = 60.0
    """Connecting to read a partition for a build takes some round trips; the client itself abandons
    one that is not answered after 30 s."""

    idle_ms: int = SESSION_IDLE_MS
    """A session idle for so long of its partition's Kafka time leaves the views."""

    watch_s: float = 0.5
    """How often the worker checks whether another one began or activated a generation, and whether
    the store still has what was written."""

    drop_after_s: float = 60.0
    """A former generation is deleted so long after the swap: requests that began with it have
    ended by then."""
