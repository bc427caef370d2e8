"""Splits what a file holds into lines, and looks at them to find out what the file is."""

import os
from collections.abc import Iterable, Iterator

from contextgauge.containers import SIGN_BYTES, SIGNS, Line
from schemas.topics import MIB
from streams.edge.files.documents import Document, split_objects

HELD_LINE_BYTES = 256 * MIB
"""Longest line that is held in memory whole; of a longer one only its beginning and size stay."""

_LOOK_BYTES = MIB // 16
"""Of what is looked at to find out what a file is: its first lines show that as a rule."""


def line_of(name: str, number: int, value: bytes, size: int, hint: str | None) -> Line:
    """Return a line without the rest of its end."""
    if value.endswith(b"\r"):
        return Line(name, number, value[:-1], size - 1, hint)
    return Line(name, number, value, size, hint)


def split_lines(blocks: Iterable[bytes]) -> Iterator[list[tuple[bytes, int]]]:
    """Yield the lines that end in each block, then one that has no end, with their sizes.

    Of a line that is too long to be held the value is only its beginning.
    """
    pending: list[bytes] = []
    pending_bytes = 0
    for block in blocks:
        head, newline, rest = block.partition(b"\n")
        pending_bytes += len(head)
        if pending_bytes <= HELD_LINE_BYTES:
            pending.append(head)
        if not newline:
            continue
        *whole, last = rest.split(b"\n")
        first = b"".join(pending), pending_bytes
        yield [first, *((value, len(value)) for value in whole)]
        pending, pending_bytes = [last], len(last)
    if pending_bytes:
        yield [(b"".join(pending), pending_bytes)]


def split_values(
    document: Document | None, blocks: Iterable[bytes]
) -> Iterator[list[tuple[bytes, int]]]:
    """Yield what ends in each block, lines or a document's objects; see `split_lines`."""
    if document is None:
        return split_lines(blocks)
    return split_objects(document, blocks, HELD_LINE_BYTES)


def is_signed(descriptor: int, size: int) -> bool:
    """Return whether a sign of a transcript or a rollout is anywhere up to a size."""
    begins = range(0, size, _LOOK_BYTES)
    ends = (min(at + _LOOK_BYTES + SIGN_BYTES, size) for at in begins)
    return any(
        SIGNS.search(os.pread(descriptor, end - at, at))
        for at, end in zip(begins, ends, strict=True)
    )


def values_of(descriptor: int, size: int, document: Document | None) -> Iterator[bytes]:
    """Yield the lines up to a size, or a document's objects."""
    begins = range(0, size, _LOOK_BYTES)
    blocks = (os.pread(descriptor, min(_LOOK_BYTES, size - at), at) for at in begins)
    for lines in split_values(document, blocks):
        for value, _ in lines:
            yield value
