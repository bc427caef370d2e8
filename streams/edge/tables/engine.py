"""SQL over an export, by DuckDB: one table per kind of record, and the views over them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyarrow import dataset

from contextgauge.errors import ConfigError, StopError
from contextgauge.pricing import price_of
from streams.codec.columns import tables as kinds
from streams.core.costs import PriceLookup
from streams.edge.tables.folder import ArrowFolder
from streams.edge.tables.questions import COMPUTED_FIRST, views_sql
from streams.edge.tables.rates import add_rates
from streams.edge.tables.schema import schema_of
from streams.ports.tables import CommittedFiles

_READ: Final = {"parquet": dataset.ParquetFileFormat, "arrow": dataset.IpcFileFormat}
"""Formats with types: a CSV or NDJSON file is for programs that know nothing better."""

_ROWS_AT_A_TIME: Final = 2_000


_OF_SPARK: Final = ("unix_millis(t) AS epoch_ms(t)",)
"""Functions that the library uses by their names in Spark, which runs it too."""


class SqlAnswer:
    """The rows of a statement, read piece by piece. `columns` are their names."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.columns = [str(each[0]) for each in cursor.description or ()]
        self._cursor = cursor

    def rows(self) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows. Raises StopError for what fails while it is computed."""
        try:
            while part := self._cursor.fetchmany(_ROWS_AT_A_TIME):
                yield part
        except OSError as error:
            raise _changed(error) from error
        except duckdb.Error as error:
            raise StopError(f"the query failed: {error}") from error


class SqlEngine:
    """The tables and views of an export's files.

    Raises ConfigError for formats without types, StopError for files that another process deleted
    since they were listed.
    """

    def __init__(
        self, folder: ArrowFolder, tables: CommittedFiles, price_of: PriceLookup = price_of
    ) -> None:
        if tables.format not in _READ:
            raise ConfigError(
                f"{folder.place} is an export as {tables.format}: queries read Parquet and Arrow, "
                "which `contextgauge export` makes of it"
            )
        self._connection = duckdb.connect()
        # Times are UTC everywhere, also on a machine in another zone.
        self._connection.execute("SET TimeZone = 'UTC'")
        paths: dict[str, list[str]] = {kind: [] for kind in kinds()}
        for (kind, _), files in tables.files.items():
            if kind in paths:
                paths[kind] += [folder.at(each.path) for each in files]
        self.is_empty = not any(paths.values())
        """Whether there is no record."""
        for kind, own in paths.items():
            self._connection.register(kind, _table(folder, tables.format, kind, own))
        add_rates(self._connection, price_of)
        for macro in _OF_SPARK:
            self._connection.execute(f"CREATE MACRO {macro}")
        self._connection.execute(views_sql())
        self.keep(COMPUTED_FIRST)

    def answer(self, sql: str) -> SqlAnswer:
        """Run one statement that gives rows. Raises ConfigError for one that is wrong."""
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1:
                raise ConfigError(f"one statement at a time: these are {len(statements)}")
            if statements[0].type != duckdb.StatementType.SELECT:
                raise ConfigError("only a SELECT gives an answer: begin with SELECT or WITH")
            return SqlAnswer(self._connection.execute(statements[0]))
        except (OSError, duckdb.IOException) as error:
            raise _changed(error) from error
        except duckdb.Error as error:
            raise ConfigError(f"the query is wrong: {error}") from error

    def keep(self, views: Iterable[str]) -> None:
        """Compute views once, in this order: those that are asked often, or by each other.

        Raises StopError for files that are gone or cannot be read.
        """
        for view in views:
            try:
                self._connection.execute(f"CREATE TABLE kept_{view} AS FROM {view}")
            except (OSError, duckdb.Error) as error:
                raise _changed(error) from error
            self._connection.execute(f"CREATE OR REPLACE VIEW {view} AS FROM kept_{view}")

    def views(self) -> dict[str, list[tuple[str, str]]]:
        """Return each view's columns, with their types."""
        rows = self._connection.execute(
            "SELECT view_name, column_name, data_type FROM duckdb_views() JOIN duckdb_columns() "
            "ON table_name = view_name WHERE NOT duckdb_views.internal ORDER BY 1, column_index"
        ).fetchall()
        views: dict[str, list[tuple[str, str]]] = {}
        for view, column, data_type in rows:
            views.setdefault(view, []).append((column, data_type))
        return views


def _changed(error: Exception) -> StopError:
    return StopError(f"the export cannot be read, or changed while it was read: {error}; try again")


def _table(
    folder: ArrowFolder, table_format: str, kind: str, paths: list[str]
) -> dataset.Dataset | pa.Table:
    """Return a kind's files as one table; columns that are newer than a file are null in it."""
    schema = schema_of(kind)
    if not paths:
        return schema.empty_table()
    try:
        return dataset.dataset(
            paths, schema=schema, format=_READ[table_format](), filesystem=folder.system
        )
    except FileNotFoundError as error:
        raise StopError(f"{folder.place} changed while it was opened: try again") from error
