"""What an export of paths keeps where it is made again: rows that the paths no longer have.

Runtimes delete transcripts, so what is gone stays as it was exported: sessions, and chains of
sessions that are there, as of subagents. What is there replaces its former rows, unless it has less
than before, as of a file that was cut off or cannot be read to its end.

Rows are compared by their number only. Ids say less: runtimes write lines again, such as a response
with its usage, and its record then has another id.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from streams.codec.columns import names_of
from streams.core.derivation.rules_config import version_of
from streams.ports.tables import RowFilter, TableFile, TableFolder

ChainKey: TypeAlias = tuple[str, str]
"""A session and its chain: the unit in which rows are replaced."""

_CHAIN: Final = ("session_id", "chain")

_COUNTED: Final = ("context_reading", "compact_boundary", "tool_use", "user_turn")
"""What a transcript only gets more of. Others depend on what is known by then, as a window is."""

_COMPACTION: Final = "compact_boundary"
_DETAILS: Final = "details"
"""Cells of compactions that are not null: costs and durations may be of files that are gone."""

_INHERITED: Final = "inherited"
_NAMED: Final = (*_CHAIN, "rules", _INHERITED)

_SMALL_BYTES: Final = 32 * 1024 * 1024
"""A smaller file goes along where another one of its day is written again."""


class WrittenFile(NamedTuple):
    """A complete file that is not committed yet."""

    path: str
    kind: str
    date: str


class ChainCounts:
    """How many rows each chain has of the kinds that are compared, and inherited ones."""

    def __init__(self) -> None:
        self.counts: defaultdict[ChainKey, Counter[str]] = defaultdict(Counter)
        self.sessions: set[str] = set()
        self.version = ""
        """Of the rules of the last record."""

    def add(self, kind: str, row: tuple[Any, ...], columns: tuple[str, ...]) -> None:
        """Count a row with its values in some columns: of a compaction, all of them."""
        session, chain, rules, inherited = _named(columns)(row)
        self.sessions.add(session)
        self.version = version_of(rules)
        counts = self.counts[session, chain]
        if kind in _COUNTED:
            counts[kind] += 1
            counts[_INHERITED] += bool(inherited)
        if kind == _COMPACTION:
            counts[_DETAILS] += len(row) - row.count(None)

    def __contains__(self, key: ChainKey) -> bool:
        return key in self.counts

    def less_than(self, former: "ChainCounts") -> set[ChainKey]:
        """Return the chains that have something less than before, and nothing more.

        Or less that is inherited: its origin is gone, and a copy is still one.
        """
        return {
            key
            for key, counts in former.counts.items()
            if key in self.counts and _is_less(self.counts[key], counts)
        }


@cache
def _named(columns: tuple[str, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return itemgetter(*(columns.index(name) for name in _NAMED))


def _is_less(counts: Counter[str], former: Counter[str]) -> bool:
    return counts[_INHERITED] < former[_INHERITED] or counts < former


@dataclass(slots=True)
class Update:
    """What a commit consists of: new files, and the former ones that they replace.

    `rows` are the new ones, `kept` those of sessions that are `gone`. `held` are the chains that
    have less than before: what was exported of them stays.
    """

    files: list[WrittenFile] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    rows: int = 0
    kept: int = 0
    gone: set[str] = field(default_factory=set)
    held: set[ChainKey] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ExportUpdate:
    """Finds out what replaces the former files of an export.

    `taken` counts what is new, `pending` gives the path of the next file. With `even_if_less` all
    that is there replaces its former rows.
    """

    folder: TableFolder
    former: Mapping[tuple[str, str], Sequence[TableFile]]
    taken: ChainCounts
    pending: Callable[[], str]
    even_if_less: bool

    def of(self, written: Sequence[WrittenFile], rows: int) -> Update:
        """Return the update by these files of so many rows. Raises as the folder does."""
        update = Update(rows=rows)
        if self.former and not self.even_if_less:
            update.held = self.taken.less_than(self._counted())
        for file in written:
            self._add(update, file)
        for (kind, date), files in self.former.items():
            self._keep(update, kind, date, files)
        return update

    def _counted(self) -> ChainCounts:
        """Return what the former files have of the chains that are there, by the same rules."""
        counts = ChainCounts()
        for (kind, _), files in self.former.items():
            columns = names_of(kind) if kind == _COMPACTION else _NAMED
            for path in (each.path for each in files if kind in _COUNTED):
                for row in self.folder.values(path, kind, columns):
                    session, chain, rules, _ = _named(columns)(row)
                    is_there = (session, chain) in self.taken
                    if is_there and version_of(rules) == self.taken.version:
                        counts.add(kind, row, columns)
        return counts

    def _add(self, update: Update, file: WrittenFile) -> None:
        """Take a new file, without the rows that are held back."""
        counts = self._chains(file.path, file.kind) if update.held else Counter()
        held = counts.keys() & update.held
        update.rows -= sum(counts[key] for key in held)
        if held and len(held) == len(counts):
            return
        if held:
            file = file._replace(path=self._written([file.path], file.kind, held))
        update.files.append(file)

    def _keep(self, update: Update, kind: str, date: str, files: Sequence[TableFile]) -> None:
        """Keep what is not replaced of a kind and day: where something is, in one file."""
        mixed: list[str] = []
        small: list[str] = []
        replaced: set[ChainKey] = set()
        for file in files:
            counts = self._chains(file.path, kind)
            old = {key for key in counts if key in self.taken and key not in update.held}
            replaced |= old
            for (session, _), rows in counts.items():
                if session not in self.taken.sessions:
                    update.gone.add(session)
                    update.kept += rows
            if old and len(old) == len(counts):
                update.deletes.append(file.path)
            elif old:
                mixed.append(file.path)
            elif file.size < _SMALL_BYTES:
                small.append(file.path)
        if mixed:
            paths = sorted(mixed + small)
            update.deletes += paths
            update.files.append(WrittenFile(self._written(paths, kind, replaced), kind, date))

    def _chains(self, path: str, kind: str) -> Counter[ChainKey]:
        """Return the number of rows of each chain in a file."""
        return Counter((session, chain) for session, chain in self._keys(path, kind))

    def _keys(self, path: str, kind: str) -> Iterable[tuple[Any, ...]]:
        return self.folder.values(path, kind, _CHAIN)

    def _written(self, paths: Sequence[str], kind: str, without: set[ChainKey]) -> str:
        """Write the rows of files but those of some chains, to one file; return its path."""
        target = self.pending()
        others = RowFilter(_CHAIN, lambda key: key not in without)
        self.folder.write_rows_of(self.folder, paths, target, kind, where=others)
        return target
