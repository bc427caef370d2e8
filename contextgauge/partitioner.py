"""Where a session's messages go: Kafka's own default partitioner, murmur2 of the key.

Java producers use it by default; librdkafka does with `partitioner=murmur2_random`.
"""

from functools import lru_cache

from contextgauge.murmur2 import SIGN_MASK, murmur2
from streams.codec import key_bytes

_CACHED_SESSIONS = 65_536
"""The hash is plain Python, some 10 µs for a UUID; so many sessions at a time are remembered."""

_CACHED_CHARACTERS = 256
"""Longer ids are none that anyone has; remembering them could take gigabytes."""


def _hash(session_id: str) -> int:
    return murmur2(key_bytes(session_id)) & SIGN_MASK


_remembered_hash = lru_cache(maxsize=_CACHED_SESSIONS)(_hash)


def partition_of(session_id: str, partitions: int) -> int:
    """Return the partition of a session among `partitions`, as every Kafka client would."""
    short = len(session_id) <= _CACHED_CHARACTERS
    return (_remembered_hash if short else _hash)(session_id) % partitions
