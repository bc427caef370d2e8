"""`contextgauge query`: SQL over transcripts of this machine, or over an export."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from contextgauge.errors import ConfigError
from streams.cli.asked import opened
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.query_answers import AnswerFormat, ListedRows, print_answer
from streams.cli.screen.lines import is_terminal, quiet_pipe, write_lines
from streams.cli.screen.options import FromTopic, TablePaths
from streams.ports.tables import CommittedFiles

if TYPE_CHECKING:
    from streams.edge.tables.engine import SqlEngine

_NAME_ONE = "name a question or a SELECT; --list shows the questions"


def query(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL|NAME", help="A SELECT, or the name of a question.", show_default=False
        ),
    ] = None,
    paths: TablePaths = None,
    *,
    topic: FromTopic = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the named questions.")] = False,
    show_views: Annotated[
        bool, typer.Option("--views", help="List the views and their columns.")
    ] = False,
    show_sql: Annotated[
        bool,
        typer.Option(
            "--sql", help="Print the SQL of a named question, or with --views of all views."
        ),
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
        shape = answer_format or (AnswerFormat.TABLE if is_terminal() else AnswerFormat.CSV)
        if show_sql:
            write_lines(_shown_sql(question, of_views=show_views).encode().splitlines())
        elif show_list:
            print_answer(_questions(), shape)
        elif show_views:
            print_answer(_views(), shape)
        elif question is None:
            raise ConfigError(_NAME_ONE)
        else:
            with opened(paths or (), topic=topic) as asked:
                print_answer(asked.engine.answer(_sql_of(question)), shape)
            if not asked.is_whole:
                raise typer.Exit(Exit.STOPPED)


def _shown_sql(question: str | None, *, of_views: bool) -> str:
    from streams.edge.tables.questions import views_sql  # noqa: PLC0415 -- with the extra

    if of_views:
        return views_sql()
    if question is None:
        raise ConfigError(_NAME_ONE)
    return _sql_of(question)


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
        yield SqlEngine(ArrowFolder(temporary, "parquet"), CommittedFiles("parquet", {}))


def _questions() -> ListedRows:
    from streams.edge.tables.questions import questions  # noqa: PLC0415 -- with the extra

    return ListedRows(("name", "question"), [(each.name, each.title) for each in questions()])


def _views() -> ListedRows:
    with _engine_of_nothing() as engine:
        views = engine.views()
    rows = [(view, *column) for view, columns in views.items() for column in columns]
    return ListedRows(("view", "column", "type"), rows)
