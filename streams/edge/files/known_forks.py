"""Sessions on this machine that began with the history of another one.

The first lines of a transcript show it: its runtime says which session it was forked from, or they
are that session's, with the same ids.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from contextgauge.normalise import session_of
from contextgauge.normalise.fields import name
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.session_facts import transcript_facts
from contextgauge.normalise.signals import SessionFacts
from streams.edge.files.names import name_of
from streams.edge.files.objects import object_of
from streams.edge.files.opening import open_content
from streams.edge.files.watch import TranscriptFinder

_HEAD_BYTES: Final = 1 << 16
_MOST_FILES: Final = 1_000
"""Transcripts that are looked at, those that were written last."""


class KnownFork(NamedTuple):
    """A session that was forked from another one, and its transcript."""

    session_id: str
    path: Path


def known_forks(
    session_id: str, line_ids: Collection[str], paths: Sequence[str], folders: Sequence[str]
) -> list[KnownFork]:
    """Return the forks of a session among the transcripts of paths and folders, by their ids.

    `line_ids` are those of the session's own lines, where they are known.
    """
    files = TranscriptFinder(paths, folders).look(time.monotonic())
    newest = sorted(files, key=lambda each: -each.stat.st_mtime_ns)[:_MOST_FILES]
    found: dict[str, KnownFork] = {}
    for file in newest:
        shown = name_of(file.path)
        if not shown.is_main or shown.session == session_id:
            continue
        own = _fork_in(file.place, shown.session, session_id, line_ids)
        if own is not None:
            found.setdefault(own, KnownFork(own, Path(file.place)))
    return [found[each] for each in sorted(found)]


def _fork_in(
    path: str, named: str | None, session_id: str, line_ids: Collection[str]
) -> str | None:
    """Return the session of a transcript that is a fork; None of any other."""
    own = first_id = None
    for body in _first_bodies(path):
        own = own or session_of(body, named)
        signals = (*transcript_facts(body, only_new=False), *line_of(body).read(body))
        facts = (each for each in signals if isinstance(each, SessionFacts))
        origins = [each.forked_from for each in facts if each.forked_from is not None]
        if origins:
            return own if session_id in origins and own != session_id else None
        first_id = first_id or name(body, "uuid")
    return own if first_id in line_ids and own != session_id else None


def _first_bodies(path: str) -> Iterator[dict[str, Any]]:
    try:
        with closing(open_content(path)) as content:
            head = content.read(_HEAD_BYTES, 0)
    except OSError:
        return
    bodies = map(object_of, head.splitlines())
    yield from (each for each in bodies if each is not None)
