"""The derived records: what everything downstream is a function of.

A record is immutable and self-contained. `data` is one of the dataclasses below (`kind`
is the name on the wire); `Record` is the CloudEvents 1.0 envelope
around it. Token counts are whole tokens, durations whole milliseconds, percentages are floored
to two decimals. A field is null where the source did not report it: nothing is made up.

The source of every field is `docs/RULES.md`; the numbers R1 to R35 there are the rules' names.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from contextgauge.record_words import (
    DurationSource,
    ExhaustedReason,
    Outcome,
    Runtime,
    TokenSource,
    Trigger,
    TriggerReason,
    WindowSource,
)
from contextgauge.reported_receipt import ReportedReceipt

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

SPEC_VERSION: Final = "1.0"
"""CloudEvents version of the envelope."""

SCHEMA_VERSION: Final = 1
"""Version of every record type, the `.v1` of `contextgauge.<kind>.v1`."""

MAIN_CHAIN: Final = "main"
"""Subject of the main conversation; a subagent's chain is named by its agent id (R2)."""

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
    """Any JSON value, as the standard parser gives it."""
else:
    # A validator of the recursive type stops at 255 levels; R5 allows 1 024. The parser has
    # seen to it already that what is here is JSON.
    Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every record's data carries. Fields with a default are left out where they are null.

    `model` is the chain's model without a `[1m]`-like suffix. `task_id` is what the publisher
    set on the source message. `subagent_type` is the chain's, where a message reported it.
    `inherited` is true where the source message is a copy of another session's (R30): it shows what
    the context holds, and belongs in no total, average, chart or alert.
    """

    session_id: str
    chain: str
    model: str | None
    task_id: str | None
    subagent_type: str | None
    inherited: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReading(Common):
    """The size of a chain's context, reported by one API response (R6 to R10).

    `used_tokens` is input + cache creation + cache read, without output. A part that was not
    reported is null and counts 0. `cache_creation_1h_tokens` is the part of the cache creation that
    is kept for an hour, the rest for five minutes. `output_tokens` is the response's output where
    it was known then, else the next reading has it. `messages` counts since the last boundary or
    reset (R23), this response included; `messages_total` since the session's start. `late` is true
    where a newer size is known, of telemetry (R34): the chain's size is not this one.
    `service_tier` is null for the standard one.
    """

    kind: ClassVar[Literal["context_reading"]] = "context_reading"
    response_id: str | None
    used_tokens: int
    input_tokens: int | None
    cache_creation_tokens: int | None
    cache_read_tokens: int | None
    previous_output_tokens: int | None
    window: int | None
    window_source: WindowSource
    used_percent: float | None
    messages: int
    messages_total: int
    cache_creation_1h_tokens: int | None = None
    output_tokens: int | None = None
    late: bool | None = None
    service_tier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextWarning(Common):
    """A reading crossed thresholds not yet announced for this window in the chain's epoch.

    Thresholds are in percent used. `threshold_percent` is the highest newly crossed,
    `thresholds_crossed` all of them, ascending.
    """

    kind: ClassVar[Literal["context_warning"]] = "context_warning"
    threshold_percent: int
    thresholds_crossed: tuple[int, ...]
    context_used_percent: float
    context_remaining_percent: float
    used_tokens: int
    input_tokens: int | None
    cache_tokens: int
    context_window: int
    window_source: WindowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """One row of a runtime's own account of its context."""

    id: str | None
    name: str | None
    kind: str | None
    tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimits(Common):
    """What is known of a chain's limits, at first and whenever it changes (R12).

    `auto_compact_source` is the runtime's word for where its auto-compact setting comes from.
    `total_tokens`, `categories` and `message_breakdown` are there only on the record that a
    context-usage answer caused; the breakdown is the runtime's object, unchanged.
    """

    kind: ClassVar[Literal["context_limits"]] = "context_limits"
    window: int | None
    window_source: WindowSource
    auto_compact_enabled: bool | None
    auto_compact_threshold: int | None
    effective_window: int | None
    auto_compact_source: str | None
    total_tokens: int | None
    categories: tuple[Category, ...] | None
    message_breakdown: dict[str, Json] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStart(Common):
    """A compaction attempt opened (R14). `attempt_id` is this record's own id.

    `trigger_reason` is null while there is no hint (R24); size and percentage are the last
    reading's, null while the size is unknown.
    """

    kind: ClassVar[Literal["compaction_start"]] = "compaction_start"
    attempt_id: str
    trigger_reason: TriggerReason | None
    context_used_percent: float | None
    used_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProgress(Common):
    """A heartbeat of the open attempt (R15)."""

    kind: ClassVar[Literal["compaction_progress"]] = "compaction_progress"
    attempt_id: str
    elapsed_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactBoundary(Common):
    """A compaction succeeded (R19 to R22).

    `attempt_id` is null where no start was seen. `post_tokens` is what the runtime reported:
    the summary and the preserved messages, not the context's size. `number` counts the chain's
    boundaries from 1. `messages_total` counts the chain's messages since the session's start.
    `metadata` is the whole original object, keys as they came; of the
    service's the edit is left out, which is text of the conversation. `receipt` is null where the
    message reports nothing of it. `idle_ms` is for how long the chain was silent before an
    automatic compaction of an idle one (R33), else left out. `summary_cache_creation_tokens` is
    what the calls that wrote the summary wrote to the cache, of it the other for an hour.
    """

    kind: ClassVar[Literal["compact_boundary"]] = "compact_boundary"
    attempt_id: str | None
    trigger: Trigger | None
    pre_tokens: int | None
    pre_tokens_source: TokenSource | None
    post_tokens: int | None
    duration_ms: int | None
    duration_source: DurationSource | None
    number: int
    messages_since_last: int
    messages_total: int
    metadata: dict[str, Json]
    receipt: ReportedReceipt | None = None
    idle_ms: int | None = None
    summary_cache_creation_tokens: int | None = None
    summary_cache_creation_1h_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTiming(Common):
    """A runtime reported a compaction's duration after its boundary (R29).

    At most one per boundary, for one whose own duration is null.
    """

    kind: ClassVar[Literal["compaction_timing"]] = "compaction_timing"
    boundary_id: str
    duration_ms: int
    duration_source: DurationSource


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSummary(Common):
    """The summary that replaced the history (R23). `boundary_id` is the boundary record's id."""

    kind: ClassVar[Literal["compaction_summary"]] = "compaction_summary"
    boundary_id: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinsChecked(Common):
    """Which of the user's turns the model still sees after a boundary (R31): estimates.

    `number` is the boundary's. `pins_kept` counts those that are there, word for word or in other
    words. `lost_pins` are some of the lost ones, shortened; none where they may not be published.
    """

    kind: ClassVar[Literal["pins_checked"]] = "pins_checked"
    boundary_id: str
    number: int
    pins_kept: int
    pins_lost: int
    lost_pins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionComplete(Common):
    """A compaction was measured by the chain's next reading, or ended unmeasured (nulls).

    `tokens_saved` is before minus after and may be negative. `cache_rewrite_tokens` is what that
    reading's response wrote to the cache.
    """

    kind: ClassVar[Literal["compaction_complete"]] = "compaction_complete"
    boundary_id: str
    trigger: Trigger | None
    tokens_before: int | None
    tokens_after: int | None
    tokens_saved: int | None
    duration_ms: int | None
    cache_rewrite_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed(Common):
    """An attempt ended without a boundary (R17, R18); `attempt_id` is null without a start."""

    kind: ClassVar[Literal["compaction_failed"]] = "compaction_failed"
    attempt_id: str | None
    outcome: Outcome
    error: str | None
    duration_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEdit(Common):
    """Content was removed without a compaction (R26).

    `edits` are the whole original objects, 64 KiB of them at most; `edits_left_out` counts those
    that are not among them, null for none. `cleared_input_tokens` is the sum over all.
    """

    kind: ClassVar[Literal["context_edit"]] = "context_edit"
    edits: tuple[dict[str, Json], ...]
    cleared_input_tokens: int | None
    edits_left_out: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReset(Common):
    """The conversation was cleared (R27): size unknown, a new epoch, history preserved."""

    kind: ClassVar[Literal["context_reset"]] = "context_reset"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExhausted(Common):
    """A turn ended for lack of room. `tokens_over` is by how much, where the runtime reports it."""

    kind: ClassVar[Literal["context_exhausted"]] = "context_exhausted"
    reason: ExhaustedReason
    tokens_over: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo(Common):
    """Facts of the session, when first reported and when one changes.

    The inherited `model` is this record's fact, not the chain's: `init` may report it with a
    `[1m]`-like suffix, and a response's model never changes it. `publisher_agent_id` is the
    agent that the publisher's header `agent_id` named, left out where it named none; so are
    `compaction_settings`, what the runtime's own settings say of the next compaction (R33): each
    has a `value` and the `source` that it is from.
    """

    kind: ClassVar[Literal["session_info"]] = "session_info"
    runtime: Runtime | None
    runtime_version: str | None
    cwd: str | None
    forked_from: str | None
    publisher_agent_id: str | None = None
    compaction_settings: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse(Common):
    """A call of a tool, or its result, without any of its text (R35); derived where asked for.

    A result names the call's `use_id`, and its `tool` where the runtime repeats it. `bytes` are
    those of the call's input as JSON, or of the result's texts, in UTF-8; `tokens_estimated` is a
    token for four characters. Hashes are of 16 bytes, in hex: of the input, and of each path in it
    (the first 8); two publishers' are not the same where texts are left out. `changes_files` is
    whether the call changes a file, null where it names none.
    """

    kind: ClassVar[Literal["tool_use"]] = "tool_use"
    part: Literal["call", "result"]
    use_id: str | None
    tool: str | None
    bytes: int
    tokens_estimated: int
    input_hash: str | None = None
    path_hashes: tuple[str, ...] = ()
    changes_files: bool | None = None
    is_error: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTurn(Common):
    """A turn that a person wrote, by its length (R35); derived where asked for."""

    kind: ClassVar[Literal["user_turn"]] = "user_turn"
    characters: int
    tokens_estimated: int


