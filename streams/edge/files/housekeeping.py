"""Where a transcript lies after its runtime's housekeeping, and the path by which it stays known.

Codex compresses rollouts that were idle for a week (`X.jsonl` becomes `X.jsonl.zst`), and writes
them as plain files again before it appends; it moves archived ones to a folder of their own,
without the folders of their days. Through all that a rollout keeps its name and its content, so it
is known by one path: that of the plain file in the folder of its day.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from glob import escape, glob
from itertools import chain
from pathlib import Path
from typing import Final

from contextgauge.normalise.adapter import Adapter, Joined
from contextgauge.normalise.runtimes import ADAPTERS, JOINED

SUFFIX: Final = ".jsonl"
COMPRESSED: Final = ".zst"
SUFFIXES: Final = (SUFFIX, SUFFIX + COMPRESSED)
DATABASES: Final = (".db", ".sqlite", ".vscdb")
"""Of an SQLite database, to which its runtime writes by way of another file next to it."""

DOCUMENT: Final = ".json"
"""Of a file that may be a JSON document of messages: its content shows it."""

_ARCHIVES: Final = tuple(
    (each.folders, each.folders.archive, re.compile(each.folders.archived or "", re.DOTALL))
    for each in ADAPTERS
    if each.folders is not None and each.folders.archive is not None
)
"""The runtimes that move transcripts to an archive, and the names of what they move."""

_CLOSED: Final = re.compile(
    rf"(?<={re.escape(SUFFIX)})(?:{'|'.join(each.closed for each in ADAPTERS if each.closed)})"
    rf"(?=(?:{re.escape(COMPRESSED)})?\Z)"
)

_JOINED: Final = tuple(
    ([re.compile(rf"(?:.*/)?{each}", re.DOTALL) for each in adapter.files], adapter, joined)
    for adapter, joined in JOINED
)
_JOINED_SUFFIXES: Final = tuple(joined.suffix for _, joined in JOINED)


def plain_path(path: str) -> str:
    """Return the path of a transcript while it is not compressed."""
    return path.removesuffix(COMPRESSED) if path.endswith(SUFFIXES[1]) else path


def is_lines(name: str) -> bool:
    """Return whether a file is one of lines, by its name."""
    return open_path(name).endswith(SUFFIXES)


def open_path(path: str) -> str:
    """Return the path that a transcript had before its session was over."""
    return _CLOSED.sub("", path)


def known_path(path: str) -> str:
    """Return the path by which a transcript is known wherever it lies."""
    plain = plain_path(path)
    folder, name = os.path.split(plain)
    home, last = os.path.split(folder)
    for folders, archive, archived in _ARCHIVES:
        if last in {folders.transcripts, archive} and (match := archived.fullmatch(name)):
            below = filter(None, match.groups())
            return os.path.join(home, folders.transcripts, *below, name)  # noqa: PTH118 -- done for thousands
    return plain


def places(path: str) -> list[str]:
    """Return where a transcript may lie that has or had this path, the preferred place first.

    A plain file comes before a compressed one: Codex appends to that.
    """
    known = known_path(path)
    plain = [known, plain_path(path)]
    folder, name = os.path.split(known)
    archive = archive_of(folder)
    if archive is not None and any(each.fullmatch(name) for _, _, each in _ARCHIVES):
        plain.append(os.path.join(archive, name))  # noqa: PTH118 -- done for thousands
    return [each + form for form in ("", COMPRESSED) for each in dict.fromkeys(plain)]


def archive_of(folder: str) -> str | None:
    """Return the folder to which a runtime moves what is archived of a folder; None of others."""
    parts = Path(folder).parts
    for folders, archive, _ in _ARCHIVES:
        if folders.transcripts in parts:
            last = len(parts) - 1 - parts[::-1].index(folders.transcripts)
            return str(Path(*parts[:last], archive))
    return None


def joined_at(path: str) -> Iterator[tuple[Adapter, Joined]]:
    """Yield the runtimes of whose sessions' documents a path may be one."""
    shown = path.replace(os.sep, "/")
    for patterns, adapter, joined in _JOINED if shown.endswith(_JOINED_SUFFIXES) else ():
        if shown.endswith(joined.suffix) and any(each.fullmatch(shown) for each in patterns):
            yield adapter, joined


def parts_of(path: str, joined: Joined) -> list[list[str]]:
    """Return the files that belong to a session's document, for each pattern of its others."""
    folder, name = os.path.split(path)
    stem = f"/{name}".removesuffix(joined.suffix).removeprefix("/")
    return [_found(folder, each, stem) for each in joined.others]


def below(parts: Iterable[str], pattern: str) -> list[str]:
    """Return the files that belong to others of a session, by a pattern of their paths."""
    own = ((folder, os.path.splitext(name)[0]) for folder, name in map(os.path.split, parts))  # noqa: PTH122 -- done for thousands
    return [each for folder, stem in own for each in _found(folder, pattern, stem)]


def _found(folder: str, pattern: str, stem: str) -> list[str]:
    """Return the files that a pattern describes from a folder, in order."""
    place, name = os.path.split(os.path.join(folder, pattern))  # noqa: PTH118 -- done for thousands
    if "*" in place:
        inside = pattern.replace("{}", escape(stem))
        names = glob(inside, root_dir=folder)  # noqa: PTH207 -- as above
        place = folder
    else:
        place = place.replace("{}", stem)
        try:
            listed = os.listdir(place)  # noqa: PTH208 -- as above
        except OSError:
            return []
        names = fnmatch.filter(listed, name.replace("{}", escape(stem)))
    begin = os.path.join(place, "")  # noqa: PTH118 -- as above
    return [begin + each for each in sorted(names, key=_by_number)]


def _by_number(name: str) -> tuple[int, str]:
    """Return by what files are ordered that have a number, with zeros before it or not."""
    return len(name), name


_LAST: Final = 8
"""Of files with the messages or events of a session: its runtime writes the last ones."""


def metadata_of(place: str) -> os.stat_result:
    """Return a file's metadata, with that of the files which belong to it. Raises OSError."""
    status = os.stat(place)  # noqa: PTH116 -- done for thousands, each moment
    parts = (each for _, joined in joined_at(place) for each in parts_of(place, joined))
    others = (
        [f"{place}-wal"] if place.endswith(DATABASES) else chain(*(each[-_LAST:] for each in parts))
    )
    all_of_it = [status]
    for path in others:
        with suppress(OSError):
            all_of_it.append(os.stat(path))  # noqa: PTH116 -- as above
    if len(all_of_it) == 1:
        return status
    newest = max(all_of_it, key=lambda each: each.st_mtime_ns)
    size = sum(each.st_size for each in all_of_it)
    times = {"st_mtime_ns": newest.st_mtime_ns, "st_mtime": newest.st_mtime}
    return os.stat_result((*status[:6], size, *status[7:10]), times)
