"""Configuration of the worker that keeps conversations."""

from dataclasses import dataclass, field
from functools import cached_property

from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS, MESSAGE_LIMIT_BYTES
from streams.core.conversation.opt_in import KeptConversations
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.ports import Log
from streams.ports.conversations import ConversationStore

GROUP = "contextgauge-conversations"
"""Consumer group of the workers, before the prefix of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationsConfig:
    """Names include their prefixes. Each default is justified in its docstring."""

    messages_topic: str = AGENT_MESSAGES.name
    commands_topic: str = CONTEXT_COMMANDS.name
    group: str = GROUP

    instance_id: str | None = None
    """Makes this worker a static member of the group; must differ between workers."""

    kept: KeptConversations = field(default_factory=KeptConversations)

    limit_bytes: int = MESSAGE_LIMIT_BYTES
    """Longer messages are dead letters, which are in no conversation."""

    batch_messages: int = 1_000
    """Most messages read at once: some 100 ms, so that partitions take fair turns."""

    write_bytes: int = 2 * 1024 * 1024
    """Bytes of one call of Redis: it serves no one else meanwhile, some milliseconds."""

    poll_timeout_s: float = 0.25
    """How long a poll waits for messages; it returns at once when there are any."""

    expire_s: float = 60.0
    """How often idle sessions are looked for: their number is in memory, so it costs little."""


@dataclass(frozen=True, kw_only=True)
class ConversationsPorts(WorkerPorts):
    """What the work on every partition uses."""

    log: Log
    store: ConversationStore
    config: ConversationsConfig

    @cached_property
    def retry(self) -> RetryLoop:
        """Retries what the store is asked for."""
        return RetryLoop(self, "redis")
