"""A transaction's record batches, each made of its records at once.

aiokafka's builder takes one record at a time, as several Python objects. Where the product is
compiled, a batch is encoded in one go (`streams/compiled/record_batches.pyx`) and then given to
aiokafka, which adds the producer's epoch and sequence.
"""

import struct
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode
from aiokafka.producer.message_accumulator import BatchBuilder

from contextgauge.kafka.client import append
from contextgauge.kafka.options import KafkaOptions
from contextgauge.ports import NewRecord
from streams import compiled
from streams.edge.kafka import zstd
from streams.edge.kafka.checksum import crc32c

_encode: Final = compiled.batches().encode

_CODECS: Final[dict[str | None, tuple[int, Callable[[bytes], bytes]]]] = {
    None: (0, bytes),
    "gzip": (1, gzip_encode),
    "snappy": (2, snappy_encode),
    "lz4": (3, lz4_encode),
    "zstd": (4, zstd.compress),
}
"""What compresses a batch's records, and its number in the batch's attributes."""

_TRANSACTIONAL: Final = 16
"""The attributes' bit behind the codec's three and that of the timestamps' type."""

_FORMAT: Final = 2
"""The only one with transactions (KIP-98)."""

_HEAD: Final = struct.Struct(">qiibI")
"""A batch's base offset, which the broker sets, length, leader's epoch, format and checksum."""

_CHECKED: Final = struct.Struct(">hiqqqhii")
"""What follows: attributes, the last record's offset from the first one's, first and greatest
timestamp, the producer's id, epoch and sequence, the number of records."""

_ROOM_BYTES: Final = 4_096
"""For a batch's header and the lengths of a record's parts."""

_LENGTH_ENDS: Final = 12
"""A batch's length counts what comes behind it."""


class _Encoded(NamedTuple):
    """The records of a batch: their bytes, number, and first and greatest timestamp."""

    content: bytes
    records: int
    first_ms: int
    last_ms: int


class _EncodedBatch(BatchBuilder):  # type: ignore[misc]  # aiokafka is not typed
    """A batch whose records are there, for aiokafka to send."""

    def __init__(self, encoded: _Encoded, compression: str | None) -> None:
        # Not the base's: it would make a builder for single records.
        self._encoded = encoded
        self._compression = compression
        self._producer = (-1, -1, 0)
        self._buffer: bytes | None = None
        self._closed = True

    def _set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int
    ) -> None:
        self._producer = (producer_id, producer_epoch, base_sequence)
        self._buffer = None

    def _build(self) -> bytes:
        if self._buffer is None:
            encoded = self._encoded
            attributes, compress = _CODECS[self._compression]
            content = compress(encoded.content)
            if attributes and len(content) >= len(encoded.content):
                attributes, content = 0, encoded.content
            head = _CHECKED.pack(
                attributes | _TRANSACTIONAL,
                encoded.records - 1,
                encoded.first_ms,
                encoded.last_ms,
                *self._producer,
                encoded.records,
            )
            checked = head + content
            length = _HEAD.size - _LENGTH_ENDS + len(checked)
            self._buffer = _HEAD.pack(0, length, -1, _FORMAT, crc32c(checked)) + checked
        return self._buffer

    def size(self) -> int:
        return len(self._build())

    def record_count(self) -> int:
        return self._encoded.records


def batches_of(
    producer: AIOKafkaProducer, options: KafkaOptions, records: list[NewRecord]
) -> Iterator[BatchBuilder]:
    """Yield the batches of one partition's records."""
    limit, end = options.batch_bytes - _HEAD.size - _CHECKED.size, 0
    now_ms = int(time.time() * 1000)
    while end < len(records):
        begin = end
        batch = _encode(records, begin, limit, now_ms)
        if batch is None:
            yield from _built(producer, records)
            return
        content, end, first_ms, last_ms = batch
        encoded = _Encoded(content, end - begin, first_ms, last_ms)
        yield _EncodedBatch(encoded, options.compression)


def written_bytes(options: KafkaOptions, record: NewRecord) -> int:
    """Return how many bytes a record takes in a batch of its own, about.

    One that could not be read back, as it is above the limit of what a batch may unpack to, has its
    size as it is.
    """
    parts = [record.key or b"", record.value or b""]
    parts += [part for name, value in record.headers for part in (name.encode(), value or b"")]
    content = b"".join(parts)
    if len(content) > options.batch_limit_bytes - _ROOM_BYTES:
        return len(content)
    _, compress = _CODECS[options.compression]
    return _ROOM_BYTES + len(compress(content))


def _built(producer: AIOKafkaProducer, records: list[NewRecord]) -> Iterator[BatchBuilder]:
    builder = producer.create_batch()
    for record in records:
        if not append(builder, record):
            yield builder
            builder = producer.create_batch()
            append(builder, record)
    yield builder
