"""Finds the transcripts below paths, again and again, and cheaply: by asking for metadata only.

Notifications of the kernel do not come from network file systems, from other machines or through
virtual ones, and have limits that a folder of thousands exceeds; metadata is right everywhere. A
folder is listed again only where its modification time shows that entries came or went.

A transcript that its runtime compresses or archives is the same one at another place, see
`streams.edge.files.housekeeping`; where it lies in several, one of them counts.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from contextgauge.errors import ConfigError
from streams.edge.files.formats import is_document
from streams.edge.files.housekeeping import (
    COMPRESSED,
    DATABASES,
    DOCUMENT,
    SUFFIX,
    SUFFIXES,
    archive_of,
    is_lines,
    known_path,
    metadata_of,
    places,
    plain_path,
)
from streams.edge.files.names import SUBAGENTS, is_no_transcript, is_runtimes_own, name_of
from streams.edge.files.order import oldest_first, order_of

_YOUNG_S = 5.0
"""A folder that changed lately is listed again and again for so long: a second change within the
tick of the file system's clock (FAT: 2 s) leaves its time the same."""

_WHOLE_S = 60.0
"""All folders are listed so often, for file systems that do not keep folders' times."""

_GONE = (FileNotFoundError, NotADirectoryError)
"""Errors of what is not there. Others say nothing about that: a disk may be away for a moment."""


class InputSource(NamedTuple):
    """One container to read. `name` is for messages; `session` what the file's name stands for.

    `thread_id` is the subagent's that the path names. `is_runtimes_own`: the path is one of a
    runtime's that name their session, so lines which name none are of it.
    """

    name: str
    path: Path | None
    session: str | None
    thread_id: str | None = None
    is_runtimes_own: bool = False


class TranscriptFile(NamedTuple):
    """A transcript that is there: the path that it is known by, its metadata, where it lies."""

    path: str
    stat: os.stat_result
    place: str


class _Root(NamedTuple):
    """A folder whose transcripts are found, and that to which a runtime moves some of them.

    `main` is the transcript whose subagents the folder has: it is read with them.
    """

    folder: str
    archive: str | None = None
    main: str | None = None


_Places = dict[str, Sequence[str]]
"""Where transcripts lie, by the paths that they are known by; the place that counts comes first."""


@dataclass(slots=True)
class _Folder:
    """What is known of a folder: its time when it was listed, and what was in it."""

    modified_ns: int = -1
    changed_s: float = 0.0
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


Failed = Callable[[str, OSError], None]
"""Gets a file or folder that cannot be looked at, and why: whether it is there is not known."""

Look = Callable[[float, Failed], Sequence[TranscriptFile]]
"""Lists the transcripts that are there, in reading order, at a time by the monotonic clock."""


def _ignore(_path: str, _error: OSError) -> None:
    """Do nothing about what cannot be looked at."""


class TranscriptFinder:
    """The transcripts that paths stand for, now and later; see `streams.edge.files.reading`.

    `folders` may not be there yet.
    """

    def __init__(self, paths: Iterable[str], folders: Iterable[str] = ()) -> None:
        named = list(folders)
        archives = {archive_of(folder) for folder in named}
        self._files: list[str] = []
        self._roots = [_Root(each, archive_of(each)) for each in named if each not in archives]
        self._known: dict[str, _Folder] = {}
        self._listed_s = 0.0
        # For each root what was there, as it was found and in reading order.
        self._ordered: dict[_Root, tuple[list[str], _Places]] = {}
        self._found: dict[str, str] = {}
        """Where each transcript was at the last look."""
        for text in paths:
            try:
                self._add(text)
            except OSError as error:
                raise ConfigError(f"{text}: {error.strerror}") from error

    def _add(self, text: str) -> None:
        path = Path(text)
        if path.is_dir():
            if path.name in {"", ".."}:  # `.`, and what else has no name of its own
                path = path.resolve()
            main = path.parent / (path.name + SUFFIX)
            if _is_session_folder(path, main):
                self._roots.append(_Root(str(path / SUBAGENTS), main=str(main)))
            else:
                self._roots.append(_Root(str(path), archive_of(str(path))))
        elif path.exists() and not path.is_file():
            raise ConfigError(f"{text}: only files and folders can be followed")
        elif path.exists() or path.parent.is_dir() or find_file(text) is not None:
            self._files.append(str(path))
        else:
            raise ConfigError(f"{text}: no such file or folder, nor the folder that would hold it")

    @property
    def missing(self) -> list[str]:
        """The files that were named and are not there yet."""
        named = [*self._files, *(root.main for root in self._roots if root.main is not None)]
        return [path for path in named if find_file(path) is None]

    def look(self, now_s: float, failed: Failed = _ignore) -> list[TranscriptFile]:
        """Return all transcripts that are there, in reading order; what vanishes is left out."""
        if now_s - self._listed_s >= _WHOLE_S:
            self._listed_s = now_s
            self._known.clear()
        listed: _Places = {known_path(path): places(path) for path in self._files}
        for root in self._roots:
            # The first one gives the order, the last one the places: named files come first.
            listed = {**listed, **self._in_order(root, now_s, failed), **listed}
        files = [_first_of(path, copies, failed) for path, copies in listed.items()]
        by_path = {each.path: each for each in files if each is not None}
        # What is being moved may be in no listing.
        for path in self._found.keys() - by_path.keys():
            moved = _first_of(path, places(self._found[path]), _ignore)
            if moved is not None:
                by_path[path] = moved
        self._found = {path: each.place for path, each in by_path.items()}
        return oldest_first(
            list(by_path.values()), lambda each: each.path, lambda each: each.stat.st_mtime_ns
        )

    def _in_order(self, root: _Root, now_s: float, failed: Failed) -> _Places:
        """Return what is below a root, in reading order; sorting takes longer than looking."""
        paths = list(self._below(root.folder, now_s, failed))
        if root.archive is not None:
            paths += self._below(root.archive, now_s, failed)
        known = self._ordered.get(root)
        if known is None or known[0] != paths:
            known = self._ordered[root] = paths, _places_in(root, paths)
        return known[1]

    def _below(self, root: str, now_s: float, failed: Failed) -> Iterator[str]:
        waiting = [root]
        while waiting:
            path = waiting.pop()
            try:
                folder = self._folder(path, now_s)
            except _GONE:
                self._known.pop(path, None)
                continue
            except OSError as error:
                self._known.pop(path, None)
                failed(path, error)
                continue
            yield from folder.files
            waiting.extend(folder.folders)

    def _folder(self, path: str, now_s: float) -> _Folder:
        modified_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 -- done for thousands, each moment
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _Folder()
        if known.modified_ns != modified_ns:
            known.changed_s = now_s
        elif now_s - known.changed_s > _YOUNG_S:
            return known
        known.modified_ns = modified_ns
        known.files.clear()
        known.folders.clear()
        with os.scandir(path) as entries:
            for entry in entries:
                # A link to a folder is not followed: it could lead round in a circle.
                if entry.is_dir(follow_symlinks=False):
                    if not is_no_transcript(entry.path):
                        known.folders.append(entry.path)
                elif _may_be_file(entry) and _may_be_transcript(entry):
                    known.files.append(entry.path)
        subagents = os.path.join(path, SUBAGENTS)  # noqa: PTH118 -- as above
        if any(each.endswith(DATABASES) for each in known.files):
            known.folders = []  # its sessions are in the database: the rest is of the runtime
        if subagents in known.folders:
            known.files = [each for each in known.files if name_of(each).has_folder]
            known.folders = [subagents]
        return known


