"""The rows of an answer as a table, as CSV, or as lines of JSON."""

import csv
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from rich.table import Table
from rich.text import Text

from streams import codec
from streams.cli.screen.lines import write_lines
from streams.cli.screen.output import cell, out, say, table_width
from streams.cli.screen.tables import plain_table

_SHOWN_ROWS: Final = 1_000
"""On a terminal: more are not read, as all have to be in memory to be aligned."""

_LEAST_TEXT: Final = 16
"""Characters to which a column of texts can be wrapped and still be read; numbers never are."""

_GAP: Final = 2


class AnswerFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"


class TabularAnswer(Protocol):
    """Rows in parts, with the names of their columns."""

    @property
    def columns(self) -> Sequence[str]:
        """The names."""

    def rows(self) -> Iterable[Sequence[tuple[Any, ...]]]:
        """Yield the rows in parts."""


class ListedRows(NamedTuple):
    """An answer whose rows are known."""

    columns: Sequence[str]
    all_rows: Sequence[tuple[Any, ...]]

    def rows(self) -> Iterable[Sequence[tuple[Any, ...]]]:
        """Return the rows as one part."""
        return [self.all_rows]


def print_answer(answer: TabularAnswer, answer_format: AnswerFormat) -> None:
    """Print an answer on standard output."""
    if answer_format is AnswerFormat.TABLE:
        _print_table(answer)
    elif answer_format is AnswerFormat.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        for rows in answer.rows():
            writer.writerows([_csv_cell(each) for each in row] for row in rows)
    else:
        for rows in answer.rows():
            write_lines(
                [
                    codec.dumps(dict(zip(answer.columns, map(_plain, row), strict=True)))
                    for row in rows
                ]
            )


def _print_table(answer: TabularAnswer) -> None:
    every = (row for part in answer.rows() for row in part)
    rows = list(islice(every, _SHOWN_ROWS))
    numbers = {
        place
        for place, _ in enumerate(answer.columns)
        if any(isinstance(row[place], int | float | Decimal) for row in rows)
    }
    cells = [[cell(_text(value)) for value in row] for row in rows]
    if _least_width(answer.columns, cells, numbers) <= table_width():
        out.print(_table(answer.columns, cells, numbers))
    else:
        out.print(_blocks(answer.columns, cells))
    if next(every, None) is not None:
        say(f"{_SHOWN_ROWS:,} rows are shown, there are more: --format csv gives all", "dim")


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Text]], numbers: set[int]) -> int:
    """Return the width of the narrowest table in which no number and no name is broken."""
    widths = []
    for place, name in enumerate(columns):
        longest = max((row[place].cell_len for row in rows), default=0)
        widths.append(max(len(name), longest if place in numbers else min(longest, _LEAST_TEXT)))
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Text]], numbers: set[int]) -> Table:
    table = plain_table(*columns, wrap=columns, gap=_GAP)
    for place, (column, name) in enumerate(zip(table.columns, columns, strict=True)):
        column.header, column.min_width = Text(name), len(name)
        if place in numbers:
            column.no_wrap, column.justify = True, "right"
    for row in rows:
        table.add_row(*row)
    return table


def _blocks(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> Table:
    """Return each row as lines of name and value: for more columns than a terminal is wide."""
    table = plain_table("", "", wrap=("",))
    table.show_header = False
    for number, row in enumerate(rows):
        if number:
            table.add_row()
        for name, value in zip(columns, row, strict=True):
            table.add_row(Text(name, style="bold"), value)
    return table


def _text(value: Any) -> str | None:
    plain = _plain(value)
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, float) and plain.is_integer():
        return f"{plain:,.0f}"
    if isinstance(plain, int | float):
        return f"{plain:,}"
    return None if plain is None else str(plain)


def _csv_cell(value: Any) -> Any:
    plain = _plain(value)
    return str(plain).lower() if isinstance(plain, bool) else plain


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; times are RFC 3339."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value)
