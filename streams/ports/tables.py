"""Folders of tables: where exports go, on this machine or in an object store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

TableFormat: TypeAlias = Literal["parquet", "arrow", "csv", "ndjson"]

OWN_FOLDER: Final = "_contextgauge"
"""What an export keeps for itself lies there: readers of Hive's layout pass it over."""


class TableFile(NamedTuple):
    """A file of a folder: its path relative to it, with `/`, and its size."""

    path: str
    size: int


class CommittedFiles(NamedTuple):
    """The files that an export consists of, by their kind and date; none besides them count."""

    format: TableFormat
    files: Mapping[tuple[str, str], Sequence[TableFile]]


class FolderClaim(Protocol):
    """The right to write to a folder."""

    def check(self) -> None:
        """Raise StopError where another process has the folder now."""

    def release(self) -> None:
        """Let others have the folder."""


class RowBatch(Protocol):
    """Some rows of a kind, as the adapters have them."""

    @property
    def num_rows(self) -> int: ...


class RowFilter(NamedTuple):
    """Which rows are meant: those whose values in some columns are."""

    columns: Sequence[str]
    keeps: Callable[[tuple[Any, ...]], bool]


class RowMark(NamedTuple):
    """A column of truth values that is set to true in some rows."""

    column: str
    rows: RowFilter


class TableWriter(Protocol):
    """A file that is being written. Nothing reads it before `close` has returned."""

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append rows, in the order of the kind's columns."""

    def close(self) -> None:
        """End the file, and let it survive a loss of power where the file system can."""


class TableFolder(Protocol):
    """A folder. Paths are relative to it. All methods raise RetryError where it cannot be reached.

    What cannot be written for another reason, such as missing rights, is a StopError.
    """

    def claim(self) -> FolderClaim:
        """Take the folder for this process, until it releases it or ends.

        On this machine a folder that another process has is a StopError. An object store has no
        locks: there it is the last to claim it that has it, from when nothing that the one before
        began to write can appear any more.
        """

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None where there is none."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a small file at once: a reader sees the former content or this one."""

    def files(self, path: str = "") -> Sequence[TableFile]:
        """Return all files below a folder, by path; none where it does not exist."""

    def writer(self, path: str, kind: str) -> TableWriter:
        """Begin a file of a kind's rows, in place of one that is there."""

    def write_rows_of(
        self,
        source: "TableFolder",
        paths: Sequence[str],
        target: str,
        kind: str,
        *,
        where: RowFilter | None = None,
        mark: RowMark | None = None,
    ) -> int:
        """Write the rows of files of a folder, in this order, to one file; return how many."""

    def batches(self, path: str, kind: str) -> Iterator[RowBatch]:
        """Yield the rows of a file of a kind."""

    def values(self, path: str, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield each row's values in some columns; where the format can, no others are read."""

    def move(self, path: str, target: str) -> bool:
        """Move a file, in place of one that is there; return whether it is at its target now.

        Nothing happens where `path` is gone: it may have been moved before.
        """

    def delete(self, path: str) -> None:
        """Delete a file, where it is there."""
