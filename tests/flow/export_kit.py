"""Exports of tests: what a folder has, read back by DuckDB, and folders that fail."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from streams.edge.tables.folder import ArrowFolder
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


class PowerFailureError(Exception):
    """What ends a process in the middle of its work."""


class FailingFolder(ArrowFolder):
    """A folder whose process dies at its n-th step; `steps` counts them."""

    def __init__(self, place: str, table_format: TableFormat, dies_at: int | None = None) -> None:
        super().__init__(place, table_format)
        self.steps, self._dies_at = 0, dies_at

    def _step(self) -> None:
        if self.steps == self._dies_at:
            raise PowerFailureError
        self.steps += 1

    def replace(self, path: str, content: bytes) -> None:
        self._step()
        super().replace(path, content)

    def writer(self, path: str, kind: str) -> Any:
        self._step()
        return super().writer(path, kind)

    def merge(self, paths: Sequence[str], target: str, kind: str) -> None:
        self._step()
        super().merge(paths, target, kind)

    def move(self, path: str, target: str) -> None:
        self._step()
        super().move(path, target)

    def delete(self, path: str) -> None:
        self._step()
        super().delete(path)
