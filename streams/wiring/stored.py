"""Where a local view is stored, and what commands read of it instead of deriving it again."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import NamedTuple

from contextgauge import __version__
from contextgauge.state_folder import state_folder
from schemas.views import SessionView
from streams import codec, wiring
from streams.codec import view_codec
from streams.core.derivation.rules_config import STATE_VERSION
from streams.edge.files.positions import Position
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.status_windows import StatusWindows
from streams.edge.files.unread import Seen, is_as_left, seen_of
from streams.edge.files.watch import find_file
from streams.edge.sqlite.recall import NothingStoredError, StoredFigures
from streams.flow.view.unchanged import Unchanged, is_outdated, unchanged
from streams.ports import Visits
from streams.settings import Settings

_MOST_FILES = 8
"""Local files that are looked into, those written to last: a person views few sets of paths."""


def own_folders() -> list[str]:
    """Return the folders in which the runtimes of this machine keep transcripts."""
    return [str(folder) for folder in transcript_folders(os.environ)]


def local_folder(settings: Settings) -> Path:
    """Return the folder of local files."""
    return state_folder(settings.state_folder) / "view"


def local_file(settings: Settings, paths: Sequence[str]) -> Path:
    """Return the file with what is known of these paths, or of this machine's transcripts."""
    names = sorted(os.fsencode(path) for path in paths or own_folders())
    name = hashlib.sha256(b"\0".join(names)).hexdigest()[:16]
    return local_folder(settings) / f"{name}.sqlite3"


def local_tag(settings: Settings) -> str:
    """Return what a local file's contents depend on, besides the transcripts."""
    tag = wiring.rules(settings).tag
    return f"{__version__}/{STATE_VERSION}/{tag}/{settings.message_limit_bytes}"


class Recalled(NamedTuple):
    """What a local file has of some files. `views` and `totals` are of all of its sessions."""

    order: Sequence[str]
    as_left: frozenset[str]
    members: Sequence[tuple[str, bytes, Visits]]
    views: dict[bytes, bytes]
    totals: Sequence[tuple[bytes, bytes, bytes]]

    def unchanged(self, without: Iterable[bytes] = ()) -> Unchanged:
        """Return the files that need not be read, and their sessions; see there."""
        return unchanged(self.order, self.as_left, self.members, frozenset(without))


def recalled(settings: Settings, paths: Sequence[str]) -> Recalled | None:
    """Return what the local file that knows most of these files has of them, or None.

    `paths` are absolute, in the order in which they are read. Only files are recalled that have the
    same size, time and inode as when they were read, to their ends, under the same rules.
    """
    seen: dict[str, Seen] = {}
    for path in paths:
        place = find_file(path)
        if place is None:
            return None
        seen[path] = seen_of(place.stat, place.place)
    with ExitStack() as opened:
        best, known, most = None, frozenset[str](), 0
        for file in _newest(local_folder(settings)):
            with suppress(NothingStoredError):
                stored = opened.enter_context(closing(StoredFigures(file, local_tag(settings))))
                as_left = _as_left(stored.exact_marks(), seen)
                size = sum(seen[path].size for path in as_left)
                if size > most:
                    best, known, most = stored, as_left, size
        if best is None:
            return None
        try:
            return Recalled(paths, known, best.members(), best.views(), best.totals())
        except NothingStoredError:
            return None


def totals_with(settings: Settings, path: str) -> Sequence[tuple[bytes, bytes, bytes]]:
    """Return the sessions' own aggregates of the local file that knows a transcript.

    They are of all sessions that `view` has read together with it; none where it has not.
    """
    for file in _newest(local_folder(settings)):
        with (
            suppress(NothingStoredError),
            closing(StoredFigures(file, local_tag(settings))) as stored,
        ):
            if stored.knows(path):
                return stored.totals()
    return ()


def outdated(settings: Settings, views: Mapping[bytes, bytes]) -> set[bytes]:
    """Return the sessions whose stored views lack a window that the status line was given since."""
    windows = StatusWindows(settings.state_folder)
    sessions: set[bytes] = set()
    for session_id in windows.changed():
        session = codec.key_bytes(session_id)
        known = windows.of(session_id)
        if session in views and is_outdated(view_codec.decode(SessionView, views[session]), known):
            sessions.add(session)
    return sessions


def _newest(folder: Path) -> list[Path]:
    """Return the local files, those written to last first."""
    try:
        dated = [(path.stat().st_mtime_ns, path) for path in folder.glob("*.sqlite3")]
    except OSError:
        return []
    return [path for _, path in sorted(dated, reverse=True)[:_MOST_FILES]]


def _as_left(marks: dict[str, bytes], seen: dict[str, Seen]) -> frozenset[str]:
    """Return the files that are as they were when they were read to their ends."""
    as_left = set()
    for path in marks.keys() & seen.keys():
        try:
            position = Position(**codec.loads(marks[path]))
        except (ValueError, TypeError):  # damaged
            continue
        if is_as_left(position, seen[path]):
            as_left.add(path)
    return frozenset(as_left)
