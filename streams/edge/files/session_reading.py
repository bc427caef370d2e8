"""Reads on in the files of one session, from where an earlier reading left them.

The files are those that `status FILE` reads, in the same order: a transcript, its compactions' own
calls before it and its subagents' files after it. They are read as for `view`, but once; how far is
handed over to the next reading. Where a file no longer holds what was read, or is gone, all of them
are read again.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.topics import MIB
from streams import codec
from streams.edge.files.documents import HEAD_BYTES, document_of
from streams.edge.files.housekeeping import known_path
from streams.edge.files.positions import Position, from_entry, print_at
from streams.edge.files.transcripts import LocalTranscripts
from streams.edge.files.unread import is_as_left, seen_of, unread_tail
from streams.edge.files.watch import TranscriptFinder, subagents_of
from streams.ports import Clock

_END_BYTES = MIB // 8
"""Of the end of a transcript that has not been read up to there: it holds some responses."""


class _OneMoment(Clock):
    """The clock of a reading that looks at the files once."""

    async def sleep(self, seconds: float) -> None: ...

    def now_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return 0.0


class SessionReading:
    """One reading of a session's files: `lines`, then how far it got.

    `path` is the session's transcript, `marks` are those of an earlier reading. Raises OSError for
    a transcript that is not there or cannot be looked at, ConfigError for what is not a file.
    """

    def __init__(self, path: str, marks: Mapping[str, str]) -> None:
        path = os.path.abspath(path)  # noqa: PTH100 -- without following links
        self._main = known_path(path)
        self._found = TranscriptFinder([subagents_of(path) or path]).look(0.0)
        self._files = {each.path: seen_of(each.stat, each.place) for each in self._found}
        if self._main not in self._files:
            os.stat(path)  # noqa: PTH116 -- it raises why
            raise ConfigError(f"{path} is not a transcript")
        self.marks = dict(marks)
        """How far the files have been read."""
        is_lost = self._begin()
        self.goes_on = bool(marks) and not is_lost
        """Whether all that was read is still there; else all is read again."""
        if is_lost:
            self.marks = {}
            self._begin()

    def _begin(self) -> bool:
        """Begin where the marks are; return whether anything is gone that was read."""
        marks = {path: mark.encode() for path, mark in self.marks.items()}
        self._transcripts = LocalTranscripts(
            lambda _now_s, _failed: self._found, marks, _OneMoment(), _refuse, quiet_s=-1.0
        )
        return bool(self._transcripts.look())

    @property
    def main(self) -> str:
        """The path of the session's transcript."""
        return self._main

    @property
    def is_whole(self) -> bool:
        """Whether all files have been read to their ends."""
        return all(map(self._is_read, self._files))

    @property
    def is_decided(self) -> bool:
        """Whether the lines so far show what the transcript is: later ones are then read on."""
        position = self._at(self._main)
        return position is None or position.kind != "open"

    @property
    def is_at_end(self) -> bool:
        """Whether the transcript has been read to its end, if not all of its subagents' files."""
        return self._is_read(self._main)

    def lines(self, most_bytes: int) -> Iterator[Sequence[Line]]:
        """Yield what is new, in blocks; the last may go beyond `most_bytes`. Raises OSError."""
        read_bytes = 0
        for piece in self._transcripts.pieces():
            self.marks[piece.path] = piece.mark.decode()
            yield piece.lines
            read_bytes += sum(line.size + 1 for line in piece.lines)
            if read_bytes >= most_bytes:
                return

    def _at(self, path: str) -> Position | None:
        mark = self.marks.get(path)
        return None if mark is None else from_entry(codec.loads(mark))

    def _is_read(self, path: str) -> bool:
        """Return whether a file has been read to its end; an empty one has."""
        seen, position = self._files[path], self._at(path)
        return seen.size == 0 or (position is not None and is_as_left(position, seen))

    def end(self) -> Iterator[Sequence[Line]]:
        """Yield lines of the transcript's end that do not follow on what was read.

        None of a JSON document, which has no lines. Raises OSError.
        """
        seen = self._files[self._main]
        position = self._at(self._main) or Position("", seen.device, seen.inode)
        with closing(unread_tail(position, seen)) as tail:
            file = tail.open(seen.place)
            begin = max(position.end, tail.size - _END_BYTES)
            begin += file.read(tail.size - begin, begin).find(b"\n") + 1
            if document_of(file.read(HEAD_BYTES, 0)) is not None:
                return
            tail.read = position._replace(
                offset=begin, unfinished=0, closing=0, print=print_at(file, begin)
            )
            for piece in tail.pieces(0.0, final=True):
                yield piece.lines


def _refuse(reason: str) -> None:
    """Raise OSError for a file that cannot be read."""
    raise OSError(reason)
