"""The chain's memory of responses (R9): what the last 32 counted, packed.

One response comes as several lines or frames. A hash of its counts is remembered, so that a further
line is a new reading only if they differ, and what may be emitted once per response is marked.
"""

import struct
from typing import Final, TypeAlias

from contextgauge.normalise.signals import Usage
from streams import compiled
from streams.core.derivation.known_causes import HASH_BYTES

_text_hash: Final = compiled.hashes().text_hash
_counts_hash: Final = compiled.hashes().counts_hash
_last_place: Final = compiled.hashes().last_place

KEPT: Final = 32
"""How many responses a chain remembers (R9)."""

BOUNDARY_MARK: Final = 1
EDITS_MARK: Final = 2
EXHAUSTED_MARK: Final = 4
"""What was already emitted for the response."""

RECENT: Final = 8
"""Responses by which what is stored of the older ones grows. The newest, fewer than that, are
stored with the chain, which is written with each response in any case: all 32 each time would be
some 640 bytes that do not compress."""

READ_MARK: Final = 8
"""The response gave a reading; without it the counts are empty."""

SECOND_MARK: Final = 16
"""Telemetry had reported the own response before (R34)."""

_ENTRY: Final = struct.Struct(f"<{HASH_BYTES}s{HASH_BYTES}sqB")
# No count is negative.
_UNKNOWN: Final = -1

NOT_COUNTED: Final = bytes(HASH_BYTES)
"""Counts of a response that gave no reading."""


Remembered: TypeAlias = tuple[bytes, int | None, int]
"""What is remembered of a response: the hash of its counts, the output of the response before it
where known, and its marks."""


def key_hash(key: str | None, cause: str, *, is_telemetry: bool = False) -> bytes:
    """Return the bytes by which a response is remembered; one without a key is its message's.

    Telemetry's are apart: whether they are a line of an own response, R34 decides.
    """
    if is_telemetry and key is not None:
        return _text_hash(b"telemetry ", key)
    if key is None:
        # Other beginnings, so that no cause is ever taken for a response's id.
        return _text_hash(b"message ", cause)
    return _text_hash(b"response ", key)


def find(memory: bytes, key: bytes) -> Remembered | None:
    """Return what is remembered of a response."""
    place = _place(memory, key)
    if place < 0:
        return None
    _, counts, output, marks = _ENTRY.unpack_from(memory, place)
    return counts, None if output == _UNKNOWN else output, marks


def remember(memory: bytes, added: int, key: bytes, response: Remembered) -> tuple[bytes, int]:
    """Return the memory with the response, in its old place or as the newest; and how many it got.

    `added` is how many it got before. Some that are remembered no longer
    stay in it, up to seven, so that what is stored of the older ones only grows at its end.
    """
    counts, output, marks = response
    packed = _ENTRY.pack(key, counts, _UNKNOWN if output is None else output, marks)
    place = _place(memory, key)
    if place >= 0:
        return memory[:place] + packed + memory[place + _ENTRY.size :], added
    added += 1
    return (memory + packed)[-(KEPT + added % RECENT) * _ENTRY.size :], added


def count(memory: bytes) -> int:
    """Return how many entries a memory has."""
    return len(memory) // _ENTRY.size


def is_whole(memory: bytes, added: int) -> bool:
    """Return whether a memory that got so many responses has all that it has to, and no more."""
    return count(memory) == min(added, KEPT + added % RECENT)


def parted(memory: bytes, added: int) -> tuple[bytes, bytes]:
    """Return the older entries, which are stored apart, and the newest, stored with the chain."""
    place = len(memory) - added % RECENT * _ENTRY.size
    return memory[:place], memory[place:]


def counts_hash(usage: Usage) -> bytes:
    """Return the bytes by which counts are compared: a third of their size; null counts as 0."""
    return _counts_hash(usage.input or 0, usage.creation or 0, usage.read or 0)


def _place(memory: bytes, key: bytes) -> int:
    """Return where the response's entry begins, or -1; the newest are looked at first."""
    place = _last_place(memory, _ENTRY.size, key)
    # Entries before the last 32 are only there to be stored: they count as forgotten (R9).
    return place if place >= len(memory) - KEPT * _ENTRY.size else -1
