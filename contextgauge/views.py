"""The views: JSON documents that the projection keeps and readers get.

A view is the fold of a session's records in order (`streams/core/projection/project.py`). It holds
absolute values and the position they came from. Times are milliseconds since 1970 as the records
report them (R28), sizes whole tokens, percentages floored to two decimals;
null is «not known» and never 0. Nothing here is derived from a clock: whether an open attempt is
stalled or a figure stale is for the reader's own clock to decide.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from contextgauge.compaction_views import VIEW_VERSION
from contextgauge.distributions import Distribution
from contextgauge.record_words import (
    DurationSource,
    Outcome,
    Runtime,
    Trigger,
    TriggerReason,
    WindowSource,
)
from contextgauge.records import Category, Json
from contextgauge.units import DAY_MS

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

FORMAT_VERSION = 5
"""Version of the keys and of what they hold, stored with each partition's position.

Views of another format are not converted: a projector rebuilds those of a former one from the log,
and refuses those of a later one.
"""

LAST_COMPACTIONS = 5
"""Compactions that a session's view has in short; the others are documents of their own."""

GROWTH_DIFFERENCES = 20
"""Positive differences that growth is the mean of: enough to be steady, few enough to follow.

A few large ones add more than all others, so their median promises far too many responses:
docs/adr/0070-growth-is-a-mean.md.
"""

MAX_CHAINS = 64
"""Chains of one view, as in the deriver's state (R2); the least recent leaves first."""

STREAM_ENTRIES = 2_000
"""Entries stored of a session's records, and as many of its readings."""

LIVE_ENTRIES = 10_000
"""Entries stored of a partition's live feed: minutes of a busy partition, some MB of memory."""

SESSION_IDLE_MS = 90 * DAY_MS
"""A session idle for so long leaves the views; a default, the settings win."""

HOURS_KEPT_MS = 400 * DAY_MS
"""Hours older than this leave the aggregates: a year can be compared with the one before."""

LEFT_KEPT_MS = HOURS_KEPT_MS
"""That a session left for idleness is remembered so long: if it comes back, nothing was lost."""

EntryStream: TypeAlias = Literal["events", "readings"]
"""The two streams of a session's records: its readings, and all else but heartbeats."""

