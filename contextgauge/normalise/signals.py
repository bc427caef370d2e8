"""What a message says, freed of its provider and spelling: the derivation's only input.

They apply in their order. Counts are tokens; None: not reported.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.normalise.content_signals import ContentFact
from contextgauge.normalise.limit_signals import (
    AutoCompact,
    ContextUsage,
    ModelReport,
    OwnWindow,
    RuntimeWindows,
    SubagentResult,
    TurnModel,
)
from contextgauge.record_words import ExhaustedReason, Runtime, Trigger
from contextgauge.records import Json
from contextgauge.reported_receipt import ReportedReceipt


@dataclass(slots=True, init=False)
class InputMessage:
    """One line or Kafka record as it came; `value` is its bytes.

    `session_hint` is what the container says (R1): the Kafka key, or the file's session.
    `received_ms` is the record's CreateTime where the publisher marked it live, in milliseconds
    since 1970. `task_id` and `publisher_agent_id` are the publisher's headers. `thread_id` is the
    subagent's thread whose rollout the line is from: a chain of the session. `inherited` is what
    the reader of a file knows: whether the line is a copy of another session's (R30). `settings`
    is what the runtime's settings say of its next compaction where the line was written (R33).
    """

    value: bytes
    session_hint: str | None
    received_ms: int | None
    task_id: str | None
    publisher_agent_id: str | None
    thread_id: str | None
    inherited: bool | None
    settings: dict[str, Json] | None

    def __init__(
        self,
        value: bytes,
        session_hint: str | None = None,
        received_ms: int | None = None,
        task_id: str | None = None,
        publisher_agent_id: str | None = None,
        thread_id: str | None = None,
        inherited: bool | None = None,
        settings: dict[str, Json] | None = None,
    ) -> None:
        self.value = value
        self.session_hint = session_hint
        self.received_ms = received_ms
        self.task_id = task_id
        self.publisher_agent_id = publisher_agent_id
        self.thread_id = thread_id
        self.inherited = inherited
        self.settings = settings


@dataclass(slots=True, init=False)
class Usage:
    """Input-side counts of one API response: `input` excludes the cached parts (R7).

    `creation_1h` is the part of `creation` that is cached for an hour, where that is reported.
    `tier` is the service tier, if it is another than the standard one (`usage.tier_of`).
    """

    input: int | None
    creation: int | None
    read: int | None
    creation_1h: int | None
    tier: str | None

    def __init__(
        self,
        input: int | None,
        creation: int | None,
        read: int | None,
        creation_1h: int | None = None,
        tier: str | None = None,
    ) -> None:
        self.input = input
        self.creation = creation
        self.read = read
        self.creation_1h = creation_1h
        self.tier = tier

    @property
    def used(self) -> int:
        """Size of the context, tokens (R7)."""
        return (self.input or 0) + (self.creation or 0) + (self.read or 0)


Twin: TypeAlias = Literal["thread", "item"]
"""The two forms in which Codex' app server reports one compaction (R29)."""


class Boundary(NamedTuple):
    """A compaction succeeded. `anchor` is its summary's uuid, `summary` what came along (R29).

    `precomputed`: made in the background, in `duration_ms`, without a wait. `form`: the same is
    reported in another form too. `during_call`: the next answer is to what was sent before.
    """

    trigger: Trigger | None
    pre_tokens: int | None
    post_tokens: int | None
    duration_ms: int | None
    anchor: str | None
    metadata: dict[str, Json]
    summary: str | None
    precomputed: bool = False
    form: Twin | None = None
    receipt: ReportedReceipt | None = None
    during_call: bool = False


class OwnCall(NamedTuple):
    """A line of a compaction's own call (R11): its prompt, or an answer with what it cost.

    `is_final`: the answer has ended with this line, so `output` is all of it.
    """

    call: str
    answer: str | None = None
    usage: Usage | None = None
    output: int | None = None
    is_final: bool = False


class PinCheck(NamedTuple):
    """Which of the user's turns are there after a boundary (R31); `texts` are some of the lost."""

    boundary_id: str
    kept: int
    lost: int
    texts: tuple[str, ...]


class Timing(NamedTuple):
    """A compaction's duration, reported after its boundary (R29)."""

    duration_ms: int


@dataclass(slots=True, init=False)
class Response:
    """One line or frame of an API response (R9).

    `key` identifies the response in the chain's memory, `response_id` in records, `request_id` in
    telemetry. `output` is the response's output where this line has the final count. `boundary` is
    a compaction reported inside the response (R29). `is_whole`: no other line of it will come.
    """

    key: str | None
    response_id: str | None
    model: str | None
    usage: Usage | None
    output: int | None
    edits: tuple[dict[str, Json], ...]
    exhausted: bool
    boundary: Boundary | None
    is_whole: bool
    request_id: str | None

    def __init__(
        self,
        key: str | None,
        response_id: str | None,
        model: str | None,
        usage: Usage | None,
        output: int | None,
        edits: tuple[dict[str, Json], ...],
        exhausted: bool,
        boundary: Boundary | None,
        *,
        is_whole: bool = False,
        request_id: str | None = None,
    ) -> None:
        self.key = key
        self.response_id = response_id
        self.model = model
        self.usage = usage
        self.output = output
        self.edits = edits
        self.exhausted = exhausted
        self.boundary = boundary
        self.is_whole = is_whole
        self.request_id = request_id


