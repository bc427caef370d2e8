"""Kafka's hash of a key, murmur2, and the partition that it gives.

It is the Java client's, of 32 bits. It stands here, and not as a library's, because the library
that has it takes longer to import than a status line may take to be drawn.
"""

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF

SIGN_MASK = 0x7FFFFFFF
"""Java's hash is signed; its partitioner drops the sign."""


def murmur2(data: bytes) -> int:
    """Return the hash, 0 to 2**32 - 1."""
    length = len(data)
    whole = length & ~3
    mixed = _SEED ^ length
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        part = (part ^ part >> _SHIFT) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ part
    if whole != length:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition of a key among `partitions`, as every Kafka client would."""
    return (murmur2(key) & SIGN_MASK) % partitions
