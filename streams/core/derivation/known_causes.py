"""Which causes a session has seen (R4): all of its life's, up to 262 144.

Runtimes write old lines again: a resume the last ones, a second compaction a whole history, a copy
of a transcript all of it. A memory of the last few thousand misses such a stretch as a whole, since
each line that is taken for new pushes out the one that comes next.

Immutable, and cheap to extend: the newest hashes are one short byte string, older ones lie in
segments, of which only the last grows; old segments are joined into blocks. All are held as bytes
and nothing else, for a worker holds very many. Persisted in small chunks, so that a batch writes
only what it added. What is held depends on nothing but how many causes were added, so that a
session that was stored and read back goes on as one that was not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from streams import compiled

_text_hash: Final = compiled.hashes().text_hash
_is_absent: Final = compiled.hashes().is_absent

HASH_BYTES: Final = 8
"""Bytes stored of a cause: 2**64 values make a false repeat in 262 144 practically impossible."""

KEPT: Final = 262_144
"""How many causes are known at least (R4): 2 MiB of hashes. Real sessions have some ten thousand;
the bound keeps one that never ends from growing without end."""

SEGMENT: Final = 512
"""Hashes in a segment."""

_JOINED: Final = 8
BLOCK: Final = _JOINED * SEGMENT
"""Hashes in a block, into which old segments are joined: a look-up asks some sixteen segments, and
one block for each 4 096 older causes. The oldest leave by blocks."""

STEP: Final = 64
"""Hashes by which a segment grows: those in the tail are copied with each new one, and searched."""

_FILTER_BYTES: Final = 2
"""Of a filter, for each hash: 16 bits, of which it sets one. So seldom is a segment searched in
vain; a search costs ten times as much as looking at a bit."""

CHUNK: Final = 64
"""Hashes in a persisted chunk, which is written again with each `RECENT` of them."""

RECENT: Final = 16
"""Hashes by which the persisted chunks grow; the newest, fewer than that, are stored with the
session, which is written with each batch in any case. A chunk of 64 each time would be 256 bytes of
hashes, which do not compress; so it is some 80."""


class Segment(NamedTuple):
    """Hashes in order, of a segment or a block; `filter` has a bit for each.

    It is empty where none was made.
    """

    ordered: bytes
    filter: bytes = b""


@dataclass(slots=True, init=False)
class KnownCauses:
    """`added` counts all causes ever added, `first` those of them that are not held any more."""

    segments: tuple[Segment, ...]
    tail: bytes
    added: int
    first: int

    def __init__(
        self,
        segments: tuple[Segment, ...] = (),
        tail: bytes = b"",
        added: int = 0,
        first: int = 0,
    ) -> None:
        self.segments = segments
        self.tail = tail
        self.added = added
        self.first = first


NOTHING_KNOWN: Final = KnownCauses()


def cause_hash(cause: str) -> bytes:
    """Return the 8 bytes by which a cause is known."""
    return _text_hash(b"", cause)


def is_known(known: KnownCauses, cause: bytes) -> bool:
    """Return whether the cause was added and is held."""
    return not _is_absent(known.tail, known.segments, cause)


def add(known: KnownCauses, cause: bytes) -> KnownCauses:
    """Return the causes with one more."""
    tail, added = known.tail + cause, known.added + 1
    if len(tail) < STEP * HASH_BYTES:
        return KnownCauses(known.segments, tail, added, known.first)
    segments, first = _grown(known.segments, tail, added), known.first
    # By whole blocks, at numbers that follow from `added` alone: what is held must not depend on
    # batches or restarts.
    if added % BLOCK == 0 and added - KEPT > first:
        segments, first = _without_oldest(segments, added - KEPT - first), added - KEPT
    return KnownCauses(segments, b"", added, first)


def _grown(segments: tuple[Segment, ...], tail: bytes, added: int) -> tuple[Segment, ...]:
    """Return the segments with a full tail: a part of the last one, or the next one's beginning."""
    if added % SEGMENT == STEP:
        return (*_joined(segments), Segment(tail, _marked(bytes(SEGMENT * _FILTER_BYTES), tail)))
    ordered, marks = segments[-1]
    marks = _marked(marks, tail) if marks else _marks_of(ordered + tail)
    return (*segments[:-1], Segment(ordered + tail, marks))


