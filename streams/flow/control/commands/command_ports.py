"""What the compaction service needs of the outside world."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from schemas.messages import MESSAGE_LIMIT_BYTES
from streams.core.control.plan import ControlPlan
from streams.flow.common.ports import WorkerPorts
from streams.flow.control.session_owners import OwnerOf
from streams.ports import (
    AskedContexts,
    ControlStore,
    ConversationReader,
    Driver,
    Log,
    RecordStream,
)

GROUP: Final = "contextgauge-compaction"
"""The consumer group's name, behind the settings' prefix."""


@dataclass(frozen=True, kw_only=True)
class CommandPorts(WorkerPorts):
    """What every part of the service uses.

    `transactional_prefix` begins the transactional id of each partition; `partitions` is the number
    that both topics have.
    """

    stream: RecordStream
    log: Log
    store: ControlStore
    conversations: ConversationReader
    asked: AskedContexts
    drivers: Mapping[str, Driver]
    owner_of: OwnerOf
    plan: ControlPlan
    commands_topic: str
    messages_topic: str
    partitions: int
    transactional_prefix: str
    retention_ms: int
    fenced_pause_s: float = 15.0
    """Before a partition is taken over again that another worker took, and that is still assigned:
    longer than a group takes to notice which of the two is the owner."""
    look_s: float = 5.0
    """How often a partition's progress is checked."""
    stalled_s: float = 60.0
    """Its log is polled, and looked at, about each second; a commit takes 20 s at the most."""
    message_limit_bytes: int = MESSAGE_LIMIT_BYTES