RecordData: TypeAlias = (
    ContextReading
    | ContextWarning
    | ContextLimits
    | CompactionStart
    | CompactionProgress
    | CompactBoundary
    | CompactionTiming
    | CompactionSummary
    | PinsChecked
    | CompactionComplete
    | CompactionFailed
    | ContextEdit
    | ContextReset
    | ContextExhausted
    | SessionInfo
    | ToolUse
    | UserTurn
)

DATA_CLASSES: Final[tuple[type[RecordData], ...]] = get_args(RecordData)
"""Every class of `RecordData`; the union is closed."""

Kind: TypeAlias = Literal[
    "context_reading",
    "context_warning",
    "context_limits",
    "compaction_start",
    "compaction_progress",
    "compact_boundary",
    "compaction_timing",
    "compaction_summary",
    "pins_checked",
    "compaction_complete",
    "compaction_failed",
    "context_edit",
    "context_reset",
    "context_exhausted",
    "session_info",
    "tool_use",
    "user_turn",
]

DATA_CLASS_BY_KIND: Final[dict[str, type[RecordData]]] = {cls.kind: cls for cls in DATA_CLASSES}


@dataclass(frozen=True, slots=True)
class Record:
    """A CloudEvents 1.0 event: one derived record.

    `id` is a UUIDv5 of session, chain, kind and cause, so a message published twice gives the
    same id. `time` is event time in milliseconds since 1970 (R28), null where none is known.
    `sequence` counts 1, 2, … within the session. `rules` names the rules and limits in force.
    """

    id: str
    subject: str
    time_ms: int | None
    sequence: int
    rules: str
    data: RecordData

    @property
    def kind(self) -> str:
        """The record's kind, `context_reading` and so on."""
        return self.data.kind

    @property
    def type(self) -> str:
        """The CloudEvents type, `contextgauge.<kind>.v1`."""
        return event_type(self.data.kind)


def event_type(kind: str) -> str:
    """Return the CloudEvents type of a kind."""
    return f"contextgauge.{kind}.v{SCHEMA_VERSION}"