class ResponseEnd(NamedTuple):
    """A stream's `message_delta`: the final output of the response under way.

    Its `usage` is a reading only where the response has none: gateways report sizes at its end.
    """

    output: int | None
    edits: tuple[dict[str, Json], ...]
    exhausted: bool
    usage: Usage | None = None


class UserLine(NamedTuple):
    """A `user` line. `mark` says that it may be a compaction's summary (R23).

    Then `text` is what it says, None where its content is not a string.
    """

    counted: bool
    mark: Literal["compact_summary", "synthetic"] | None
    uuid: str | None
    text: str | None


class CompactionStatus(NamedTuple):
    """`status: compacting` (an attempt opens, or its heartbeat), or a null status.

    With `compact_result: success` the boundary is still to come; without a result older runtimes
    end the phase so. `is_item`: an item of Codex' app server began. `is_background`: the compaction
    service began, while the agent goes on.
    """

    event: Literal["COMPACTING", "SUCCESS", "CLEARED"]
    is_item: bool = False
    is_background: bool = False


class CompactionRefused(NamedTuple):
    """`compact_result: failed`."""

    error: str | None
    blocked: bool


class Reset(NamedTuple):
    """The conversation was cleared; with `keeps_messages`, only its last turns were removed."""

    reason: str
    keeps_messages: bool = False


ROLLED_BACK: Final = Reset("rollback", keeps_messages=True)
"""The last turns were removed: how large the rest is shows with the next reading."""


class TurnEnded(NamedTuple):
    """A `result`."""


class Exhausted(NamedTuple):
    """A turn ended for lack of room, reported outside a response."""

    reason: ExhaustedReason
    tokens_over: int | None = None


class Thread(NamedTuple):
    """A rollout's head: its thread, and when that was created, in milliseconds since 1970 (R30).

    A second one with another id is the head of the thread that the lines after it are copied from.
    Lines whose ordinal is below `own_from` are copies. `base` is what names the end of the history
    that the rollout goes on from, where that is in another one.
    """

    id: str
    created_ms: int | None
    own_from: int | None = None
    base: str | None = None


class SessionFacts(NamedTuple):
    """Facts of the session; None: not reported. `only_new`: fills gaps, changes nothing.

    `compaction_settings` are empty where nothing is set any more.
    """

    runtime: Runtime | None
    runtime_version: str | None
    model: str | None
    cwd: str | None
    forked_from: str | None
    only_new: bool
    publisher_agent_id: str | None = None
    compaction_settings: dict[str, Json] | None = None


class TriggerHint(NamedTuple):
    """What triggers the next attempt (R24)."""

    trigger: Trigger


class MicroCompaction(NamedTuple):
    """A `microcompact_boundary` (R26); `metadata` is None where it came without."""

    metadata: dict[str, Json] | None
    saved: int | None


Signal: TypeAlias = (
    SessionFacts
    | ModelReport
    | SubagentResult
    | TurnModel
    | Thread
    | RuntimeWindows
    | OwnWindow
    | AutoCompact
    | ContextUsage
    | TriggerHint
    | CompactionStatus
    | CompactionRefused
    | Boundary
    | Timing
    | OwnCall
    | PinCheck
    | Reset
    | TurnEnded
    | Exhausted
    | MicroCompaction
    | Response
    | ResponseEnd
    | UserLine
)


@dataclass(slots=True, init=False)
class Normal:
    """One relevant message (R4), normalised.

    `cause` identifies it: its uuid, else the SHA-256 of its bytes. `own_ms` is its own
    timestamp where valid, `live_ms` when a publisher saw it live (R28); both in milliseconds
    since 1970. `agent_id`, `parent_id` and `sidechain` name the chain (R2). `inherited` (a copy),
    `turn_ms` (when its turn began), `ordinal`: R30. `is_telemetry`: R34. `content`: R35.
    """

    session_id: str | None
    cause: str
    own_ms: int | None
    live_ms: int | None
    agent_id: str | None
    parent_id: str | None
    sidechain: bool
    subagent_type: str | None
    task_id: str | None
    signals: tuple[Signal, ...]
    inherited: bool | None
    turn_ms: int | None
    ordinal: int | None
    is_telemetry: bool
    content: tuple[ContentFact, ...]

    def __init__(
        self,
        session_id: str | None,
        cause: str,
        own_ms: int | None,
        live_ms: int | None,
        agent_id: str | None,
        parent_id: str | None,
        sidechain: bool,
        subagent_type: str | None,
        task_id: str | None,
        signals: tuple[Signal, ...],
        inherited: bool | None = None,
        turn_ms: int | None = None,
        ordinal: int | None = None,
        *,
        is_telemetry: bool = False,
        content: tuple[ContentFact, ...] = (),
    ) -> None:
        self.session_id = session_id
        self.cause = cause
        self.own_ms = own_ms
        self.live_ms = live_ms
        self.agent_id = agent_id
        self.parent_id = parent_id
        self.sidechain = sidechain
        self.subagent_type = subagent_type
        self.task_id = task_id
        self.signals = signals
        self.inherited = inherited
        self.turn_ms = turn_ms
        self.ordinal = ordinal
        self.is_telemetry, self.content = is_telemetry, content

    @property
    def time_ms(self) -> int | None:
        """Event time (R28)."""
        return self.live_ms if self.own_ms is None else self.own_ms


Body: TypeAlias = dict[str, Json]
