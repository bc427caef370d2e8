"""A session's state: small, and unchanged once derived.

`Session` holds what is the session's own, `Chain` what belongs to one conversation with a model.
How it is stored is in `stored_state.py`: new fields of `Chain` and `KnownFacts` come last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from contextgauge.normalise.signals import Twin
from schemas.records import Json, Trigger, WindowSource
from streams.core.derivation.known_causes import NOTHING_KNOWN, KnownCauses
from streams.core.derivation.transitions import IDLE, Attempt


class AwaitedSummary(NamedTuple):
    """A boundary whose summary may still come (R23)."""

    boundary_id: str
    anchor: str | None


class Unmeasured(NamedTuple):
    """A boundary that no reading has measured yet."""

    boundary_id: str
    trigger: Trigger | None
    tokens_before: int | None
    duration_ms: int | None
    inherited: bool = False


class CallState(NamedTuple):
    """A compaction's own call (R11): when its prompt and its last answer came, and what it cost.

    `output` is null until the answer's final count is known; `begun` is that of its first line.
    """

    call: str
    began_ms: int | None = None
    ended_ms: int | None = None
    input: int | None = None
    read: int | None = None
    output: int | None = None
    answer: str | None = None
    begun: int | None = None
    creation: int | None = None
    creation_1h: int | None = None


class ThreadState(NamedTuple):
    """A rollout's thread, and whether its lines are copies of its origin's history (R30).

    `copying`: the lines are copies until one shows that it is not. `copied_ms` is the latest copy's
    own time; `has_turns`: turns have ids that tell their times, which decide then. `own_from` and
    `base` are those of its head.
    """

    id: str
    created_ms: int | None
    copying: bool = False
    copied_ms: int | None = None
    has_turns: bool = False
    own_from: int | None = None
    base: str | None = None


class TwoWays(NamedTuple):
    """What a chain's own messages and its telemetry reported, to know the same again (R34).

    `own_ms` is the latest time of its own responses and boundaries. Of the latest own response,
    `own_key` and `own_request` are hashes of its key and its request, `own_used` is its size, and
    `own_counts` is a hash of its counts, until telemetry reports it too; hashes are in hexadecimal.

    `counted_ms` is the latest time of telemetry that counted, `boundaries` are ids and times of its
    boundaries that the own messages have not reported. `read_ms`, `read_key` and `read_counts` are
    of the newest response of telemetry, while no own one is as new; `ahead` counts those that the
    own messages have not reported. `late_boundary` is the latest that was older than the newest.
    """

    own_ms: int | None = None
    own_counts: str | None = None
    own_request: str | None = None
    counted_ms: int | None = None
    boundaries: tuple[tuple[str, int], ...] = ()
    own_key: str | None = None
    own_used: int | None = None
    read_ms: int | None = None
    read_key: str | None = None
    read_counts: str | None = None
    ahead: int = 0
    late_boundary: str | None = None


class ReportedLimits(NamedTuple):
    """The values of the last `context_limits`; of a subagent only the window is compared (R12)."""

    window: int | None
    window_source: WindowSource
    auto_compact_enabled: bool | None
    auto_compact_threshold: int | None
    effective_window: int | None
    auto_compact_source: str | None = None


Announced: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Thresholds announced in an epoch by window, tokens; the window of the latest warning last."""


