"""`contextgauge query`: SQL over transcripts of this machine, or over an export."""

import csv
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contextgauge.errors import ConfigError
from streams import codec
from streams.cli.asked import opened
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.screen.lines import is_terminal, quiet_pipe, write_lines
from streams.cli.screen.options import TablePaths
from streams.cli.screen.output import cell, out, say
from streams.cli.screen.tables import plain_table

if TYPE_CHECKING:
    from streams.edge.tables.engine import SqlAnswer, SqlEngine

_SHOWN_ROWS = 1_000
"""On a terminal: more are not read there, and all of them have to be in memory to be aligned."""


class AnswerFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    NDJSON = "ndjson"


def query(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL|NAME", help="A SELECT, or the name of a question.", show_default=False
        ),
    ] = None,
    paths: TablePaths = None,
    *,
    show_list: Annotated[bool, typer.Option("--list", help="List the named questions.")] = False,
    show_views: Annotated[
        bool, typer.Option("--views", help="List the views and their columns.")
    ] = False,
    show_sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL of a named question instead of its answer.")
    ] = False,
    answer_format: Annotated[
        AnswerFormat | None,
        typer.Option(
            "--format",
            help="How rows are printed. Default: a table on a terminal, CSV in a pipe.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Ask a question in SQL about sessions, readings, warnings and compactions.

    Of views, which `--views` lists, and of one table for each kind of record, as `contextgauge
    export` writes them. Times are UTC.
    """
    with needs("query", "analysis", ANALYSIS), quiet_pipe():
        if show_list:
            _list_questions()
        elif show_views:
            with _engine_of_nothing() as engine:
                _list_views(engine)
        elif question is None:
            raise ConfigError("name a question or a SELECT; --list shows the questions")
        elif show_sql:
            say(_sql_of(question), to=out)
        else:
            with opened(paths or ()) as asked:
                _print(asked.engine.answer(_sql_of(question)), answer_format or _default_format())
            if not asked.is_whole:
                raise typer.Exit(Exit.STOPPED)


def _default_format() -> AnswerFormat:
    return AnswerFormat.TABLE if is_terminal() else AnswerFormat.CSV


def _sql_of(question: str) -> str:
    """Return the SQL of a question, or of all rows of a view."""
    from streams.edge.tables.questions import VIEWS  # noqa: PLC0415 -- with the extra
    from streams.edge.tables.questions import question as named  # noqa: PLC0415 -- as above

    if any(each.isspace() for each in question.strip()):  # as no name has, and every statement
        return question
    return f"FROM {question}" if question in VIEWS else named(question).sql


@contextmanager
def _engine_of_nothing() -> Iterator["SqlEngine"]:
    from streams.edge.tables.engine import SqlEngine  # noqa: PLC0415 -- loads duckdb
    from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow

    with tempfile.TemporaryDirectory(prefix="contextgauge-query-") as temporary:
        yield SqlEngine(ArrowFolder(temporary, "parquet"), "parquet")


def _list_questions() -> None:
    from streams.edge.tables.questions import questions  # noqa: PLC0415 -- with the extra

    table = plain_table("Name", "Question", wrap=("Question",))
    for each in questions():
        table.add_row(each.name, each.title)
    out.print(table)


def _list_views(engine: "SqlEngine") -> None:
    table = plain_table("View", "Column", "Type")
    for view, columns in engine.views().items():
        for number, (column, data_type) in enumerate(columns):
            table.add_row("" if number else view, column, data_type)
    out.print(table)


def _print(answer: "SqlAnswer", answer_format: AnswerFormat) -> None:
    if answer_format is AnswerFormat.TABLE:
        _print_table(answer)
    elif answer_format is AnswerFormat.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        for rows in answer.rows():
            writer.writerows([_plain(each) for each in row] for row in rows)
    else:
        for rows in answer.rows():
            write_lines(
                [
                    codec.dumps(dict(zip(answer.columns, map(_plain, row), strict=True)))
                    for row in rows
                ]
            )


def _print_table(answer: "SqlAnswer") -> None:
    rows = [row for part in answer.rows() for row in part]
    numbers = [
        name
        for place, name in enumerate(answer.columns)
        if any(isinstance(row[place], int | float | Decimal) for row in rows)
    ]
    table = plain_table(*answer.columns, right=numbers, wrap=answer.columns)
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*(cell(_text(value)) for value in row))
    out.print(table)
    if len(rows) > _SHOWN_ROWS:
        say(f"{len(rows) - _SHOWN_ROWS} more rows: add LIMIT, or --format csv for all", "dim")


def _text(value: Any) -> str | None:
    plain = _plain(value)
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, float) and plain.is_integer():
        return f"{plain:,.0f}"
    if isinstance(plain, int | float):
        return f"{plain:,}"
    return None if plain is None else str(plain)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; times are RFC 3339."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value)
