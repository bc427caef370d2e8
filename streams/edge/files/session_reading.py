"""Reads on in the files of one session, from where an earlier reading left them.

The files are those that `status FILE` reads, in the same order: a transcript, its compactions' own
calls before it and its subagents' files after it. How far they were read is handed over to the next
reading. Where a file no longer holds what was read, or is gone, all of them are read again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.topics import MIB
from streams.edge.files.documents import HEAD_BYTES, document_of
from streams.edge.files.housekeeping import known_path
from streams.edge.files.positions import Position, from_entry, print_at
from streams.edge.files.unread import (
    Seen,
    is_as_left,
    position_after,
    seen_of,
    unread_tail,
)
from streams.edge.files.watch import TranscriptFinder, subagents_of

_END_BYTES = MIB // 8
"""Of the end of a transcript that has not been read up to there: it holds some responses."""


class SessionReading:
    """One reading of a session's files: `lines`, then how far it got.

    `path` is the session's transcript, `marks` are those of an earlier reading. Raises OSError for
    a transcript that is not there or cannot be looked at, ConfigError for what is not a file.
    """

    def __init__(self, path: str, marks: Mapping[str, Any]) -> None:
        path = os.path.abspath(path)  # noqa: PTH100 -- without following links
        self._main = known_path(path)
        files = TranscriptFinder([subagents_of(path) or path]).look(0.0)
        self._files = {each.path: seen_of(each.stat, each.place) for each in files}
        if self._main not in self._files:
            os.stat(path)  # noqa: PTH116 -- it raises why
            raise ConfigError(f"{path} is not a transcript")
        self._at = dict(_positions(marks, self._files))
        self.goes_on = bool(marks) and all(path in self._at for path in marks)
        """Whether all that was read is still there; else all is read again."""
        if not self.goes_on:
            self._at = {}
        self.is_whole = False
        """Whether all files have been read to their ends."""

    @property
    def marks(self) -> dict[str, Any]:
        """How far the files have been read, as JSON."""
        return {path: at._asdict() for path, at in self._at.items()}

    @property
    def is_decided(self) -> bool:
        """Whether the lines so far show what the transcript is: later ones are then read on."""
        at = self._at.get(self._main)
        return at is None or at.kind != "open"

    @property
    def is_at_end(self) -> bool:
        """Whether the transcript has been read to its end, if not all of its subagents' files."""
        return self._is_read(self._main)

    def lines(self, most_bytes: int) -> Iterator[Sequence[Line]]:
        """Yield what is new, in blocks; the last may go beyond `most_bytes`. Raises OSError."""
        read_bytes = 0
        for path, seen in self._files.items():
            if self._is_read(path):
                continue
            if read_bytes >= most_bytes:
                return
            with closing(unread_tail(self._at.get(path), seen)) as tail:
                for piece in tail.pieces(0.0, final=True):
                    begin = tail.read.end
                    piece.settle()
                    tail.read = tail.acknowledged
                    self._at[path] = position_after(tail, seen)
                    yield piece.lines
                    read_bytes += tail.read.end - begin
                    if read_bytes >= most_bytes and tail.lag:
                        return
                if not tail.lag:
                    self._at[path] = position_after(tail, seen)
        self.is_whole = all(map(self._is_read, self._files))

    def _is_read(self, path: str) -> bool:
        """Return whether a file has been read to its end; an empty one has."""
        seen, at = self._files[path], self._at.get(path)
        return seen.size == 0 or (at is not None and is_as_left(at, seen))

    def end(self) -> Iterator[Sequence[Line]]:
        """Yield lines of the transcript's end that do not follow on what was read.

        None of a JSON document, which has no lines. Raises OSError.
        """
        seen = self._files[self._main]
        at = self._at.get(self._main, Position("", seen.device, seen.inode))
        with closing(unread_tail(at, seen)) as tail:
            file = tail.open(seen.place)
            begin = max(at.end, tail.size - _END_BYTES)
            begin += file.read(tail.size - begin, begin).find(b"\n") + 1
            if document_of(file.read(HEAD_BYTES, 0)) is not None:
                return
            tail.read = at._replace(
                offset=begin, unfinished=0, closing=0, print=print_at(file, begin)
            )
            for piece in tail.pieces(0.0, final=True):
                yield piece.lines


def _positions(
    marks: Mapping[str, Any], files: Mapping[str, Seen]
) -> Iterator[tuple[str, Position]]:
    """Yield the marks of files that still hold what was read. Raises OSError."""
    for path in marks.keys() & files.keys():
        try:
            at = from_entry(marks[path])
        except (ValueError, TypeError, AttributeError):  # damaged
            continue
        seen = files[path]
        if is_as_left(at, seen):
            yield path, at
            continue
        at = at._replace(device=seen.device, inode=seen.inode)
        with closing(unread_tail(at, seen)) as tail:
            if tail.holds_what_was_read(tail.open(seen.place)):
                yield path, at