@dataclass(slots=True, init=False)
class Chain:
    """One conversation with a model. Only the step that made it changes it; see `Step.edit`.

    `used` and `percent` are the last reading's, None while the size is unknown (R22). `messages`
    counts since the last boundary or reset, `since_boundary` since the last boundary, `total`
    since the start. `announced` are the warnings of this epoch. `touched` is the session's
    count of applied messages when this chain last had one. `response` is the hash of the key of the
    latest response that telemetry did not report, `output` what is finally known of the latest
    one's output. `untimed` is the id of the latest boundary if its duration is null (R29). `twin`
    is the other form in which the latest boundary may be reported, until the next reading or
    attempt. `boundary_id` is the latest boundary's. `remembered` counts the responses that the
    memory ever got. `thread` is there for a Codex rollout. `calls` are compactions' own calls whose
    boundaries have not come. `last_ms` is the latest time of its messages, `ways` is there once
    telemetry reported of it.
    """

    memory: bytes
    response: bytes
    model: str | None
    subagent_type: str | None
    touched: int
    output: int | None
    used: int | None
    percent: float | None
    messages: int
    since_boundary: int
    total: int
    announced: Announced
    boundaries: int
    awaited: AwaitedSummary | None
    unmeasured: Unmeasured | None
    reported_limits: ReportedLimits | None
    untimed: str | None
    twin: Twin | None
    boundary_id: str | None
    remembered: int
    thread: ThreadState | None
    calls: tuple[CallState, ...]
    last_ms: int | None
    ways: TwoWays | None

    # Written out: a generated constructor stays Python where this module is compiled (ADR 0023).
    def __init__(
        self,
        memory: bytes = b"",
        response: bytes = b"",
        model: str | None = None,
        subagent_type: str | None = None,
        touched: int = 0,
        output: int | None = None,
        used: int | None = None,
        percent: float | None = None,
        messages: int = 0,
        since_boundary: int = 0,
        total: int = 0,
        announced: Announced = (),
        boundaries: int = 0,
        awaited: AwaitedSummary | None = None,
        unmeasured: Unmeasured | None = None,
        reported_limits: ReportedLimits | None = None,
        untimed: str | None = None,
        twin: Twin | None = None,
        boundary_id: str | None = None,
        remembered: int = 0,
        thread: ThreadState | None = None,
        calls: tuple[CallState, ...] = (),
        last_ms: int | None = None,
        ways: TwoWays | None = None,
    ) -> None:
        self.memory = memory
        self.response = response
        self.model = model
        self.subagent_type = subagent_type
        self.touched = touched
        self.output = output
        self.used = used
        self.percent = percent
        self.messages = messages
        self.since_boundary = since_boundary
        self.total = total
        self.announced = announced
        self.boundaries = boundaries
        self.awaited = awaited
        self.unmeasured = unmeasured
        self.reported_limits = reported_limits
        self.untimed = untimed
        self.twin = twin
        self.boundary_id = boundary_id
        self.remembered = remembered
        self.thread = thread
        self.calls = calls
        self.last_ms = last_ms
        self.ways = ways

    def copy(self) -> "Chain":
        """Return another one that is equal."""
        return Chain(
            self.memory,
            self.response,
            self.model,
            self.subagent_type,
            self.touched,
            self.output,
            self.used,
            self.percent,
            self.messages,
            self.since_boundary,
            self.total,
            self.announced,
            self.boundaries,
            self.awaited,
            self.unmeasured,
            self.reported_limits,
            self.untimed,
            self.twin,
            self.boundary_id,
            self.remembered,
            self.thread,
            self.calls,
            self.last_ms,
            self.ways,
        )


class KnownFacts(NamedTuple):
    """What seldom changes. Windows are by model name, tokens.

    `reported_windows` are by the names that a `contextWindow` was reported with, suffix included;
    `canonical_windows` by their canonical names; `windows` is what follows from both and the
    latest suffix, by name without one. `raw_windows` come from `rawMaxTokens`; `exceeded` are
    models whose assumed window was proven wrong. `suffix` is the window that the latest `init`'s
    suffix means, `suffixed` has it for each model that was last reported with one. `aliases` map a
    parent's tool use to an agent id (R2). `is_enforced`: context-usage answers change nothing of
    the auto-compact facts. `turn_window` was reported for a turn whose model is not known yet.
    `outside_windows` are known from elsewhere than messages. `compaction_settings` are what the
    runtime's settings say where the session runs (R33).
    """

    runtime: str | None = None
    runtime_version: str | None = None
    model: str | None = None
    cwd: str | None = None
    forked_from: str | None = None
    # The empty mappings are shared: a step replaces a mapping, and never changes one.
    reported_windows: Mapping[str, int] = {}
    canonical_windows: Mapping[str, int] = {}
    windows: Mapping[str, int] = {}
    raw_windows: Mapping[str, int] = {}
    exceeded: tuple[str, ...] = ()
    suffix: int | None = None
    suffixed: Mapping[str, int] = {}
    aliases: Mapping[str, str] = {}
    auto_compact_enabled: bool | None = None
    auto_compact_threshold: int | None = None
    effective_window: int | None = None
    usage: str | None = None
    publisher_agent_id: str | None = None
    auto_compact_source: str | None = None
    is_enforced: bool = False
    turn_window: int | None = None
    outside_windows: Mapping[str, int] = {}
    compaction_settings: dict[str, Json] | None = None


# Shared by all new sessions: a step copies it before it changes it.
_NO_CHAINS: Final[dict[str, Chain]] = {}
NO_FACTS: Final = KnownFacts()


@dataclass(slots=True, init=False)
class Session:
    """One session. `applied` counts its applied messages, `sequence` its records.

    `last_reset` is the chain that the latest applied message reset, if it reset one.
    """

    sequence: int
    applied: int
    last_ms: int | None
    known: KnownCauses
    chains: dict[str, Chain]
    attempt: Attempt
    hint: Trigger | None
    last_reset: str | None
    facts: KnownFacts

    def __init__(
        self,
        sequence: int = 0,
        applied: int = 0,
        last_ms: int | None = None,
        known: KnownCauses = NOTHING_KNOWN,
        chains: dict[str, Chain] = _NO_CHAINS,
        attempt: Attempt = IDLE,
        hint: Trigger | None = None,
        last_reset: str | None = None,
        facts: KnownFacts = NO_FACTS,
    ) -> None:
        self.sequence = sequence
        self.applied = applied
        self.last_ms = last_ms
        self.known = known
        self.chains = chains
        self.attempt = attempt
        self.hint = hint
        self.last_reset = last_reset
        self.facts = facts


NEW_SESSION: Final = Session()
NEW_CHAIN: Final = Chain()
