"""What the path of a transcript says of it: whose it is, and what is read with it.

Each runtime declares the paths of its files (`Adapter.files`); of those that fit, the longest says
most. Of any other path the file's name is a session's.
"""

import os
import re
from functools import lru_cache
from typing import Final, NamedTuple

from contextgauge.normalise.runtimes import ADAPTERS
from streams.edge.files.housekeeping import DATABASES, DOCUMENT, SUFFIX, known_path, open_path

SUBAGENTS: Final = "subagents"
"""The folder of a session's subagents."""


class TranscriptName(NamedTuple):
    """What a transcript's path says.

    `folder` is where the files of its session lie, and `unit` what they share there: the name of
    the session's folder or file. `session` is None where the path shows none for certain. `thread`
    is a subagent's, `is_own_call` of a compaction's own call; of a loose subagent's file only the
    lines name the session. `has_folder`: the session's files lie in a folder of their own.
    """

    folder: str
    unit: str
    session: str | None = None
    thread: str | None = None
    is_own_call: bool = False
    is_loose: bool = False
    has_folder: bool = False

    @property
    def is_main(self) -> bool:
        """Whether it is a session's own: of no subagent and no compaction's call."""
        return self.thread is None and not self.is_own_call and not self.is_loose


class _Pattern(NamedTuple):
    """A pattern of paths, and how they all end: most paths need no more than that."""

    ending: str
    whole: re.Pattern[str]

    def match(self, path: str) -> re.Match[str] | None:
        return self.whole.fullmatch(path) if path.endswith(self.ending) else None


_ENDING: Final = re.compile(r"(?<!\\)(?:[\w/-]|\\\.)*\Z")
"""The plain characters at the end of a pattern."""


def _compiled(*patterns: str) -> tuple[_Pattern, ...]:
    made = []
    for each in patterns:
        ending = _ENDING.search(each)
        plain = "" if ending is None else ending[0].replace("\\", "")
        made.append(_Pattern(plain, re.compile(rf"(?:.*/)?(?P<own>{each})", re.DOTALL)))
    return tuple(made)


_FILES: Final = _compiled(*(pattern for each in ADAPTERS for pattern in each.files))
_OTHERS: Final = _compiled(*(pattern for each in ADAPTERS for pattern in each.other_files))


@lru_cache(maxsize=65_536)  # asked for thousands, each moment
def name_of(path: str) -> TranscriptName:
    """Return what a transcript's path says."""
    known = known_path(open_path(path))
    folder, file = os.path.split(known)
    shown = known.replace(os.sep, "/")
    matches = filter(None, (each.match(shown) for each in _FILES))
    match = max(matches, key=lambda each: len(each["own"]), default=None)
    groups = match.groupdict() if match is not None else {}
    session = groups.get("session")
    name = TranscriptName(
        folder,
        file.removesuffix(SUFFIX),
        session,
        groups.get("thread"),
        is_own_call=groups.get("own_call") is not None,
        is_loose=groups.get("loose") is not None,
    )
    if match is None or session is None or match.end("session") > len(folder):
        return name
    parent = known[: match.start("session")].rstrip(os.sep) or os.sep
    return name._replace(folder=parent, unit=session, has_folder=True)


def is_runtimes_own(path: str) -> bool:
    """Return whether a path is one of a runtime's JSON documents of messages, or its database."""
    shown = path.replace(os.sep, "/")
    return path.endswith((DOCUMENT, *DATABASES)) and any(each.match(shown) for each in _FILES)


def is_no_transcript(path: str) -> bool:
    """Return whether a path is of a runtime's file that is no transcript."""
    shown = path.replace(os.sep, "/")
    return any(each.match(shown) for each in _OTHERS)


def group_of(path: str) -> tuple[bool, str]:
    """Return what the files of one session share; and first whether it is a loose subagent's file.

    That one's session is in its lines only. Copies of a session in several folders share it, too.
    """
    name = name_of(path)
    return name.is_loose, name.session or name.unit
