"""The checksum of record batches, CRC-32C: by the machine's instruction where that is compiled."""

from aiokafka.record.util import calc_crc32c

from streams.compiled import record_batches


def crc32c(content: bytes | memoryview) -> int:
    """Return the checksum of bytes."""
    if record_batches is not None and record_batches.crc32c is not None:
        checksum: int = record_batches.crc32c(content)
    else:
        checksum = calc_crc32c(bytes(content))
    return checksum
