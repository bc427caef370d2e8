"""Which sessions of a local file are as deriving their files again would leave them.

A session is, if all of its files are as they were read, if each was read to its end before the next
one, and if that is the order in which they are read now. A local file reads the sessions first that
changed last, and goes on with a file that has grown after others: what depends on the order is then
derived again where it is needed. A file with lines of another session counts for both. A session is
not, either, if its window is known from elsewhere since.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from schemas.views import SessionView
from streams.ports import Visits


class Unchanged(NamedTuple):
    """Files that need not be read, and the sessions, by their keys, that they are of."""

    files: frozenset[str]
    sessions: frozenset[bytes]


def unchanged(
    order: Sequence[str],
    as_left: Collection[str],
    members: Iterable[tuple[str, bytes, Visits]],
    without: Collection[bytes] = (),
) -> Unchanged:
    """Return what of the local file holds for these files, in the order in which they are read.

    `as_left` are those that are as they were read, `members` all that is known of which file has
    lines of which session. Sessions of `without` turned out to be in other files too.
    """
    place = {path: number for number, path in enumerate(order)}
    files = {path for path in as_left if path in place}
    of_session: dict[bytes, list[tuple[Visits, str]]] = defaultdict(list)
    of_file: dict[str, list[bytes]] = defaultdict(list)
    for path, session, visits in members:
        of_session[session].append((visits, path))
        of_file[path].append(session)
    waiting = [
        session
        for session, read in of_session.items()
        if session in without or not _is_in_order(sorted(read), files, place)
    ]
    sessions = set(of_session)
    while waiting:
        session = waiting.pop()
        if session not in sessions:
            continue
        sessions.discard(session)
        for _, path in of_session[session]:
            if path in files:
                files.discard(path)
                waiting += of_file[path]
    return Unchanged(frozenset(files), frozenset(sessions))


def _is_in_order(
    read: Sequence[tuple[Visits, str]], files: Collection[str], place: dict[str, int]
) -> bool:
    """Return whether a session's files, by when they were read, were read as they are read now."""
    if not all(path in files for _, path in read):
        return False
    return all(
        before.last < after.first and place[former] < place[latter]
        for (before, former), (after, latter) in pairwise(read)
    )


def is_outdated(view: SessionView, windows: Mapping[str, int]) -> bool:
    """Return whether a view was made without one of these windows, which it would have now."""
    for chain in view.chains.values():
        window = windows.get(chain.model or "")
        is_guessed = chain.window_source in ("catalog", "default", "exceeded")
        if window is not None and is_guessed and (chain.peak_tokens or 0) <= window:
            return chain.window != window
    return False
