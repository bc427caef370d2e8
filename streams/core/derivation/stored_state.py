"""How a session's state is stored: in parts, of which a batch writes those that changed.

`pack` gives the parts that changed, `unpack` reads them back; the position of the parts in the
changelog is the flow's affair. A part lists its fields in their order, without their names, which
would be half of it. One that is shorter leaves the last of a chain or the facts at their defaults,
so that a field can be added without a new version.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import chain as chained
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

from contextgauge.errors import VersionError
from schemas.records import Json, Trigger
from streams.core.derivation.known_causes import (
    CHUNK,
    HASH_BYTES,
    RECENT,
    chunks,
    from_chunks,
    left_chunks,
    recent,
)
from streams.core.derivation.responses import count, is_whole, parted
from streams.core.derivation.state import (
    NEW_CHAIN,
    NEW_SESSION,
    AwaitedSummary,
    CallState,
    Chain,
    KnownFacts,
    ReportedLimits,
    Session,
    ThreadState,
    TwoWays,
    Unmeasured,
)
from streams.core.derivation.transitions import Phase, Start, attempt_in

SESSION_PART: Final = "session"
_CHAIN_PREFIX: Final = "chain:"
_RESPONSES_PREFIX: Final = "responses:"
_KNOWN_PREFIX: Final = "known:"


class StoredPart(NamedTuple):
    """A stored part: its fields as plain JSON, and its hashes as the bytes that they are."""

    fields: list[Json]
    data: bytes = b""


def pack(before: Session | None, after: Session) -> dict[str, StoredPart | None]:
    """Return the parts that differ from `before`, by name; None for a part to delete.

    The session's own part is always among them.
    """
    parts: dict[str, StoredPart | None] = {}
    old = NEW_SESSION if before is None else before
    for name in old.chains.keys() - after.chains.keys():
        parts |= dict.fromkeys(_chain_parts(name, old.chains[name]))
    for name, chain in after.chains.items():
        former = old.chains.get(name)
        # By identity: a step copies a chain before it changes it.
        if former is not chain:
            parts |= _pack_chain(name, NEW_CHAIN if former is None else former, chain)
    for number, hashes in chunks(old.known, after.known).items():
        parts[f"{_KNOWN_PREFIX}{number}"] = StoredPart([number], hashes)
    parts |= dict.fromkeys(_chunk_names(left_chunks(old.known, after.known)))
    parts[SESSION_PART] = _pack_session(after)
    return parts


def part_names(session: Session) -> list[str]:
    """Return the names of all parts that are stored of a session, for removing it."""
    known = session.known
    # Rounded down to what is in chunks, the rest is in the session's part; then up to whole chunks.
    end = -(-(known.added // RECENT * RECENT) // CHUNK)
    return [
        SESSION_PART,
        *chained.from_iterable(_chain_parts(*each) for each in session.chains.items()),
        *_chunk_names(range(known.first // CHUNK, end)),
    ]


def _chunk_names(numbers: Iterable[int]) -> list[str]:
    return [f"{_KNOWN_PREFIX}{number}" for number in numbers]


def _chain_parts(name: str, chain: Chain) -> list[str]:
    """Return the names of the parts that are stored of a chain."""
    older, _ = parted(chain.memory, chain.remembered)
    return [_CHAIN_PREFIX + name, *([_RESPONSES_PREFIX + name] if older else [])]


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
    own, newest = parts[SESSION_PART]
    sequence, applied, last_ms, added, phase, start, hint, last_reset, facts, size, first = own
    if len(newest) != HASH_BYTES * _whole(size):
        raise ValueError("a session has another number of newest causes")
    stored: dict[int, bytes] = {}
    chains = {}
    for name, part in parts.items():
        if name.startswith(_KNOWN_PREFIX):
            (number,) = part.fields
            stored[_whole(number)] = part.data
        elif name.startswith(_CHAIN_PREFIX):
            chain_name = name.removeprefix(_CHAIN_PREFIX)
            chains[chain_name] = _unpack_chain(part, parts.get(_RESPONSES_PREFIX + chain_name))
    # A chain's own part is written with each of its responses: without it, the topic lost a part.
    older = {name for name in parts if name.startswith(_RESPONSES_PREFIX)}
    if not older <= {_RESPONSES_PREFIX + name for name in chains}:
        raise ValueError("responses of a chain that is not there")
    return Session(
        _whole(sequence),
        _whole(applied),
        None if last_ms is None else _whole(last_ms),
        from_chunks(_whole(added), _whole(first), newest, stored),
        chains,
        attempt_in(
            Phase(cast("str", phase)),
            None if start is None else Start(*cast("list[Any]", start)),
        ),
        cast("Trigger | None", hint),
        cast("str | None", last_reset),
        _unpack_facts(facts),
    )


def _pack_session(session: Session) -> StoredPart:
    known, (phase, start) = session.known, session.attempt
    newest = recent(known)
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
            len(newest) // HASH_BYTES,
            known.first,
        ],
        newest,
    )


_fields_of: Final = attrgetter(*(field.name for field in fields(Chain)[2:]))
"""Gives what a chain's part lists after the response; the newest responses are its bytes."""


def _pack_chain(name: str, before: Chain, after: Chain) -> dict[str, StoredPart | None]:
    """Return the chain's part, and that of its older responses if they changed."""
    parts: dict[str, StoredPart | None] = {}
    former, _ = parted(before.memory, before.remembered)
    older, newest = parted(after.memory, after.remembered)
    if older != former:
        parts[_RESPONSES_PREFIX + name] = StoredPart([count(older)], older) if older else None
    own = StoredPart([after.response.hex(), *_listed(_fields_of(after))], newest)
    return parts | {_CHAIN_PREFIX + name: own}


def _listed(values: Iterable[Any]) -> list[Json]:
    """Return values as JSON has them: lists in place of tuples."""
    return [_listed(value) if isinstance(value, tuple) else value for value in values]


def _unpack_chain(part: StoredPart, older: StoredPart | None) -> Chain:
    response, *fields = part.fields
    read: list[Any] = list(fields)
    for place, make in _MADE_OF_LISTS:
        if place < len(read) and read[place] is not None:
            read[place] = make(read[place])
    memory = part.data
    if older is not None:
        (size,) = older.fields
        if size != count(older.data):
            raise ValueError("a chain has another number of older responses")
        memory = older.data + memory
    chain = Chain(memory, bytes.fromhex(cast("str", response)), *read)
    if not is_whole(memory, chain.remembered):
        raise ValueError("a chain has another number of responses than it counted")
    return chain


_BOUNDARIES: Final = TwoWays._fields.index("boundaries")


def _two_ways(values: list[Any]) -> TwoWays:
    # Tuples before they are in it: the compiled class takes no list in their place.
    place = _BOUNDARIES
    made = [tuple((own_id, value) for own_id, value in each) for each in values[place : place + 1]]
    return TwoWays(*values[:place], *made, *values[place + 1 :])


_MADE_OF_LISTS: Final[tuple[tuple[int, Callable[[Any], object]], ...]] = (
    (9, lambda values: tuple((window, tuple(crossed)) for window, crossed in values)),
    (11, AwaitedSummary._make),
    (12, lambda values: Unmeasured(*values)),
    (13, lambda values: ReportedLimits(*values)),
    (18, lambda values: ThreadState(*values)),
    (19, lambda values: tuple(CallState(*value) for value in values)),
    (21, _two_ways),
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
    # JSON's true and false are bool, which isinstance takes for int.
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value
