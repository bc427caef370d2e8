"""Reads the tail of a transcript or rollout: lines that affect the size, and older compactions.

Transcripts grow to hundreds of megabytes, and a status line is drawn many times a minute: reads are
bounded, and only lines that can affect the size are parsed.
"""

import re
from contextlib import closing
from typing import Any, NamedTuple

from contextgauge.containers import Scout
from streams.edge.files.content import Content, open_content
from streams.edge.files.objects import object_of
from streams.edge.files.torn import whole_objects
from streams.edge.files.watch import find_file

_MIB = 1_048_576

TAIL_BYTES = (_MIB // 16, _MIB, 16 * _MIB)
"""Sizes of the tail: a larger one is read only if the smaller holds no size. The last has room for
the two largest possible lines, of 8 MiB."""

OLDER_BYTES = 16 * _MIB
"""How much before the tail is searched for compactions; it takes some milliseconds."""

_RELEVANT = (
    b'"assistant"',
    b'_tokens"',
    b"okenUsage",
    b"okenCount",
    b"ontext_window",
    b"ontextWindow",
    b'"turn_context"',
    b"ompact",
    b"<command-name>",
    b"conversation_reset",
    b"ontext_usage",
    b"ontextUsage",
    b"_fallback",
    b"rolled_back",
)
"""Texts in lines that report a size, a limit or a turn's model, or after which the size is
unknown."""

_COMPACTION = b'"compact'
"""The text in a compaction's line: its type or its metadata. In a message it is escaped."""

_ROLLOUT_PARTS = (_COMPACTION, b'"ContextCompaction"', b'"turn_context"')
"""Texts in a Codex rollout's lines of compactions, of their durations, and of a turn's model."""

_TIME = b'"timestamp"'
_TIME_VALUE = re.compile(rb'"timestamp"\s*:\s*"([0-9TZ:.+-]{1,64})"')

_HEAD = b'"session_meta"'
"""The text in a rollout's first line, the only one that names the session."""


class BodyLine(NamedTuple):
    """A line's JSON object, and its bytes without the line end.

    Of a compaction also `before`, the time that the line before it has: how long the session was
    silent is no reason to read that line too.
    """

    body: dict[str, Any]
    value: bytes
    before: str | None = None


class TranscriptTail(NamedTuple):
    """Lines in order. `is_whole`: `lines` are the whole file's; else `older` may be incomplete.

    `session` is that of a Codex rollout, whose lines name none; None of any other file.
    """

    older: list[BodyLine]
    lines: list[BodyLine]
    is_whole: bool
    has_all_older: bool
    session: str | None


def read_tail(file_name: str, tail_bytes: int) -> TranscriptTail:
    """Return the relevant lines in the last bytes of a file, and compactions before them.

    Of a rollout, also the models before them. Lines that are not JSON objects are skipped, such as
    one that is being written. Raises OSError.
    """
    with closing(open_content(_place_of(file_name))) as content:
        session = _rollout_session(_first_line(content))
        end = content.size()
        begin = max(0, end - tail_bytes)
        tail = content.read(end - begin, begin)
        if begin:
            # The first line is incomplete: it belongs to the older part.
            cut = tail.find(b"\n") + 1 or len(tail)
            begin, tail = begin + cut, tail[cut:]
        older_begin = max(0, begin - OLDER_BYTES)
        older = content.read(begin - older_begin, older_begin)
    parts = (_COMPACTION,) if session is None else _ROLLOUT_PARTS
    return TranscriptTail(
        older=_with_times(_parsed(_lines_with(older, parts)), older),
        lines=_with_times(
            _parsed([line for line in tail.split(b"\n") if _is_relevant(line)]), older + tail
        ),
        is_whole=begin == 0,
        has_all_older=older_begin == 0,
        session=session,
    )


def holds_messages(file_name: str) -> bool:
    """Return whether one of a file's first lines is a JSON object. Raises OSError."""
    with closing(open_content(_place_of(file_name))) as content:
        return bool(_parsed(content.read(_MIB, 0).split(b"\n")))


def _place_of(file_name: str) -> str:
    """Return where a transcript lies: its runtime may have put it away."""
    file = find_file(file_name)
    return file_name if file is None else file.place


def _first_line(content: Content) -> bytes:
    """Return the first line; of a longer one than a mebibyte what is before that."""
    line, end, _ = content.read(_MIB // 16, 0).partition(b"\n")
    return line if end else content.read(_MIB, 0).partition(b"\n")[0]


def _rollout_session(first_line: bytes) -> str | None:
    """Return the session that a rollout's first line names (R1)."""
    scout = Scout()
    for body, *_ in _parsed([first_line] if _HEAD in first_line else []):
        scout.look(body)
    return scout.container(None, None).hint


def _is_relevant(line: bytes) -> bool:
    return any(part in line for part in _RELEVANT)


def _lines_with(text: bytes, parts: tuple[bytes, ...]) -> list[bytes]:
    """Return lines with one of these parts; one that is cut off is not JSON and skipped later."""
    lines = {}
    for part in parts:
        at = text.find(part)
        while at >= 0:
            begin, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
            end = len(text) if end < 0 else end
            lines[begin] = text[begin:end]
            at = text.find(part, end)
    return [lines[begin] for begin in sorted(lines)]


def _with_times(lines: list[BodyLine], text: bytes) -> list[BodyLine]:
    """Return the lines of a text, those of compactions with the time of the line before."""
    return [
        line._replace(before=_time_before(text, text.find(line.value)))
        if _COMPACTION in line.value
        else line
        for line in lines
    ]


def _time_before(text: bytes, at: int) -> str | None:
    name = text.rfind(_TIME, 0, max(0, at))
    found = _TIME_VALUE.match(text, name) if name >= 0 else None
    return found[1].decode() if found is not None else None


def _parsed(lines: list[bytes]) -> list[BodyLine]:
    parsed = []
    for line in lines:
        for value in whole_objects(line.removesuffix(b"\r")):
            body = object_of(value)
            if body is not None:
                parsed.append(BodyLine(body, value))
    return parsed
