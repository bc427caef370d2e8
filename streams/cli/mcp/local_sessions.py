"""Sessions of the transcripts on this machine, for the tools of `contextgauge mcp`.

Nothing is read before it is asked for: a session's folder is in its first lines, so the transcripts
are looked through from the one that was written last.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from contextgauge.clock import SystemClock
from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.compaction.reading.lines import folder_of
from contextgauge.compaction.store.recall import recall
from contextgauge.errors import ConfigError, StopError
from streams import codec
from streams.cli.filling import bodies_of
from streams.cli.inputs import session_folder
from streams.cli.listing import Listing, Order
from streams.cli.mcp.agent_sessions import Document, FoundSession, WhichSession
from streams.cli.screen.figures import safe
from streams.cli.session_documents import filling_fields, filling_or_reason, judged
from streams.cli.transcripts import ReplayedSession, session_of
from streams.codec import view_codec
from streams.core.session_ids import several_begin_with
from streams.edge.files.names import name_of
from streams.edge.files.objects import object_of
from streams.edge.files.opening import open_content
from streams.edge.files.session_files import SessionFiles
from streams.edge.files.watch import TranscriptFile, TranscriptFinder
from streams.wiring.stored import own_folders

_HEAD_BYTES: Final = 1 << 18
"""A session's folder is among its first lines, after what a runtime attaches."""

_MOST_FILES: Final = 500
"""Transcripts that are looked through for a folder, the newest first."""

_LATELY_S: Final = 600
"""Another session of the folder that was written to since then may be the one that asks."""


class LocalAgentSessions:
    """Sessions of paths, or of this machine's runtimes where there are none. Raises ConfigError."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._finder = TranscriptFinder(paths, () if paths else own_folders())
        self._folders: dict[str, str] = {}
        """By transcript, where it is known."""
        self._last: tuple[tuple[object, ...], ReplayedSession] | None = None

    def one(self, which: WhichSession) -> FoundSession:
        """Return a session; see `AgentSessions`."""
        path, others = self._find(which)
        replayed = self._replayed(path)
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
        replayed = self._replayed(self._find(which)[0])
        own = [codec.loads(view_codec.encode(each)) for each in replayed.compactions()]
        return replayed.view.session_id, own

    def recall(self, which: WhichSession, arguments: Mapping[str, object]) -> str:
        """Return what archived messages say, fenced as data."""
        replayed = self._replayed(self._find(which)[0])
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

    def _find(self, which: WhichSession) -> tuple[str, Sequence[str]]:
        """Return a session's transcript, and other sessions that may have been meant."""
        files = self._files()
        if which.session is not None:
            return self._named(files, which.session), ()
        if which.folder is None:
            raise StopError("give `session` or `folder`: `sessions` lists them")
        folder = os.path.realpath(which.folder)
        of_folder = list(self._of_folder(files, folder))
        if not of_folder:
            raise StopError(
                f"no session in {safe(folder)}: give another `folder`, or a `session` that "
                "`sessions` lists"
            )
        since_s = time.time() - _LATELY_S
        first, *rest = of_folder
        others = [_name_of(each) for each in rest if each.stat.st_mtime >= since_s]
        return first.place, others

    def _named(self, files: Sequence[TranscriptFile], name: str) -> str:
        known = SessionFiles((), [Path(each.place) for each in reversed(files)])
        ids = known.beginning_with(name)
        if name not in ids and len(ids) > 1:
            raise StopError(safe(several_begin_with(name, ids)))
        path = known.path(name if name in ids or not ids else ids[0])
        if path is None:
            raise StopError(f"no session on this machine begins with {safe(name)!r}")
        return str(path)

    def _of_folder(self, files: Sequence[TranscriptFile], folder: str) -> Iterator[TranscriptFile]:
        for file in files[:_MOST_FILES]:
            if file.path not in self._folders:
                named = _folder_in(file.place)
                if named is None:
                    continue
                self._folders[file.path] = os.path.realpath(named)
            if self._folders[file.path] == folder:
                yield file

    def _replayed(self, path: str) -> ReplayedSession:
        """Derive a session; the last one is derived again only where its files have changed."""
        # In this process: a server's threads must not be forked.
        state = tuple(
            (each.path, each.stat.st_size, each.stat.st_mtime_ns) for each in _parts(path)
        )
        if self._last is None or self._last[0] != state:
            self._last = state, session_of(path, processes=1)
        return self._last[1]


def _parts(path: str) -> list[TranscriptFile]:
    """Return a session's files, those of its subagents too."""
    folder = session_folder(path)
    return TranscriptFinder([folder or path]).look(0.0)


def _name_of(file: TranscriptFile) -> str:
    name = name_of(file.path)
    return name.session or name.unit


def _folder_in(path: str) -> str | None:
    """Return the folder that a transcript's first lines name."""
    try:
        with closing(open_content(path)) as content:
            head = content.read(_HEAD_BYTES, 0)
    except OSError:
        return None
    bodies = (object_of(line) for line in head.splitlines())
    return next((folder for body in bodies if body and (folder := folder_of(body))), None)
