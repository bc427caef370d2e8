"""The shapes of answers, for the OpenAPI document; `docs/API.md` says what they mean.

Documents of views and records go out as they are stored: nothing here is run for an answer.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from contextgauge.compaction.messages import FormatName
from contextgauge.compaction.reading.session_conversation import ConversationState
from schemas.views import Aggregates, Compaction, Distribution, SessionView, TriggerAggregates
from streams.core.session_status import Severity, State
from streams.core.until_compaction import PointSource, WindowDoubt


class BaseShape(BaseModel):
    """An object of an answer. Built when it is needed, as building all of them takes 20 ms."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


_STORED: Final = ConfigDict(
    extra="forbid", defer_build=True, json_schema_serialization_defaults_required=True
)
"""Of shapes that extend stored documents, whose fields have defaults: answers have all of them."""


class AsOf(BaseShape):
    """The age of an answer, from the projectors' last reports on its partitions.

    A figure is null where no projector has reported on a partition.
    """

    at_ms: int | None = Field(description="When the positions were read, by the server's clock.")
    stale: bool = Field(
        description="Whether a projector was silent or behind for more than 10 s: then the answer "
        "may be out of date."
    )
    silent_ms: int | None = Field(
        description="The time since the projector of a partition last reported on it."
    )
    lag_records: int | None = Field(description="Records that were not in the views then.")
    lag_ms: int | None = Field(description="For how long the views have been behind; 0: not.")
    feed: str | None = Field(
        description="The Last-Event-ID from which /v1/stream continues this answer."
    )


class BaseAnswer(BaseShape):
    """What every answer about sessions has."""

    generation: int | None = Field(description="The generation of views; null: none yet.")
    as_of: AsOf


class ThrashShape(BaseShape):
    """The latest compactions of a chain that came within `thrash_within_ms`."""

    chain: str
    compactions: int
    first_ms: int
    last_ms: int


class UntilCompactionShape(BaseShape):
    """How far a chain is from its next automatic compaction."""

    tokens: int | None = Field(description="What is left; null: the size is unknown.")
    responses: int | None = Field(description="The same in responses, estimated by the growth.")
    threshold_tokens: int = Field(description="The size at which it is expected.")
    source: PointSource
    setting: str | None = Field(description="The runtime's own settings that say so.")
    estimated: bool = Field(
        description="It is learned, or a configured percentage of a doubtful window."
    )


class StatusShape(BaseShape):
    """What a session looks like as of the answer, and when that changes without a new record."""

    leading_chain: str | None = Field(description="The chain that stands for the session.")
    last_active_ms: int | None = Field(
        description="The time of the last record; null where no record has a time."
    )
    state: State
    severity: Severity = Field(description="How full the leading chain is.")
    severities: dict[str, Severity] = Field(description="The same of each chain.")
    until_compaction: dict[str, UntilCompactionShape] = Field(
        description="By chain; without those of which nothing is known, or where it is off."
    )
    window_doubts: dict[str, WindowDoubt] = Field(
        description="By chain, why its window may be wrong: `assumed` for want of any other, or "
        "`contradicted`: known by the model's name, while automatic compactions come far below it."
    )
    switched_off_by: dict[str, str] = Field(
        description="By chain, the runtime's settings by which there is no automatic compaction."
    )
    last_sign_ms: int | None = Field(description="The open attempt's last sign of life.")
    stalled_from_ms: int | None = Field(description="From then on the state is `stalled`.")
    stale_from_ms: int | None = Field(description="From then on the state is `stale`.")
    thrashing: bool = Field(description="A chain is compacted again and again.")
    thrashing_until_ms: int | None = Field(description="Until then, without another compaction.")
    thrash: ThrashShape | None = Field(description="The latest thrash, also where it is over.")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSession(SessionView):
    """A session's view as it is stored, its address, its title and its status."""

    address: str = Field(
        description="What names the session in addresses: its encoded id, or a hash of an id that "
        "is too long for them or that clients would change, such as `..`."
    )
    title: str | None = Field(
        description="The first prompt, of `contextgauge view --titles`; else null."
    )
    status: StatusShape


class ThresholdsShape(BaseShape):
    """Where verdicts change."""

    elevated_above_percent: int
    high_percent: int
    critical_percent: int
    critical_until_percent: float = Field(
        description="Compaction is no further away, in percent of the window: critical too."
    )
    stalled_after_ms: int
    stale_after_ms: int
    thrash_compactions: int
    thrash_within_ms: int


class SessionsAnswer(BaseAnswer):
    """A part of the list of sessions."""

    thresholds: ThresholdsShape
    sessions: list[JudgedSession]
    next: str | None = Field(description="The cursor of the next part; null: there is none.")
    total: int = Field(description="Sessions that the filters take, in all parts.")
    live: int | None = Field(description="With `live_first`: how many of them come first.")


