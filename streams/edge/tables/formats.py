"""The file formats of tables: how each is written, and read back to be merged."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
from pyarrow import csv, ipc, parquet
from pyarrow import json as pyarrow_json

from contextgauge.json_codec import dumps, loads
from schemas.topics import MIB
from streams.edge.tables.schema import schema_of
from streams.ports.tables import TableFormat

_BLOCK_BYTES: Final = 64 * MIB
"""Of CSV and JSON: a row must fit in. One of a message's limit may be escaped six times as long."""


class BatchWriter(Protocol):
    """Writes batches of one kind to an open file."""

    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def batch_writer(table_format: TableFormat, target: Any, kind: str) -> BatchWriter:
    """Begin a file of a kind's rows. `target` is what PyArrow writes to."""
    schema = schema_of(kind)
    writer: BatchWriter
    if table_format == "parquet":
        writer = parquet.ParquetWriter(target, schema, compression="zstd")
    elif table_format == "arrow":
        writer = ipc.new_file(target, schema, options=ipc.IpcWriteOptions(compression="zstd"))
    elif table_format == "csv":
        writer = _CsvWriter(target, schema)
    else:
        writer = _JsonLines(target)
    return writer


def batches_of(
    table_format: TableFormat, source: Any, kind: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that `batch_writer` wrote, with all or some of its columns."""
    schema = schema_of(kind)
    if table_format == "parquet":
        batches: Iterator[pa.RecordBatch] = parquet.ParquetFile(source).iter_batches(
            columns=columns
        )
    elif table_format == "arrow":
        reader = ipc.open_file(source)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
    elif table_format == "csv":
        batches = _csv_batches(source, schema)
    else:
        batches = iter(
            pyarrow_json.open_json(
                source,
                read_options=pyarrow_json.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
                parse_options=pyarrow_json.ParseOptions(explicit_schema=schema),
            )
        )
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    for batch in batches:
        yield _widened(batch, wanted)


def _widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns of today: those that are newer than its file are null."""
    names = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _flat(schema: pa.Schema) -> pa.Schema:
    """Return a schema without lists, which CSV does not have: they are JSON text there."""
    return pa.schema(
        [
            pa.field(field.name, pa.string()) if pa.types.is_list(field.type) else field
            for field in schema
        ]
    )


class _CsvWriter:
    def __init__(self, target: Any, schema: pa.Schema) -> None:
        self._schema = _flat(schema)
        self._writer = csv.CSVWriter(target, self._schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            pa.array(
                [None if each is None else dumps(each).decode() for each in column.to_pylist()]
            )
            if pa.types.is_list(column.type)
            else column
            for column in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _csv_batches(source: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    flat = _flat(schema)
    options = csv.ConvertOptions(
        column_types=flat,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        timestamp_parsers=[csv.ISO8601, "%Y-%m-%d %H:%M:%S.%fZ"],
    )
    parsing = csv.ParseOptions(newlines_in_values=True)
    reading = csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False)
    for batch in csv.open_csv(
        source, read_options=reading, convert_options=options, parse_options=parsing
    ):
        names = set(batch.schema.names)
        columns = [
            pa.array(
                [None if text is None else loads(text) for text in batch[field.name].to_pylist()],
                field.type,
            )
            if pa.types.is_list(field.type)
            else batch[field.name]
            for field in schema
            if field.name in names
        ]
        yield pa.RecordBatch.from_arrays(
            columns, names=[field.name for field in schema if field.name in names]
        )


def _as_json(column: pa.Array) -> pa.Array:
    return pa.array(
        [None if each is None else dumps(each).decode() for each in column.to_pylist()], pa.string()
    )


class _JsonLines:
    """One JSON object per line: integers and texts as they are, times as RFC 3339."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._target.write(b"".join(dumps(row) + b"\n" for row in batch.to_pylist()))

    def close(self) -> None:
        """Do nothing: who opened the file closes it."""
