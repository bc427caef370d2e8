"""Splits what a file holds into lines, and looks at them to find out what the file is."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from contextgauge.containers import SIGN_BYTES, SIGNS, Line
from schemas.topics import MIB
from streams.edge.files.content import HELD_LINE_BYTES, Content, split_lines
from streams.edge.files.documents import Document, split_objects

_LOOK_BYTES = MIB // 16
"""Of what is looked at to find out what a file is: its first lines show that as a rule."""


def line_of(name: str, number: int, value: bytes, size: int, hint: str | None) -> Line:
    """Return a line without the rest of its end."""
    if value.endswith(b"\r"):
        return Line(name, number, value[:-1], size - 1, hint)
    return Line(name, number, value, size, hint)


class SentLines:
    """Lines of a document that were sent, as hashes: of one that is written again, what is new."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    @property
    def are_known(self) -> bool:
        """Whether there are any."""
        return bool(self._known)

    def without(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines that were not sent."""
        return [each for each in lines if _digest(each) not in self._known]

    def take(self, lines: Iterable[Line]) -> None:
        """Take note of lines that were sent."""
        self._known.update(map(_digest, lines))


def _digest(line: Line) -> bytes:
    return hashlib.blake2b(line.value, digest_size=8).digest()


def split_values(
    document: Document | None, blocks: Iterable[bytes]
) -> Iterator[list[tuple[bytes, int]]]:
    """Yield what ends in each block, lines or a document's objects; see `split_lines`."""
    if document is None:
        return split_lines(blocks)
    return split_objects(document, blocks, HELD_LINE_BYTES)


def is_signed(file: Content, size: int) -> bool:
    """Return whether a sign of a transcript or a rollout is anywhere up to a size."""
    begins = range(0, size, _LOOK_BYTES)
    ends = (min(at + _LOOK_BYTES + SIGN_BYTES, size) for at in begins)
    return any(SIGNS.search(file.read(end - at, at)) for at, end in zip(begins, ends, strict=True))


def values_of(file: Content, size: int, document: Document | None) -> Iterator[bytes]:
    """Yield the lines up to a size, or a document's objects."""
    begins = range(0, size, _LOOK_BYTES)
    blocks = (file.read(min(_LOOK_BYTES, size - at), at) for at in begins)
    for lines in split_values(document, blocks):
        for value, _ in lines:
            yield value
