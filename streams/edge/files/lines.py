"""Splits what a file holds into lines, and looks at them to find out what the file is."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from contextgauge.containers import SIGN_BYTES, SIGNS, Line
from schemas.topics import MIB
from streams.edge.files.content import HELD_LINE_BYTES, Content, split_lines
from streams.edge.files.documents import Document, split_objects

_LOOK_BYTES = MIB // 16
"""Of what is looked at to find out what a file is: its first lines show that as a rule."""

MOST_SENT: Final = 2_000_000
"""Lines of documents that are known in one process as sent: 16 MB."""


def line_of(name: str, number: int, value: bytes, size: int, hint: str | None) -> Line:
    """Return a line without the rest of its end."""
    if value.endswith(b"\r"):
        return Line(name, number, value[:-1], size - 1, hint)
    return Line(name, number, value, size, hint)


class SentLines:
    """Lines of a document that were sent, each by 64 bits with the session that it is sent to.

    Of a document that is written again they show what is new. What its last version does not have
    is forgotten with the next one.
    """

    def __init__(self) -> None:
        self._former = array("q")
        """Those of the version before, in order."""
        self._sent = array("q")
        """Those of this version."""

    def __len__(self) -> int:
        return len(self._former) + len(self._sent)

    def without(self, lines: Iterable[Line]) -> list[Line]:
        """Return the lines that were not sent with the version before."""
        new: list[Line] = []
        for line in lines:
            key = _key(line)
            index = bisect_left(self._former, key)
            if index < len(self._former) and self._former[index] == key:
                self._sent.append(key)
            else:
                new.append(line)
        return new

    def take(self, lines: Iterable[Line]) -> None:
        """Take note of lines that were sent."""
        self._sent.extend(map(_key, lines))

    def turn(self, *, is_whole: bool) -> None:
        """Begin with another version; without `is_whole` the last one was not read to its end."""
        former = () if is_whole else self._former
        self._former, self._sent = array("q", sorted({*former, *self._sent})), array("q")

    def forget(self) -> None:
        """Forget all: a version that comes is sent whole."""
        self._former, self._sent = array("q"), array("q")


def forget_sent(newest_first: Iterable[SentLines]) -> None:
    """Forget the lines of documents beyond `MOST_SENT` together, those that are listed last."""
    total = 0
    for sent in newest_first:
        total += len(sent)
        if total > MOST_SENT and total > len(sent):
            sent.forget()


def _key(line: Line) -> int:
    return hash((line.session_hint, line.thread_id, line.value))


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
    ends = (min(begin + _LOOK_BYTES + SIGN_BYTES, size) for begin in begins)
    return any(
        SIGNS.search(file.read(end - begin, begin)) for begin, end in zip(begins, ends, strict=True)
    )


def values_of(file: Content, size: int, document: Document | None) -> Iterator[bytes]:
    """Yield the lines up to a size, or a document's objects."""
    begins = range(0, size, _LOOK_BYTES)
    blocks = (file.read(min(_LOOK_BYTES, size - begin), begin) for begin in begins)
    for lines in split_values(document, blocks):
        for value, _ in lines:
            yield value
