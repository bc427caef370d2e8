"""Sessions of the transcripts on this machine, for the tools of `contextgauge mcp`.

Nothing is read before it is asked for: a session's folder is in its first lines, so the transcripts
are looked through from the one that was written last.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from contextgauge.clock import SystemClock
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import folder_of
from contextgauge.compaction.store.recall import recall
from contextgauge.errors import ConfigError, StopError
from schemas.views import SessionView
from streams import codec
from streams.cli.filling import bodies_of
from streams.cli.inputs import session_folder
from streams.cli.listing import Listing, Order
from streams.cli.local_session import only_one
from streams.cli.mcp.agent_sessions import (
    Document,
    FoundSession,
    WhichSession,
    refuse_several,
)
from streams.cli.screen.figures import safe
from streams.cli.session_documents import filling_fields, filling_or_reason, judged
from streams.cli.transcripts import ReplayedSession, session_of
from streams.codec import view_codec
from streams.edge.files.housekeeping import DATABASES
from streams.edge.files.names import name_of
from streams.edge.files.objects import object_of
from streams.edge.files.opening import open_content
from streams.edge.files.positions import absolute
from streams.edge.files.session_files import SessionFiles, SessionPlace
from streams.edge.files.watch import TranscriptFile, TranscriptFinder
from streams.wiring.stored import own_folders

_HEAD_BYTES: Final = 1 << 18
"""A session's folder is among its first lines, after what a runtime attaches."""

_MOST_FILES: Final = 500
"""Transcripts that are looked through for a folder, the newest first."""

_LATELY_S: Final = 600
"""Another session of the folder that was written to since then may be the one that asks."""


class _SessionPlace(NamedTuple):
    """A session's transcript, or the file with it and others; when it was written to."""

    path: str
    session: str
    is_one_of_many: bool
    written_s: float


