"""What an export of transcripts keeps where it is made again: rows that these no longer give.

Runtimes delete transcripts, so what is gone stays as it was exported: sessions, and chains of
sessions that are there, as of subagents. What is there replaces its former rows, unless it has less
than before, as of a file that was cut off or cannot be read to its end.

Rows are compared by their number only. Ids say less: runtimes write lines again, such as a response
with its usage, and its record then has another id.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from streams.codec.columns import names_of
from streams.core.derivation.rules_config import version_of
from streams.ports.tables import RowFilter, RowMark, TableFile, TableFolder

ChainKey: TypeAlias = tuple[str, str]
"""A session and its chain: the unit in which rows are replaced."""

_CHAIN: Final = ("session_id", "chain")

_COMPACTION: Final = "compact_boundary"
_FIRM: Final = ("context_reading", _COMPACTION)
_COUNTED: Final = (*_FIRM, "tool_use", "user_turn")
"""What a transcript only gets more of. Others depend on what is known by then, as a window is."""

_DETAILS: Final = "details"
"""Cells of compactions that are not null: costs and durations may be of files that are gone."""

_COMPARED: Final = (*_COUNTED, _DETAILS)
"""By the same version of the rules; by two of them, what is firm."""

_INHERITED: Final = "inherited"
_NAMED: Final = (*_CHAIN, "rules", _INHERITED)

SMALL_BYTES: Final = 32 * 1024 * 1024
"""A smaller file is worth merging: engines read files of 100 MB and more best."""


class WrittenFile(NamedTuple):
    """A complete file that is not committed yet."""

    path: str
    kind: str
    date: str


class ChainCounts:
    """How many rows each chain has of the kinds that are compared, and by which rules."""

    def __init__(self) -> None:
        self.counts: defaultdict[ChainKey, Counter[str]] = defaultdict(Counter)
        self.versions: dict[ChainKey, str] = {}
        self.sessions: set[str] = set()

    def add(self, kind: str, row: tuple[Any, ...], columns: tuple[str, ...]) -> None:
        """Count a row with its values in some columns: of a compaction, all of them."""
        session, chain, rules, inherited = _named(columns)(row)
        key = session, chain
        self.sessions.add(session)
        self.versions[key] = version_of(rules)
        counts = self.counts[key]
        if kind in _COUNTED:
            counts[kind] += 1
            counts[_INHERITED] += bool(inherited)
        if kind == _COMPACTION:
            counts[_DETAILS] += len(row) - row.count(None)

    def __contains__(self, key: ChainKey) -> bool:
        return key in self.counts


@cache
def _named(columns: tuple[str, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return itemgetter(*(columns.index(name) for name in _NAMED))


@dataclass(slots=True)
class Update:
    """What a commit consists of: new files, and the former ones that they replace.

    `rows` are the new ones, `kept` those of sessions that are `gone`. A chain keeps what was
    exported of it where it is `empty` now, as the main one is where only a subagent's file is left,
    and where it has less (`held`). One that is `shorter` has fewer responses or compactions and
    more of something else: it replaces what was there.
    """

    files: list[WrittenFile] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    rows: int = 0
    kept: int = 0
    gone: set[str] = field(default_factory=set)
    empty: set[ChainKey] = field(default_factory=set)
    held: set[ChainKey] = field(default_factory=set)
    shorter: set[ChainKey] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ExportUpdate:
    """Finds out what replaces the former files of an export.

    `taken` counts what is new, `pending` gives the path of the next file. With `even_if_less` what
    has less replaces its former rows, too.
    """

    folder: TableFolder
    former: Mapping[tuple[str, str], Sequence[TableFile]]
    taken: ChainCounts
    pending: Callable[[], str]
    even_if_less: bool

    def of(self, written: Sequence[WrittenFile], rows: int) -> Update:
        """Return the update by these files of so many rows. Raises as the folder does."""
        update, uninherited = Update(rows=rows), set[ChainKey]()
        before = self._counted()
        for key in before.counts:
            is_same = before.versions[key] == self.taken.versions[key]
            counts, former = self.taken.counts[key], before.counts[key]
            kinds = _COMPARED if is_same else _FIRM
            new, old = (Counter({kind: of[kind] for kind in kinds}) for of in (counts, former))
            if not any(counts[kind] for kind in _COUNTED):
                update.empty.add(key)
            elif new < old and not self.even_if_less:
                update.held.add(key)
            elif any(new[kind] < old[kind] for kind in _FIRM):
                update.shorter.add(key)
            if is_same and counts[_INHERITED] < former[_INHERITED]:
                uninherited.add(key)
        copies, staying = self._inherited(uninherited), update.held | update.empty
        for file in written:
            self._add(update, file, staying, uninherited, copies)
        for (kind, date), files in self.former.items():
            self._keep(update, kind, date, files, staying)
        return update

    def _counted(self) -> ChainCounts:
        """Return what the former files have of the chains that are there."""
        counts = ChainCounts()
        for (kind, _), files in self.former.items():
            columns = names_of(kind) if kind == _COMPACTION else _NAMED
            for path in (each.path for each in files if kind in _COUNTED):
                for row in self.folder.values(path, kind, columns):
                    session, chain, *_ = _named(columns)(row)
                    if (session, chain) in self.taken:
                        counts.add(kind, row, columns)
        return counts

    def _inherited(self, chains: set[ChainKey]) -> set[str]:
        """Return the ids of former rows of some chains that are inherited.

        A copy stays one when its origin is gone, which alone may have shown that it is.
        """
        columns = (*_CHAIN, "id", _INHERITED)
        return {
            id_
            for (kind, _), files in self.former.items()
            for file in (files if chains else ())
            for session, chain, id_, inherited in self.folder.values(file.path, kind, columns)
            if inherited and (session, chain) in chains
        }

    def _add(
        self,
        update: Update,
        file: WrittenFile,
        staying: set[ChainKey],
        uninherited: set[ChainKey],
        copies: set[str],
    ) -> None:
        """Take a new file, without rows of chains whose former ones stay; mark copies."""
        counts = self._chains(file.path, file.kind) if staying or copies else Counter()
        held = counts.keys() & staying
        update.rows -= sum(counts[key] for key in held)
        if held and len(held) == len(counts):
            return
        if held or not counts.keys().isdisjoint(uninherited):
            path = self._written([file.path], file.kind, held, copies)
            file = file._replace(path=path)
        update.files.append(file)

    def _keep(
        self,
        update: Update,
        kind: str,
        date: str,
        files: Sequence[TableFile],
        staying: set[ChainKey],
    ) -> None:
        """Keep what is not replaced of a kind and day: where something is, in one file."""
        mixed: list[str] = []
        small: list[str] = []
        replaced: set[ChainKey] = set()
        for file in files:
            counts = self._chains(file.path, kind)
            old = {key for key in counts if key in self.taken and key not in staying}
            replaced |= old
            for (session, _), rows in counts.items():
                if session not in self.taken.sessions:
                    update.gone.add(session)
                    update.kept += rows
            if old and len(old) == len(counts):
                update.deletes.append(file.path)
            elif old:
                mixed.append(file.path)
            elif file.size < SMALL_BYTES:
                small.append(file.path)
        if mixed:
            paths = sorted(mixed + small)
            update.deletes += paths
            update.files.append(WrittenFile(self._written(paths, kind, replaced, ()), kind, date))

    def _chains(self, path: str, kind: str) -> Counter[ChainKey]:
        """Return the number of rows of each chain in a file."""
        rows = self.folder.values(path, kind, _CHAIN)
        return Counter((session, chain) for session, chain in rows)

    def _written(
        self,
        paths: Sequence[str],
        kind: str,
        without: Collection[ChainKey],
        copies: Collection[str],
    ) -> str:
        """Write the rows of files but those of some chains, to one file; return its path."""
        target = self.pending()
        others = RowFilter(_CHAIN, lambda key: key not in without)
        mark = RowMark(_INHERITED, RowFilter(("id",), lambda row: row[0] in copies))
        self.folder.write_rows_of(
            self.folder, paths, target, kind, where=others, mark=mark if copies else None
        )
        return target
