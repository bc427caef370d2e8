"""Reads files from where they were published to, once or for as long as they grow.

What happens to a file, and what is done then:

- it grows: the new lines are read; its end without a line end is waited for;
- it is renamed: it is the same file under another name, and read on;
- its runtime compresses or archives it, or writes it as a plain file again: it is read on;
- it is replaced (rotation): the former file is read to its end first, by the descriptor that is
  held or under its new name, then the new one from its beginning. A copy that begins with all
  that was read (as `rsync` makes) is read on;
- it is cut off or rewritten in its place: read from the beginning, and reported;
- it is deleted: what was written before is read still while the descriptor is held.

It blocks: run it in a thread. What was acknowledged comes from another one.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from streams.edge.files.failures import SETTLED_S, UnseenFiles, signature_of
from streams.edge.files.formats import reason_of
from streams.edge.files.housekeeping import metadata_of
from streams.edge.files.lines import forget_sent
from streams.edge.files.opening import open_content
from streams.edge.files.positions import Position, StoredPositions, absolute
from streams.edge.files.tail import FileTail
from streams.edge.files.taking_up import FolderInodes, is_as_left, taken_up
from streams.edge.files.watch import Look, TranscriptFile, source_of
from streams.ports import Clock, LineBatch

POLL_S = 0.2
"""How often is looked: what a person calls at once; five looks a second cost next to nothing."""
_LOOK_SHARE = 20
"""A look at all files may take a twentieth of the time; where there are so many that it takes
longer, all are looked at less often, and those that changed lately as often as before."""
_SLOWEST_S = 5.0
_HOT_S = 60.0
"""A file that changed within this time is looked at each time, and its descriptor held."""
_LIVE_GAP_S = 5.0
"""What was written between two looks further apart than this was not seen when it was written."""
_RECENT_S = 60.0
"""A new file that was written to longer ago than this was moved here."""

_MOST_OPEN = 128
"""Descriptors held, and as many opened in one look, one reading and of files without a name: most
systems allow 1 024, of which others need some."""


class Follower:
    """The files under watch; see the module. `look` returns those that are there, in order."""

    def __init__(
        self,
        look: Look,
        positions: Iterable[Position],
        clock: Clock,
        *,
        fallback: str | None = None,
        follow: bool = False,
        again: bool = False,
        report: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._look_around = look
        self._clock = clock
        self._fallback = fallback
        self._follow = follow
        self._again = again
        self._report = report
        self._unseen = UnseenFiles(report)
        self._remembered = StoredPositions(positions)
        self._tails: dict[str, FileTail] = {}
        self._orphans: list[FileTail] = []
        self._renamed: list[FileTail] = []
        self._stopping = threading.Event()
        self._swept_s: float | None = None
        self._next_sweep_s = 0.0
        self._inodes = FolderInodes()
        self._opened = 0
        self.already_sent = 0
        """Lines that were sent by an earlier run."""

    @property
    def files(self) -> int:
        """How many files are there."""
        return len(self._tails)

    @property
    def unreadable(self) -> int:
        """How many files could not be read when they were looked at last."""
        return sum(tail.failure.reported is not None for tail in self._tails.values())

    @property
    def lag(self) -> int:
        """Bytes that are there and were not read yet."""
        return sum(tail.lag for tail in [*self._tails.values(), *self._orphans])

    def stop(self) -> None:
        """Let the reading end after the piece in hand; from any thread."""
        self._stopping.set()

    def rewind(self) -> None:
        """Read again what was not acknowledged: the next pieces begin there."""
        for tail in (*self._tails.values(), *self._orphans):
            tail.rewind()
            tail.signature = None

    def positions(self) -> list[Position]:
        """Return how far each file was acknowledged, those of earlier runs too."""
        now_s = self._clock.now_ms() // 1_000
        positions = self._remembered.all()
        for tail in [*self._tails.values(), *self._orphans]:
            position = tail.acknowledged
            modified_ns, file_bytes, _ = (position.end == tail.size and tail.signature) or (0, 0, 0)
            positions[position.identity] = position._replace(
                path=absolute(tail.source.name),
                modified_ns=modified_ns,
                seen_s=now_s,
                stored_bytes=file_bytes if tail.is_measured else 0,
            )
        return list(positions.values())

    def pieces(self) -> Iterator[LineBatch]:
        """Yield what there is to send, without end where it is followed."""
        while not self._stopping.is_set():
            now_s = self._clock.monotonic_s()
            if now_s >= self._next_sweep_s:
                self._sweep(now_s)
            else:
                self._look_at_hot(now_s)
            yield from self._read_all(now_s)
            yield LineBatch((), live=False)
            if not self._follow:
                return
            self._stopping.wait(POLL_S)

    def _sweep(self, now_s: float) -> None:
        """Look at all files: new ones, renamed ones, grown ones."""
        unseen: dict[str, OSError] = {}
        files = self._look_around(now_s, unseen.__setitem__)
        self._unseen.report(unseen)
        self._inodes = FolderInodes()
        self._rename(files)
        for each in files:
            tail = self._tails.get(each.path)
            is_other = tail and tail.read.identity != (each.stat.st_dev, each.stat.st_ino)
            if tail is not None and is_other and tail.failure.refused != signature_of(each.stat):
                tail = self._replaced(tail, each)
            if tail is None:
                self._tails[each.path] = self._begin(each, now_s)
            else:
                tail.move_to(each.place)
                self._look_at(tail, each.stat, now_s)
        self._drop_gone({each.path for each in files})
        self._tails = {each.path: self._tails[each.path] for each in files}
        took_s = self._clock.monotonic_s() - now_s
        self._swept_s = now_s
        self._next_sweep_s = now_s + min(max(POLL_S, took_s * _LOOK_SHARE), _SLOWEST_S)

    def _rename(self, files: Sequence[TranscriptFile]) -> None:
        """Give tails whose file has another name now that name."""
        at_path = {each.path: (each.stat.st_dev, each.stat.st_ino) for each in files}
        at_identity = {at_path[each.path]: each for each in files}
        moved = [
            (path, tail)
            for path, tail in self._tails.items()
            if tail.read.identity in at_identity and at_path.get(path) != tail.read.identity
        ]
        for path, _ in moved:
            del self._tails[path]
        returned = [tail for tail in self._orphans if tail.read.identity in at_identity]
        for tail in (*(tail for _, tail in moved), *returned):
            path, _, place = at_identity[tail.read.identity]
            former = self._tails.get(path)
            if former is not None:
                former.was_replaced = True
                self._orphan(former)
            tail.move_to(place)
            tail.was_replaced = False
            self._tails[path] = tail
            self._renamed.append(tail)
        self._orphans = [tail for tail in self._orphans if tail not in returned]

    def _begin(self, file: TranscriptFile, now_s: float) -> FileTail:
        """Begin with a file: from its beginning, or from where an earlier run left it."""
        status = file.stat
        identity = (status.st_dev, status.st_ino)
        named = absolute(file.path)
        tail = FileTail(source_of(file.place), Position(named, *identity), self._fallback)
        age_s = max(0.0, self._clock.now_ms() / 1_000 - status.st_mtime)
        tail.size, tail.looked_s, tail.changed_s = status.st_size, now_s, now_s - age_s
        tail.signature = signature_of(status)
        if self._again and self._swept_s is None:
            self._remembered.forget(identity, named)
        stored: Position | None
        for stored in self._remembered.may_be(identity, named):
            tail.read = tail.acknowledged = stored._replace(device=identity[0], inode=identity[1])
            if is_as_left(tail, stored, file):
                self.already_sent += stored.number + bool(stored.unfinished)
                break
            tail.read = tail.acknowledged = Position(named, *identity)
        else:
            stored = None
        for former in self._remembered.take_formers(named):
            held = {orphan.read.identity for orphan in self._orphans}
            if former is not stored and former.identity not in held:
                self._resume_former(former, file, now_s)
        tail.live_from = 0 if self._is_new(file, now_s) else tail.size
        return tail

    def _is_new(self, file: TranscriptFile, now_s: float) -> bool:
        """Return whether a file came into being under the eyes of this follower."""
        if not self._follow or self._swept_s is None or now_s - self._swept_s > _LIVE_GAP_S:
            return False
        return self._clock.now_ms() / 1_000 - file.stat.st_mtime < _RECENT_S

    def _resume_former(self, former: Position, file: TranscriptFile, now_s: float) -> None:
        """Take up a file that had this name when an earlier run ended: rotated since, or gone."""
        if former.identity == (file.stat.st_dev, file.stat.st_ino):
            self._report(f"{file.path}: rewritten: it is read from its beginning")
            return
        path = self._inodes.find(Path(file.place).parent, former.identity)
        if path is None:
            return
        try:
            tail = taken_up(path, former, file.place, self._fallback)
        except OSError as error:
            self._report(f"{path}: {reason_of(error)}: what was added to it last is not sent")
            return
        if tail is not None:
            tail.looked_s = tail.changed_s = now_s
            self._orphans.append(tail)

    def _replaced(self, tail: FileTail, file: TranscriptFile) -> FileTail | None:
        """Take note that another file has the name now; return the tail if it goes on there."""
        try:
            content = open_content(file.place)
        except OSError:
            return tail
        try:
            device, inode = content.identity
            is_copy = tail.read.end > 0 and tail.holds_what_was_read(content)
        finally:
            content.close()
        self._say(tail, tail.failure.end())
        self._remembered.drop(tail.acknowledged.identity)
        if is_copy or tail.sent:
            tail.close()
            tail.read = tail.read._replace(device=device, inode=inode)
            tail.acknowledged = tail.acknowledged._replace(device=device, inode=inode)
            return tail
        tail.was_replaced = True
        self._orphan(tail)
        return None

    def _orphan(self, tail: FileTail) -> None:
        """Keep a file that lost its name until it is read to its end."""
        if not tail.is_open:
            path = self._inodes.find(Path(tail.source.name).parent, tail.read.identity)
            try:
                # Of a file that had nothing yet, the inode alone is no proof.
                is_known = tail.read.end or tail.lag
                if path is None or not is_known or len(self._orphans) >= _MOST_OPEN:
                    raise FileNotFoundError
                tail.open(str(path))
            except OSError:
                # Nothing was unread when it was last looked at, or it would be open.
                return
        tail.changed_s = self._clock.monotonic_s()
        self._orphans.append(tail)

    def _drop_gone(self, paths: set[str]) -> None:
        for path, tail in list(self._tails.items()):
            if path not in paths:
                del self._tails[path]
                self._remember(tail)
                self._orphan(tail)

    def _remember(self, tail: FileTail) -> None:
        """Keep how far a file was sent that is not there: it may come back, as a disk does."""
        seen_s, path = self._clock.now_ms() // 1_000, absolute(tail.source.name)
        self._remembered.remember(tail.acknowledged._replace(path=path, seen_s=seen_s))

    def _look_at_hot(self, now_s: float) -> None:
        for tail in self._tails.values():
            if now_s - tail.changed_s < _HOT_S:
                try:
                    status = metadata_of(tail.source.name)
                except OSError:
                    continue
                if (status.st_dev, status.st_ino) == tail.read.identity:
                    self._look_at(tail, status, now_s)
                else:
                    self._next_sweep_s = now_s  # another file has the name: look at all

    def _look_at(self, tail: FileTail, status: os.stat_result, now_s: float) -> None:
        """Take note of a file's growth, or that its content is another's."""
        signature = signature_of(status)
        if signature in (tail.signature, tail.failure.refused):
            tail.looked_s = now_s
            self._report_failure(tail)
            return
        tail.signature = signature
        tail.changed_s = now_s
        if now_s - tail.looked_s > _LIVE_GAP_S or not self._follow:
            tail.live_from = status.st_size
        tail.looked_s, tail.waits = now_s, False
        self._opened += not tail.is_open
        try:
            tail.resize(status.st_size)
            holds = tail.holds_what_was_read(tail.open(tail.source.name))
        except OSError as error:
            self._report_error(tail, error)
            return
        if self._opened > _MOST_OPEN:
            tail.close()
        self._say(tail, tail.failure.end())
        if not holds:
            self._say(tail, tail.begin_again())

    def _read_all(self, now_s: float) -> Iterator[LineBatch]:
        opened = 0
        renamed, self._renamed = self._renamed, []
        for tail in renamed:
            # Whatever has its former name now comes after it.
            with contextlib.suppress(OSError):
                tail.size = tail.open(tail.source.name).size()
                yield from self._read(tail, now_s, final=False)
        for tail in list(self._orphans):
            yield from self._read_orphan(tail, now_s)
        for tail in list(self._tails.values()):
            if tail.read.end < tail.size and not tail.waits:
                yield from self._read(tail, now_s, final=not self._follow)
                opened += 1
                if opened % _MOST_OPEN == 0:
                    self._close_cold(now_s)
            if self._stopping.is_set():
                return
        if opened:
            tails = sorted(self._tails.values(), key=lambda tail: -tail.changed_s)
            forget_sent(tail.sent for tail in tails)
        self._close_cold(now_s)

    def _read(self, tail: FileTail, now_s: float, *, final: bool) -> Iterator[LineBatch]:
        try:
            for piece in tail.pieces(now_s, final=final):
                yield piece
                if self._stopping.is_set():
                    return
        except OSError as error:
            self._report_error(tail, error)
        else:
            if final and not self._follow and tail.read.end < tail.size:
                self._say(tail, "rewritten while it was read: publish it again")

    def _report_error(self, tail: FileTail, error: OSError) -> None:
        """Report once why a file cannot be read; the next look at it retries."""
        tail.give_up(error, self._clock.monotonic_s())
        self._report_failure(tail)

    def _report_failure(self, tail: FileTail) -> None:
        settled_s = SETTLED_S if self._follow else -1.0
        self._say(tail, tail.failure.news(self._clock.monotonic_s(), settled_s))

    def _say(self, tail: FileTail, text: str | None) -> None:
        if text is not None:
            self._report(f"{tail.source.name}: {text}")

    def _read_orphan(self, tail: FileTail, now_s: float) -> Iterator[LineBatch]:
        """Read a file without a name to its end; after a while, its last line is its last."""
        try:
            size = tail.open(tail.source.name).size()
        except OSError as error:  # there is no way back to it
            self._orphans.remove(tail)
            if tail.lag and not tail.failure.reported:
                self._say(tail, f"{reason_of(error)}: what was added to it last is not sent")
            return
        if size > tail.size:
            tail.size, tail.changed_s = size, now_s
        is_over = not self._follow or now_s - tail.changed_s > SETTLED_S
        yield from self._read(tail, now_s, final=is_over)
        # Until all of it is acknowledged it may have to be read again.
        if is_over and tail.acknowledged == tail.read and not self._stopping.is_set():
            tail.close()
            self._orphans.remove(tail)
            if tail.was_replaced and self._follow:
                self._remembered.drop(tail.read.identity)
            else:
                self._remember(tail)

    def _close_cold(self, now_s: float) -> None:
        """Let go of what is not written to any more, and of the oldest where there are many."""
        self._opened = 0
        held = [tail for tail in self._tails.values() if tail.is_open]
        held.sort(key=lambda tail: -tail.changed_s)
        for place, tail in enumerate(held):
            if not self._follow or place >= _MOST_OPEN or now_s - tail.changed_s >= _HOT_S:
                tail.close()
