"""Finds the transcripts below paths, again and again, and cheaply: by asking for metadata only.

Notifications of the kernel do not come from network file systems, from other machines or through
virtual ones, and have limits that a folder of thousands exceeds; metadata is right everywhere. A
folder is listed again only where its modification time shows that entries came or went.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from contextgauge.errors import ConfigError
from contextgauge.normalise.runtimes import FORMATS

SUFFIX = ".jsonl"
_DOCUMENT = re.compile("|".join(each.files for each in FORMATS if each.files))
"""Paths of transcripts that are JSON documents."""

SUBAGENTS = "subagents"
_AGENT_PREFIX = "agent-"

_LAST = "\U0010ffff"
"""Sorts behind all names."""

_YOUNG_S = 5.0
"""A folder that changed lately is listed again and again for so long: a second change within the
tick of the file system's clock (FAT: 2 s) leaves its time the same."""

_WHOLE_S = 60.0
"""All folders are listed so often, for file systems that do not keep folders' times."""

_GONE = (FileNotFoundError, NotADirectoryError)
"""Errors of what is not there. Others say nothing about that: a disk may be away for a moment."""


class Source(NamedTuple):
    """One container to read. `name` is for messages; `session` what the file's name stands for."""

    name: str
    path: Path | None
    session: str | None


class TranscriptFile(NamedTuple):
    """A transcript that is there, and its metadata."""

    path: str
    stat: os.stat_result


@dataclass(slots=True)
class _Folder:
    """What is known of a folder: its time when it was listed, and what was in it."""

    modified_ns: int = -1
    changed_s: float = 0.0
    files: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


Failed = Callable[[str, OSError], None]
"""Gets a file or folder that cannot be looked at, and why: whether it is there is not known."""


def _ignore(_path: str, _error: OSError) -> None:
    """Do nothing about what cannot be looked at."""


class TranscriptFinder:
    """The transcripts that paths stand for, now and later; see `streams.edge.files.reading`.

    `folders` may not be there yet.
    """

    def __init__(self, paths: Iterable[str], folders: Iterable[str] = ()) -> None:
        self._files: list[str] = []
        self._roots: list[str] = list(folders)
        self._known: dict[str, _Folder] = {}
        self._listed_s = 0.0
        # For each root what was there, as it was found and in reading order.
        self._ordered: dict[str, tuple[list[str], list[str]]] = {}
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
                self._files.append(str(main))
                self._roots.append(str(path / SUBAGENTS))
            else:
                self._roots.append(str(path))
        elif path.exists() and not path.is_file():
            raise ConfigError(f"{text}: only files and folders can be followed")
        elif path.exists() or path.parent.is_dir():
            self._files.append(str(path))
        else:
            raise ConfigError(f"{text}: no such file or folder, nor the folder that would hold it")

    @property
    def missing(self) -> list[str]:
        """The files that were named and are not there yet."""
        return [path for path in self._files if not Path(path).exists()]

    def look(self, now_s: float, failed: Failed = _ignore) -> list[TranscriptFile]:
        """Return all transcripts that are there, in reading order; what vanishes is left out."""
        if now_s - self._listed_s >= _WHOLE_S:
            self._listed_s = now_s
            self._known.clear()
        paths = dict.fromkeys(self._files)
        for root in self._roots:
            paths |= dict.fromkeys(self._in_order(root, now_s, failed))
        files = (_found(path, failed) for path in paths)
        return [each for each in files if each is not None]

    def _in_order(self, root: str, now_s: float, failed: Failed) -> list[str]:
        """Return what is below a root, in reading order; sorting takes longer than looking."""
        paths = list(self._below(root, now_s, failed))
        known = self._ordered.get(root)
        if known is None or known[0] != paths:
            known = self._ordered[root] = paths, sorted(paths, key=_order_of)
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
                    known.folders.append(entry.path)
                elif (entry.name.endswith(SUFFIX) or _DOCUMENT.search(entry.path)) and _may_be_file(
                    entry
                ):
                    known.files.append(entry.path)
        subagents = os.path.join(path, SUBAGENTS)  # noqa: PTH118 -- as above
        if subagents in known.folders:
            known.files, known.folders = [], [subagents]
        return known


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a look at it will show why
        return True


def _found(path: str, failed: Failed) -> TranscriptFile | None:
    try:
        status = os.stat(path)  # noqa: PTH116 -- as above
    except _GONE:
        return None
    except OSError as error:
        failed(path, error)
        return None
    return TranscriptFile(path, status) if stat.S_ISREG(status.st_mode) else None


def source_of(name: str) -> Source:
    """Return a file's source; a subagent's file belongs to the session whose folder holds it."""
    path = Path(name)
    folders = path.absolute().parts
    if path.name.startswith(_AGENT_PREFIX) and SUBAGENTS in folders[:-1]:
        inner = len(folders) - 1 - folders[::-1].index(SUBAGENTS)
        return Source(str(path), path, folders[inner - 1])
    return Source(str(path), path, path.name.removesuffix(SUFFIX))


def group_of(path: str) -> tuple[bool, str]:
    """Return what the files of one session share; and first whether it is a loose agent's file.

    That one's session is in its lines only.
    """
    folder, found, _ = path.rpartition(f"{os.sep}{SUBAGENTS}{os.sep}")
    if found:
        return False, folder
    is_loose = os.path.basename(path).startswith(_AGENT_PREFIX)  # noqa: PTH119 -- for thousands
    return is_loose, path.removesuffix(SUFFIX)


def _order_of(path: str) -> list[str]:
    """Return by what transcripts below a folder are put in reading order.

    A session comes before its subagents, and loose agents' files come last in their folder.
    """
    *folders, name = Path(path.removesuffix(SUFFIX)).parts
    is_loose = name.startswith(_AGENT_PREFIX) and SUBAGENTS not in folders
    return [*folders, _LAST + name if is_loose else name]


def _is_session_folder(folder: Path, main: Path) -> bool:
    """Return whether a folder is a session's; `main` is the transcript that would be next to it."""
    if (folder / SUBAGENTS).is_dir():
        return True
    return main.is_file() and folder.is_dir() and not any(folder.rglob(f"*{SUFFIX}"))


class FolderInodes:
    """Which files a folder holds, by inode; each folder is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[Path, dict[int, str]] = {}

    def find(self, folder: Path, identity: tuple[int, int]) -> Path | None:
        """Return the file of a folder that is this one, under whatever name."""
        names = self._folders.get(folder)
        if names is None:
            names = self._folders[folder] = {}
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names[entry.inode()] = entry.path
        device, inode = identity
        path = names.get(inode)
        try:
            return Path(path) if path and os.stat(path).st_dev == device else None  # noqa: PTH116 -- as in the watch
        except OSError:
            return None
