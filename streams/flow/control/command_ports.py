"""What the compaction service needs of the outside world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from contextgauge.compaction.history import Edit, History
from schemas.records import Json
from streams.core.control.plan import ControlPlan
from streams.flow.common.ports import WorkerPorts
from streams.ports import (
    ControlStore,
    ConversationReader,
    Driver,
    Log,
    RecordStream,
    SessionConversation,
)

GROUP: Final = "contextgauge-compaction"
"""The consumer group's name, behind the settings' prefix."""


class Fold(Protocol):
    """Folds a session's messages into its conversation, of which it makes a copy."""

    def add(self, line: Mapping[str, Json], offset: int, *, strict: bool = False) -> None:
        """Add a message. `strict`: raises PlanRejectedError for a boundary that does not fit."""

    @property
    def result(self) -> SessionConversation:
        """The conversation by all that was added."""


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
    drivers: Mapping[str, Driver]
    plan: ControlPlan
    fold: Callable[[SessionConversation], Fold]
    store_edit: Callable[[Edit, History], Json]
    commands_topic: str
    messages_topic: str
    partitions: int
    transactional_prefix: str
    retention_ms: int
    fenced_pause_s: float = 15.0
    """Before a partition is taken over again that another worker took, and that is still assigned:
    longer than a group takes to notice which of the two is the owner."""
    message_limit_bytes: int = 8 * 2**20