class LocalAgentSessions:
    """Sessions of paths, or of this machine's runtimes where there are none. Raises ConfigError."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._finder = TranscriptFinder(paths, () if paths else own_folders())
        self._files_named = {absolute(each) for each in paths}
        """A file that was named may have several sessions, as a database has."""
        self._folders: dict[str, str] = {}
        """By transcript, where it is known."""
        self._last: tuple[tuple[object, ...], ReplayedSession] | None = None
        """What was derived last, and of what."""

    def one(self, which: WhichSession) -> FoundSession:
        """Return a session; see `AgentSessions`."""
        place, others = self._find(which)
        replayed = self._replayed(place)
        document = judged(replayed.view, replayed.points, SystemClock().now_ms())
        document |= filling_fields(filling_or_reason(replayed.view, replayed))
        found_by = "session" if which.session is not None else "folder"
        return FoundSession(document, found_by, others)

    def recent(self, limit: int) -> list[Document]:
        """Return the sessions that were active last."""
        paths = [file.place for file in self._files()[:limit]]
        if not paths:
            return []
        listed = Listing(paths, processes=1).read(Order.recent, limit)
        now_ms = SystemClock().now_ms()
        return [judged(view, listed.points, now_ms) for view in listed.views]

    def compactions(self, which: WhichSession) -> tuple[str, list[Document]]:
        """Return a session's id, and its own compactions, the newest first."""
        replayed = self._replayed(self._certain(which))
        own = [codec.loads(view_codec.encode(each)) for each in replayed.compactions()]
        return replayed.view.session_id, own

    def recall(self, which: WhichSession, arguments: Mapping[str, object]) -> str:
        """Return what archived messages say, fenced as data."""
        replayed = self._replayed(self._certain(which))
        reading = ConversationReading()
        lines = bodies_of(replayed.source, replayed.view.session_id)
        for number, body in enumerate(lines):
            with suppress(ConfigError):  # of a newer version: the others are there
                reading.add(body, f"m{number}")
        return recall(reading.history.archived, arguments)

    def _files(self) -> list[TranscriptFile]:
        """Return the sessions' main files, the last written first."""
        files = [each for each in self._finder.look(time.monotonic()) if name_of(each.path).is_main]
        return sorted(files, key=lambda each: -each.stat.st_mtime_ns)

    def _certain(self, which: WhichSession) -> _SessionPlace:
        """Return where a session is whose text, or a part of it, is given away."""
        place, others = self._find(which)
        refuse_several(place.session, others)
        return place

    def _find(self, which: WhichSession) -> tuple[_SessionPlace, Sequence[str]]:
        """Return where a session is, and other sessions that may have been meant."""
        files = self._files()
        if which.session is not None:
            return self._named(files, which.session), ()
        if which.folder is None:
            raise StopError("give `session` or `folder`: `sessions` lists them")
        folder = os.path.realpath(which.folder)
        of_folder = sorted(self._of_folder(files, folder), key=lambda each: -each.written_s)
        if not of_folder:
            raise StopError(
                f"no session in {safe(folder)}: give another `folder`, or a `session` that "
                "`sessions` lists"
            )
        since_s = time.time() - _LATELY_S
        first, *rest = of_folder
        return first, [each.session for each in rest if each.written_s >= since_s]

    def _named(self, files: Sequence[TranscriptFile], name: str) -> _SessionPlace:
        own = [Path(each.place) for each in reversed(files) if not self._is_named(each)]
        places = SessionFiles((), own).beginning_with(name)
        places += [
            SessionPlace(view.session_id, Path(file.place), is_one_of_many=True)
            for file in files
            if self._is_named(file)
            for view in _views_in(file.place)
            if view.session_id.startswith(name)
        ]
        named = only_one(name, places)
        if named is None:
            raise StopError(f"no session on this machine begins with {safe(name)!r}")
        return _SessionPlace(str(named.path), named.session_id, named.is_one_of_many, 0.0)

    def _of_folder(self, files: Sequence[TranscriptFile], folder: str) -> Iterator[_SessionPlace]:
        for file in files[:_MOST_FILES]:
            if file.place.endswith(DATABASES) or self._is_named(file):
                yield from _in_one_file(file.place, folder)
                continue
            if file.path not in self._folders:
                named = _folder_in(file.place)
                if named is None:
                    continue
                self._folders[file.path] = os.path.realpath(named)
            if self._folders[file.path] == folder:
                name = name_of(file.path)
                session = name.session or name.unit
                yield _SessionPlace(
                    file.place, session, is_one_of_many=False, written_s=file.stat.st_mtime
                )

    def _is_named(self, file: TranscriptFile) -> bool:
        """Return whether a file, which is no database, may have several sessions."""
        return absolute(file.path) in self._files_named and not file.place.endswith(DATABASES)

    def _replayed(self, place: _SessionPlace) -> ReplayedSession:
        """Derive a session; the last one is derived again only where its files have changed."""
        # In this process: a server's threads must not be forked.
        wanted = place.session if place.is_one_of_many else None
        parts = _parts(place.path)
        state = wanted, *((each.path, each.stat.st_size, each.stat.st_mtime_ns) for each in parts)
        if self._last is None or self._last[0] != state:
            self._last = state, session_of(place.path, wanted, processes=1)
        return self._last[1]


def _parts(path: str) -> list[TranscriptFile]:
    """Return a session's files, those of its subagents too."""
    folder = session_folder(path)
    return TranscriptFinder([folder or path]).look(0.0)


def _views_in(path: str) -> Sequence[SessionView]:
    try:
        return Listing([path], processes=1).read(Order.recent, _MOST_FILES).views
    except StopError:  # it has none
        return ()


def _in_one_file(path: str, folder: str) -> Iterator[_SessionPlace]:
    """Yield the sessions of a folder that a file with several has."""
    for view in _views_in(path):
        if view.identity.cwd is not None and os.path.realpath(view.identity.cwd) == folder:
            written_s = (view.last_ms or 0) / 1_000
            yield _SessionPlace(path, view.session_id, is_one_of_many=True, written_s=written_s)


def _folder_in(path: str) -> str | None:
    """Return the folder that a transcript's first lines name."""
    try:
        with closing(open_content(path)) as content:
            head = content.read(_HEAD_BYTES, 0)
    except OSError:
        return None
    bodies = (object_of(line) for line in head.splitlines())
    return next((folder for body in bodies if body and (folder := folder_of(body))), None)
