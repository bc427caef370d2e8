"""How far each file was published: what a checkpoint holds.

A file is known by device and inode, and by a hash of the bytes just before the place up to which it
was read. The bytes are the stronger proof: an inode is given to another file once its own is gone,
a file may be rewritten in its place, and some file systems number their devices anew at each mount.
"""

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from contextgauge.containers import ContainerKind

PRINT_BYTES = 1_024
"""Bytes that are hashed. A line of a transcript holds ids of its own, so a few would do."""

_DIGEST_BYTES = 16

Kind = ContainerKind | Literal["open"]
"""What the file is (R1); `open` where its lines have not told yet."""

_KINDS = (*get_args(ContainerKind), "open")


class Position(NamedTuple):
    """Up to where a file was published, and what its container is.

    `offset` is the begin of the first line that was not sent, `number` how many lines are before
    it. `unfinished` bytes from there were sent as a line that had no end yet. `hint` is the
    session of lines that name none (R1).
    """

    path: str
    device: int
    inode: int
    offset: int = 0
    number: int = 0
    unfinished: int = 0
    print: str = ""
    kind: Kind = "open"
    hint: str | None = None
    modified_ns: int = 0
    seen_s: int = 0

    @property
    def end(self) -> int:
        """Where what was sent ends."""
        return self.offset + self.unfinished

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


def to_entry(position: Position) -> dict[str, Any]:
    """Return a position as a checkpoint's entry."""
    return position._asdict()


def from_entry(entry: Mapping[str, Any]) -> Position:
    """Read a checkpoint's entry. Raises ValueError where it is none."""
    for name, kind in Position.__annotations__.items():
        value = entry.get(name)
        if kind is int:
            fits = type(value) is int and value >= 0
        elif name == "hint":
            fits = value is None or isinstance(value, str)
        else:
            fits = isinstance(value, str) and (name != "kind" or value in _KINDS)
        if not fits:
            raise ValueError(f"{name} of a file is not what it should be")
    return Position(**{name: entry[name] for name in Position._fields})


def print_of(content: bytes) -> str:
    """Return the hash of the last bytes of what was sent."""
    return hashlib.blake2b(content[-PRINT_BYTES:], digest_size=_DIGEST_BYTES).hexdigest()


def print_at(descriptor: int, end: int) -> str:
    """Return the hash of the bytes before a place of an open file."""
    begin = max(0, end - PRINT_BYTES)
    return print_of(os.pread(descriptor, end - begin, begin))
