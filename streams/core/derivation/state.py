"""A session's state: small, unchanged once derived, persisted in parts: a batch writes its changes.

`Session` holds what is the session's own, `Chain` what belongs to one conversation with a model.
`pack` gives the parts that changed, `unpack` reads them back; the position of the parts in the
changelog is the flow's affair. A part lists its fields in their order, without their names, which
would be half of it. One that is shorter leaves the last at their defaults: so a part written by an
older build can be read, and new fields of `Chain` and `KnownFacts` come last.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from contextgauge.errors import VersionError
from contextgauge.normalise.signals import Twin
from schemas.records import Json, Trigger, WindowSource
from streams.core.derivation.known_causes import (
    CHUNK,
    NOTHING_KNOWN,
    SLOTS,
    KnownCauses,
    chunks,
    from_chunks,
)
from streams.core.derivation.transitions import IDLE, Attempt, Phase, Start, attempt_in

STATE_VERSION: Final = 3
"""Version of the parts as they are written.

3 has thresholds by window where 2 had them by epoch alone, and an attempt's last heartbeat.
"""

READABLE_VERSIONS: Final = (2, STATE_VERSION)
"""Versions of parts that are read; a build refuses a partition whose state has another."""

SESSION_PART: Final = "session"
_CHAIN_PREFIX: Final = "chain:"
_KNOWN_PREFIX: Final = "known:"


class StoredPart(NamedTuple):
    """A stored part: its fields as plain JSON, and its hashes as the bytes that they are."""

    fields: list[Json]
    data: bytes = b""


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
    count of applied messages when this chain last had one. `response` is the hash of the latest
    response's key, `output` what is finally known of its output. `untimed` is the id of the latest
    boundary whose duration is null (R29). `twin` is the other form in which the latest boundary
    may be reported, until the next reading or attempt.
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
        )


class KnownFacts(NamedTuple):
    """What seldom changes. Windows are by model name, tokens.

    `reported_windows` are by the names that a `contextWindow` was reported with, suffix included;
    `canonical_windows` by their canonical names; `windows` is what follows from both and the
    latest suffix, by name without one. `raw_windows` come from `rawMaxTokens`; `exceeded` are
    models whose assumed window was proven wrong. `suffix` is the window that the latest `init`'s
    suffix means, `suffixed` has it for each model whose latest `init` had one. `aliases` map a
    parent's tool use to an agent id (R2). `is_enforced`: context-usage answers change nothing of
    the auto-compact facts. `turn_window` was reported for a turn whose model is not known yet.
    """

    runtime: str | None = None
    runtime_version: str | None = None
    model: str | None = None
    cwd: str | None = None
    forked_from: str | None = None
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


def pack(before: Session | None, after: Session) -> dict[str, StoredPart | None]:
    """Return the parts that differ from `before`, by name; None for a part to delete.

    The session's own part is always among them.
    """
    parts: dict[str, StoredPart | None] = {}
    old = NEW_SESSION if before is None else before
    for name in old.chains.keys() - after.chains.keys():
        parts[_CHAIN_PREFIX + name] = None
    for name, chain in after.chains.items():
        if old.chains.get(name) is not chain:
            parts[_CHAIN_PREFIX + name] = _pack_chain(chain)
    for slot, (number, hashes) in chunks(old.known, after.known).items():
        parts[f"{_KNOWN_PREFIX}{slot}"] = StoredPart([number], hashes)
    parts[SESSION_PART] = _pack_session(after)
    return parts


def part_names(session: Session) -> list[str]:
    """Return the names of all parts that are stored of a session, for removing it."""
    chunks_written = -(-session.known.added // CHUNK)
    return [
        SESSION_PART,
        *(_CHAIN_PREFIX + name for name in session.chains),
        *(f"{_KNOWN_PREFIX}{slot}" for slot in range(min(SLOTS, chunks_written))),
    ]


def unpack(session_id: str, parts: Mapping[str, StoredPart]) -> Session:
    """Read a session from its parts.

    Raises VersionError where the parts are not what this build writes.
    """
    try:
        return _unpack(parts)
    except (KeyError, TypeError, ValueError) as error:
        raise VersionError(
            f"the stored state of session {session_id!r} cannot be read ({error!r}): it was not "
            "written by this version of contextgauge, or the topic lost a part of it"
        ) from error


def _unpack(parts: Mapping[str, StoredPart]) -> Session:
    own, boundaries = parts[SESSION_PART]
    sequence, applied, last_ms, added, phase, start, hint, last_reset, facts = own
    stored = {}
    chains = {}
    for name, part in parts.items():
        if name.startswith(_KNOWN_PREFIX):
            (number,) = part.fields
            stored[_whole(number)] = part.data
        elif name.startswith(_CHAIN_PREFIX):
            chains[name.removeprefix(_CHAIN_PREFIX)] = _unpack_chain(part)
    return Session(
        _whole(sequence),
        _whole(applied),
        None if last_ms is None else _whole(last_ms),
        from_chunks(boundaries, _whole(added), stored),
        chains,
        attempt_in(
            Phase(cast("str", phase)),
            None if start is None else _unpack_start(start),
        ),
        cast("Trigger | None", hint),
        cast("str | None", last_reset),
        _unpack_facts(facts),
    )


def _pack_session(session: Session) -> StoredPart:
    known, (phase, start) = session.known, session.attempt
    return StoredPart(
        [
            session.sequence,
            session.applied,
            session.last_ms,
            known.added,
            phase.value,
            None if start is None else list(start),
            session.hint,
            session.last_reset,
            _listed(session.facts),
        ],
        known.boundaries,
    )


_fields_of: Final = attrgetter(*(field.name for field in fields(Chain)[2:]))
"""Gives what a chain's part lists after the response; the memory is its bytes."""