class SessionAnswer(BaseAnswer):
    """A session."""

    session: JudgedSession
    thresholds: ThresholdsShape


class StructuredRecord(BaseShape):
    """A record as a CloudEvent; `data` by its type as in schemas/json."""

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    subject: str
    time: str | None = None
    datacontenttype: Literal["application/json"]
    sequence: str
    rules: str
    data: dict[str, Any]


class RecordsAnswer(BaseAnswer):
    """A part of a session's records, the oldest first."""

    records: list[StructuredRecord]
    next: str | None = Field(description="The cursor of the next part; null: there is none.")


class CompactionsAnswer(BaseAnswer):
    """A session's compactions that succeeded, the newest first."""

    compactions: list[Compaction]


class RulesShape(BaseShape):
    """Which turns of the user the model still sees after a boundary; null: not checked (yet)."""

    boundary_id: str = Field(description="The id of the receipt, and of the boundary's record.")
    number: int
    time_ms: int | None
    pins_kept: int | None
    pins_lost: int | None
    lost_pins: tuple[str, ...] | None = Field(description="The lost turns, at most 20 of them.")


class RulesAnswer(BaseAnswer):
    """The user's turns after the latest compaction of the main conversation."""

    rules: RulesShape | None = Field(description="Null: it was never compacted.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionShape(Distribution):
    """Whole numbers counted; `mean` has one digit, percentiles are off by up to 2 % or exact.

    `exact` has those that are, such as 50.
    """

    __pydantic_config__ = _STORED
    mean: float | None
    p50: int | None
    p95: int | None
    p99: int | None
    exact: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerShape(TriggerAggregates):
    """Attempts of one trigger by outcome."""

    __pydantic_config__ = _STORED
    duration_ms: DistributionShape
    pre_tokens: DistributionShape


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatesShape(Aggregates):
    """Compactions counted; `duration_ms` and `pre_tokens` are of all triggers together."""

    __pydantic_config__ = _STORED
    manual: TriggerShape
    automatic: TriggerShape
    idle: TriggerShape
    unknown_trigger: TriggerShape
    duration_ms: DistributionShape
    pre_tokens: DistributionShape


class StatsAnswer(BaseAnswer):
    """Aggregates of all sessions, and by hour (UTC) or by model."""

    total: AggregatesShape
    by: dict[str, AggregatesShape]


class PartitionShape(BaseShape):
    """How far one partition of the projection is."""

    partition: int
    position: int
    end: int | None
    silent_ms: int | None
    lag_records: int | None
    lag_ms: int | None


class ReadingShape(BaseShape):
    """How much of this machine's transcripts has been read."""

    files: int
    read_files: int
    bytes: int
    read_bytes: int


class ProjectionAnswer(BaseAnswer):
    """How far the projection is, partition by partition."""

    partitions: list[PartitionShape]
    estimates: str = Field(
        description="Changes with what estimates of any session rest on: compactions of others, "
        "the runtimes' settings. What was read before may be read again then."
    )
    reading: ReadingShape | None = Field(
        description="Of `contextgauge view`, from its first look at the transcripts on; else null."
    )


class WrongParameter(BaseShape):
    """A parameter that is not as it must be."""

    parameter: str
    message: str


class ProblemShape(BaseModel):
    """An RFC 9457 problem document."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[WrongParameter] | None = None


class _TextAnswer(BaseShape):
    """What answers with a session's text say of it."""

    state: ConversationState = Field(
        description="`whole`; `incomplete`: something that the model sees is not here."
    )
    position: int = Field(description="All messages before this offset of the partition are in.")
    behind: int | None = Field(
        description="Messages of the partition, of any session, that were not read yet when the "
        "worker last reported; null: it has not."
    )
    reported_ms: int | None = Field(
        description="When it did; every five seconds, while `contextgauge conversations` runs."
    )
    first_offset: int = Field(description="Offset of the first message that is known.")
    model: str | None
    agent_id: str | None
    project: str | None
    compactions: int = Field(description="The number of the last compaction.")
    active: int = Field(description="Messages that the model sees.")
    archived: int = Field(description="Messages that left the context, and are kept.")
    dropped: int = Field(description="Messages that are no longer kept, for their size.")


class ContextAnswer(_TextAnswer):
    """The messages that the model should see now."""

    format: FormatName
    messages: list[Any]


class HistoryEntryShape(BaseShape):
    """A message; `compaction` is the number of the compaction whose marker it is."""

    id: str
    active: bool
    compaction: int | None
    message: Any


class HistoryAnswer(_TextAnswer):
    """Messages, oldest first."""

    messages: list[HistoryEntryShape]
    first: int = Field(description="Place of the first of them among all, from 0.")
    next: int | None = Field(description="For `after`; null: there are no more.")


class RecallAnswer(_TextAnswer):
    """What archived messages say, fenced as data."""

    answer: str
