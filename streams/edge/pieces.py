"""What a reader of files gives: pieces to send, and events to tell; and how files are found."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from streams.core.containers import Line
from streams.edge.positions import Position
from streams.edge.tail import Tail


class Piece(NamedTuple):
    """Lines to send; `settle` is to be called once all of them are acknowledged.

    One without lines says that there are no more for now.
    """

    lines: Sequence[Line]
    live: bool
    settle: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a file and is worth telling."""

    what: str
    path: str


def settling(tail: Tail, after: Position) -> Callable[[], None]:
    """Return what notes that a tail was acknowledged up to a position."""

    def settle() -> None:
        tail.acknowledged = after

    return settle


def nothing() -> None:
    """Settle a piece without lines."""


def absolute(path: str) -> str:
    """Return the path from the root, under which a checkpoint knows a file."""
    return os.path.abspath(path)  # noqa: PTH100 -- without following links


def with_inode(folder: Path, identity: tuple[int, int]) -> Path | None:
    """Return the file of a folder that is this one, under whatever name."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.inode() == identity[1] and entry.is_file(follow_symlinks=False):
                    found = Path(entry.path)
                    return found if found.stat().st_dev == identity[0] else None
    except OSError:
        return None
    return None
