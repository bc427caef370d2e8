"""Records as rows of tables: one table a kind, one column a field, in a fixed order and type.

The columns come from the record classes alone, so a new field is a new column at the end of its
table's own ones, and no list has to be kept. Every column may be null but `id`, `session_id`,
`chain`, `sequence` and `rules`.
"""

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from contextgauge.frozen import fields_of
from contextgauge.json_codec import dumps
from schemas.records import DATA_CLASS_BY_KIND, Record, ReportedReceipt

ColumnType: TypeAlias = Literal[
    "text", "integer", "real", "truth", "time", "integers", "texts", "json"
]
"""`integer` has 64 bits; `time` is UTC in microseconds; `json` is JSON text, keys as they came."""

TABLE_VERSION: Final = 1
"""Of the columns: it grows where one is renamed, retyped or removed, not where one is added."""

MOST_INTEGER: Final = 2**63 - 1


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: ColumnType
    required: bool = False


class RecordPlace(NamedTuple):
    """Where a record lies in a topic."""

    topic: str
    partition: int
    offset: int


_COMMON: Final = (
    Column("id", "text", required=True),
    Column("session_id", "text", required=True),
    Column("chain", "text", required=True),
    Column("sequence", "integer", required=True),
    Column("time", "time"),
    Column("rules", "text", required=True),
    Column("topic", "text"),
    Column("topic_partition", "integer"),
    Column("topic_offset", "integer"),
)

_OF_RECEIPT: Final = "receipt_"
"""Begins the columns of a boundary's receipt: tables have no nested rows."""

_TYPES: Final[dict[Any, ColumnType]] = {
    str: "text",
    int: "integer",
    float: "real",
    bool: "truth",
    tuple[int, ...]: "integers",
    tuple[str, ...]: "texts",
}

_Cell: TypeAlias = Callable[[Any], Any]


@cache
def columns_of(kind: str) -> tuple[Column, ...]:
    """Return the columns of a kind's table."""
    return (*_COMMON, *(column for column, _ in _own(kind)))


@cache
def names_of(kind: str) -> tuple[str, ...]:
    """Return the names of a kind's columns."""
    return tuple(column.name for column in columns_of(kind))


def row_of(record: Record, origin: RecordPlace | None = None) -> tuple[Any, ...]:
    """Return a record as a row of its kind's table, in the order of `columns_of`."""
    data = record.data
    fields = fields_of(data)
    time_ms = record.time_ms
    return (
        record.id,
        _text(data.session_id),
        _text(data.chain),
        record.sequence,
        None if time_ms is None else time_ms * 1000,
        record.rules,
        *(origin or (None, None, None)),
        *(cell(fields) for _, cell in _own(data.kind)),
    )


def date_of(record: Record) -> str | None:
    """Return the UTC date of a record's time, as in 2026-05-01; None where it has no time."""
    if record.time_ms is None:
        return None
    return datetime.fromtimestamp(record.time_ms // 1000, UTC).date().isoformat()


@cache
def _own(kind: str) -> tuple[tuple[Column, _Cell], ...]:
    """Return the columns of a kind's own fields, each with what makes its cell of all fields."""
    cls = DATA_CLASS_BY_KIND[kind]
    hints = get_type_hints(cls)
    own: list[tuple[Column, _Cell]] = []
    for field in dataclasses.fields(cls):
        name = field.name
        if name in ("session_id", "chain"):
            continue
        plain = _without_none(hints[name])
        if plain is ReportedReceipt:
            own.extend(_of_receipt(name))
        else:
            column = Column(name, _type_of(plain))
            own.append((column, _cell(name, column.type)))
    return tuple(own)


def _of_receipt(name: str) -> Iterator[tuple[Column, _Cell]]:
    hints = get_type_hints(ReportedReceipt)
    for field in dataclasses.fields(ReportedReceipt):
        own = field.name
        column = Column(_OF_RECEIPT + own, _type_of(_without_none(hints[own])))
        yield column, partial(_receipt_cell, name, own)


def _receipt_cell(name: str, own: str, fields: Mapping[str, Any]) -> Any:
    return _value(getattr(fields[name], own, None))


def _cell(name: str, column_type: ColumnType) -> _Cell:
    if column_type == "json":
        return lambda fields: _json(fields[name])
    if column_type in ("integers", "texts"):
        return lambda fields: [_value(each) for each in fields[name] or ()]
    return lambda fields: _value(fields[name])


def _value(value: Any) -> Any:
    if type(value) is str:
        return _text(value)
    if type(value) is int and abs(value) > MOST_INTEGER:
        return None  # foreign: no count of tokens is
    return value


def _text(text: str) -> str:
    """Return a text that UTF-8 can write: half a surrogate pair becomes the replacement mark."""
    return (
        text
        if text.isascii()
        else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


def _json(value: Any) -> str | None:
    return None if value is None else _text(dumps(value).decode("utf-8", "replace"))


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not type(None)]
        return rest[0] if len(rest) == 1 else hint
    return hint


def _type_of(hint: Any) -> ColumnType:
    if get_origin(hint) is Literal:
        return "text"
    return _TYPES.get(hint, "json")


def tables() -> Sequence[str]:
    """Return the kinds, which are the tables' names."""
    return list(DATA_CLASS_BY_KIND)
