"""Opens what a file holds, by its first bytes: lines, plain or compressed, or a database's rows."""

import errno
import os
from collections.abc import Iterator

from schemas.topics import MIB
from streams.edge.files.content import (
    HELD_LINE_BYTES,
    ZSTD_MAGIC,
    CompressedContent,
    Content,
    split_lines,
)
from streams.edge.files.database import SQLITE_MAGIC, open_database
from streams.edge.files.housekeeping import COMPRESSED, DATABASES
from streams.edge.files.joined import open_joined

_EXPECTED_RATIO = 16
"""What transcripts are compressed to: a tenth as a rule. Until one is read, its size is a guess."""

_DATABASE_RATIO = 50
"""What of a database's bytes is read: most of them are results of tools. Also a guess."""


def open_content(path: str, begin: int = 0, mark: str = "") -> Content:
    """Open a file for reading, a database at a place behind the rows of a mark. Raises OSError."""
    if path.endswith(DATABASES):
        # Not by a descriptor: closing it would end the locks that SQLite has on it in this process.
        return open_database(path, begin, mark)
    if (joined := open_joined(path)) is not None:
        return joined
    descriptor = os.open(path, os.O_RDONLY)
    try:
        named = path.endswith(COMPRESSED)
        head = ZSTD_MAGIC if named else os.pread(descriptor, len(SQLITE_MAGIC), 0)
    except OSError:
        os.close(descriptor)
        raise
    if head == SQLITE_MAGIC:
        os.close(descriptor)
        return open_database(path, begin, mark)
    return (CompressedContent if head.startswith(ZSTD_MAGIC) else Content)(descriptor)


def expected_bytes(path: str, stored_bytes: int) -> int:
    """Return how much a file holds, as far as that is known without reading it."""
    if path.endswith(DATABASES):
        return stored_bytes // _DATABASE_RATIO
    return stored_bytes * _EXPECTED_RATIO if path.endswith(COMPRESSED) else stored_bytes


def read_whole(path: str) -> bytes:
    """Return what a file holds. Raises OSError; DamagedError where that is only a part.

    A compressed file is refused whose content is larger than what is ever held in memory.
    """
    content = open_content(path)
    try:
        size = content.size()
        if content.damage is not None:
            raise content.damage
        if content.is_measured and size > HELD_LINE_BYTES:
            raise OSError(errno.EFBIG, f"it holds {size:,} bytes: decompress it first")
        return content.read(size, 0)
    finally:
        content.close()


def lines_in(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, of gigantic ones the beginning. Raises OSError."""
    content = open_content(path)
    try:
        for lines in split_lines(_blocks_of(content)):
            for value, _ in lines:
                yield value
    finally:
        content.close()


def _blocks_of(content: Content) -> Iterator[bytes]:
    offset = 0
    while block := content.read(MIB, offset):
        offset += len(block)
        yield block
