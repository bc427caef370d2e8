"""The chain's memory of responses (R9): what the last 32 counted, packed.

One response comes as several lines or frames. Its counts are remembered, so that a further line
is a new reading only if they differ, and what may be emitted once per response is marked.
"""

import struct
from typing import NamedTuple

from streams.core.known import HASH_BYTES, cause_hash
from streams.core.signals import Usage

KEPT = 32
"""How many responses a chain remembers (R9)."""

BOUNDARY_MARK = 1
EDITS_MARK = 2
EXHAUSTED_MARK = 4
"""What was already emitted for the response."""

READ_MARK = 8
"""The response gave a reading; without it the counts are empty."""

_ENTRY = struct.Struct(f"<{HASH_BYTES}sQQQB")


class Remembered(NamedTuple):
    """One response: the hash of its key, its counts (a part not told is 0), its marks."""

    key: bytes
    input: int = 0
    creation: int = 0
    read: int = 0
    marks: int = 0

    def counts_differ(self, usage: Usage) -> bool:
        """Return whether a line's counts are news (R9)."""
        if not self.marks & READ_MARK:
            return True
        told = (usage.input or 0, usage.creation or 0, usage.read or 0)
        return (self.input, self.creation, self.read) != told

    def with_reading(self, usage: Usage) -> "Remembered":
        """Return it with the counts of its latest reading."""
        return Remembered(
            self.key,
            usage.input or 0,
            usage.creation or 0,
            usage.read or 0,
            self.marks | READ_MARK,
        )


def key_hash(key: str) -> bytes:
    """Return the bytes by which a response is remembered."""
    return cause_hash(key)


def find(memory: bytes, key: bytes) -> Remembered | None:
    """Return a remembered response; the newest are looked at first."""
    at = memory.rfind(key)
    while at % _ENTRY.size and at >= 0:
        at = memory.rfind(key, 0, at + HASH_BYTES - 1)
    return Remembered._make(_ENTRY.unpack_from(memory, at)) if at >= 0 else None


def remember(memory: bytes, response: Remembered) -> bytes:
    """Return the memory with the response: in its old place, or as the newest."""
    packed = _ENTRY.pack(*response)
    at = memory.rfind(response.key)
    while at % _ENTRY.size and at >= 0:
        at = memory.rfind(response.key, 0, at + HASH_BYTES - 1)
    if at >= 0:
        return memory[:at] + packed + memory[at + _ENTRY.size :]
    return (memory + packed)[-KEPT * _ENTRY.size :]
