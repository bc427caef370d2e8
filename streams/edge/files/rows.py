"""Which rows of a database were seen: where their lines lie, and how they are known again later.

SQLite gives a new row the number after the highest that is there. So a row that was seen, and is
still there, has all newer ones behind it: the newest such row is where reading goes on, whatever
was deleted before it, and though numbers of deleted rows were given again.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

BLOCK_ROWS: Final = 250
"""In a block: a hundred kilobytes as a rule."""

_ANCHORS: Final = 64
"""A mark has so many of the last rows, and of those before them each at twice the distance: what is
read again where many were deleted is at most as much."""

_FAR: Final = 32
"""Distant anchors: of more than these every second is dropped, so a mark stays small."""

_WAITING: Final = 64
"""So many rows are looked at again: a runtime that is ended leaves some that are never complete."""


class SeenRow(NamedTuple):
    """A row by its number, and its key in 32 bits."""

    number: int
    print: int


class Row(NamedTuple):
    """Its number, which a later one may have once it is deleted, its key, and its line.

    Without a line it is not complete yet, and it is looked at again.
    """

    number: int
    key: str
    line: str | None

    @property
    def seen(self) -> SeenRow:
        """What it is known by."""
        digest = hashlib.blake2b(self.key.encode("utf-8", "surrogatepass"), digest_size=4)
        return SeenRow(self.number, int.from_bytes(digest.digest()))

    @property
    def bytes(self) -> bytes:
        """Its line."""
        return b"" if self.line is None else self.line.encode("utf-8", "surrogatepass") + b"\n"


Waiting: TypeAlias = frozenset[SeenRow]


@dataclass(slots=True)
class SeenBlock:
    """Rows of one query, one after the other; `begin` is the place of the first line.

    `waiting` are those of the query that had no line before them. `is_late`: they are such ones,
    which have one now.
    """

    source: int
    begin: int
    waiting: Waiting
    is_late: bool
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    prints: "array[int]" = field(default_factory=lambda: array("I"))
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    """Bytes of each line; 0 where there is none."""
    size: int = 0

    def take(self, rows: Sequence[Row]) -> bytes:
        """Add rows; return their lines."""
        lines = [row.bytes for row in rows]
        for row, line in zip(rows, lines, strict=True):
            number, print_ = row.seen
            self.numbers.append(number)
            self.prints.append(print_)
            self.sizes.append(len(line))
        joined = b"".join(lines)
        self.size += len(joined)
        return joined

    def row(self, at: int) -> SeenRow:
        """Return one of its rows."""
        return SeenRow(self.numbers[at], self.prints[at])

    def with_lines(self) -> set[int]:
        """Return the numbers of rows that have lines."""
        return {each for each, size in zip(self.numbers, self.sizes, strict=True) if size}

    def rows_before(self, place: int) -> int:
        """Return how many rows are before a place."""
        index = self.begin
        if index + self.size < place:
            return len(self.sizes)
        for rows, size in enumerate(self.sizes):
            if index >= place and size:
                return rows
            index += size
        return len(self.sizes)

    def waiting_after(self, rows: int) -> Waiting:
        """Return which rows of the query have no line after the first rows of this block."""
        if self.is_late:
            return self.waiting - {self.row(index) for index in range(rows)}
        new = {self.row(index) for index in range(rows) if not self.sizes[index]}
        return frozenset(sorted(self.waiting | new)[-_WAITING:]) if new else self.waiting


class SeenRows:
    """Rows in the order in which they were seen, behind those that a mark says."""

    def __init__(self, begin: int, mark: str) -> None:
        self.begin = self.end = begin
        self.begins: list[int] = []
        """The place of each block."""
        self.blocks: list[SeenBlock] = []
        self._former = dict(_states(mark))

    def take(
        self, source: int, rows: Sequence[Row], *, is_late: bool = False
    ) -> tuple[bool, bytes]:
        """Add rows of a query behind the others.

        Return whether they begin a block, and their lines.
        """
        block = self.blocks[-1] if self.blocks else None
        begins = (
            block is None
            or block.source != source
            or block.is_late
            or is_late
            or len(block.numbers) >= BLOCK_ROWS
        )
        if block is None or begins:
            block = SeenBlock(source, self.end, self.waiting(source), is_late)
            self.blocks.append(block)
            self.begins.append(self.end)
        lines = block.take(rows)
        self.end += len(lines)
        return begins, lines

    def waiting(self, source: int, place: int | None = None) -> Waiting:
        """Return the rows of a query that have no line before a place, by default the end."""
        for block, rows in self._before(source, place):
            return block.waiting_after(rows)
        return self._former.get(source, _NOTHING)[0]

    def anchors(self, source: int, place: int | None = None) -> Iterator[SeenRow]:
        """Yield rows of a query before a place: the last ones, then each at twice the distance."""
        due = index = 0
        for block, rows in self._before(source, place):
            while not block.is_late and due < index + rows:
                yield block.row(rows - 1 - (due - index))
                due = _next(due)
            index += 0 if block.is_late else rows
        former = self._former.get(source, _NOTHING)[1]
        near = max(0, _ANCHORS - index)
        far = [*former[near : near + 1], *former[max(near + 1, _ANCHORS) :]]
        yield from former[:near]
        yield from far if len(far) <= _FAR else far[::2]

    def mark_at(self, place: int) -> str:
        """Return a mark of the rows before a line's beginning."""
        sources = sorted({*self._former, *(block.source for block in self.blocks)})
        return ";".join(
            f"{source}:{_spelt(sorted(self.waiting(source, place)))}:"
            f"{_spelt(self.anchors(source, place))}"
            for source in sources
        )

    def _before(self, source: int, place: int | None) -> Iterator[tuple[SeenBlock, int]]:
        """Yield the blocks of a query, the last one first, and how many rows are before a place."""
        last = len(self.blocks) if place is None else bisect_left(self.begins, place)
        for index in reversed(range(last)):
            block = self.blocks[index]
            if block.source == source:
                yield block, len(block.sizes) if place is None else block.rows_before(place)


_State: TypeAlias = tuple[Waiting, Sequence[SeenRow]]
"""What a mark says of one query: rows that wait, and the last ones, the newest first."""

_NOTHING: Final[_State] = (frozenset(), ())


def _next(due: int) -> int:
    return due + 1 if due < _ANCHORS else 2 * due


def _spelt(rows: Iterable[SeenRow]) -> str:
    return ",".join(f"{number}.{print_:x}" for number, print_ in rows)


def _rows_of(text: str) -> list[SeenRow]:
    pairs = (each.partition(".") for each in text.split(",") if each)
    return [SeenRow(int(number), int(print_, 16)) for number, _, print_ in pairs]


def _states(mark: str) -> Iterator[tuple[int, _State]]:
    """Yield the states of a mark; of one that is none nothing, so that all is read again."""
    for part in filter(None, mark.split(";")):
        try:
            source, waiting, anchors = part.split(":")
            yield int(source), (frozenset(_rows_of(waiting)), _rows_of(anchors))
        except ValueError:
            continue
