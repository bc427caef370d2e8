"""The figures of the report: which question each shows, how, and what it stands on.

They are a table in `figures.toml`; no figure has code of its own.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from streams.cli.pages.values import Unit


class Basis(NamedTuple):
    """What a figure stands on: the rows of a view that have what it needs, of all rows.

    `row` is what one of them is. `having` says in words what `where` asks for, of one or of many.
    `is_of_content`: they are of messages' content, whose records not every deriver makes.
    """

    view: str
    row: str
    having: str = ""
    where: str = "true"
    of: str = "true"
    is_of_content: bool = False


class Plot(NamedTuple):
    """How an answer is drawn.

    `bars` and `lines` have a label and values from each row, `rows` are a table whose rows have a
    bar, and a `table` has none. `label` are the columns that name a row, `values` what is drawn.
    """

    kind: Literal["bars", "lines", "rows", "table"]
    label: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    unit: Unit = Unit.NUMBER
    columns: tuple[str, ...] = ()
    """Of `rows` and `table`: the columns that are shown; by default all of a table."""
    is_ordered: bool = False
    """Of `rows`: they have an order of their own, as times have. Bars rank the others."""


class ReportFigure(NamedTuple):
    """One figure: the answer to a question.

    `doubt` is a column that is true for rows whose `doubted` columns are estimates. `none` is what
    a table without rows means. `at_least` and `at_most` are columns that may lack a part, each
    with the column that is false where it does.
    """

    question: str
    title: str
    basis: Basis
    plot: Plot
    note: str = ""
    doubt: str = ""
    doubted: tuple[str, ...] = ()
    none: str = ""
    at_least: Mapping[str, str] = {}
    at_most: Mapping[str, str] = {}


class ReportSection(NamedTuple):
    """Figures on one subject."""

    title: str
    about: str
    figures: tuple[ReportFigure, ...]


class Key(NamedTuple):
    """A key figure: one column of the only row of a question. `note` is filled with the others.

    `doubt` is a column that is true where it is an estimate.
    """

    question: str
    column: str
    title: str
    note: str
    figure: str
    """The question of the figure that shows more."""
    unit: Unit = Unit.NUMBER
    doubt: str = ""


def _read() -> tuple[tuple[str, ...], tuple[Key, ...], tuple[ReportSection, ...]]:
    """Return what the file has. What is wrong in it raises at import."""
    table = tomllib.loads((files(__package__) / "figures.toml").read_text("utf-8"))
    bases = {name: Basis(**row) for name, row in table["bases"].items()}
    keys = tuple(Key(**row | {"unit": Unit(row.get("unit", ""))}) for row in table["keys"])
    sections = tuple(
        ReportSection(
            row["title"], row["about"], tuple(_figure(each, bases) for each in row["figures"])
        )
        for row in table["sections"]
    )
    return tuple(table["kept"]), keys, sections


def _figure(row: Mapping[str, Any], bases: Mapping[str, Basis]) -> ReportFigure:
    rest = dict(row)
    plot = Plot(
        rest.pop("plot"),
        tuple(rest.pop("label", ())),
        tuple(rest.pop("values", ())),
        Unit(rest.pop("unit", "")),
        tuple(rest.pop("columns", ())),
        rest.pop("is_ordered", False),
    )
    doubted = tuple(rest.pop("doubted", ()))
    return ReportFigure(basis=bases[rest.pop("basis")], plot=plot, doubted=doubted, **rest)


KEPT, KEYS, SECTIONS = _read()


def figures() -> list[ReportFigure]:
    """Return all figures of a report, in its order."""
    return [figure for section in SECTIONS for figure in section.figures]
