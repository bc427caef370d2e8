"""One export: takes records, keeps few of them in memory, and commits them as files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, Final, NamedTuple, Self

from contextgauge.errors import ConfigError, StopError
from schemas.records import Record
from streams.codec.columns import RecordPlace, date_of, names_of, row_of
from streams.flow.export.checkpoint import (
    PENDING,
    ExportCheckpoint,
    ExportedPartition,
    committed_files,
    read_checkpoint,
    table_path,
    write_checkpoint,
)
from streams.flow.export.retained import (
    SMALL_BYTES,
    ChainCounts,
    ExportUpdate,
    Update,
    WrittenFile,
)
from streams.ports.tables import (
    OWN_FOLDER,
    CommittedFiles,
    FolderClaim,
    TableFile,
    TableFolder,
    TableFormat,
    TableWriter,
)

NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for null: readers of the layout know it."""

MOST_ROWS: Final = 50_000
"""Rows in memory: some 100 MB of Python objects."""

_MERGED_BYTES: Final = 256 * 1024 * 1024
"""About so much goes into one merged file."""

MOST_OPEN: Final = 200
"""Files that are open at a time: systems allow a process 256 or more."""


class _Open(NamedTuple):
    path: str
    writer: TableWriter


class Export:
    """An export into a folder, which is created where it is missing. Use it as a context manager.

    `source` names what is exported; a folder holds one source in one format. To enter it raises
    ConfigError for a folder that has another, or files of someone else, and StopError where another
    process exports into it.
    """

    def __init__(self, folder: TableFolder, table_format: TableFormat, source: str) -> None:
        self.rows = self.files = 0
        """Rows taken, and files that were moved to their places."""
        self.uncommitted = 0
        """Rows taken since the last commit."""
        self._folder = folder
        self._checkpoint = ExportCheckpoint(format=table_format, source=source)
        self._claim: FolderClaim
        self._held = ExitStack()
        self._buffered: defaultdict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
        self._in_memory = 0
        self._taken = ChainCounts()
        self._open: dict[tuple[str, str], _Open] = {}
        """The files that are being written, by kind and date; the one used last is the last."""
        self._written: list[WrittenFile] = []

    @property
    def partitions(self) -> dict[int, ExportedPartition]:
        """How far each partition was exported by the last commit."""
        return self._checkpoint.partitions

    def __enter__(self) -> Self:
        self._read()
        with ExitStack() as held:
            self._claim = self._folder.claim()
            held.callback(self._claim.release)
            self._checkpoint = self._read()
            self._settle(self._checkpoint, before=self._checkpoint.revision + 1)
            # From now on an export that had the folder before has other names of pending files.
            self._checkpoint = self._checkpoint.next({})
            write_checkpoint(self._folder, self._checkpoint)
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _read(self) -> ExportCheckpoint:
        """Return the folder's checkpoint, or the first one. Raises ConfigError."""
        own, known = self._checkpoint, read_checkpoint(self._folder)
        if known is None:
            if any(not each.path.startswith(OWN_FOLDER) for each in self._folder.files()):
                raise ConfigError(
                    "the folder has files, but none of an export: name an empty or a new one"
                )
            return own
        if (known.format, known.source) != (own.format, own.source):
            raise ConfigError(
                f"the folder has an export of {known.source} as {known.format}, not of "
                f"{own.source} as {own.format}: name another one"
            )
        return known

    def add(self, records: Iterable[tuple[Record, RecordPlace | None]]) -> None:
        """Take records, in the order of their session's log."""
        for record, origin in records:
            place = record.kind, date_of(record) or NO_DATE
            row = row_of(record, origin)
            self._buffered[place].append(row)
            self._taken.add(record.kind, row, names_of(record.kind))
            self._in_memory += 1
            self.uncommitted += 1
            if self._in_memory >= MOST_ROWS:
                self._write(down_to=MOST_ROWS // 2)

    def add_tables(self, source: TableFolder, tables: CommittedFiles) -> None:
        """Take all rows of another export, as they are."""
        for (kind, date), files in tables.files.items():
            path = self._pending(len(self._written))
            paths = [each.path for each in files]
            self.uncommitted += self._folder.write_rows_of(source, paths, path, kind)
            self._written.append(WrittenFile(path, kind, date))

    def commit(self, partitions: dict[int, ExportedPartition] | None = None) -> None:
        """Make what was taken visible, together with the positions that it reaches."""
        self._commit(partitions, ())

    def commit_instead(self) -> None:
        """Make what was taken visible, in place of all that was there before."""
        replaced = (file.path for files in self._tables().values() for file in files)
        self._commit(None, tuple(replaced))

    def commit_update(self, *, even_if_less: bool = False) -> Update:
        """Make what was taken visible in place of the same chains, and keep all others.

        Return what was kept; see `ExportUpdate`.
        """
        self._complete()
        numbers = count(len(self._written))
        update = ExportUpdate(
            self._folder,
            self._tables(),
            self._taken,
            lambda: self._pending(next(numbers)),
            even_if_less,
        ).of(self._written, self.uncommitted)
        self._written, self.uncommitted = update.files, update.rows
        self._commit(None, tuple(update.deletes))
        return update

    def _complete(self) -> None:
        """Write all rows that are in memory, and close their files."""
        self._write(down_to=0)
        while self._open:
            self._close_one()

    def _commit(
        self, partitions: dict[int, ExportedPartition] | None, replaced: tuple[str, ...]
    ) -> None:
        self._complete()
        revision = self._checkpoint.revision + 1
        moves = {
            path: table_path(kind, date, revision, number, self._checkpoint.format)
            for number, (path, kind, date) in enumerate(self._written)
        }
        self._conclude(self._checkpoint.next(moves, replaced, partitions))
        self._written.clear()
        self.files += len(moves)
        self.rows += self.uncommitted
        self.uncommitted = 0
        self._taken = ChainCounts()

    def merge_small(self, *, more_than: int = 1) -> int:
        """Merge the small files of each kind and date; return how many fewer there are.

        So many are left as they are: merged with each new one, they would be written all the time.
        """
        fewer = 0
        for place, files in self._tables().items():
            small = [each for each in files if each.size < SMALL_BYTES]
            if len(small) <= more_than:
                continue
            merged: list[str] = []
            size = 0
            for file in small:
                merged.append(file.path)
                size += file.size
                if size >= _MERGED_BYTES:
                    fewer += self._merge(*place, merged)
                    merged, size = [], 0
            fewer += self._merge(*place, merged)
        return fewer

    def _tables(self) -> Mapping[tuple[str, str], Sequence[TableFile]]:
        """Return the committed files, which lie in their places."""
        committed = committed_files(self._folder)
        return {} if committed is None else committed.files

    def _merge(self, kind: str, date: str, paths: list[str]) -> int:
        if len(paths) < 2:  # noqa: PLR2004 -- one is merged already
            return 0
        pending, revision = self._pending(0), self._checkpoint.revision + 1
        self._folder.write_rows_of(self._folder, paths, pending, kind)
        target = table_path(kind, date, revision, 0, self._checkpoint.format)
        self._conclude(self._checkpoint.next({pending: target}, tuple(paths)))
        return len(paths) - 1

    def _pending(self, number: int) -> str:
        return f"{PENDING}/{self._checkpoint.revision:08d}-{number}.{self._checkpoint.format}"

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
        self._written.append(WrittenFile(path, *place))

    def _conclude(self, checkpoint: ExportCheckpoint) -> None:
        """Commit: store what is to be moved, then move it.

        Raises StopError as the claim does, and where a file of the commit was deleted meanwhile.
        """
        self._claim.check()
        write_checkpoint(self._folder, checkpoint)
        self._checkpoint = checkpoint
        if lost := self._settle(checkpoint, before=checkpoint.revision):
            raise StopError(
                f"files of this export were deleted while it ran, such as {lost[0]}: "
                "export into another folder"
            )

    def _settle(self, checkpoint: ExportCheckpoint, *, before: int) -> list[str]:
        """Do what a commit says, also where some of it is done; return moved files that are gone.

        Pending files of revisions before this one are of no commit. Later ones are another's, which
        has the folder now.
        """
        moves = checkpoint.moves.items()
        lost = [target for path, target in moves if not self._folder.move(path, target)]
        for path in checkpoint.deletes:
            self._folder.delete(path)
        for file in self._folder.files(PENDING):
            if _revision_of(file.path) < before:
                self._folder.delete(file.path)
        return lost


def _revision_of(pending: str) -> int:
    return int(pending.removeprefix(f"{PENDING}/").partition("-")[0])
