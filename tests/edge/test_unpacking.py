"""What a batch is unpacked to: the same as by aiokafka's libraries, and never above the limit."""

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Final

import cramjam
import pytest
import zstandard
from aiokafka import codec
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record import default_records, legacy_records
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.units import MIB
from streams.edge.kafka.unpacking import (
    CODECS,
    LIMIT_BYTES,
    UnpackedTooLargeError,
    at_most,
    unpack,
)

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def unsized(content: bytes) -> bytes:
    writing = zstandard.ZstdCompressor().compressobj()
    return writing.compress(content) + writing.flush()


def raw_snappy(content: bytes) -> bytes:
    return bytes(snappy_encode(content, xerial_compatible=False))


def sized_lz4(content: bytes) -> bytes:
    """Return a frame in linked blocks of 4 MiB, with checksums."""
    writing = cramjam.lz4.Compressor(level=4, content_checksum=True, block_linked=True)
    writing.compress(content)
    return bytes(writing.finish())


WRITERS: Final[list[tuple[int, Callable[[bytes], bytes]]]] = [
    (GZIP, gzip_encode),
    (SNAPPY, snappy_encode),
    (SNAPPY, raw_snappy),
    (LZ4, lz4_encode),
    (LZ4, sized_lz4),
    (LZ4, lambda content: bytes(cramjam.lz4.compress(content))),
    (ZSTD, zstandard.compress),
    (ZSTD, unsized),
]
every_writer = pytest.mark.parametrize(("number", "write"), WRITERS)


@given(st.sampled_from(WRITERS), st.binary(max_size=400), st.integers(1, 200))
def test_what_was_compressed_is_unpacked(
    writer: tuple[int, Callable[[bytes], bytes]], content: bytes, times: int
) -> None:
    number, write = writer
    content *= times
    written = write(content)
    for kind in (bytes, bytearray, memoryview):
        assert unpack(number, kind(written), max(len(content), 1)) == content
    if content:
        with pytest.raises(UnpackedTooLargeError):
            unpack(number, written, len(content) - 1)


@pytest.mark.extended
@every_writer
def test_the_limit_is_exact_for_large_batches(number: int, write: Callable[[bytes], bytes]) -> None:
    content = b"".join(b"%d, " % number for number in range(1_400_000))
    written = write(content)
    assert unpack(number, written, len(content)) == content
    with pytest.raises(UnpackedTooLargeError):
        unpack(number, written, len(content) - 1)


@pytest.mark.extended
@every_writer
def test_a_batch_of_some_kilobytes_that_holds_much_takes_no_more_than_the_limit(
    number: int, write: Callable[[bytes], bytes]
) -> None:
    written, most = write(bytes(100 * MIB)), 4 * MIB
    tracemalloc.start()
    try:
        with pytest.raises(UnpackedTooLargeError, match="more than 4,194,304 bytes"):
            unpack(number, written, most)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # And one piece more, of what four bytes may become at the worst.
    assert peak < most + 17 * MIB + 2 * len(written)


@pytest.mark.extended
@every_writer
def test_what_is_cut_off_or_damaged_is_corrupt(
    number: int, write: Callable[[bytes], bytes]
) -> None:
    written = write(b"words that come again " * 40)
    for end in range(len(written) // 2, len(written) - 8):
        with pytest.raises(CorruptRecordException):
            unpack(number, written[:end], LIMIT_BYTES)
    with pytest.raises(CorruptRecordException):
        unpack(number, b"no codec wrote this", LIMIT_BYTES)


def test_members_of_gzip_are_read_as_one_and_what_fills_them_up_is_not() -> None:
    parts = [b"one", b"", b"two" * 50_000, b"three"]
    written = b"".join(gzip.compress(part) for part in parts) + bytes(5_000)
    assert unpack(GZIP, written, LIMIT_BYTES) == b"".join(parts) == gzip.decompress(written)
    with pytest.raises(CorruptRecordException):
        unpack(GZIP, written + b"x", LIMIT_BYTES)
    for end in range(len(written) - 5_020, len(written) - 5_000):
        with pytest.raises(CorruptRecordException):
            unpack(GZIP, written[:end], LIMIT_BYTES)


@pytest.mark.extended
@pytest.mark.parametrize("number", [GZIP, ZSTD])
def test_many_small_parts_take_time_in_proportion(number: int) -> None:
    part = {GZIP: gzip.compress(b"x"), ZSTD: unsized(b"x")}[number]
    written = part * (4 * MIB // len(part))
    content = unpack(number, written, LIMIT_BYTES)  # a quadratic reader takes minutes
    assert content == b"x" * (len(written) // len(part))


def test_a_block_of_snappy_that_goes_backwards_is_corrupt() -> None:
    head = snappy_encode(b"")[:16]
    for size in (-4, 0, 2**31 - 1):
        with pytest.raises(CorruptRecordException):
            unpack(SNAPPY, head + struct.pack(">i", size) + b"\x01\x00x", LIMIT_BYTES)


def test_a_claim_of_snappy_is_not_believed() -> None:
    claims_much = b"\xff\xff\xff\xff\x0f" + b"\x00x"
    with pytest.raises(UnpackedTooLargeError):
        unpack(SNAPPY, claims_much, LIMIT_BYTES)
    with pytest.raises(CorruptRecordException):
        unpack(SNAPPY, b"\x80\x80\x01\x00x", LIMIT_BYTES)


def test_a_frame_of_lz4_without_its_end_is_left_to_the_library() -> None:
    written = lz4_encode(b"some words" * 400)
    with pytest.raises(CorruptRecordException):
        unpack(LZ4, b"\x04\x22\x4d\x18\x60\x00" + written[6:], LIMIT_BYTES)


def test_a_codec_that_there_is_not_is_reported_as_such() -> None:
    for number in (5, 6, 7):
        with pytest.raises(UnsupportedCodecError):
            unpack(number, b"", LIMIT_BYTES)


@pytest.mark.usefixtures("our_parts")
def test_whatever_aiokafka_reads_is_bounded() -> None:
    content = bytes(300_000)
    for module in (codec, default_records, legacy_records):
        for number, write in WRITERS:
            decode = getattr(module, f"{CODECS[number]}_decode", None)
            if decode is None:
                continue
            assert decode(write(content)) == content
            with at_most(len(content) - 1), pytest.raises(UnpackedTooLargeError):
                decode(write(content))
            assert decode(write(content)) == content
    builder = LegacyRecordBatchBuilder(1, GZIP, 1 << 20)
    builder.append(0, 5, None, content)
    batch = bytes(builder.build())
    for reader in (
        legacy_records.LegacyRecordBatch,
        legacy_records._LegacyRecordBatchPy,  # noqa: SLF001 -- the Python form
    ):
        (record,) = reader(batch, 1)
        assert record.value == content
        with at_most(1_000), pytest.raises(UnpackedTooLargeError):
            list(reader(batch, 1))


def test_the_libraries_are_those_that_the_bounds_rest_on() -> None:
    """Where one of these changes, the bounds have to be looked at."""
    room = bytearray(10)
    with pytest.raises(cramjam.DecompressionError, match="whole buffer"):
        cramjam.lz4.decompress_into(cramjam.lz4.compress(bytes(11)), room)
    assert cramjam.snappy.decompress_raw_len(raw_snappy(bytes(70))) == 70
    member = zlib.decompressobj(wbits=31)
    assert len(member.decompress(gzip.compress(bytes(90)), 10)) == 10
