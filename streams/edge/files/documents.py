"""Files that are JSON documents instead of lines: each object in one is read as a line.

Runtimes write them as an array of messages, as one object that lists them, or as objects over many
lines each. The objects are written compactly, as they are in a file of lines: so a message has the
same bytes in either form. Memory is bounded by the largest object.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from contextgauge.json_codec import LONG_NUMBER
from contextgauge.normalise import runtimes
from schemas.messages import DeadLetter
from schemas.topics import MIB
from streams import codec
from streams.edge.files.content import HELD_LINE_BYTES, Content

HEAD_BYTES: Final = MIB // 16
"""In so many bytes a document shows what it is: before the messages stand some short fields."""

_BLOCK_BYTES: Final = MIB

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}]', re.DOTALL)
"""A string, a brace, or the quote of a string whose end is not there yet."""

_LIST: Final = re.compile(rb"\s*:\s*\[")
_LISTS: Final = {b'"%s"' % each.document.encode() for each in runtimes.RUNTIMES if each.document}
_OBJECTS: Final = re.compile(rb"\s*\[\s*\{")
_ON_ITS_OWN: Final = re.compile(rb"\s*\{[ \t\r]*\n")


class Document(NamedTuple):
    """Where a document's objects begin; `header` is the object that is around their list."""

    begin: int
    header: bytes | None = None


class Objects(NamedTuple):
    """The whole objects of a part of a document, and where the last one ends.

    `is_open`: another one begins after that, whose end is not there.
    """

    values: list[bytes]
    end: int
    is_open: bool


def document_of(head: bytes) -> Document | None:
    """Return what a file's beginning shows it to be; None: a file of lines."""
    if _OBJECTS.match(head):
        return Document(head.index(b"[") + 1)
    depth = 0
    may_list = head.lstrip().startswith(b"{") and any(name in head for name in _LISTS)
    for token in _TOKEN.finditer(head) if may_list else ():
        match token[0]:
            case b"{":
                depth += 1
            case b"}" if depth == 1:
                break
            case b"}":
                depth -= 1
            case name if depth == 1 and name in _LISTS and (at := _LIST.match(head, token.end())):
                header = head[: token.start()].strip().removesuffix(b",") + b"}"
                body = codec.decode(header)
                if not isinstance(body, DeadLetter) and runtimes.document_of(body) is not None:
                    return Document(at.end(), compact(header))
    return Document(0) if _ON_ITS_OWN.match(head) else None


def may_be_document(head: bytes) -> bool:
    """Return whether more of the beginning is needed to know what it is."""
    begin = head.lstrip()
    is_short = len(head) < HEAD_BYTES
    return is_short and (not begin or begin == b"[" or _ON_ITS_OWN.match(head) is not None)


def first_objects(file: Content, begin: int, size: int) -> tuple[bytes, Objects]:
    """Return what of a document follows a place between two objects, and the objects in it.

    It is a block, or as much as its first object takes, if a line of that length could be held.
    """
    length = _BLOCK_BYTES
    while True:
        content = file.read(min(length, size - begin), begin)
        objects = objects_in(content)
        if objects.values or begin + len(content) >= size or length > HELD_LINE_BYTES:
            return content, objects
        length *= 2


def objects_in(content: bytes) -> Objects:
    """Return the objects of a part that begins between two of them."""
    values: list[bytes] = []
    begin = end = depth = 0
    for token in _TOKEN.finditer(content):
        match token[0]:
            case b"{":
                begin = begin if depth else token.start()
                depth += 1
            case b"}" if depth:
                depth -= 1
                if depth == 0:
                    end = token.end()
                    values.append(compact(content[begin:end]))
            case b'"':
                return Objects(values, end, is_open=True)
            case _:
                pass
    return Objects(values, end, is_open=depth > 0)


def split_objects(
    document: Document, blocks: Iterable[bytes], most_bytes: int
) -> Iterator[list[tuple[bytes, int]]]:
    """Yield the objects that end in each block, with their sizes; then what has no end.

    An object that is longer than `most_bytes` is given as it begins.
    """
    pending, skipped, enough = b"", 0, 0
    yield [(document.header, len(document.header))] if document.header is not None else []
    begin = document.begin
    for block in blocks:
        pending += block[begin:]
        begin = 0
        if len(pending) < enough:
            continue
        values, end, is_open = objects_in(pending)
        pending = pending[end:] if is_open or end else pending
        # What is not whole yet is looked at again once there is twice as much of it.
        enough = 2 * len(pending) if is_open else 0
        if len(pending) > most_bytes:
            skipped += len(pending) - most_bytes
            pending, enough = pending[:most_bytes], 0
        yield [(value, len(value)) for value in values]
    values, end, is_open = objects_in(pending)
    rest = [(torn(pending[end:]), len(pending) - end + skipped)] if is_open else []
    yield [*((value, len(value)) for value in values), *rest]


def torn(content: bytes) -> bytes:
    """Return an object without its end, and without what stands before it in a list."""
    return content.lstrip(b" \t\r\n,[").rstrip()


def compact(value: bytes) -> bytes:
    """Return an object as a file of lines has it; as it is where it cannot be read exactly."""
    if LONG_NUMBER.search(value):
        return value
    body = codec.decode(value, limit=len(value))
    return value if isinstance(body, DeadLetter) else codec.dumps(body)
