"""Transcripts of sessions on this machine: found by session id, and titled by their first prompt.

A title is read only to be shown on this machine: it enters no record and no topic.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from contextgauge.containers import NAMES, SIGNS
from contextgauge.normalise import session_of
from contextgauge.normalise.runtimes import ADAPTERS, line_of
from contextgauge.normalise.user_words import words_of
from streams.edge.files.content import Content
from streams.edge.files.database import titles_in
from streams.edge.files.documents import HEAD_BYTES, document_of, objects_in
from streams.edge.files.housekeeping import DATABASES, is_lines, plain_path
from streams.edge.files.joined import title_in
from streams.edge.files.names import is_no_transcript, is_runtimes_own, name_of
from streams.edge.files.objects import object_of
from streams.edge.files.opening import open_content
from streams.edge.files.watch import find_file

_READ_BYTES: Final = 1_048_576
"""The first prompt is within the first kilobytes, unless attachments come before it."""

_PIECE_BYTES: Final = 65_536
"""Most prompts are in the first piece; a search among transcripts looks for all of them."""

_CHARACTERS: Final = 200
"""Of a title: more than any screen has room for."""

_PROMPTS: Final = re.compile(
    '"(?:{})"'.format("|".join(word for each in ADAPTERS for word in each.prompt_words)).encode()
)
"""JSON spellings, one of which is in any line with a prompt."""


class FirstPrompts:
    """First prompts of transcripts: each is read once, or looked for again once its file grew.

    A transcript is known by the path that it has or had.
    """

    def __init__(self) -> None:
        self._prompts: dict[Path, str] = {}
        self._read_bytes: dict[Path, int] = {}

    def of(self, path: Path) -> str | None:
        """Return a transcript's first prompt; None where there is none (yet)."""
        if path in self._prompts:
            return self._prompts[path]
        file = find_file(str(path))
        if file is None:
            return None
        # Growth beyond what is read brings no prompt.
        size = min(file.stat.st_size, _READ_BYTES)
        if size != self._read_bytes.get(path):
            self._read_bytes[path] = size
            prompt = first_prompt(Path(file.place))
            if prompt is not None:
                self._prompts[path] = prompt
        return self._prompts.get(path)


class SessionPlace(NamedTuple):
    """A session, and the transcript that it goes on in, or the database with it and others."""

    session_id: str
    path: Path
    is_one_of_many: bool = False


