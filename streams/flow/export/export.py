"""One export: takes records, keeps few of them in memory, and commits them as files."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from contextgauge.errors import ConfigError, StopError
from schemas.records import Record
from streams.codec.columns import RecordPlace, date_of, row_of
from streams.flow.export.checkpoint import (
    PENDING,
    ExportCheckpoint,
    ExportedPartition,
    read_checkpoint,
    write_checkpoint,
)
from streams.ports.tables import TableFile, TableFolder, TableFormat, TableWriter

NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for null: readers of the layout know it."""

MOST_ROWS: Final = 50_000
"""Rows in memory: some 100 MB of Python objects."""

_SMALL_BYTES: Final = 32 * 1024 * 1024
"""A smaller file is worth merging: engines read files of 100 MB and more best."""

_MERGED_BYTES: Final = 256 * 1024 * 1024
"""About so much goes into one merged file."""

MOST_OPEN: Final = 200
"""Files that are open at a time: systems allow a process 256 or more."""


class _Open(NamedTuple):
    path: str
    writer: TableWriter


class Export:
    """An export into a folder, which is created where it is missing.

    `source` names what is exported; a folder holds one source in one format. Raises ConfigError
    for a folder that has another, or files of someone else.
    """

    def __init__(self, folder: TableFolder, table_format: TableFormat, source: str) -> None:
        self.rows = self.files = 0
        """Rows taken, and files that were moved to their places."""
        self.uncommitted = 0
        """Rows taken since the last commit."""
        self._folder = folder
        self._buffered: defaultdict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
        self._in_memory = 0
        self._open: dict[tuple[str, str], _Open] = {}
        """The files that are being written, by kind and date; the one used last is the last."""
        self._written: list[tuple[str, str, str]] = []
        """Files that are complete: path, kind and date."""
        self._checkpoint = self._opened(table_format, source)

    @property
    def partitions(self) -> dict[int, ExportedPartition]:
        """How far each partition was exported by the last commit."""
        return self._checkpoint.partitions

    def _opened(self, table_format: TableFormat, source: str) -> ExportCheckpoint:
        known = read_checkpoint(self._folder)
        if known is None:
            if self._folder.files():
                raise ConfigError(
                    "the folder has files, but none of an export: name an empty or a new one"
                )
            return self._begun(ExportCheckpoint(format=table_format, source=source))
        if (known.format, known.source) != (table_format, source):
            raise ConfigError(
                f"the folder has an export of {known.source} as {known.format}, not of {source} as "
                f"{table_format}: name another one"
            )
        self._settle(known)
        return self._begun(known)

    def _begun(self, known: ExportCheckpoint) -> ExportCheckpoint:
        """Take the folder over: an export that was begun before cannot commit any more."""
        own = known.next({})
        write_checkpoint(self._folder, own)
        return own

    def add(self, records: Iterable[tuple[Record, RecordPlace | None]]) -> None:
        """Take records, in the order of their session's log."""
        for record, origin in records:
            place = record.kind, date_of(record) or NO_DATE
            self._buffered[place].append(row_of(record, origin))
            self._in_memory += 1
            self.uncommitted += 1
            if self._in_memory >= MOST_ROWS:
                self._write(down_to=MOST_ROWS // 2)

    def commit(self, partitions: dict[int, ExportedPartition] | None = None) -> None:
        """Make what was taken visible, together with the positions that it reaches."""
        self._commit(partitions, ())

    def commit_instead(self) -> None:
        """Make what was taken visible, in place of all that was there before."""
        self._commit(None, tuple(each.path for each in self._tables()))

    def _commit(
        self, partitions: dict[int, ExportedPartition] | None, replaced: tuple[str, ...]
    ) -> None:
        self._write(down_to=0)
        while self._open:
            self._close_one()
        revision = self._checkpoint.revision + 1
        moves = {
            path: self._path(kind, date, revision, number)
            for number, (path, kind, date) in enumerate(self._written)
        }
        self._conclude(self._checkpoint.next(moves, replaced, partitions))
        self._written.clear()
        self.files += len(moves)
        self.rows += self.uncommitted
        self.uncommitted = 0

    def merge_small(self) -> int:
        """Merge the small files of each kind and date; return how many fewer there are."""
        groups: defaultdict[str, list[TableFile]] = defaultdict(list)
        for file in self._tables():
            if file.size < _SMALL_BYTES:
                groups[file.path.rpartition("/")[0]].append(file)
        fewer = 0
        for files in groups.values():
            merged: list[str] = []
            size = 0
            for file in files:
                merged.append(file.path)
                size += file.size
                if size >= _MERGED_BYTES:
                    fewer += self._merge(merged)
                    merged, size = [], 0
            fewer += self._merge(merged)
        return fewer

    def _merge(self, paths: list[str]) -> int:
        if len(paths) < 2:  # noqa: PLR2004 -- one is merged already
            return 0
        kind, date = (part.partition("=")[2] for part in paths[0].split("/")[:2])
        pending = self._pending(0)
        self._folder.merge(paths, pending, kind)
        target = self._path(kind, date, self._checkpoint.revision + 1, 0)
        self._conclude(self._checkpoint.next({pending: target}, tuple(paths)))
        return len(paths) - 1

    def _pending(self, number: int) -> str:
        return f"{PENDING}/{self._checkpoint.revision:08d}-{number}.{self._checkpoint.format}"

    def _path(self, kind: str, date: str, revision: int, number: int) -> str:
        # The revision makes the name unique, and orders the files of a day by their commits.
        name = f"part-{revision:08d}-{number:05d}.{self._checkpoint.format}"
        return f"kind={kind}/date={date}/{name}"

    def _tables(self) -> list[TableFile]:
        return [each for each in self._folder.files() if each.path.startswith("kind=")]

    def _write(self, *, down_to: int) -> None:
        """Write the largest groups to their files, until so many rows are left in memory."""
        for place in sorted(self._buffered, key=lambda each: -len(self._buffered[each])):
            if self._in_memory <= down_to:
                return
            rows = self._buffered.pop(place)
            self._writer(*place).add(rows)
            self._in_memory -= len(rows)

    def _writer(self, kind: str, date: str) -> TableWriter:
        place = kind, date
        known = self._open.pop(place, None)
        if known is None:
            if len(self._open) >= MOST_OPEN:
                self._close_one()
            path = self._pending(len(self._open) + len(self._written))
            known = _Open(path, self._folder.writer(path, kind))
        self._open[place] = known
        return known.writer

    def _close_one(self) -> None:
        """Complete the file that was written to the longest time ago."""
        place = next(iter(self._open))
        path, writer = self._open.pop(place)
        writer.close()
        self._written.append((path, *place))

    def _conclude(self, checkpoint: ExportCheckpoint) -> None:
        """Commit: store what is to be moved, then move it."""
        stored = read_checkpoint(self._folder)
        pending = {each.path for each in self._folder.files(PENDING)}
        if stored != self._checkpoint or not pending.issuperset(checkpoint.moves):
            raise StopError("another process exports into this folder now: only one can at a time")
        write_checkpoint(self._folder, checkpoint)
        self._checkpoint = checkpoint
        self._settle(checkpoint)

    def _settle(self, checkpoint: ExportCheckpoint) -> None:
        """Do what a commit says, also where some of it is done, and delete what none names."""
        for path, target in checkpoint.moves.items():
            self._folder.move(path, target)
        for path in checkpoint.deletes:
            self._folder.delete(path)
        for file in self._folder.files(PENDING):
            self._folder.delete(file.path)
