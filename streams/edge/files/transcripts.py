"""Reads the transcripts of this machine for `contextgauge view`, and follows them.

Of each file is remembered how far it was read (`Position`). What happens to a file, and what is
done then:

- nothing: it is not opened, now or after a restart: its size, time and inode are the same;
- it grows: its new lines are read, also where a longer copy took its place;
- its runtime compresses or archives it, or writes it as a plain file again: nothing of it changes;
- it is cut off, rewritten or gone: it is lost, and its sessions are derived again;
- it cannot be looked at or read: that is reported, and what was read before stays.

A session's files are read one after the other, in reading order; sessions that changed last come
first. All of it blocks, in one thread.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping

from streams import codec
from streams.edge.files.failures import ReadingFailure, UnseenFiles
from streams.edge.files.housekeeping import metadata_of, places
from streams.edge.files.names import group_of
from streams.edge.files.positions import Position, from_entry
from streams.edge.files.tail import FileTail
from streams.edge.files.unread import (
    Seen,
    UnreadFile,
    UnreadFiles,
    is_as_left,
    mark_of,
    position_after,
    seen_of,
    tasks_of,
    unread_tail,
)
from streams.edge.files.watch import Look, source_of
from streams.ports import Clock, ReadingProgress, TranscriptPiece

_SWEEP_S = 0.2
"""How often all files are looked at: what a person calls at once."""

_LOOK_SHARE = 50
"""A look at all files takes a fiftieth of the time at most; between two, those that changed
lately are looked at."""

_MANY = 200
_BUSY_S = 1.0
"""While so many files are unread, putting them in order takes longer than a look."""

_SLOWEST_S = 5.0
"""All files are looked at this often, however long a look takes."""

_HOT_S = 60.0
"""Files that changed within it are looked at in between, too."""

_LIVE_GAP_S = 5.0
"""What was written between two looks further apart than this was not seen when it was written."""

_SETTLED_S = 5.0
"""A file that came longer ago than this is written by its runtime, and not copied here."""

_QUIET_S = 10.0
"""A last line without an end that stays so for this long is the last one."""

_RETRY_S = 60.0
"""A file that cannot be read is left alone for so long, unless it changes."""

_SETTLED_KINDS = ("transcript", "rollout")
"""Of other files, later lines may show that they are one of these, whose lines have other hints."""


class LocalTranscripts:
    """The transcripts below paths; see the module.

    `look` lists those that are there, in reading order; `marks` are of an earlier run. `report`
    gets why files cannot be read. A last line that has had no end for `quiet_s` is taken as it is.
    """

    def __init__(
        self,
        look: Look,
        marks: Mapping[str, bytes],
        clock: Clock,
        report: Callable[[str], None],
        *,
        quiet_s: float = _QUIET_S,
    ) -> None:
        self._quiet_s = quiet_s
        self._look_around = look
        self._clock = clock
        self._report = report
        self._marks = marks
        self._read: dict[str, Position] = {}
        self._files: dict[str, Seen] = {}
        self._came_s: dict[str, float] = {}
        self._hot: dict[str, None] = {}
        """Files that changed lately."""
        self._unread: dict[str, float] = {}
        """Since when the files have not changed, by the monotonic clock."""
        self._failed: dict[str, ReadingFailure] = {}
        self._retry_s: dict[str, float] = {}
        """When files that could not be read are tried again."""
        self._unseen = UnseenFiles(report)
        self._elsewhere: set[str] = set()
        """Files that other processes read."""
        self._tails: dict[str, FileTail] = {}
        """Files that are being read or were not read to their ends."""
        self._in_parts: set[str] = set()
        """Files that were read in parts before it was settled what they are, or what a line is."""
        self._swept_s: float | None = None
        self._next_sweep_s = 0.0
        self._next_look_s = 0.0
        self._progress: ReadingProgress | None = None

    def progress(self) -> ReadingProgress | None:
        """Return how much has been read, None before the first look; from any thread."""
        return self._progress

    def look(self) -> list[str]:
        """Look at the files; return those that are gone or no longer hold what was read."""
        now_s = self._clock.monotonic_s()
        lost = self._sweep(now_s) if now_s >= self._next_sweep_s else self._look_at_hot()
        wait_s = _SWEEP_S if len(self._unread) < _MANY else _BUSY_S
        self._next_look_s = self._clock.monotonic_s() + wait_s
        return lost

    def forget(self, paths: Collection[str]) -> None:
        """Read these files from their beginnings; those that are gone, no more."""
        for path in paths:
            self._read.pop(path, None)
            self._in_parts.discard(path)
            self._close(path)
            if path in self._files:
                self._unread[path] = self._unchanged_since_s(self._files[path])

    def for_others(self) -> list[UnreadFiles]:
        """Return the files that other processes read, in tasks: none if these are few.

        What they give is handed over to `read_by_other`, task by task.
        """
        now_s = self._clock.monotonic_s()
        tasks = tasks_of(
            [
                UnreadFile(each, self._files[each], now_s - self._unread[each] > self._quiet_s)
                for each in group
            ]
            for group in self._groups()
            if not any(each in self._read or each in self._tails for each in group)
        )
        self._elsewhere = {each.path for task in tasks for each in task}
        return tasks

    def read_by_other(self, files: UnreadFiles, marks: Mapping[str, bytes | None] | None) -> bool:
        """Take what another process read; False where files have changed: these are read here.

        Of a task that it could not do, `marks` are None.
        """
        self._elsewhere.difference_update(each.path for each in files)
        unchanged = (
            self._files.get(path) == seen and path not in self._read and path in self._unread
            for path, seen, _ in files
        )
        if marks is None or not all(unchanged):
            return False
        for path, seen, _ in files:
            mark = marks.get(path)
            if mark is not None:
                position = self._read[path] = from_entry(codec.loads(mark))
                if is_as_left(position, seen):
                    self._unread.pop(path)
        self._count()
        return True

    def is_time_to_look(self) -> bool:
        """Return whether the last look at the files is some time ago."""
        return self._clock.monotonic_s() >= self._next_look_s

    def pieces(self) -> Iterator[TranscriptPiece]:
        """Yield what was not read yet, until it is time to look again."""
        if not self._unread:
            return
        now_s = self._clock.monotonic_s()
        for path in self._in_order():
            try:
                yield from self._pieces_of(path, now_s)
            except OSError as error:
                self._fail(path, error)
            if self._clock.monotonic_s() >= self._next_look_s:
                break
        self._count()

    def _sweep(self, now_s: float) -> list[str]:
        """Look at all files; return those that are lost."""
        before = self._files
        lost = self._restore() if self._swept_s is None else []
        unseen: dict[str, OSError] = {}
        files = self._look_around(now_s, unseen.__setitem__)
        self._unseen.report(unseen)
        gap_s = None if self._swept_s is None else now_s - self._swept_s
        self._files = {each.path: seen_of(each.stat, each.place) for each in files}
        since_ns = (self._clock.now_ms() - int(_HOT_S * 1_000)) * 1_000_000
        self._hot = {path: None for path, seen in self._files.items() if seen[0] >= since_ns}
        due = {path for path, retry_s in self._retry_s.items() if now_s >= retry_s}
        for path, seen in self._files.items():
            known = before.get(path)
            if known is None:
                self._came_s[path] = 0.0 if gap_s is None else now_s
            if known != seen or path in due:
                lost += self._changed(path, seen, now_s, gap_s)
        for path in [path for path in self._read if path not in self._files]:
            if not any(_is_in(place, unseen) for place in places(path)):
                lost.append(path)
        for path in before.keys() - self._files.keys():
            self._unread.pop(path, None)
            self._came_s.pop(path, None)
            self._failed.pop(path, None)
            self._retry_s.pop(path, None)
            self._close(path)
        for path in self._failed:
            self._report_failure(path)
        took_s = self._clock.monotonic_s() - now_s
        self._swept_s = now_s
        self._next_sweep_s = now_s + min(max(_SWEEP_S, took_s * _LOOK_SHARE), _SLOWEST_S)
        self._count()
        return lost

    def _restore(self) -> list[str]:
        """Begin with the marks of an earlier run; return the files whose marks are damaged."""
        lost = []
        for path, mark in self._marks.items():
            try:
                self._read[path] = from_entry(codec.loads(mark))
            except (ValueError, TypeError, AttributeError):
                lost.append(path)
        self._marks = {}
        return lost

    def _look_at_hot(self) -> list[str]:
        """Look at the files that changed lately; return those that are lost."""
        lost = []
        for path in self._hot:
            place = self._files[path].place
            try:
                seen = seen_of(metadata_of(place), place)
            except OSError:
                self._next_sweep_s = 0.0
                continue
            if seen != self._files[path]:
                self._files[path] = seen
                lost += self._changed(path, seen, self._clock.monotonic_s(), 0.0)
        return lost

    def _changed(self, path: str, seen: Seen, now_s: float, gap_s: float | None) -> list[str]:
        """Note what is to be read of a file; return its path if it is not what was read.

        What a file holds when it is seen first was written before: only what is added later was
        seen when it was written.
        """
        position = self._read.get(path)
        if position is not None and is_as_left(position, seen):
            self._end_failure(path)
            return []
        is_live = gap_s is not None and gap_s <= _LIVE_GAP_S and path not in self._failed
        is_live = is_live and now_s - self._came_s[path] >= _SETTLED_S
        self._unread[path] = self._unchanged_since_s(seen) if gap_s is None else now_s
        tail = self._tails.get(path)
        if tail is not None:
            tail.move_to(seen.place)
        if position is not None:
            tail = tail or FileTail(source_of(seen.place), position, None)
            try:
                if not self._goes_on(path, tail, seen):
                    self._close(path)
                    return [path]
                if position.unfinished or (position.end and position.kind not in _SETTLED_KINDS):
                    self._in_parts.add(path)
            except OSError as error:
                self._fail(path, error)
                return []
        elif tail is None or tail.read.identity != (seen.device, seen.inode):
            self._close(path)
            return []  # it is begun when its turn comes: that may be of thousands
        tail.resize(seen.size)
        if not is_live:
            tail.live_from = seen.size
        self._tails[path] = tail
        return []

    def _unchanged_since_s(self, seen: Seen) -> float:
        """Return when a file was changed, by the monotonic clock; now if its time is to come."""
        age_s = self._clock.now_ms() / 1_000 - seen.modified_ns / 1_000_000_000
        return self._clock.monotonic_s() - max(0.0, age_s)

    def _goes_on(self, path: str, tail: FileTail, seen: Seen) -> bool:
        """Return whether a file begins with what was read; a longer copy does, too."""
        position = self._read[path]
        if position.identity != (seen.device, seen.inode):
            tail.close()
            moved = position._replace(device=seen.device, inode=seen.inode)
            tail.read = tail.acknowledged = self._read[path] = moved
        try:
            return tail.holds_what_was_read(tail.open(tail.source.name))
        finally:
            tail.close()

    def _in_order(self) -> list[str]:
        """Return what this process reads: groups by their latest change, in reading order."""
        return [path for group in self._groups() for path in group if path not in self._elsewhere]

    def _groups(self) -> list[list[str]]:
        """Return what is unread, by sessions."""
        groups: dict[tuple[bool, str], list[str]] = {}
        for path in [path for path in self._files if path in self._unread]:
            groups.setdefault(group_of(path), []).append(path)
        latest = {
            group: max(self._files[path].modified_ns for path in paths)
            for group, paths in groups.items()
        }
        # Loose agents' files come last: their sessions' main files are others.
        order = sorted(groups, key=lambda group: (group[0], -latest[group], group[1]))
        return [groups[group] for group in order]

    def _pieces_of(self, path: str, now_s: float) -> Iterator[TranscriptPiece]:
        seen = self._files[path]
        tail = self._tails.get(path)
        if tail is None:
            tail = self._tails[path] = unread_tail(self._read.get(path), seen)
        for piece in tail.pieces(now_s, final=now_s - self._unread[path] > self._quiet_s):
            piece.settle()
            tail.read = tail.acknowledged
            position = self._read[path] = position_after(tail, seen)
            now_ms = self._clock.now_ms()
            modified_ms = max(0, seen.modified_ns // 1_000_000)
            received_ms = now_ms if piece.live else None
            whole = path not in self._in_parts
            yield TranscriptPiece(
                path, piece.lines, received_ms, modified_ms, mark_of(position), whole
            )
            if tail.read.end < tail.size and self._clock.monotonic_s() >= self._next_look_s:
                return
        tail.close()
        self._end_failure(path)
        if tail.read.end >= tail.size:
            self._close(path)
            self._unread.pop(path, None)
            position = position_after(tail, seen)
            if position != self._read.get(path):
                # Empty, or its time or place alone has changed.
                self._read[path] = position
                yield TranscriptPiece(path, (), None, 0, mark_of(position))

    def _close(self, path: str) -> None:
        tail = self._tails.pop(path, None)
        if tail is not None:
            tail.close()

    def _fail(self, path: str, error: OSError) -> None:
        """Leave a file alone for a while, or while it stays; report once why."""
        self._close(path)
        now_s, seen = self._clock.monotonic_s(), self._files[path]
        failure = self._failed.setdefault(path, ReadingFailure())
        signature = (seen.modified_ns, seen.size, seen.inode)
        failure.take(error, signature, self._unread.pop(path, now_s), now_s)
        if failure.refused is None:
            self._retry_s[path] = now_s + _RETRY_S
        else:
            self._retry_s.pop(path, None)
        self._report_failure(path)

    def _report_failure(self, path: str) -> None:
        news = self._failed[path].news(self._clock.monotonic_s(), self._quiet_s)
        if news is not None:
            self._report(f"{self._files[path].place}: {news}")

    def _end_failure(self, path: str) -> None:
        self._retry_s.pop(path, None)
        failure = self._failed.pop(path, None)
        if failure is not None and (text := failure.end()) is not None:
            self._report(f"{self._files[path].place}: {text}")

    def _count(self) -> None:
        unread = [path for path in self._unread if path in self._files]
        rest = sum(self._files[path].rest(self._read.get(path)) for path in unread)
        total = sum(seen.size for seen in self._files.values())
        files = len(self._files)
        self._progress = ReadingProgress(files, files - len(unread), total, total - rest)


def _is_in(path: str, places: Collection[str]) -> bool:
    """Return whether a path is one of these, or below one."""
    while path not in places:
        folder = os.path.dirname(path)  # noqa: PTH120 -- done for thousands
        if folder == path:
            return False
        path = folder
    return True