def _may_be_transcript(entry: os.DirEntry[str]) -> bool:
    if is_no_transcript(plain_path(entry.path)):
        return False
    if is_lines(entry.name) or is_runtimes_own(entry.path):
        return True
    if entry.name.endswith(DATABASES):
        return False
    try:
        status = entry.stat()
        return _is_document(entry.path, status.st_mtime_ns, status.st_size)
    except OSError:  # it may be one another time: that is not remembered
        return False


@lru_cache(maxsize=65_536)
def _is_document(path: str, _modified_ns: int, _size: int) -> bool:
    """Return whether a file is a document of messages; each is looked at again once it changed.

    Raises OSError.
    """
    return is_document(path)


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    if not (entry.name.endswith((DOCUMENT, *DATABASES)) or is_lines(entry.name)):
        return False
    try:
        return entry.is_file()
    except OSError:  # a look at it will show why
        return True


def _first_of(path: str, at: Iterable[str], failed: Failed) -> TranscriptFile | None:
    for place in at:
        try:
            status = metadata_of(place)
        # Not at this place; it may be at the next one.
        except _GONE:
            continue
        except OSError as error:
            failed(place, error)
            return None
        if stat.S_ISREG(status.st_mode):
            return TranscriptFile(path, status, place)
    return None


def _places_in(root: _Root, paths: Iterable[str]) -> _Places:
    """Return where the transcripts of a root lie, in reading order."""
    by_name: dict[str, list[str]] = {}
    if root.main is not None:
        by_name[known_path(root.main)] = places(root.main)
    begin = os.path.join(root.folder, "")  # noqa: PTH118 -- as above
    for path in paths:
        known = known_path(path)
        if path.startswith(begin) or known.startswith(begin):
            by_name.setdefault(known, []).append(path)
    for copies in by_name.values():
        copies.sort(key=lambda place: place.endswith(COMPRESSED))
    return {path: by_name[path] for path in sorted(by_name, key=order_of)}


def find_file(path: str) -> TranscriptFile | None:
    """Return a transcript that has or had a path; None where it is nowhere."""
    return _first_of(known_path(path), places(path), _ignore)


def subagents_of(path: str) -> str | None:
    """Return the folder of a session, where it has subagents, by its own transcript.

    It is the `X` of `X.jsonl`, or the folder in which all of a session's files are.
    """
    plain = plain_path(path)
    name = name_of(os.path.abspath(path))  # noqa: PTH100 -- without following links
    if name.has_folder and name.is_main:
        whole = Path(name.folder, name.unit)
        others = (each for each in whole.rglob(f"*{SUFFIX}*") if name_of(str(each)).thread)
        return str(whole) if any(others) else None
    folder = plain.removesuffix(SUFFIX)
    has_subagents = plain.endswith(SUFFIX) and (Path(folder) / SUBAGENTS).is_dir()
    return folder if has_subagents else None


def source_of(name: str) -> InputSource:
    """Return a file's source; a subagent's file belongs to the session whose folder holds it."""
    path = Path(name)
    shown = name_of(str(path.absolute()))
    session = shown.session if shown.has_folder else shown.unit
    return InputSource(str(path), path, session, shown.thread, shown.session is not None)


def _is_session_folder(folder: Path, main: Path) -> bool:
    """Return whether a folder is a session's; `main` is the transcript that would be next to it."""
    if (folder / SUBAGENTS).is_dir():
        return not any(name_of(str(each)).has_folder for each in folder.glob(f"*{SUFFIX}*"))
    if find_file(str(main)) is None:
        return False
    return not any(name.endswith(SUFFIXES) for _, _, names in os.walk(folder) for name in names)
