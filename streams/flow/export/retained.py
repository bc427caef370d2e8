"""What an export keeps where it is made again: rows that what is exported no longer has.

Runtimes delete transcripts, so a session that is gone stays as it was exported. One that is there
replaces its former rows. Of a chain that lost something that was exported, as where a subagent's
file is gone or a file cannot be read to its end, the former rows stay instead.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from streams.ports.tables import CHAIN_COLUMNS, ChainKey, TableFile, TableFolder

_FACTS: Final = ("context_reading", "tool_use", "user_turn")
"""Kinds whose rows have the same ids as long as their lines are there: others depend on what is
known of the session by then, such as its window."""


class WrittenFile(NamedTuple):
    """A complete file that is not committed yet."""

    path: str
    kind: str
    date: str


class Update(NamedTuple):
    """What a commit consists of: files, and which of the former ones they replace.

    `rows` are the new ones, `kept` those of sessions that are `gone`. `lost` are chains whose
    session is there, and which keep what was exported of them.
    """

    files: list[WrittenFile]
    deletes: list[str]
    rows: int
    kept: int
    gone: set[str]
    lost: set[ChainKey]


def updated(
    folder: TableFolder,
    former: Mapping[tuple[str, str], Sequence[TableFile]],
    written: Sequence[WrittenFile],
    pending: Callable[[], str],
) -> Update:
    """Return what replaces the former files: new rows, and former ones of what is gone.

    A former file without anything that is replaced is left as it is. `pending` gives the path of
    the next file. Raises as the folder does.
    """
    chains = {each: _chains(folder, each.path, each.kind) for each in written}
    sessions = {session for counts in chains.values() for session, _ in counts}
    lost = _lost(folder, former, written, sessions)
    update = Update([], [], 0, 0, set(), lost)
    rows = kept = 0
    for file, counts in chains.items():
        left, path = _written(folder, file.path, file.kind, counts, counts.keys() & lost, pending)
        rows += left
        if path is not None:
            update.files.append(file._replace(path=path))
    for (kind, date), files in former.items():
        for known in files:
            counts = _chains(folder, known.path, kind)
            replaced = {each for each in counts if each[0] in sessions} - lost
            for (session, _), number in counts.items():
                if session not in sessions:
                    update.gone.add(session)
                    kept += number
            _, path = _written(folder, known.path, kind, counts, replaced, pending)
            if path != known.path:
                update.deletes.append(known.path)
            if path not in (None, known.path):
                update.files.append(WrittenFile(str(path), kind, date))
    return update._replace(rows=rows, kept=kept)


def _chains(folder: TableFolder, path: str, kind: str) -> Counter[ChainKey]:
    """Return the number of rows of each chain in a file."""
    return Counter((session, chain) for session, chain in folder.texts(path, kind, CHAIN_COLUMNS))


def _written(
    folder: TableFolder,
    path: str,
    kind: str,
    counts: Counter[ChainKey],
    without: set[ChainKey],
    pending: Callable[[], str],
) -> tuple[int, str | None]:
    """Return how many rows are left without some chains, and their file; None for no row."""
    if not without:
        return counts.total(), path
    if len(without) == len(counts):
        return 0, None
    target = pending()
    return folder.write_rows_of(folder, [path], target, kind, without=without), target


def _lost(
    folder: TableFolder,
    former: Mapping[tuple[str, str], Sequence[TableFile]],
    written: Sequence[WrittenFile],
    sessions: set[str],
) -> set[ChainKey]:
    """Return the chains of these sessions that had facts, by today's rules, which are not new."""
    rules = {own for each in written for (own,) in folder.texts(each.path, each.kind, ("rules",))}
    lost: set[ChainKey] = set()
    for (kind, date), files in former.items():
        if kind not in _FACTS:
            continue
        facts = {
            id_
            for each in written
            if (each.kind, each.date) == (kind, date)
            for (id_,) in folder.texts(each.path, kind, ("id",))
        }
        for file in files:
            for id_, own, session, chain in folder.texts(
                file.path, kind, ("id", "rules", *CHAIN_COLUMNS)
            ):
                # Rules that changed may name other facts: the session is derived again.
                if session in sessions and own in rules and id_ not in facts:
                    lost.add((session, chain))
    return lost
