"""Which partition a session's messages go to: Kafka's own default partitioner, murmur2 of the key.

Java producers use it by default; librdkafka does with `partitioner=murmur2_random`. The hash is
implemented here because importing a library that has it takes longer than a status line may take.
"""

from functools import lru_cache

_CACHED_SESSIONS = 65_536
"""The hash is plain Python, some 10 µs for a UUID; so many sessions are cached."""

_CACHED_CHARACTERS = 256
"""Longer ids do not occur in practice; caching them could take gigabytes."""

# As in `Utils.murmur2` of Kafka's Java client: other values would be another partitioner.
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF

_SIGN_MASK = 0x7FFFFFFF
"""Java's hash is signed; its partitioner drops the sign."""


def murmur2(data: bytes) -> int:
    """Return the hash, 0 to 2**32 - 1."""
    length = len(data)
    whole = length & ~3
    mixed = _SEED ^ length
    for offset in range(0, whole, 4):
        part = int.from_bytes(data[offset : offset + 4], "little") * _MULTIPLIER & _MASK
        part = (part ^ part >> _SHIFT) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ part
    if whole != length:  # the last one to three bytes are not multiplied before they are mixed in
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition of a key among `partitions`, as every Kafka client would."""
    return (murmur2(key) & _SIGN_MASK) % partitions


def key_bytes(session_id: str) -> bytes:
    """Encode a session id for keys and partitioning: one to one, lone surrogates too."""
    return session_id.encode("utf-8", "surrogatepass")


def _hash(session_id: str) -> int:
    return murmur2(key_bytes(session_id)) & _SIGN_MASK


_cached_hash = lru_cache(maxsize=_CACHED_SESSIONS)(_hash)


def partition_of(session_id: str, partitions: int) -> int:
    """Return the partition of a session among `partitions`, as every Kafka client would."""
    short = len(session_id) <= _CACHED_CHARACTERS
    return (_cached_hash if short else _hash)(session_id) % partitions
