"""Decompresses batches, each to at most so many bytes.

A batch of 110 kB may unpack to gigabytes. How much it holds is written in front of it (snappy, most
of zstd), or has a bound by its blocks (lz4, the rest of zstd): what is below the limit by that is
decompressed at once, anything else in pieces until the limit.

aiokafka has no limit, a slower way of reading gzip, and a library that takes 2.5 times as long for
zstd: while a consumer of ours runs, the functions here are in the place of its own
(`fetched_bytes.py`), so that all that reads batches is bounded.
"""

import re
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import cramjam
import zstandard
from aiokafka import codec as aiokafka_codec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record import default_records, legacy_records

from contextgauge.units import MIB

Payload: TypeAlias = bytes | bytearray | memoryview

CODECS: Final = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
"""By the number in a batch's attributes."""

LIMIT_BYTES: Final = 64 * MIB
"""Where no other limit is given: eight of the largest messages."""

_PIECE_BYTES: Final = 128 << 10
"""Pieces of a zstd frame of unknown size: most batches are one."""

_ZSTD_BLOCK_BYTES: Final = 128 << 10
_ZSTD_RLE: Final = 1
_ZSTD_COMPRESSED: Final = 2
"""The most that a block unpacks to; kinds of blocks: a repeated byte, compressed (RFC 8878)."""
_ZSTD_INPUT_BYTES: Final = 512
"""Four bytes may become a block, so these 16 MiB: what may come above the limit."""

_GZIP_INPUT_BYTES: Final = 4_096
_FILLING: Final = re.compile(b"\0*")
"""What may follow gzip's members."""

_XERIAL: Final = b"\x82SNAPPY\0"
_XERIAL_BYTES: Final = 16
"""How Java's clients write snappy: blocks of their own, behind this and two version numbers."""

_LZ4_MAGIC: Final = 0x184D2204
_LZ4_BLOCK_BYTES: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LZ4_RATIO: Final = 255
"""lz4 makes at most so many bytes of one."""


class UnpackedTooLargeError(CorruptRecordException):  # type: ignore[misc]  # aiokafka is not typed
    """A batch unpacks to more than the limit."""


class _Unpacking(threading.local):
    """What decompresses, and the limit: one thread uses it at a time, others meanwhile theirs."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()
        self.most = LIMIT_BYTES


_unpacking: Final = _Unpacking()


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Bound what aiokafka decompresses meanwhile, in this thread."""
    before, _unpacking.most = _unpacking.most, limit
    try:
        yield
    finally:
        _unpacking.most = before


def unpack(codec: int, payload: Payload, most: int) -> bytes:
    """Return what a batch's records were compressed from.

    Raises UnpackedTooLargeError above `most` bytes, UnsupportedCodecError for a codec that there is
    not, CorruptRecordException for what the codec did not write.
    """
    if codec >= len(_DECODERS):
        raise UnsupportedCodecError(f"there is no codec {codec}")
    try:
        return _DECODERS[codec](payload, most)
    except UnpackedTooLargeError:
        raise
    except (ValueError, IndexError, struct.error, zlib.error, *_LIBRARY_ERRORS) as error:
        raise CorruptRecordException(f"it is not {CODECS[codec]}: {error}") from error


_LIBRARY_ERRORS: Final = (zstandard.ZstdError, cramjam.DecompressionError)


def _too_large(most: int) -> UnpackedTooLargeError:
    return UnpackedTooLargeError(f"it unpacks to more than {most:,} bytes")


def _plain(payload: Payload, most: int) -> bytes:  # noqa: ARG001 -- as the others
    return bytes(payload)  # what was not compressed is bounded by the topic


def _gzip(payload: Payload, most: int) -> bytes:
    content = bytes(payload)
    pieces: list[bytes] = []
    # The first member as a whole: what follows one is copied by zlib, each time.
    offset, size, step = 0, 0, len(content)
    while offset < len(content) or not pieces:
        member = zlib.decompressobj(wbits=31)
        while offset < len(content) and not member.eof:
            pieces.append(member.decompress(content[offset : offset + step], most + 1 - size))
            size += len(pieces[-1])
            if size > most:
                raise _too_large(most)
            offset += step
        if not member.eof:
            raise ValueError("it is incomplete")
        offset = min(offset, len(content)) - len(member.unused_data)
        offset, step = _FILLING.match(content, offset).end(), _GZIP_INPUT_BYTES  # type: ignore[union-attr]  # it always does
    return b"".join(pieces)


def _snappy(payload: Payload, most: int) -> bytes:
    content = bytes(payload)
    if sum(map(cramjam.snappy.decompress_raw_len, _snappy_blocks(content))) > most:
        raise _too_large(most)
    return b"".join(map(bytes, map(cramjam.snappy.decompress_raw, _snappy_blocks(content))))


