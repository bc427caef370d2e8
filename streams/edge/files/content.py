"""The content of a file: the bytes that its runtime wrote, also where it is compressed by now.

A place in a file, and what was read before it, are those of the content: they are the same of a
plain file and of its compressed form. A compressed file (zstd) is decompressed from its beginning,
in small parts; going back begins again, so readers go forward.
"""

import errno
import os
from collections.abc import Iterable, Iterator

from schemas.topics import MIB

HELD_LINE_BYTES = 256 * MIB
"""Longest line that is held in memory whole; of a longer one only its beginning and size stay."""

PRINT_BYTES = 1_024
"""Bytes before a place that are read again to see whether it is still the same content."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""How zstd's frames begin: as no transcript does."""

_READ_BYTES = MIB // 16

_FED_BYTES = 512
"""Of compressed data that is decompressed at once. Four bytes may become a block of 128 KiB: so
this becomes 16 MiB at the most."""

_WINDOW_BYTES = 128 * MIB
"""Memory that a frame may ask for: what zstd itself allows. Codex's need 2 MiB."""


class DamagedError(OSError):
    """A compressed file of which only a part can be read: it is damaged, or cut off."""

    def __init__(self, what: str, content_bytes: int) -> None:
        super().__init__(
            errno.EILSEQ,
            f"the compressed data is {what} after {content_bytes:,} bytes of content: "
            "only these can be read",
        )


class UnreadableDocumentError(DamagedError):
    """A session's document of which nothing can be read until it is another one.

    `may_be_written`: what is there may be half of what its runtime is writing just now.
    """

    def __init__(self, reason: str, *, may_be_written: bool) -> None:
        OSError.__init__(self, errno.EILSEQ, reason)
        self.may_be_written = may_be_written


class Content:
    """The content of a plain file."""

    is_measured = False
    """Whether its size is another than the file's: it is known once it is opened."""
    can_grow = True
    has_rows = False
    """Whether what was read is known by marks: it is opened behind what was read."""
    is_made_again = False
    """Whether what was read may change, though it is still the same session's."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the file."""
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino

    @property
    def damage(self) -> DamagedError | None:
        """Why the rest cannot be read, where there is one. Raises OSError."""
        return None

    def size(self) -> int:
        """Return how many bytes can be read. Raises OSError."""
        return os.fstat(self.descriptor).st_size

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        return os.pread(self.descriptor, size, at)

    def mark_at(self, _place: int) -> str:
        """Return what says what is before a line's beginning, where that is not its bytes."""
        return ""

    def hold(self, at: int) -> None:
        """Take note that the line which begins here will be read again once its end is found."""

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.descriptor)


class CompressedContent(Content):
    """The content of a compressed file, which is measured once: it is replaced to change it."""

    is_measured = True
    can_grow = False

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._measured: tuple[int, DamagedError | None] | None = None
        self._blocks: Iterator[bytes] = iter(())
        self._part = bytearray()
        self._begin = 0
        """Where in the content the part begins that is in memory."""
        self._hold: int | None = None
        self._restart()

    @property
    def damage(self) -> DamagedError | None:
        """Why the rest cannot be read, where there is one. Raises OSError."""
        return self._measure()[1]

    def size(self) -> int:
        """Return how many bytes can be read. Raises OSError."""
        return self._measure()[0]

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        if at < self._begin:
            self._restart()
        while self._begin + len(self._part) < at + size:
            self._forget_before(at)
            try:
                self._part += next(self._blocks)
            except (StopIteration, DamagedError):
                break
        begin = at - self._begin
        return bytes(self._part[begin : begin + size])

    def hold(self, at: int) -> None:
        """Keep what is read from here on, up to the longest line that is held."""
        self._hold = at

    def _restart(self) -> None:
        self._blocks = self._decompressed()
        self._part.clear()
        self._begin = 0

    def _forget_before(self, at: int) -> None:
        begin = at if self._hold is None else min(at, max(self._hold, at - HELD_LINE_BYTES))
        # What is just before a place is read again, to compare it with its hash.
        passed = min(begin - PRINT_BYTES - self._begin, len(self._part))
        if passed > 0:
            del self._part[:passed]
            self._begin += passed

    def _measure(self) -> tuple[int, DamagedError | None]:
        if self._measured is None:
            size, damage = 0, None
            try:
                for block in self._decompressed():
                    size += len(block)
            except DamagedError as error:
                damage = error
            self._measured = size, damage
        return self._measured

    def _decompressed(self) -> Iterator[bytes]:
        """Yield the content of all frames in blocks. Raises OSError; DamagedError at its end."""
        import zstandard  # noqa: PLC0415 -- the status line reads plain files as a rule

        decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
        frame: zstandard.ZstdDecompressionObj | None = None
        size = 0
        for fed in self._stored():
            rest = fed
            while rest:
                frame = frame or decompressor.decompressobj()
                try:
                    block = frame.decompress(rest)
                except zstandard.ZstdError:
                    raise DamagedError("damaged", size) from None
                size += len(block)
                if block:
                    yield block
                rest = b""
                if frame.eof:
                    # A file may hold several frames, one after the other.
                    rest, frame = frame.unused_data, None
        if frame is not None:
            raise DamagedError("cut off", size)

    def _stored(self) -> Iterator[bytes]:
        offset = 0
        while stored := os.pread(self.descriptor, _READ_BYTES, offset):
            offset += len(stored)
            for begin in range(0, len(stored), _FED_BYTES):
                yield stored[begin : begin + _FED_BYTES]


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
