"""Folders of tables: where exports go, on this machine or in an object store."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

TableFormat: TypeAlias = Literal["parquet", "arrow", "csv", "ndjson"]


class TableFile(NamedTuple):
    """A file of a folder: its path relative to it, with `/`, and its size."""

    path: str
    size: int


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

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None where there is none."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a small file at once: a reader sees the former content or this one."""

    def files(self, path: str = "") -> Sequence[TableFile]:
        """Return all files below a folder, by path; none where it does not exist."""

    def writer(self, path: str, kind: str) -> TableWriter:
        """Begin a file of a kind's rows, in place of one that is there."""

    def merge(self, paths: Sequence[str], target: str, kind: str) -> None:
        """Write the rows of several files, in this order, to another one."""

    def move(self, path: str, target: str) -> None:
        """Move a file, in place of one that is there. Nothing happens where `path` is gone."""

    def delete(self, path: str) -> None:
        """Delete a file, where it is there."""
