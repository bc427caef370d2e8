"""Where a session's messages go: Kafka's own default partitioner, murmur2 of the key.

Java producers use it by default; librdkafka does with `partitioner=murmur2_random`.
"""

from functools import lru_cache

from aiokafka.partitioner import murmur2

from streams.edge.codec import key_bytes

_CACHED_SESSIONS = 65_536
"""The hash is plain Python, some 10 µs for a UUID; so many sessions at a time are remembered."""

_SIGN_MASK = 0x7FFFFFFF
"""Java's hash is signed; its partitioner drops the sign."""


@lru_cache(maxsize=_CACHED_SESSIONS)
def _hash(session_id: str) -> int:
    return int(murmur2(key_bytes(session_id))) & _SIGN_MASK


def partition_of(session_id: str, partitions: int) -> int:
    """Return the partition of a session among `partitions`, as every Kafka client would."""
    return _hash(session_id) % partitions