def _pack_chain(chain: Chain) -> StoredPart:
    return StoredPart([chain.response.hex(), *_listed(_fields_of(chain))], chain.memory)


def _listed(values: Iterable[Any]) -> list[Json]:
    """Return values as JSON has them: lists in place of tuples."""
    return [_listed(value) if isinstance(value, tuple) else value for value in values]


def _unpack_chain(part: StoredPart) -> Chain:
    response, *fields = part.fields
    read: list[Any] = list(fields)
    for place, make in _MADE_OF_LISTS:
        if place < len(read) and read[place] is not None:
            read[place] = make(read[place])
    chain = Chain(part.data, bytes.fromhex(cast("str", response)), *read)
    if chain.announced and isinstance(chain.announced[0], int):
        _upgrade_announced(chain)
    return chain


def _upgrade_announced(chain: Chain) -> None:
    """Set what version 2 announced in an epoch for the window that was in force."""
    thresholds = cast("tuple[int, ...]", chain.announced)
    window = None if chain.reported_limits is None else chain.reported_limits.window
    chain.announced = () if window is None else ((window, thresholds),)


def _unpack_start(fields: Json) -> Start:
    """Read a start; version 2 has no heartbeat, so the start is the last time that is known."""
    attempt_id, own_ms, live_ms, *last = cast("list[Any]", fields)
    return Start(attempt_id, own_ms, live_ms, *(last or (own_ms, live_ms)))


def _announced(values: list[Any]) -> tuple[Any, ...]:
    """Read thresholds by window, or without windows as version 2 has them."""
    return tuple(
        (value[0], tuple(value[1])) if isinstance(value, list) else value for value in values
    )


_MADE_OF_LISTS: Final[tuple[tuple[int, Callable[[Any], object]], ...]] = (
    (9, _announced),
    (11, AwaitedSummary._make),
    (12, Unmeasured._make),
    (13, lambda values: ReportedLimits(*values)),
)
"""Fields of a chain that JSON has as lists, by their place after the response."""


def _unpack_facts(fields: Json) -> KnownFacts:
    if not isinstance(fields, list):
        raise TypeError("facts are no list")
    read: list[Any] = list(fields)
    if len(read) > _EXCEEDED:
        read[_EXCEEDED] = tuple(read[_EXCEEDED])
    return KnownFacts(*read)


_EXCEEDED: Final = 9
"""Place of the one field of the facts that is a tuple, a list in JSON."""


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value
