"""Exports of tests: what a folder has, read back by DuckDB, and folders that fail."""

from pathlib import Path
from typing import Any

import duckdb

from streams.edge.tables.folder import ArrowFolder
from streams.flow.export.checkpoint import committed_files
from streams.ports.tables import TableFormat


def exported_ids(folder: Path, kind: str | None = None) -> list[str]:
    """Return the ids of all rows that a reader of the layout sees."""
    if not list(folder.glob("kind=*/*/*.parquet")):
        return []
    connection = duckdb.connect()
    rows = connection.execute(
        "SELECT id FROM read_parquet(?, hive_partitioning = true, union_by_name = true) "
        "WHERE ? IS NULL OR kind = ? ORDER BY session_id, sequence",
        [f"{folder}/kind=*/date=*/*.parquet", kind, kind],
    ).fetchall()
    return [row[0] for row in rows]


def committed_ids(folder: Path, table_format: TableFormat = "parquet") -> list[str]:
    """Return the ids of all rows that our own readers see."""
    opened = ArrowFolder(str(folder), table_format)
    tables = committed_files(opened)
    if tables is None:
        return []
    return sorted(
        id_
        for (kind, _), files in tables.files.items()
        for file in files
        for batch in opened.batches(file.path, kind)
        for id_ in batch["id"].to_pylist()
    )


class PowerFailureError(Exception):
    """What ends a process in the middle of its work."""


class FailingFolder(ArrowFolder):
    """A folder whose process fails at its n-th step, by default as it dies; `steps` counts them."""

    def __init__(
        self,
        place: str,
        table_format: TableFormat,
        fails_at: int | None = None,
        error: Exception | None = None,
    ) -> None:
        super().__init__(place, table_format)
        self.steps, self._fails_at = 0, fails_at
        self._error = PowerFailureError() if error is None else error

    def _step(self) -> None:
        self.steps += 1
        if self.steps - 1 == self._fails_at:
            raise self._error

    def replace(self, path: str, content: bytes) -> None:
        self._step()
        super().replace(path, content)

    def writer(self, path: str, kind: str) -> Any:
        self._step()
        return super().writer(path, kind)

    def write_rows_of(self, *args: Any, **options: Any) -> int:
        self._step()
        return super().write_rows_of(*args, **options)

    def move(self, path: str, target: str) -> bool:
        self._step()
        return super().move(path, target)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)