def _joined(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Return the segments with the older half of too many joined; filters of all are made."""
    segments = tuple([part if part.filter else _filtered(part.ordered) for part in segments])
    small = 0
    while small < len(segments) and len(segments[-1 - small].ordered) <= SEGMENT * HASH_BYTES:
        small += 1
    if small < 2 * _JOINED:
        return segments
    begin = len(segments) - small
    block = b"".join([part.ordered for part in segments[begin : begin + _JOINED]])
    return (*segments[:begin], _filtered(block), *segments[begin + _JOINED :])


def _without_oldest(segments: tuple[Segment, ...], count: int) -> tuple[Segment, ...]:
    """Return the segments without so many of the oldest hashes."""
    left = count * HASH_BYTES
    for index, (ordered, marks) in enumerate(segments):
        if left < len(ordered):
            return (Segment(ordered[left:], marks), *segments[index + 1 :])
        left -= len(ordered)
    raise AssertionError("the newest are held")


def refresh(known: KnownCauses, cause: bytes) -> KnownCauses:
    """Return the causes with a known one as the newest, if it could leave soon.

    So what was repeated among the last 4 096 messages is still known when these are repeated.
    """
    if known.added - known.first < KEPT - BLOCK:
        return known
    old = 0
    for index, part in enumerate(known.segments):
        old += len(part.ordered) // HASH_BYTES
        if old >= 3 * BLOCK:
            is_absent = _is_absent(b"", known.segments[: index + 1], cause)
            return known if is_absent else add(known, cause)
    raise AssertionError("there are more than these")


def recent(known: KnownCauses) -> bytes:
    """Return the hashes that are in no chunk yet: the newest, fewer than `RECENT`."""
    size = known.added % RECENT * HASH_BYTES
    return known.tail[-size:] if size else b""


def chunks(before: KnownCauses, after: KnownCauses) -> dict[int, bytes]:
    """Return the chunks that grew, by number, with all their hashes."""
    written, end = max(before.added // RECENT * RECENT, after.first), after.added // RECENT * RECENT
    if written >= end:
        return {}
    hashes = _newest(after, after.added - written // CHUNK * CHUNK)
    begin = after.added - len(hashes) // HASH_BYTES
    grown = {}
    for number in range(written // CHUNK, (end - 1) // CHUNK + 1):
        start, stop = max(number * CHUNK, begin), min((number + 1) * CHUNK, end)
        grown[number] = hashes[(start - begin) * HASH_BYTES : (stop - begin) * HASH_BYTES]
    return grown


def left_chunks(before: KnownCauses, after: KnownCauses) -> range:
    """Return the numbers of the chunks whose hashes are not held any more."""
    return range(before.first // CHUNK, after.first // CHUNK)


def _newest(known: KnownCauses, count: int) -> bytes:
    """Return so many of the newest hashes, more of them, or all where there are fewer."""
    parts = [known.tail]
    missing = count * HASH_BYTES - len(known.tail)
    for segment in reversed(known.segments):
        if missing <= 0:
            break
        parts.append(segment.ordered)
        missing -= len(segment.ordered)
    return b"".join(reversed(parts))


def from_chunks(added: int, first: int, newest: bytes, stored: Mapping[int, bytes]) -> KnownCauses:
    """Rebuild from the chunks by number and the newest hashes, which are in none of them.

    `first` is a multiple of `CHUNK`. Raises ValueError where they do not fit together.
    """
    if added == 0:
        return NOTHING_KNOWN
    end = added - len(newest) // HASH_BYTES
    numbers = range(first // CHUNK, -(-end // CHUNK))
    missing = [number for number in numbers if number not in stored]
    if missing or end < first:
        raise ValueError(f"chunks {missing} of the known causes are missing")
    sizes = [min(CHUNK, end - number * CHUNK) * HASH_BYTES for number in numbers]
    parts = [stored[number] for number in numbers]
    if [len(part) for part in parts] != sizes:
        raise ValueError(f"{added} causes were added, the chunks end elsewhere")
    hashes = b"".join([*parts, newest])
    tail_at = (added - added % STEP - first) * HASH_BYTES
    # The last segment grows on: it begins where it would have.
    last_at = max(0, (added - added % STEP - STEP) // SEGMENT * SEGMENT - first) * HASH_BYTES
    size = BLOCK * HASH_BYTES
    bounds = [*range(0, last_at, size), last_at, tail_at]
    # Without filters: making them costs more than the searches of the few messages that most
    # sessions get between being read back and being put away again.
    segments = [Segment(hashes[begin:to]) for begin, to in pairwise(bounds) if begin < to]
    return KnownCauses(tuple(segments), hashes[tail_at:], added, first)


def _filtered(hashes: bytes) -> Segment:
    return Segment(hashes, _marks_of(hashes))


def _marks_of(hashes: bytes) -> bytes:
    """Return a filter of hashes: of a segment's size, or of a block's."""
    size = SEGMENT if len(hashes) <= SEGMENT * HASH_BYTES else BLOCK
    return _marked(bytes(size * _FILTER_BYTES), hashes)


def _marked(marks: bytes, hashes: bytes) -> bytes:
    """Return a filter with the bits of more hashes."""
    marked, last = bytearray(marks), len(marks) - 1
    for begin in range(0, len(hashes), HASH_BYTES):
        # Two bytes of the hash itself choose its bit: they are as good as random.
        number = hashes[begin + 7] << 8 | hashes[begin + 6]
        marked[number >> 3 & last] |= 1 << (number & 7)
    return bytes(marked)
