"""Which causes a session has seen (R4): its boundaries, and the last 4 096 others.

Immutable, and cheap to extend: the newest hashes are one short byte string, older ones lie in
segments, of which only the last grows. All are held as bytes and nothing else, for a worker holds
very many. Persisted in small chunks, so that a batch writes only what it added.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from streams.core.derivation.compiled import hashes

_text_hash: Final = None if hashes is None else hashes.text_hash
_is_absent: Final = None if hashes is None else hashes.is_absent

HASH_BYTES: Final = 8
"""Bytes stored of a cause: 2**64 values make a false repeat in 4 096 practically impossible."""

_EMPTY_HASH: Final = blake2b(digest_size=HASH_BYTES)
"""Only to be copied, which takes three quarters of the time of making another."""

KEPT: Final = 4_096
"""How many causes other than boundaries are known (R4)."""

BOUNDARIES_KEPT: Final = KEPT
"""How many boundaries are known: no real session comes near, and with as many as of the others,
whatever is sent again of a session's last 4 096 messages is known."""

SEGMENT: Final = 512
"""Hashes in a segment: a look-up asks eight or nine."""

STEP: Final = 64
"""Hashes by which a segment grows: those in the tail are copied with each new one, and searched."""

_FILTER_BYTES: Final = 1024
"""A segment's filter has 8 192 bits, of which 512 hashes set 1 in 16: so seldom is a segment
searched in vain. A search costs ten times as much as looking at a bit."""

CHUNK: Final = 64
"""Hashes in a persisted chunk, which is written again with each `RECENT` of them."""

RECENT: Final = 16
"""Hashes by which the persisted chunks grow; the newest, fewer than that, are stored with the
session, which is written with each batch in any case. A chunk of 64 each time would be 256 bytes of
hashes, which do not compress; so it is some 80."""

SLOTS: Final = KEPT // CHUNK + 1
"""Slots of the persisted ring: the stored hashes lie in at most one more chunk than they fill."""


class Segment(NamedTuple):
    """`SEGMENT` hashes in order, the last segment's fewer; `filter` has a bit for each.

    It is empty where none was made.
    """

    ordered: bytes
    filter: bytes = b""


@dataclass(slots=True, init=False)
class KnownCauses:
    """`added` counts all causes ever added other than boundaries."""

    boundaries: bytes
    segments: tuple[Segment, ...]
    tail: bytes
    added: int

    def __init__(
        self,
        boundaries: bytes = b"",
        segments: tuple[Segment, ...] = (),
        tail: bytes = b"",
        added: int = 0,
    ) -> None:
        self.boundaries = boundaries
        self.segments = segments
        self.tail = tail
        self.added = added


NOTHING_KNOWN: Final = KnownCauses()


def cause_hash(cause: str) -> bytes:
    """Return the 8 bytes by which a cause is known."""
    return text_hash(b"", cause)


def text_hash(prefix: bytes, text: str) -> bytes:
    """Return 8 bytes of BLAKE2b of a text behind a prefix."""
    found = None if _text_hash is None else _text_hash(prefix, text)
    if found is not None:  # pragma: no cover -- compiled
        return found
    return short_hash(prefix + text.encode("utf-8", "surrogatepass"))


def short_hash(content: bytes) -> bytes:
    """Return 8 bytes of BLAKE2b."""
    digest = _EMPTY_HASH.copy()
    digest.update(content)
    return digest.digest()


def is_known(known: KnownCauses, cause: bytes) -> bool:
    """Return whether the cause is among the boundaries or the last 4 096 others."""
    is_absent = False
    if _is_absent is not None:  # pragma: no cover -- compiled
        is_absent = _is_absent(known.tail, known.segments, known.boundaries, cause)
    return not is_absent and _is_held(known, cause)


def _is_held(known: KnownCauses, cause: bytes) -> bool:
    if _find(known.tail, cause) >= 0:
        return True
    if known.segments:
        at, bit = _filter_bit(cause)
        for place, (ordered, marks) in enumerate(known.segments):
            if marks and not marks[at] & bit:
                continue
            if _find(ordered, cause) >= 0 and _still_kept(known, place, cause):
                return True
    return bool(known.boundaries) and _find(known.boundaries, cause) >= 0


def add(known: KnownCauses, cause: bytes) -> KnownCauses:
    """Return the causes with one more."""
    tail, added = known.tail + cause, known.added + 1
    if len(tail) < STEP * HASH_BYTES:
        return KnownCauses(known.boundaries, known.segments, tail, added)
    return KnownCauses(known.boundaries, _grown(known.segments, tail, added), b"", added)


def _grown(segments: tuple[Segment, ...], tail: bytes, added: int) -> tuple[Segment, ...]:
    """Return the segments with a full tail: a part of the last one, or the next one's beginning."""
    if added % SEGMENT == STEP:
        return (*segments, Segment(tail, _marked(bytes(_FILTER_BYTES), tail)))
    ordered, marks = segments[-1]
    whole = ordered + tail
    # A filter that was not made when the session was read back is made now, once.
    marks = _marked(marks, tail) if marks else _marked(bytes(_FILTER_BYTES), whole)
    most = KEPT // SEGMENT + (added % SEGMENT > 0)
    return (*segments[:-1], Segment(whole, marks))[-most:]


