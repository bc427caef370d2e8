"""Files that were not read at all yet: described for other processes, and read there, whole."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from schemas.topics import MIB
from streams import codec
from streams.edge.files.opening import expected_bytes
from streams.edge.files.positions import Position
from streams.edge.files.tail import FileTail
from streams.edge.files.watch import source_of
from streams.ports import TranscriptPiece


class Seen(NamedTuple):
    """What is known of a file's metadata: a tenth of what the system returns, for thousands.

    `place` is where it lies.
    """

    modified_ns: int
    size: int
    device: int
    inode: int
    place: str

    @property
    def expected_bytes(self) -> int:
        """How much there is to read, as far as that is known before."""
        return expected_bytes(self.place, self.size)

    def rest(self, at: Position | None) -> int:
        """Return how much is unread from a position; of a compressed file all, until it is read."""
        is_plain = self.expected_bytes == self.size
        return max(0, self.size - at.end) if is_plain and at is not None else self.size


class UnreadFile(NamedTuple):
    """A file from its beginning, as it was seen; `final`: its last line needs no end."""

    path: str
    seen: Seen
    final: bool


UnreadFiles: TypeAlias = Sequence[UnreadFile]

_MANY_BYTES = 16 * MIB
_TASK_BYTES = MIB
_LARGEST_BYTES = 32 * MIB
"""Other processes read only where there is much to read, some sessions at a time: what they give
is held in memory. A session beyond the largest size is left out, to be read piece by piece."""


def seen_of(status: os.stat_result, place: str) -> Seen:
    """Return what is known of a file that lies there."""
    return Seen(status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino, place)


def tasks_of(sessions: Iterable[UnreadFiles]) -> list[UnreadFiles]:
    """Return the files of sessions in tasks for other processes; none where these are few."""
    tasks: list[list[UnreadFile]] = []
    room = total = 0
    for files in sessions:
        size = sum(each.seen.expected_bytes for each in files)
        if not 0 < size <= _LARGEST_BYTES:
            continue
        if room <= 0:
            tasks.append([])
            room = _TASK_BYTES
        tasks[-1] += files
        room, total = room - size, total + size
    return list[UnreadFiles](tasks) if total >= _MANY_BYTES else []


def unread_tail(at: Position | None, seen: Seen) -> FileTail:
    """Return what reads a file on from a position; what it holds was written before."""
    tail = FileTail(source_of(seen.place), at or Position("", seen.device, seen.inode), None)
    tail.live_from = tail.size = seen.size
    return tail


def read_whole(files: UnreadFiles) -> Iterator[TranscriptPiece]:
    """Yield the pieces of files, each from its beginning. Raises OSError."""
    for path, seen, final in files:
        tail = unread_tail(None, seen)
        try:
            for piece in tail.pieces(0.0, final=final):
                piece.settle()
                tail.read = tail.acknowledged
                position = position_after(tail, seen)
                modified_ms = max(0, seen.modified_ns // 1_000_000)
                yield TranscriptPiece(path, piece.lines, None, modified_ms, mark_of(position))
        finally:
            tail.close()


def is_as_left(at: Position, seen: Seen) -> bool:
    """Return whether nothing was written to a file since it was read to its end."""
    return (at.modified_ns, at.file_bytes, at.inode) == (seen.modified_ns, seen.size, seen.inode)


def position_after(tail: FileTail, seen: Seen) -> Position:
    """Return how far a file was read; with its time and size only if that is all of it."""
    is_whole = tail.read.end == tail.size
    return tail.read._replace(
        modified_ns=seen.modified_ns if is_whole else 0,
        stored_bytes=seen.size if is_whole and tail.is_measured else 0,
    )


def mark_of(at: Position) -> bytes:
    """Return a position as it is stored."""
    return codec.dumps({**at._asdict(), "path": ""})
