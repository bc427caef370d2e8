"""Where a transcript lies after its runtime's housekeeping, and the path by which it stays known.

Codex compresses rollouts that were idle for a week (`X.jsonl` becomes `X.jsonl.zst`), and writes
them as plain files again before it appends; it moves archived ones to a folder of their own,
without the folders of their days. Through all that a rollout keeps its name and its content, so it
is known by one path: that of the plain file in the folder of its day.
"""

import os
import re
from pathlib import Path
from typing import Final

from contextgauge.normalise.codex import FOLDERS

SUFFIX: Final = ".jsonl"
COMPRESSED: Final = ".zst"
SUFFIXES: Final = (SUFFIX, SUFFIX + COMPRESSED)
DOCUMENT: Final = ".json"
"""Of a file that may be a JSON document of messages: its content shows it."""

_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DAY: Final = re.compile(r"rollout-([0-9]{4})-([0-9]{2})-([0-9]{2})T")
_SESSION: Final = re.compile(rf"(?:rollout-.*-)?({_ID})(?:_{_ID})?\{SUFFIX}\Z")
"""Claude Code's `<id>.jsonl`, Codex's `rollout-<time>-<id>.jsonl`. A later rollout of the same
session, which begins where the session was reverted to, has an id of its own behind that."""


def plain_path(path: str) -> str:
    """Return the path of a transcript while it is not compressed."""
    return path.removesuffix(COMPRESSED) if path.endswith(SUFFIXES[1]) else path


def known_path(path: str) -> str:
    """Return the path by which a transcript is known wherever it lies."""
    plain = plain_path(path)
    folder, name = os.path.split(plain)
    home, last = os.path.split(folder)
    if last not in {FOLDERS.transcripts, FOLDERS.archive} or not name.startswith("rollout-"):
        return plain
    day = _DAY.match(name)
    return os.path.join(home, FOLDERS.transcripts, *(day.groups() if day else ()), name)  # noqa: PTH118 -- done for thousands


def places(path: str) -> list[str]:
    """Return where a transcript may lie that has or had this path, the preferred place first.

    A plain file comes before a compressed one: Codex appends to that.
    """
    known = known_path(path)
    plain = [known, plain_path(path)]
    archive = archive_of(os.path.dirname(known))  # noqa: PTH120 -- done for thousands
    name = os.path.basename(known)  # noqa: PTH119 -- as above
    if archive is not None and name.startswith("rollout-"):
        plain.append(os.path.join(archive, name))  # noqa: PTH118 -- as above
    return [each + form for form in ("", COMPRESSED) for each in dict.fromkeys(plain)]


def archive_of(folder: str) -> str | None:
    """Return the folder to which Codex moves what is archived of a folder; None of any other."""
    parts = Path(folder).parts
    if FOLDERS.archive is None or FOLDERS.transcripts not in parts:
        return None
    last = len(parts) - 1 - parts[::-1].index(FOLDERS.transcripts)
    return str(Path(*parts[:last], FOLDERS.archive))


def session_in(name: str) -> str | None:
    """Return the session that a transcript's file name names; None where it names none."""
    match = _SESSION.match(plain_path(name))
    return match and match[1]