def refresh(known: KnownCauses, cause: bytes) -> KnownCauses:
    """Return the causes with a known one as the newest.

    So what was repeated lately is still known when it is repeated again, however long ago it
    was first seen. One just added stays, and so does a boundary while none has to leave.
    """
    if known.tail.endswith(cause):
        return known
    place = _find(known.boundaries, cause)
    if place < 0:
        return add(known, cause)
    if len(known.boundaries) < BOUNDARIES_KEPT * HASH_BYTES or known.boundaries.endswith(cause):
        return known
    at = place * HASH_BYTES
    others = known.boundaries[:at] + known.boundaries[at + HASH_BYTES :]
    return KnownCauses(others + cause, known.segments, known.tail, known.added)


def add_boundary(known: KnownCauses, cause: bytes) -> KnownCauses:
    """Return the causes with one more boundary: for the session's life, or until 4 096 newer."""
    boundaries = (known.boundaries + cause)[-BOUNDARIES_KEPT * HASH_BYTES :]
    return KnownCauses(boundaries, known.segments, known.tail, known.added)


def recent(known: KnownCauses) -> bytes:
    """Return the hashes that are in no chunk yet: the newest, fewer than `RECENT`."""
    size = known.added % RECENT * HASH_BYTES
    return known.tail[-size:] if size else b""


def chunks(before: KnownCauses, after: KnownCauses) -> dict[int, tuple[int, bytes]]:
    """Return what the chunks grow by, by ring slot: the chunk's number and its hashes so far."""
    written, end = before.added // RECENT * RECENT, after.added // RECENT * RECENT
    if written == end:
        return {}
    oldest = max(written, after.added - KEPT)
    hashes = _newest(after, after.added - oldest // CHUNK * CHUNK)
    first = after.added - len(hashes) // HASH_BYTES
    changed = {}
    for number in range(oldest // CHUNK, (end - 1) // CHUNK + 1):
        begin = max(number * CHUNK - first, 0) * HASH_BYTES
        stop = (min((number + 1) * CHUNK, end) - first) * HASH_BYTES
        changed[number % SLOTS] = (number, hashes[begin:stop])
    return changed


def _newest(known: KnownCauses, count: int) -> bytes:
    """Return so many of the newest hashes, more of them, or all where there are fewer."""
    hashes = known.tail
    for segment in reversed(known.segments):
        if len(hashes) >= count * HASH_BYTES:
            break
        hashes = segment.ordered + hashes
    return hashes


def from_chunks(
    boundaries: bytes, added: int, newest: bytes, stored: Mapping[int, bytes]
) -> KnownCauses:
    """Rebuild from the chunks by number and the newest hashes, which are in none of them.

    Raises ValueError where they do not fit together.
    """
    if added == 0:
        return KnownCauses(boundaries)  # so far the session had boundaries only
    oldest, end = max(added - KEPT, 0), added - len(newest) // HASH_BYTES
    numbers = range(oldest // CHUNK, -(-end // CHUNK))
    missing = [number for number in numbers if number not in stored]
    if missing:
        raise ValueError(f"chunks {missing} of the known causes are missing")
    # The last one may have more: version 3 stored the newest in chunks too.
    sizes = [min(CHUNK, end - number * CHUNK) * HASH_BYTES for number in numbers]
    parts = [stored[number][:size] for number, size in zip(numbers, sizes, strict=True)]
    if [len(part) for part in parts] != sizes:
        raise ValueError(f"{added} causes were added, the chunks end elsewhere")
    hashes = b"".join([*parts, newest])
    begin = numbers.start * CHUNK
    # Segments begin at multiples of SEGMENT; hashes before the first are older than needed
    # unless they are still stored, so the first segment may be short.
    cut = (-begin % SEGMENT) * HASH_BYTES
    size = SEGMENT * HASH_BYTES
    bounds = [*([0] if cut else []), *range(cut, len(hashes), size)]
    parts = [
        hashes[start:stop] for start, stop in zip(bounds, [*bounds[1:], len(hashes)], strict=True)
    ]
    tail = b""
    if added % STEP:
        size = added % STEP * HASH_BYTES
        parts[-1], tail = parts[-1][:-size], parts[-1][-size:]
    # Without filters: making them costs more than the searches of the few messages that most
    # sessions get between being read back and being put away again.
    return KnownCauses(boundaries, tuple(Segment(part) for part in parts if part), tail, added)


def _marked(marks: bytes, hashes: bytes) -> bytes:
    """Return a filter with the bits of more hashes."""
    marked = bytearray(marks)
    for begin in range(0, len(hashes), HASH_BYTES):
        at, bit = _filter_bit(hashes[begin : begin + HASH_BYTES])
        marked[at] |= bit
    return bytes(marked)


def _filter_bit(cause: bytes) -> tuple[int, int]:
    """Return the byte of a filter and the bit in it for a hash."""
    number = cause[-1] << 8 | cause[-2]
    return number >> 3 & _FILTER_BYTES - 1, 1 << (number & 7)


def _find(hashes: bytes, cause: bytes) -> int:
    """Return the index of the cause in aligned hashes, or -1."""
    at = hashes.find(cause)
    while at > 0 and at % HASH_BYTES:
        at = hashes.find(cause, at + 1)
    return at // HASH_BYTES if at >= 0 else -1


def _still_kept(known: KnownCauses, place: int, cause: bytes) -> bool:
    """Return whether a hash of a segment is among the last 4 096 (of the oldest, some may be)."""
    segment, *later = known.segments[place:]
    newer = (sum(len(other.ordered) for other in later) + len(known.tail)) // HASH_BYTES
    behind = len(segment.ordered) // HASH_BYTES - _last_index(segment.ordered, cause)
    return newer + behind <= KEPT


def _last_index(hashes: bytes, cause: bytes) -> int:
    at = hashes.rfind(cause)
    while at % HASH_BYTES:
        at = hashes.rfind(cause, 0, at + HASH_BYTES - 1)
    return at // HASH_BYTES
