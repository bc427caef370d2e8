"""A session's state: immutable, small, and persisted in parts so that a batch writes what changed.

`Session` holds what is the session's own, `Chain` what belongs to one conversation with a model.
`pack` gives the parts that changed as plain JSON, `unpack` reads them back; the position of the
parts in the changelog is the flow's affair. What is not listed in a part has its default, so a
part written by an older build of the same version can be read.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from schemas.records import Json, Trigger, WindowSource
from streams.core.errors import VersionError
from streams.core.known import CHUNK, NOTHING_KNOWN, SLOTS, Known, chunks, from_chunks
from streams.core.transitions import IDLE, Attempt, Phase, Start, attempt_in, start_of

STATE_VERSION: Final = 1
"""Version of the parts; a build refuses a partition whose state has another."""

SESSION_PART: Final = "session"
_CHAIN_PREFIX: Final = "chain:"
_KNOWN_PREFIX: Final = "known:"


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


class ToldLimits(NamedTuple):
    """What the last `context_limits` said; of a subagent only the window is compared (R12)."""

    window: int | None
    window_source: WindowSource
    auto_compact_enabled: bool | None
    auto_compact_threshold: int | None
    effective_window: int | None


class Chain(NamedTuple):
    """One conversation with a model.

    `used` and `percent` are the last reading's, None while the size is unknown (R22). `messages`
    counts since the last boundary or reset, `since_boundary` since the last boundary, `total`
    since the start. `announced` are the thresholds of this epoch. `touched` is the session's
    count of applied messages when this chain last had one. `response` is the hash of the latest
    response's key, `output` what is finally known of its output.
    """

    model: str | None = None
    subagent_type: str | None = None
    touched: int = 0
    memory: bytes = b""
    response: bytes = b""
    output: int | None = None
    used: int | None = None
    percent: float | None = None
    messages: int = 0
    since_boundary: int = 0
    total: int = 0
    announced: tuple[int, ...] = ()
    boundaries: int = 0
    awaited: AwaitedSummary | None = None
    unmeasured: Unmeasured | None = None
    told: ToldLimits | None = None


class Facts(NamedTuple):
    """What seldom changes. Windows are by model name, tokens.

    `told_windows` are by the names that a `contextWindow` was told with, suffix and all,
    `canonical_windows` by their canonical names; `windows` is what follows from both and the
    latest suffix, by name without one. `raw_windows` were told as `rawMaxTokens`; `exceeded` are
    models whose assumed window was proven wrong. `suffix` is the window that the latest `init`'s
    suffix means, `suffixed` has it for each model whose latest `init` had one. `aliases` map a
    parent's tool use to an agent id (R2).
    """

    runtime: str | None = None
    runtime_version: str | None = None
    model: str | None = None
    cwd: str | None = None
    forked_from: str | None = None
    told_windows: Mapping[str, int] = {}
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


class Session(NamedTuple):
    """One session. `applied` counts its applied messages, `sequence` its records.

    `last_reset` is the chain that the latest applied message reset, if it reset one.
    """

    sequence: int = 0
    applied: int = 0
    last_ms: int | None = None
    known: Known = NOTHING_KNOWN
    chains: Mapping[str, Chain] = {}
    attempt: Attempt = IDLE
    hint: Trigger | None = None
    last_reset: str | None = None
    facts: Facts = Facts()


NEW_SESSION: Final = Session()
NEW_CHAIN: Final = Chain()


def pack(before: Session | None, after: Session) -> dict[str, Json | None]:
    """Return the parts that differ from `before`, by name; None for a part that is gone."""
    parts: dict[str, Json | None] = {}
    old = NEW_SESSION if before is None else before
    if before is after:
        return parts
    for name in old.chains.keys() - after.chains.keys():
        parts[_CHAIN_PREFIX + name] = None
    for name, chain in after.chains.items():
        if old.chains.get(name) is not chain:
            parts[_CHAIN_PREFIX + name] = _pack_chain(chain)
    for slot, (number, hashes) in chunks(old.known, after.known).items():
        parts[f"{_KNOWN_PREFIX}{slot}"] = {"number": number, "hashes": _text(hashes)}
    parts[SESSION_PART] = _pack_session(after)
    return parts


def part_names(session: Session) -> list[str]:
    """Return the names of all parts that the session may have, for removing it."""
    chunks_written = -(-session.known.added // CHUNK)
    return [
        SESSION_PART,
        *(_CHAIN_PREFIX + name for name in session.chains),
        *(f"{_KNOWN_PREFIX}{slot}" for slot in range(min(SLOTS, chunks_written))),
    ]


def unpack(session_id: str, parts: Mapping[str, Json]) -> Session:
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


def _unpack(parts: Mapping[str, Json]) -> Session:
    doc = _object(parts[SESSION_PART])
    stored = {
        _whole(chunk["number"]): _bytes(chunk["hashes"])
        for name, part in parts.items()
        if name.startswith(_KNOWN_PREFIX)
        for chunk in [_object(part)]
    }
    chains = {
        name.removeprefix(_CHAIN_PREFIX): _unpack_chain(_object(part))
        for name, part in parts.items()
        if name.startswith(_CHAIN_PREFIX)
    }
    start = doc.get("start")
    return Session(
        sequence=_whole(doc["sequence"]),
        applied=_whole(doc["applied"]),
        last_ms=None if doc["last_ms"] is None else _whole(doc["last_ms"]),
        known=from_chunks(_bytes(doc["boundaries"]), _whole(doc["added"]), stored),
        chains=chains,
        attempt=attempt_in(
            Phase(cast("str", doc["phase"])),
            None if start is None else Start(*cast("list[str]", start)),  # type: ignore[arg-type]
        ),
        hint=cast("Trigger | None", doc.get("hint")),
        last_reset=cast("str | None", doc.get("last_reset")),
        facts=_unpack_facts(_object(doc["facts"])),
    )


def _pack_session(session: Session) -> dict[str, Json]:
    start = start_of(session.attempt)
    return {
        "sequence": session.sequence,
        "applied": session.applied,
        "last_ms": session.last_ms,
        "boundaries": _text(session.known.boundaries),
        "added": session.known.added,
        "phase": session.attempt.phase.value,
        "start": None if start is None else [start.attempt_id, start.own_ms, start.live_ms],
        "hint": session.hint,
        "last_reset": session.last_reset,
        "facts": _changed(session.facts, _NO_FACTS),
    }


def _pack_chain(chain: Chain) -> dict[str, Json]:
    doc = _changed(chain, NEW_CHAIN)
    for name in ("memory", "response"):
        if name in doc:
            doc[name] = _text(getattr(chain, name))
    return doc


def _unpack_chain(doc: dict[str, Json]) -> Chain:
    values: dict[str, object] = dict(doc)
    for name in ("memory", "response"):
        if name in doc:
            values[name] = _bytes(doc[name])
    if "announced" in doc:
        values["announced"] = tuple(cast("list[int]", doc["announced"]))
    for name, kind in _NESTED.items():
        if doc.get(name) is not None:
            values[name] = kind(*cast("list[object]", doc[name]))
    return NEW_CHAIN._replace(**values)  # type: ignore[arg-type]


_NESTED: Final[Mapping[str, type]] = {
    "awaited": AwaitedSummary,
    "unmeasured": Unmeasured,
    "told": ToldLimits,
}
_NO_FACTS: Final = Facts()


def _unpack_facts(doc: dict[str, Json]) -> Facts:
    values: dict[str, object] = dict(doc)
    if "exceeded" in doc:
        values["exceeded"] = tuple(cast("list[str]", doc["exceeded"]))
    return _NO_FACTS._replace(**values)  # type: ignore[arg-type]


def _changed(value: Chain | Facts, default: Chain | Facts) -> dict[str, Json]:
    """Return the fields that differ from the default, in order; tuples as the lists they become."""
    return {
        name: cast("Json", list(item) if isinstance(item, tuple) else item)
        for name, item, usual in zip(value._fields, value, default, strict=True)
        if item != usual
    }


def _object(part: Json) -> dict[str, Json]:
    if not isinstance(part, dict):
        raise TypeError(f"a part is {type(part).__name__}, not an object")
    return part


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _bytes(text: Json) -> bytes:
    return b64decode(cast("str", text), validate=True)