class SessionFiles:
    """Transcripts by session: `files` of any name, and all below folders by their names.

    Of files whose names show no session the first lines are read, where no name is of the session.
    """

    def __init__(self, folders: Sequence[Path], files: Sequence[Path] = ()) -> None:
        self._folders, self._files = folders, files
        self._paths: dict[str, list[Path]] = {}
        """Each session's transcripts, by their names: the last one is that it goes on in."""
        self._unnamed: set[str] = set()
        """Files whose names show no session."""
        self._databases: dict[str, None] = {}
        """Those of runtimes, each with many sessions."""
        self._prompts = FirstPrompts()
        self._unknown: frozenset[str] = frozenset()

    def path(self, session_id: str) -> Path | None:
        """Return the session's transcript; None where it is not on this machine."""
        if not self._paths:
            self._look()
        if session_id in self._paths:
            return self._paths[session_id][-1]
        return next((each.path for each in self._in_unnamed(session_id)), None)

    def beginning_with(self, prefix: str) -> list[SessionPlace]:
        """Return the sessions whose ids begin so, in their order."""
        self._look()
        by_id = {
            session: SessionPlace(session, Path(place), is_one_of_many=True)
            for place in self._databases
            for session in _sessions_in(place)
            if session.startswith(prefix)
        }
        by_id |= {
            session: SessionPlace(session, paths[-1])
            for session, paths in self._paths.items()
            if session.startswith(prefix)
        }
        by_id = by_id or {each.session_id: each for each in self._in_unnamed(prefix)}
        return [by_id[session] for session in sorted(by_id)]

    def _in_unnamed(self, prefix: str) -> Iterator[SessionPlace]:
        """Yield the sessions that begin so in files whose names show none, each once.

        That is the file that was written last; a session of just this id is the only one.
        """
        files = [file for path in self._unnamed if (file := find_file(path)) is not None]
        sessions: dict[str, SessionPlace] = {}
        for file in sorted(files, key=lambda file: -file.stat.st_mtime_ns):
            path = Path(file.place)
            session = _session_of(path)
            if session == prefix:
                yield SessionPlace(session, path)
                return
            if session.startswith(prefix):
                sessions.setdefault(session, SessionPlace(session, path))
        yield from sessions.values()

    def titles(self, session_ids: Sequence[str]) -> dict[str, str]:
        """Return the first prompts of sessions, or what their runtime calls them."""
        # The folders are listed again only where other sessions are unknown than last time.
        if frozenset(session_ids) - self._paths.keys() != self._unknown:
            self._look()
            self._unknown = frozenset(session_ids) - self._paths.keys()
        known = [each for each in session_ids if each in self._paths]
        prompts = {each: self._first_prompt(self._paths[each]) for each in known}
        titles = {each: prompt for each, prompt in prompts.items() if prompt is not None}
        for place in self._databases:
            with suppress(OSError):
                named = titles_in(place)
                titles |= {each: named[each] for each in session_ids if named.get(each)}
        return titles

    def _first_prompt(self, paths: Sequence[Path]) -> str | None:
        named = title_in(str(paths[-1]))
        if named is not None:
            return named
        prompts = map(self._prompts.of, paths)
        return next((prompt for prompt in prompts if prompt is not None), None)

    def _look(self) -> None:
        by_session: dict[str, dict[str, list[str]]] = {}
        for folder in self._folders:
            for parent, folders, names in os.walk(folder):
                for name in names:
                    place = os.path.join(parent, name)  # noqa: PTH118 -- done for thousands
                    if name.endswith(DATABASES) and is_runtimes_own(place):
                        self._databases[place] = None
                        folders.clear()
                    shown = name_of(place)
                    if shown.session is not None and shown.is_main:
                        copies = by_session.setdefault(shown.session, {})
                        copies.setdefault(plain_path(name), []).append(place)
                    elif shown.is_main and is_lines(name) and not is_no_transcript(place):
                        self._unnamed.add(plain_path(place))
                folders[:] = (
                    each
                    for each in folders
                    if not is_no_transcript(os.path.join(parent, each))  # noqa: PTH118 -- as above
                )
        self._paths |= {
            session: [_last_written(paths[name]) for name in sorted(paths)]
            for session, paths in by_session.items()
        }
        for path in self._files:
            if path.name.endswith(DATABASES):
                self._databases[str(path)] = None
            else:
                self._paths.setdefault(_session_of(path), [path])


def _sessions_in(database: str) -> Iterable[str]:
    try:
        return titles_in(database)
    except OSError:
        return ()


def first_prompt(path: Path) -> str | None:
    """Return the first prompt that a user typed, as one line; None where there is none (yet)."""
    bodies = _bodies(path, _PROMPTS)
    return next((prompt for body in bodies if (prompt := _prompt(body)) is not None), None)


def _last_written(paths: Sequence[str]) -> Path:
    """Return that of a transcript's copies which was written last; the plain one of two forms."""
    if len(paths) == 1:
        return Path(paths[0])
    files = [file for path in paths if (file := find_file(path)) is not None]
    last = max(files, key=lambda file: file.stat.st_mtime_ns, default=None)
    return Path(paths[0] if last is None else last.place)


def _session_of(path: Path) -> str:
    """Return the session that a file's first lines name, else the one of its name."""
    named = (session_of(body, None) for body in _bodies(path, NAMES, SIGNS))
    return next((session for session in named if session is not None), path.stem)


def _bodies(path: Path, *signs: re.Pattern[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the first lines of a file, or a document's objects, that have one of the signs."""
    try:
        with closing(open_content(str(path))) as content:
            for line in _first_lines(content):
                body = object_of(line) if any(sign.search(line) for sign in signs) else None
                if body is not None:
                    yield body
    except OSError:
        return


def _first_lines(content: Content) -> Iterator[bytes]:
    """Yield the lines of a file's beginning, read as far as they are asked for, or its objects."""
    piece = content.read(_PIECE_BYTES, 0)
    document = document_of(piece[:HEAD_BYTES])
    if document is not None:
        yield from objects_in(content.read(_READ_BYTES, 0)[document.begin :]).values
        return
    rest, offset = b"", 0
    while piece:
        offset += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        piece = content.read(_PIECE_BYTES, offset) if offset < _READ_BYTES else b""
    yield rest


def _prompt(body: dict[str, Any]) -> str | None:
    """Return what a line says that the user typed."""
    read = line_of(body).prompt
    content = None if read is None else read(body)
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    for words in words_of([text for text in texts if isinstance(text, str)]):
        if title := " ".join(words.of_user.split()):
            return title[:_CHARACTERS]
    return None
