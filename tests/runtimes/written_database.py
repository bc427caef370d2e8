"""A database of a test, written as runtimes do: each row is committed at once."""

import sqlite3
from pathlib import Path


class WrittenDatabase:
    """A new database with a schema, in WAL mode; foreign keys hold where the runtime wants it."""

    def __init__(self, path: Path, schema: str, *, has_foreign_keys: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        if has_foreign_keys:
            self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.executescript(schema)
        self._rows = 0

    def close(self) -> None:
        self._connection.close()

    def execute(self, sql: str, *values: object) -> None:
        self._connection.execute(sql, values)
