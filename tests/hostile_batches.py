"""Batches as no client of ours writes them, put on a real broker as they are."""

import struct
import time
from collections.abc import Callable, Mapping
from typing import Final

import cramjam
import zstandard
from aiokafka import AIOKafkaProducer
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode
from aiokafka.producer.message_accumulator import BatchBuilder

from streams.edge.kafka.checksum import crc32c
from streams.edge.kafka.unpacking import CODECS


def unsized_zstd(content: bytes) -> bytes:
    """Return a frame that does not contain its size, as Java's library writes it."""
    writing = zstandard.ZstdCompressor().compressobj()
    return writing.compress(content) + writing.flush()


WRITERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip_encode,
    "snappy": snappy_encode,
    "lz4": lz4_encode,
    "zstd": unsized_zstd,
}


def varint(number: int) -> bytes:
    """Return a number as records have it: zigzag, seven bits a byte."""
    bits = (number << 1) ^ (number >> 63)
    written = bytearray()
    while bits > 0x7F:
        written.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes((*written, bits))


def record(number: int, key: bytes, value: bytes) -> bytes:
    """Return one record of a batch."""
    body = b"\0" + varint(0) + varint(number)
    body += varint(len(key)) + key + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch_of(content: bytes, records: int, codec: int) -> bytes:
    """Return a batch of so many records, whose content is compressed already."""
    now_ms = int(time.time() * 1_000)
    checked = struct.pack(">hiqqqhii", codec, records - 1, now_ms, now_ms, -1, -1, -1, records)
    checked += content
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def bomb(codec: str, records: int, value_bytes: int, key: bytes = b"s") -> bytes:
    """Return a batch of messages that are far larger than it is."""
    value = b'{"type":"user","sessionId":"s","x":"' + b"a" * value_bytes + b'"}'
    content = b"".join(record(number, key, value) for number in range(records))
    return batch_of(WRITERS[codec](content), records, CODECS.index(codec))


def damaged() -> bytes:
    """Return a batch that brokers take, who leave lz4's checksum of the content alone."""
    writing = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    writing.compress(record(0, b"s", b"{}"))
    content = bytes(writing.finish())
    return batch_of(content[:-1] + bytes((content[-1] ^ 1,)), 1, CODECS.index("lz4"))


class _Raw(BatchBuilder):  # type: ignore[misc]  # aiokafka is not typed
    def __init__(self, content: bytes, records: int) -> None:
        # Not the base's: it would make a builder for single records.
        self._content, self._records, self._closed = content, records, True

    def _set_producer_state(self, *_: object) -> None:
        """Keep the batch as it is: it has no producer."""

    def _build(self) -> bytes:
        return self._content

    def size(self) -> int:
        return len(self._content)

    def record_count(self) -> int:
        return self._records


async def put(bootstrap: str, topic: str, partition: int, batch: bytes) -> int:
    """Put a batch on a real broker; return its first offset."""
    (records,) = struct.unpack_from(">i", batch, 57)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=20 << 20)
    await producer.start()
    try:
        acknowledged = await producer.send_batch(_Raw(batch, records), topic, partition=partition)
        offset: int = (await acknowledged).offset
        return offset
    finally:
        await producer.stop()
