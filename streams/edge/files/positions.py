"""How far each file was published: what a checkpoint holds.

A file is known by device and inode, and by a hash of the bytes just before the place up to which it
was read. The bytes are the stronger proof: an inode is given to another file once its own is gone,
a file may be rewritten in its place, and some file systems renumber their devices at each mount.
Places and bytes are those of the content: a file that is compressed meanwhile has the same.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from contextgauge.containers import ContainerKind
from streams.edge.files.content import PRINT_BYTES, Content
from streams.edge.files.housekeeping import known_path

_DIGEST_BYTES = 16

Kind = ContainerKind | Literal["open"]
"""What the file is (R1); `open` while its lines do not show it yet."""

_KINDS = (*get_args(ContainerKind), "open")


_OPTIONAL = ("hint", "thread_id", "origin")
"""Fields that may be null."""


class Position(NamedTuple):
    """Up to where a file was published, and what its container is.

    `offset` is the begin of the first line that was not sent, `number` how many lines are before
    it. `unfinished` bytes from there were sent as a line that had no end yet; `closing` bytes end
    the list of a document: its next objects will be there. `hint` is the session of lines that name
    none (R1), `thread_id` and `origin` are those of the container.
    `modified_ns` is the time of a file that was read to its end, `stored_bytes` its size where it
    is compressed. `rows` says which rows of a database are before it, which may be deleted: a place
    in it is how much was sent.
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
    thread_id: str | None = None
    origin: str | None = None
    stored_bytes: int = 0
    closing: int = 0
    rows: str = ""

    @property
    def end(self) -> int:
        """Where what was sent ends."""
        return self.offset + self.unfinished + self.closing

    @property
    def file_bytes(self) -> int:
        """The size of the file, where it was read to its end."""
        return self.stored_bytes or self.end

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


def from_entry(entry: Mapping[str, Any]) -> Position:
    """Read a checkpoint's entry. Raises ValueError where it is none."""
    for name, kind in Position.__annotations__.items():
        value = entry.get(name, "" if name == "rows" else None)
        if kind is int:
            # A file's time may be before 1970.
            fits = type(value) is int and (value >= 0 or name == "modified_ns")
        elif name in _OPTIONAL:
            fits = value is None or isinstance(value, str)
        else:
            fits = isinstance(value, str) and (name != "kind" or value in _KINDS)
        if not fits:
            raise ValueError(f"{name} of a file is not what it should be")
    return Position(**{name: entry[name] for name in Position._fields if name in entry})


def print_at(content: Content, end: int, least: int = 0) -> str:
    """Return the hash of the bytes before a place, from `least` on.

    A line has ids of its own: a few would do.
    """
    begin = max(least, end - PRINT_BYTES)
    value = content.read(end - begin, begin)
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).hexdigest()


def absolute(path: str) -> str:
    """Return the path from the root, under which a checkpoint knows a file wherever it lies."""
    return os.path.abspath(known_path(path))  # noqa: PTH100 -- without following links


class StoredPositions:
    """Positions of files that are not read just now, or were not acknowledged further yet."""

    def __init__(self, positions: Iterable[Position]) -> None:
        self._by_identity = {position.identity: position for position in positions}
        # The file that had a path last comes last; before it those that rotation left.
        self._by_path: dict[str, list[Position]] = {}
        for position in self._by_identity.values():
            self._by_path.setdefault(position.path, []).append(position)

    def all(self) -> dict[tuple[int, int], Position]:
        """Return a copy of all, by file."""
        return dict(self._by_identity)

    def may_be(self, identity: tuple[int, int], path: str) -> list[Position]:
        """Return what may be this file's: that of the file, and that of what had its path last."""
        candidates = (self._by_identity.get(identity), *self._by_path.get(path, ())[-1:])
        return [position for position in candidates if position is not None]

    def take_formers(self, path: str) -> list[Position]:
        """Return, once, the files that had a path before; the last one last, and each time."""
        formers = self._by_path.get(path, [])
        self._by_path[path] = formers[-1:]
        return formers

    def remember(self, at: Position) -> None:
        """Keep a position."""
        self._by_identity[at.identity] = at
        self._by_path[at.path] = [*self._by_path.get(at.path, ())[:-1], at]

    def drop(self, identity: tuple[int, int]) -> None:
        """Drop a file's position."""
        self._by_identity.pop(identity, None)

    def forget(self, identity: tuple[int, int], path: str) -> None:
        """Drop a file's position, and those of all that had its path."""
        for former in self._by_path.pop(path, ()):
            self.drop(former.identity)
        self.drop(identity)