def _snappy_blocks(payload: bytes) -> Iterator[bytes | memoryview]:
    if not payload.startswith(_XERIAL):
        yield payload
        return
    view, offset = memoryview(payload), _XERIAL_BYTES
    while offset < len(payload):
        (size,) = struct.unpack_from(">i", payload, offset)
        offset += 4
        if not 0 < size <= len(payload) - offset:
            raise ValueError("a block is cut off")
        yield view[offset : offset + size]
        offset += size


def _lz4(payload: Payload, most: int) -> bytes:
    payload = bytes(payload)
    if _lz4_bound(payload) <= most:
        return bytes(cramjam.lz4.decompress(payload))
    room = bytearray(most)
    try:
        size = cramjam.lz4.decompress_into(payload, room)
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise _too_large(most) from error
        raise
    return bytes(memoryview(room)[:size])


def _lz4_bound(payload: bytes) -> int:
    """Return how much the frames hold at the most, by their blocks, where these can be read."""
    bound, offset = 0, 0
    try:
        while offset < len(payload):
            magic, flags, kind = struct.unpack_from("<IBB", payload, offset)
            largest = _LZ4_BLOCK_BYTES.get(kind >> 4 & 7)
            if magic != _LZ4_MAGIC or largest is None:
                return sys.maxsize
            # Behind magic, flags and block size a content size and a dictionary's id may come, then
            # a byte of checksum.
            offset += 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
            while size := struct.unpack_from("<I", payload, offset)[0]:
                size &= 0x7FFF_FFFF  # the highest bit marks a block that is stored as it is
                bound += min(largest, size * _LZ4_RATIO)
                offset += 4 + size + (4 if flags & 16 else 0)
            offset += 4 + (4 if flags & 4 else 0)
    except struct.error:  # it is cut off
        return sys.maxsize
    return bound


def _zstd(payload: Payload, most: int) -> bytes:
    content, bound = b"", sys.maxsize
    try:
        size = zstandard.frame_content_size(payload)
        if size > most:
            raise _too_large(most)
        # An empty frame may be followed by others, which would be left out.
        if size > 0:
            return _unpacking.zstd.decompress(payload, allow_extra_data=False)
        content = bytes(payload)
        bound = _zstd_bound(content)
    except zstandard.ZstdError:
        content = bytes(payload)  # broken, or several frames
    pieces: list[bytes] = []
    size = 0
    for piece in _zstd_pieces(content, len(content) if bound <= most else _ZSTD_INPUT_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _too_large(most)
    return b"".join(pieces)


def _zstd_pieces(content: bytes, step: int) -> Iterator[bytes]:
    """Yield what frames hold, of so many of their bytes at a time."""
    offset = 0
    while offset < len(content):
        frame = _unpacking.zstd.decompressobj(write_size=_PIECE_BYTES)
        while offset < len(content) and not frame.eof:
            yield frame.decompress(content[offset : offset + step])
            offset += step
        if not frame.eof:
            raise ValueError("a frame is incomplete")
        offset = min(offset, len(content)) - len(frame.unused_data)


def _zstd_bound(content: bytes) -> int:
    """Return how much a frame holds at the most, by its blocks; no bound where others follow."""
    offset, bound = zstandard.frame_header_size(content), 0
    while offset < len(content):
        header = int.from_bytes(content[offset : offset + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        # The size of a repeated byte is what it unpacks to.
        offset += 3 + (1 if kind == _ZSTD_RLE else size)
        bound += _ZSTD_BLOCK_BYTES if kind == _ZSTD_COMPRESSED else size
        if is_last:
            break
    # A checksum may follow.
    return bound if offset + 4 >= len(content) else sys.maxsize


_DECODERS: Final[tuple[Callable[[Payload, int], bytes], ...]] = (
    _plain,
    _gzip,
    _snappy,
    _lz4,
    _zstd,
)


def _bounded(codec: int, payload: Payload) -> bytes:
    return unpack(codec, payload, _unpacking.most)


def decoders() -> Iterator[tuple[Any, str, Callable[[Payload], bytes]]]:
    """Yield where aiokafka looks functions up, compiled or in Python: module, name, and ours."""
    names = ("default_records", "legacy_records")
    compiled = [sys.modules.get(f"aiokafka.record._crecords.{name}") for name in names]
    modules: Iterator[Any] = chain([aiokafka_codec, default_records, legacy_records], compiled)
    for module in modules:
        for number, name in enumerate(CODECS):
            if hasattr(module, f"{name}_decode"):
                yield module, f"{name}_decode", partial(_bounded, number)
