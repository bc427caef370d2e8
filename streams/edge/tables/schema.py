"""The fixed Arrow schema of each kind, and rows as record batches."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from streams.codec.columns import TABLE_VERSION, ColumnType, columns_of

_TYPES: Final[dict[ColumnType, pa.DataType]] = {
    "text": pa.string(),
    "json": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "truth": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "integers": pa.list_(pa.int64()),
    "texts": pa.list_(pa.string()),
}


@cache
def schema_of(kind: str) -> pa.Schema:
    """Return a kind's schema; its metadata name the kind and the version of the columns."""
    return pa.schema(
        [
            pa.field(column.name, _TYPES[column.type], nullable=not column.required)
            for column in columns_of(kind)
        ],
        {"contextgauge.kind": kind, "contextgauge.tables": str(TABLE_VERSION)},
    )


def batch_of(kind: str, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return rows, in the order of the kind's columns, as one batch."""
    schema = schema_of(kind)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(values, field.type)
            for field, values in zip(schema, zip(*rows, strict=True), strict=True)
        ],
        schema=schema,
    )
