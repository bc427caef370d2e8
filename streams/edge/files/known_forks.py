"""Sessions on this machine that began with the history of another one.

The first lines of a transcript show it: its runtime says which session it was forked from, or they
are that session's, with the same ids. Then either of the two may be the fork.
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
    """A session that has the history of another one, and its transcript.

    `says_origin`: it says that it was forked from that one; else it only begins with the same.
    """

    session_id: str
    path: Path
    says_origin: bool


class KnownForks(NamedTuple):
    """Forks by their ids; `are_all`: no transcript was left out, as there were too many."""

    found: Sequence[KnownFork]
    are_all: bool


def known_forks(
    session_id: str, line_ids: Collection[str], paths: Sequence[str], folders: Sequence[str]
) -> KnownForks:
    """Return the forks of a session among the transcripts of paths and folders.

    `line_ids` are those of the session's lines, where other sessions that begin with one of them
    are looked for, too.
    """
    others = [
        (file, shown.session)
        for file in TranscriptFinder(paths, folders).look(time.monotonic())
        if (shown := name_of(file.path)).is_main and shown.session != session_id
    ]
    newest = sorted(others, key=lambda each: -each[0].stat.st_mtime_ns)[:_MOST_FILES]
    forks: dict[str, KnownFork] = {}
    for file, named in newest:
        fork = _fork_in(file.place, named, session_id, line_ids)
        if fork is not None:
            forks.setdefault(fork.session_id, fork)
    return KnownForks([forks[each] for each in sorted(forks)], len(newest) == len(others))


def _fork_in(
    path: str, named: str | None, session_id: str, line_ids: Collection[str]
) -> KnownFork | None:
    """Return the session of a transcript, where it is a fork or may be one."""
    own = first_id = None
    for body in _first_bodies(path):
        own = own or session_of(body, named)
        signals = (*transcript_facts(body, only_new=False), *line_of(body).read(body))
        facts = (each for each in signals if isinstance(each, SessionFacts))
        origins = [each.forked_from for each in facts if each.forked_from is not None]
        if origins:
            is_fork = session_id in origins
            break
        first_id = first_id or name(body, "uuid")
    else:
        origins, is_fork = [], first_id in line_ids
    if own is None or own == session_id or not is_fork:
        return None
    return KnownFork(own, Path(path), says_origin=bool(origins))


def _first_bodies(path: str) -> Iterator[dict[str, Any]]:
    try:
        with closing(open_content(path)) as content:
            head = content.read(_HEAD_BYTES, 0)
    except OSError:
        return
    bodies = map(object_of, head.splitlines())
    yield from (each for each in bodies if each is not None)