SizeState: TypeAlias = Literal["measured", "unknown", "compacting", "estimated"]
"""How a chain's size is known: measured by a response; unknown since the last boundary or reset;
a compaction is under way (the figures are those before it); the runtime's own estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The parts of a measured size; a part that was not reported is null and counts 0."""

    input_tokens: int | None
    cache_creation_tokens: int | None
    cache_read_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCompaction:
    """A chain's last boundary: while its summary or measurement may still come, or its check."""

    boundary_id: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UntimedCompaction:
    """A chain's latest boundary without a duration, while one may still be reported (R29).

    Its duration is counted where the boundary was: under its trigger, model and time.
    """

    boundary_id: str
    number: int
    trigger: Trigger | None
    model: str | None
    time_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainView:
    """One conversation with a model: the main one or a subagent's.

    `used_tokens` to `as_of_ms` are the size; `categories` the runtime's own account, where it
    gave one, of the size `categories_tokens`. `until_compaction_tokens` is the auto-compact
    threshold minus the size, and may be negative; null where the threshold is not known or
    auto-compaction is off. The peak is the largest reading or size before a compaction, with its
    percentage then. `messages` counts since the last boundary or reset, null until a record has a
    count; `oldest_ms` is when the oldest of them was seen: after a boundary, the boundary's time.
    `differences` are the last positive ones between readings of this epoch, `growth_tokens` their
    mean, `responses_left` how many more such steps fit. `latest` is the last boundary, whose
    rules may be checked at any time. `last_sequence` is the sequence of the chain's last record.
    `inherited`: the size is that of a copied response (R30). `passed_window` is the assumed window
    that the size passed, where the window is unknown for that (`exceeded`).
    """

    chain: str
    model: str | None = None
    subagent_type: str | None = None
    state: SizeState = "unknown"
    used_tokens: int | None = None
    used_percent: float | None = None
    window: int | None = None
    window_source: WindowSource | None = None
    breakdown: Breakdown | None = None
    categories: tuple[Category, ...] | None = None
    categories_tokens: int | None = None
    as_of_ms: int | None = None
    auto_compact_enabled: bool | None = None
    auto_compact_threshold: int | None = None
    effective_window: int | None = None
    until_compaction_tokens: int | None = None
    peak_tokens: int | None = None
    peak_percent: float | None = None
    messages: int | None = None
    messages_total: int | None = None
    oldest_ms: int | None = None
    differences: tuple[int, ...] = ()
    growth_tokens: int | None = None
    responses_left: int | None = None
    pending: PendingCompaction | None = None
    untimed: UntimedCompaction | None = None
    latest: PendingCompaction | None = None
    last_sequence: int = 0
    inherited: bool = False
    passed_window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What is known of the session itself; each fact as last reported.

    `publisher_agent_id` is the agent that the publisher named as the session's,
    `compaction_settings` what the runtime's own settings say of the next compaction where the
    session runs (R33).
    """

    runtime: Runtime | None = None
    runtime_version: str | None = None
    model: str | None = None
    cwd: str | None = None
    forked_from: str | None = None
    task_id: str | None = None
    publisher_agent_id: str | None = None
    compaction_settings: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """The open compaction attempt. `elapsed_ms` is that of its last heartbeat."""

    attempt_id: str
    chain: str
    trigger_reason: TriggerReason | None
    started_ms: int | None
    last_heartbeat_ms: int | None
    elapsed_ms: int | None
    used_tokens: int | None
    used_percent: float | None


CompactionOutcome: TypeAlias = Literal["succeeded"] | Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBrief:
    """A compaction in short. `record_id` is its boundary's, or its failure's.

    `number` and `messages_since_last` are null for one that failed, `error` for one that did not.
    `model` and `window` are the chain's before one that succeeded: its size is learned for these.
    `idle_ms` is the silence before an automatic one of an idle session, whose size says nothing.
    """

    record_id: str
    chain: str
    number: int | None
    outcome: CompactionOutcome
    trigger: Trigger | None
    error: str | None
    time_ms: int | None
    tokens_before: int | None
    tokens_after: int | None
    tokens_saved: int | None
    duration_ms: int | None
    duration_source: DurationSource | None
    messages_since_last: int | None
    inherited: bool = False
    model: str | None = None
    window: int | None = None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionsView:
    """All compactions of a session.

    `unknown_trigger` are those whose runtime reports no trigger. `messages` is the sum of the
    messages before each, `messages_per_compaction` their mean, to one digit. `last` are the latest
    in short, the newest last. `inherited` are those of another session whose history this one began
    with (R30): they count nowhere else. Copies that a subagent began with are not among them.
    """

    manual: int = 0
    automatic: int = 0
    idle: int = 0
    unknown_trigger: int = 0
    failed: int = 0
    inherited: int = 0
    messages: int = 0
    messages_per_compaction: float | None = None
    last: tuple[CompactionBrief, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session, folded from its records.

    `position` is the offset after the last record that is in it, `sequence` that record's own.
    `first_ms` is the time of the first record that has one, `last_ms` the latest of all.
    """

    version: int = VIEW_VERSION
    session_id: str
    position: int
    sequence: int
    first_ms: int | None
    last_ms: int | None
    identity: Identity
    chains: dict[str, ChainView]
    attempt: AttemptView | None
    compactions: CompactionsView


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEntry:
    """What push readers get of one record: who, what, and the chain's size after it."""

    version: int = VIEW_VERSION
    record_id: str
    kind: str
    session_id: str
    chain: str
    time_ms: int | None
    sequence: int
    state: SizeState
    used_tokens: int | None
    used_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerAggregates:
    """Attempts of one trigger by outcome; of those that succeeded the duration and the size before.

    `unknown`: no end was ever reported (R18). Durations of precomputed summaries are not counted.
    """

    succeeded: int = 0
    failed: int = 0
    blocked: int = 0
    unknown: int = 0
    duration_ms: Distribution = Distribution()
    pre_tokens: Distribution = Distribution()


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Compactions counted: of a partition, of an hour, or of a model.

    `unknown_trigger` are those whose runtime reports no trigger. Of `measured` compactions the size
    before and after is known: `saved_tokens` is the sum of the differences (one may be negative),
    `measured_before_tokens` that of the sizes before. `messages` sums the messages before each.
    """

    version: int = VIEW_VERSION
    manual: TriggerAggregates = TriggerAggregates()
    automatic: TriggerAggregates = TriggerAggregates()
    idle: TriggerAggregates = TriggerAggregates()
    unknown_trigger: TriggerAggregates = TriggerAggregates()
    measured: int = 0
    measured_before_tokens: int = 0
    saved_tokens: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """What the fold of a partition remembers of all its sessions together.

    `newest_ms` is the latest time of a record, `logged_ms` the latest Kafka timestamp: by
    the first hours leave, by the second idle sessions do. `leaving` means that sessions idle since
    before the day of `logged_ms` may still be there.
    """

    version: int = VIEW_VERSION
    records: int = 0
    newest_ms: int | None = None
    logged_ms: int | None = None
    leaving: bool = False


UNKNOWN_HOUR = "unknown"
"""The hour of records without a time."""

PARTITION_FIELD = "partition"
TOTAL_FIELD = "total"
HOUR_FIELD = "hour:"
MODEL_FIELD = "model:"
MAX_MODELS = 100
"""Models that a partition counts by name: more than the catalog has, and less than 1 MB of counts.

The first ones in the order of the log, so that a replay and a rebuild count the same. The rest is
counted as `OTHER_MODELS`.
"""
OTHER_MODELS = "other"
OTHER_MODELS_FIELD = MODEL_FIELD + OTHER_MODELS
UNKNOWN_MODEL_FIELD = "model"
"""Fields of a partition's stats; after the colon the hour (UTC, `2026-02-11T20`) or the model."""
