"""Batches of lines to send, events to report, and how files are found by inode."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.topics import MIB
from streams.edge.files.positions import Position
from streams.edge.files.tail import FileTail
from streams.ports import LineBatch

_GROUP_LINES = 256
_GROUP_BYTES = MIB // 4
"""Small pieces are put together up to about so much: each is handed to another thread, which takes
longer than a short file takes to be read."""


@dataclass(frozen=True, slots=True)
class FileEvent:
    """Something that happened to a file and is reported."""

    what: str
    path: str


def settling(tail: FileTail, after: Position) -> Callable[[], None]:
    """Return what notes that a tail was acknowledged up to a position."""

    def settle() -> None:
        tail.acknowledged = after

    return settle


def nothing() -> None:
    """Settle a piece without lines."""


def grouped(pieces: Iterable[LineBatch]) -> Iterator[LineBatch]:
    """Yield the pieces with small ones put together; none waits behind one without lines."""
    held: list[LineBatch] = []
    lines = size = 0
    for piece in pieces:
        if held and (piece.live != held[0].live or not piece.lines):
            yield _joined(held)
            held, lines, size = [], 0, 0
        if not piece.lines:
            yield piece
            continue
        held.append(piece)
        lines += len(piece.lines)
        size += sum(len(line.value) for line in piece.lines)
        if lines >= _GROUP_LINES or size >= _GROUP_BYTES:
            yield _joined(held)
            held, lines, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(pieces: Sequence[LineBatch]) -> LineBatch:
    first = pieces[0]
    if len(pieces) == 1:
        return first

    def settle() -> None:
        for piece in pieces:
            piece.settle()

    return LineBatch([line for piece in pieces for line in piece.lines], first.live, settle)


def absolute(path: str) -> str:
    """Return the path from the root, under which a checkpoint knows a file."""
    return os.path.abspath(path)  # noqa: PTH100 -- without following links


class FolderInodes:
    """Which files a folder holds, by inode; each folder is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[Path, dict[int, str]] = {}

    def find(self, folder: Path, identity: tuple[int, int]) -> Path | None:
        """Return the file of a folder that is this one, under whatever name."""
        names = self._folders.get(folder)
        if names is None:
            names = self._folders[folder] = {}
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names[entry.inode()] = entry.path
        device, inode = identity
        path = names.get(inode)
        try:
            return Path(path) if path and os.stat(path).st_dev == device else None  # noqa: PTH116 -- as in the watch
        except OSError:
            return None
