"""A transcript read from its tail: the lines that can tell a size, and older compactions.

Transcripts grow to hundreds of megabytes, and a status line is drawn many times a minute: what is
read of one is bounded, and of that only the lines are parsed that can matter to a size.
"""

from os import SEEK_END, SEEK_SET
from typing import Any, BinaryIO, NamedTuple

from streams.edge.files.objects import object_of

_MIB = 1_048_576

TAIL_BYTES = (_MIB // 16, _MIB, 16 * _MIB)
"""How much of the tail is read: the next more only where less holds no size. The last holds the
two largest lines that there can be, of 8 MiB."""

OLDER_BYTES = 16 * _MIB
"""How much before the tail is looked through for compactions: some milliseconds."""

_TELLING = (
    b'"assistant"',
    b"ompact",
    b"<command-name>",
    b"conversation_reset",
    b"ontext_usage",
    b"ontextUsage",
    b"_fallback",
)
"""What a line has that can tell a size, or that it is unknown again, or a limit."""

_COMPACTION = b'"compact'
"""What a line has that is a compaction: its type or its metadata. In a text it is escaped."""


class BodyLine(NamedTuple):
    """A line's JSON object, and its bytes without the line end."""

    body: dict[str, Any]
    value: bytes


class Tail(NamedTuple):
    """Lines in order. `is_whole`: there are no others before; else `older` may lack some."""

    older: list[BodyLine]
    lines: list[BodyLine]
    is_whole: bool
    has_all_older: bool


def read_tail(file_name: str, tail_bytes: int) -> Tail:
    """Return the telling lines among the last bytes of a file, and compactions before them.

    Raises OSError. What is no JSON object is passed over: a line that is being written, too.
    """
    with open(file_name, "rb") as file:
        end = file.seek(0, SEEK_END)
        begin = max(0, end - tail_bytes)
        tail = _read(file, begin, end)
        if begin:
            # The first line is cut, or began before: it belongs to what is older.
            cut = tail.find(b"\n") + 1 or len(tail)
            begin, tail = begin + cut, tail[cut:]
        older_begin = max(0, begin - OLDER_BYTES)
        older = _read(file, older_begin, begin)
    return Tail(
        older=_parsed(_lines_with(older, _COMPACTION)),
        lines=_parsed([line for line in tail.split(b"\n") if _is_telling(line)]),
        is_whole=begin == 0,
        has_all_older=older_begin == 0,
    )


def _read(file: BinaryIO, begin: int, end: int) -> bytes:
    file.seek(begin, SEEK_SET)
    return file.read(end - begin)


def _is_telling(line: bytes) -> bool:
    return any(part in line for part in _TELLING)


def _lines_with(text: bytes, part: bytes) -> list[bytes]:
    """Return the lines that hold a part; one that is cut off at either end is no JSON."""
    found = []
    at = text.find(part)
    while at >= 0:
        begin, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        end = len(text) if end < 0 else end
        found.append(text[begin:end])
        at = text.find(part, end)
    return found


def _parsed(lines: list[bytes]) -> list[BodyLine]:
    found = []
    for line in lines:
        value = line.removesuffix(b"\r")
        body = object_of(value)
        if body is not None:
            found.append(BodyLine(body, value))
    return found
