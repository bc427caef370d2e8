"""The checksum of record batches, CRC-32C: by the machine's instruction where that is compiled."""

from typing import Final

from aiokafka.record.util import calc_crc32c

from streams import compiled

_machine_crc32c: Final = compiled.batches().crc32c


def crc32c(content: bytes | memoryview) -> int:
    """Return the checksum of bytes."""
    if _machine_crc32c is not None:
        return _machine_crc32c(content)
    checksum: int = calc_crc32c(bytes(content))
    return checksum
