"""The size of an image from the first bytes of its file: PNG, JPEG, WebP and GIF.

Only as much base64 is decoded as the header needs. The length of the base64 says nothing about
tokens: a model is charged for pixels.
"""

import binascii
from collections.abc import Iterator
from typing import Final

_HEADER_CHARACTERS: Final = 512
"""Base64 that holds the size of every format but JPEG, whose size may follow other data."""

_JPEG_CHARACTERS: Final = 349_528
"""256 KiB: metadata before a JPEG's size are at most some segments of 64 KiB."""

_JPEG_SIZED: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG's frame; the three others in this range are tables."""

_JPEG_BARE: Final = frozenset(range(0xD0, 0xDA)) | {0x01}
"""Markers without data."""


def size_of_image(base64: str) -> tuple[int, int] | None:
    """Return width and height in pixels; None where the header does not tell them."""
    head = _decoded(base64, _HEADER_CHARACTERS)
    if head.startswith(b"\xff\xd8"):
        size = _jpeg_size(_decoded(base64, _JPEG_CHARACTERS))
    elif head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:  # noqa: PLR2004 -- end of its size
        size = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    elif head[:6] in {b"GIF87a", b"GIF89a"} and len(head) >= 10:  # noqa: PLR2004 -- as above
        size = int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        size = _webp_size(head)
    else:
        size = None
    return size if size and all(size) else None


def _decoded(base64: str, characters: int) -> bytes:
    """Return the bytes of a beginning, whole groups of four characters."""
    part = base64[:characters]
    part = part[: len(part) // 4 * 4]
    try:
        return binascii.a2b_base64(part)
    except (binascii.Error, ValueError):
        return b""


def _webp_size(head: bytes) -> tuple[int, int] | None:
    if len(head) < 30:  # noqa: PLR2004 -- the end of the size in each of the three kinds
        return None
    kind = head[12:16]
    if kind == b"VP8X":
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return (
            int.from_bytes(head[26:28], "little") & 0x3FFF,
            int.from_bytes(head[28:30], "little") & 0x3FFF,
        )
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    for marker, start in _jpeg_segments(data):
        if marker in _JPEG_SIZED and len(data) >= start + 7:
            height = int.from_bytes(data[start + 3 : start + 5], "big")
            return int.from_bytes(data[start + 5 : start + 7], "big"), height
    return None


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield each marker with the position of its length."""
    offset = 2
    while offset + 4 <= len(data) and data[offset] == 0xFF:  # noqa: PLR2004 -- begins each marker
        marker = data[offset + 1]
        if marker == 0xFF:  # noqa: PLR2004 -- filling before a marker
            offset += 1
        elif marker in _JPEG_BARE:
            offset += 2
        else:
            yield marker, offset + 2
            offset += 2 + int.from_bytes(data[offset + 2 : offset + 4], "big")
