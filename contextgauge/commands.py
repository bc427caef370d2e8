"""The control plane's log, `context.commands`: what was asked for, and what became of it.

An entry is immutable. Requests may be written by anyone who may write to the topic; the steps of a
command only by the control worker that owns the partition, in transactions, so that a command that
was accepted has exactly one `CommandFinished`. The key is the session id. Thresholds of an agent or
a project have no key and are written to every partition. Times are milliseconds since 1970, token
counts whole tokens.
"""

from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

from contextgauge.record_words import WindowSource
from contextgauge.records import Json

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

COMMAND_VERSION: Final = 1
"""Version of every entry's type, the `.v1` of `contextgauge.command.<kind>.v1`."""

CommandTrigger: TypeAlias = Literal["manual", "auto", "model_change"]
CommandOutcome: TypeAlias = Literal[
    "completed", "nothing_to_compact", "refused", "cancelled", "failed", "expired"
]
"""`refused`: it was never begun, for a reason that holds; `expired`: it was too old to begin;
`failed`: every attempt failed, and the conversation is as it was."""

ThresholdScope: TypeAlias = Literal["session", "agent", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRequested:
    """Compact a session. A second request with the same `command_id` is the same one.

    `cause_id` is the record that crossed the threshold. The conversation has to be known up to
    `upto_offset` in `agent.messages` (exclusive) before it is planned; null: up to where the
    partition ended when the command was accepted. `urgent`: do not wait for a model, take the
    deterministic summary.
    """

    kind: ClassVar[Literal["compact_requested"]] = "compact_requested"
    session_id: str
    command_id: str
    trigger: CommandTrigger
    requested_by: str
    instructions: str | None = None
    cause_id: str | None = None
    upto_offset: int | None = None
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """Cancel a command. Without effect once it is finished.

    `command_id` null: all of the session that were requested before, also those that no worker has
    read yet.
    """

    kind: ClassVar[Literal["cancel_requested"]] = "cancel_requested"
    session_id: str
    command_id: str | None
    requested_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdsSet:
    """Thresholds of a session, an agent or a project from now on; the latest entry holds.

    `compact_at` and `compact_to` are tokens (`120000`) or a share of the window (`85%`); null
    leaves what the file says. `automatic` null: as the file says. All three null: removed.
    """

    kind: ClassVar[Literal["thresholds_set"]] = "thresholds_set"
    scope: ThresholdScope
    name: str
    requested_by: str
    automatic: bool | None = None
    compact_at: str | None = None
    compact_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDeleted:
    """Delete the session's text that was published until the Kafka time of this entry."""

    kind: ClassVar[Literal["text_deleted"]] = "text_deleted"
    session_id: str
    requested_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDecided:
    """An evaluation that mattered: what was decided, why, and by which figures.

    `fired`: a command was requested, `command_id`. `reason` is a word of the list in
    docs/CONTROL.md. A figure that was not known is null. `unhelpful`: so many compactions in a row
    left the session above its threshold; null also where the effect of the last is not known yet.
    With the reason `no_effect`, `command_id` is the compaction that had none, and `used_tokens` is
    what the answer after it reported.
    """

    kind: ClassVar[Literal["compaction_decided"]] = "compaction_decided"
    session_id: str
    fired: bool
    reason: str
    command_id: str | None = None
    cause_id: str | None = None
    model: str | None = None
    used_tokens: int | None = None
    window: int | None = None
    window_source: WindowSource | None = None
    threshold_tokens: int | None = None
    unhelpful: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAccepted:
    """The command will be carried out by `driver`: `service`, or the runtime's own."""

    kind: ClassVar[Literal["command_accepted"]] = "command_accepted"
    session_id: str
    command_id: str
    driver: str
    upto_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPlanned:
    """An attempt knows what it will cover: the first `covers` messages, up to `last_id`.

    Attempts count from 1. `prefix_hash` is the digest of what is covered; null for a runtime that
    plans by itself, as are `covers` and `last_id`.
    """

    kind: ClassVar[Literal["command_planned"]] = "command_planned"
    session_id: str
    command_id: str
    attempt: int
    tokens_before: int | None = None
    covers: int | None = None
    last_id: str | None = None
    prefix_hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCalled:
    """The attempt asked the summariser, or the runtime; heartbeats repeat it."""

    kind: ClassVar[Literal["command_called"]] = "command_called"
    session_id: str
    command_id: str
    attempt: int
    summariser: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFinished:
    """The one outcome of a command. `reason` says why, in words without the conversation's text.

    `boundary_uuid` is the uuid of the boundary message in `agent.messages`; `receipt` is the
    engine's, as JSON. Both are null where nothing was compacted, or a runtime did it itself.
    """

    kind: ClassVar[Literal["command_finished"]] = "command_finished"
    session_id: str
    command_id: str
    outcome: CommandOutcome
    attempt: int
    reason: str | None = None
    boundary_uuid: str | None = None
    receipt: dict[str, Json] | None = None


CommandRequest: TypeAlias = CompactRequested | CancelRequested | ThresholdsSet | TextDeleted
CommandStep: TypeAlias = CommandAccepted | CommandPlanned | CommandCalled | CommandFinished
CommandData: TypeAlias = CommandRequest | CompactionDecided | CommandStep

COMMAND_CLASSES: Final[tuple[type[CommandData], ...]] = (
    *get_args(CommandRequest),
    CompactionDecided,
    *get_args(CommandStep),
)
COMMAND_CLASS_BY_KIND: Final[dict[str, type[CommandData]]] = {
    each.kind: each for each in COMMAND_CLASSES
}


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A CloudEvents 1.0 event: one entry of the log.

    `id` is the writer's, unique; a step's is a UUIDv5 of command, attempt and kind.
    """

    id: str
    time_ms: int
    data: CommandData


CommandState: TypeAlias = Literal["requested", "accepted", "planned", "called", "finished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    """What is known of one command, by its entries so far. Null: not yet, or not known."""

    command_id: str
    trigger: CommandTrigger
    requested_by: str
    instructions: str | None
    cause_id: str | None
    state: CommandState
    requested_ms: int
    accepted_ms: int | None = None
    planned_ms: int | None = None
    called_ms: int | None = None
    finished_ms: int | None = None
    attempt: int = 0
    driver: str | None = None
    tokens_before: int | None = None
    summariser: str | None = None
    outcome: CommandOutcome | None = None
    reason: str | None = None
    boundary_uuid: str | None = None
    receipt: dict[str, Json] | None = None
    is_cancelling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """A `CompactionDecided`, with its id and time."""

    id: str
    time_ms: int
    fired: bool
    reason: str
    command_id: str | None
    cause_id: str | None
    model: str | None
    used_tokens: int | None
    window: int | None
    window_source: WindowSource | None
    threshold_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlView:
    """What the control plane knows of a session: bounded, newest last.

    `thresholds` are those set for the session itself.
    """

    session_id: str
    commands: tuple[CommandView, ...] = ()
    decisions: tuple[DecisionView, ...] = ()
    thresholds: ThresholdsSet | None = None
    text_deleted_ms: int | None = None
