"""The report as a document: key figures first, then each section's figures with their queries."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Any, Final, NamedTuple

from contextgauge import __version__
from streams.cli.pages.document import BRAND, document
from streams.cli.pages.markup import Html, joined, tag
from streams.cli.pages.plots import Series, bars, line, meter
from streams.cli.pages.values import ESTIMATED, Unit, heading, shown, unit_of
from streams.cli.report.answers import Answers, FigureAnswer, Stands
from streams.cli.report.figures import KEYS, SECTIONS, Key, ReportFigure, ReportSection
from streams.cli.screen.figures import GUESS
from streams.cli.screen.money import at_least, at_most

_SHOWN_ROWS: Final = 8
"""Of a table in view: those that matter most come first, all are among its figures."""

_NARROW_COLUMNS: Final = 4
"""Of a table that fits half of the page."""

_WHOLE: Final = 100
"""Percent: what a bar of shares ends at, unless one is larger."""

_MOST_DAYS: Final = 300
"""With more than these, the label of a day is its month and year."""

_COLOURS: Final = ("accent", "second", "third")
_NAMED_COLOURS: Final = {"other": "faint", "assumed_window": "faint"}
"""What is not known, or assumed, has no colour of its own."""

_LONG: Final = {32: "long", 12: "name"}
"""How texts of more characters are broken, not to widen their table: a name on phones only."""

_UNKNOWN: Final = (
    "Unknown: no record is of the content of messages. A deriver with "
    "CONTEXTGAUGE_CONTENT_RECORDS=true makes them."
)

_STATISTICS: Final = ("average", "median", "least", "most")
"""Columns without a unit in their name: they have the plot's."""


class ReportOrigin(NamedTuple):
    """What a report is of, and when it was made."""

    source: str
    made_ms: int
    """Unix time."""


def page(answers: Answers, origin: ReportOrigin) -> bytes:
    """Return the report of an export or of transcripts as one file."""
    (totals,) = answers.of("totals").rows
    made = datetime.fromtimestamp(origin.made_ms / 1_000, UTC)
    head = tag(
        "header",
        tag("p", BRAND, tag("span", "contextgauge"), class_="mark"),
        tag("h1", "Context report"),
        tag("p", tag("span", origin.source, class_="source"), _period(totals), class_="faint"),
    )
    links = [tag("a", each.title, href=f"#{_anchor(each.title)}") for each in SECTIONS]
    keys = tag(
        "section",
        tag("h2", "Key figures", class_="sr"),
        tag("ul", [_key(each, answers) for each in KEYS], class_="keys"),
        tag(
            "div",
            [
                _query(answers.of(each), f"Query: {each}")
                for each in dict.fromkeys(key.question for key in KEYS)
            ],
            class_="foot",
        ),
    )
    end = tag(
        "footer",
        f"Made by contextgauge {__version__} on {shown(made)} UTC. All times are UTC. Unknown "
        f"values are shown as such and are in no average; {GUESS} marks estimates. A query runs "
        "with ",
        tag("code", "contextgauge query"),
        ".",
    )
    body = joined(
        tag("a", "Skip to content", href="#main", class_="skip"),
        head,
        tag("nav", links, aria_label="Sections"),
        tag("main", keys, [_section(each, answers) for each in SECTIONS], id="main"),
        end,
    )
    styles = (files(__package__) / "report.css").read_text("utf-8")
    return document(f"Context report: {origin.source}", body, styles=styles)


def _period(totals: dict[str, Any]) -> Html:
    first, last = totals["first"], totals["last"]
    words = "" if first is None else f" · {shown(first)} to {shown(last)}"
    return joined(words)


def _key(key: Key, answers: Answers) -> Html:
    (row,) = answers.of(key.question).rows
    values = {column: shown(value, unit_of(column)) for column, value in row.items()}
    value = row[key.column]
    is_estimate = value is not None and bool(key.doubt) and row[key.doubt]
    text = (GUESS if is_estimate else "") + shown(value, key.unit)
    inner = (
        tag("span", key.title, class_="name"),
        tag("strong", _data(value, text), class_="faint" if value is None else ""),
        tag("span", key.note.format_map(values), class_="faint"),
    )
    return tag("li", tag("a", *inner, href=f"#{key.figure}"), data_key=key.column)


def _section(section: ReportSection, answers: Answers) -> Html:
    """Return a section; what has no data comes last, not to leave gaps between plots."""
    full, empty = list[Html](), list[Html]()
    for figure in section.figures:
        answer, stands = answers.of(figure.question), answers.stands_on(figure.basis)
        group = full if stands.rows and answer.rows else empty
        group.append(_figure(figure, answer, stands))
    return tag(
        "section",
        tag("h2", section.title, id=_anchor(section.title)),
        tag("p", section.about, class_="faint about"),
        [tag("div", cards, class_="cards") for cards in (full, empty) if cards],
    )


def _figure(figure: ReportFigure, answer: FigureAnswer, stands: Stands) -> Html:
    body: list[Html] = []
    if not stands.rows:
        words = _UNKNOWN if stands.is_unknown else f"No {_basis(figure, stands)}."
        body.append(tag("p", words, class_="none"))
    elif not answer.rows:
        body.append(tag("p", f"{figure.none or 'No data'}.", class_="none good"))
    else:
        body.append(tag("p", figure.note, class_="faint small") if figure.note else Html(""))
        body.append(_drawn(figure, answer))
    foot = [tag("p", f"{stands.rows:,} {_basis(figure, stands)}")] if stands.rows else []
    if stands.rows and answer.rows:
        foot.append(_all_figures(figure, answer))
    body.append(tag("div", foot, [_query(answer)], class_="foot"))
    is_wide = (
        figure.plot.kind == "table" and len(answer.columns) > _NARROW_COLUMNS and bool(answer.rows)
    )
    return tag(
        "article",
        tag("h3", figure.title),
        tag("p", answer.question.title, class_="question"),
        body,
        id=figure.question,
        class_="card wide" if is_wide else "card",
    )


def _basis(figure: ReportFigure, stands: Stands) -> str:
    """Return what a figure stands on in words, without its number."""
    basis = figure.basis
    words = f"{basis.row}{'' if stands.rows == 1 else 's'} {basis.having}".rstrip()
    return words if stands.rows == stands.of else f"{words}, of {stands.of:,}"


def _drawn(figure: ReportFigure, answer: FigureAnswer) -> Html:
    plot = figure.plot
    if plot.kind == "table":
        return _table(figure, answer, plot.columns or answer.columns)
    if plot.kind == "rows":
        return _table(figure, answer, (*plot.label, *(plot.columns or plot.values)))
    labelled = [row for row in answer.rows if row[plot.label[0]] is not None]
    labels, rows = _continued(labelled, plot.label[0])
    series = [
        Series(
            heading(name),
            [_float(row.get(name)) for row in rows],
            [_text(figure, row, name) for row in rows],
            [_is_partial(figure.at_least, row, name) for row in rows],
            _colour(number, name),
        )
        for number, name in enumerate(plot.values)
        if len(plot.values) == 1 or any(row.get(name) for row in rows)
    ]
    about = f"{figure.title}: {answer.question.title}"
    draw = bars if plot.kind == "bars" else line
    legend = [
        tag("li", tag("i", class_=each.colour), each.name) for each in series if len(series) > 1
    ]
    if any(partial := [each for one in series for each in one.partial]):
        words = f"At least: {sum(partial)} of {len(labelled)}"
        legend.append(tag("li", tag("i", class_=f"{series[0].colour} partial"), words))
    doubtful = sum(bool(row[figure.doubt]) for row in labelled) if figure.doubt else 0
    return joined(
        draw(labels, series, plot.unit, about),
        tag("ul", legend, class_="legend") if legend else Html(""),
        tag("p", f"{GUESS} estimates: {doubtful} of {len(labelled)}", class_="faint small")
        if doubtful
        else Html(""),
    )


def _continued(
    rows: Sequence[dict[str, Any]], column: str
) -> tuple[list[str], Sequence[dict[str, Any]]]:
    """Return labels and rows; days and numbers between the first and the last are all there."""
    values = [row[column] for row in rows]
    by_value = dict(zip(values, rows, strict=True))
    if isinstance(values[0], date):
        days = (values[-1] - values[0]).days + 1
        values = [values[0] + timedelta(each) for each in range(days)]
        is_long = days > _MOST_DAYS
        labels = [f"{each:%b %Y}" if is_long else f"{each.day} {each:%b}" for each in values]
    elif isinstance(values[0], int):
        values = list(range(values[0], values[-1] + 1))
        labels = [str(each).replace("-", "−") for each in values]  # noqa: RUF001 -- a minus
    else:
        labels = [str(each) for each in values]
    return labels, [by_value.get(each, {}) for each in values]


def _colour(number: int, name: str) -> str:
    return _NAMED_COLOURS.get(name, _COLOURS[number % len(_COLOURS)])


def _table(figure: ReportFigure, answer: FigureAnswer, columns: Sequence[str]) -> Html:
    """Return a table's first rows. The first value of `rows` has a bar."""
    plot = figure.plot
    drawn = plot.values[0] if plot.kind == "rows" else None
    most = max((row[drawn] or 0 for row in answer.rows), default=0) if drawn else 0
    top = _WHOLE if plot.unit is Unit.PERCENT and most <= _WHOLE else most
    ranked = answer.rows
    if drawn is not None and not plot.is_ordered:
        ranked = sorted(ranked, key=lambda row: row[drawn] or 0, reverse=True)
    rows = []
    for row in ranked[:_SHOWN_ROWS]:
        cells = [_cell(figure, answer, row, column, exact=False) for column in columns]
        if drawn is not None:
            share = float((row[drawn] or 0) / top) if top else 0.0
            cells.insert(len(plot.label), tag("td", meter(share, "accent"), class_="bar-cell"))
        rows.append(tag("tr", cells))
    head = [_head(column, answer) for column in columns if column != figure.doubt]
    if drawn is not None:
        head.insert(len(plot.label), tag("td", class_="bar-cell"))
    more = len(answer.rows) + answer.rows_left_out - _SHOWN_ROWS
    return joined(
        _scrolled(figure.title, head, rows),
        tag("p", f"and {more:,} more", class_="faint small") if more > 0 else Html(""),
    )


def _all_figures(figure: ReportFigure, answer: FigureAnswer) -> Html:
    rows = [
        tag("tr", [_cell(figure, answer, row, column, exact=True) for column in answer.columns])
        for row in answer.rows
    ]
    head = [_head(column, answer) for column in answer.columns if column != figure.doubt]
    more = (
        tag("p", f"and {answer.rows_left_out:,} more: ask the query", class_="faint small")
        if answer.rows_left_out
        else Html("")
    )
    return tag(
        "details",
        tag("summary", "Figures"),
        _scrolled(f"Figures: {figure.title}", head, rows),
        more,
        class_="data",
    )


def _query(answer: FigureAnswer, title: str = "Query") -> Html:
    command = tag("p", tag("code", f"contextgauge query {answer.question.name}"), class_="small")
    sql = tag("pre", tag("code", answer.question.sql), tabindex=0)
    return tag("details", tag("summary", title), command, sql, class_="query")


def _head(column: str, answer: FigureAnswer) -> Html:
    return tag("th", heading(column), scope="col", class_=_side(column, answer))


def _side(column: str, answer: FigureAnswer) -> str:
    """Return on which side a column is: numbers right, also where all of them are unknown."""
    values = [row[column] for row in answer.rows if row[column] is not None]
    is_measured = not values and unit_of(column) is not Unit.NUMBER
    return "number" if is_measured or any(map(_is_number, values)) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _float(value: float | Decimal | None) -> float | None:
    return None if value is None else float(value)


def _cell(
    figure: ReportFigure, answer: FigureAnswer, row: dict[str, Any], column: str, *, exact: bool
) -> Html:
    value = row[column]
    if column == figure.doubt:
        return Html("")
    text = _text(figure, row, column, exact=exact)
    kind = "id" if column == "session_id" else _side(column, answer)
    if not kind:
        kind = next((each for characters, each in _LONG.items() if len(text) > characters), "")
    if value is None:
        return tag("td", shown(None), class_=f"{kind} faint".lstrip())
    return tag("td", _data(value, text) if _is_number(value) else text, class_=kind or None)


def _text(figure: ReportFigure, row: dict[str, Any], column: str, *, exact: bool = False) -> str:
    """Return a value in words, with what marks an estimate or a lack."""
    value = row.get(column)
    unit = figure.plot.unit if column in _STATISTICS else unit_of(column)
    text = shown(value, unit, exact=exact)
    if value is None:
        return text
    is_doubtful = column in figure.doubted and row[figure.doubt]
    if is_doubtful or column.endswith(ESTIMATED):
        text = GUESS + text
    text = at_least(text, is_complete=not _is_partial(figure.at_least, row, column))
    return at_most(text, is_complete=not _is_partial(figure.at_most, row, column))


def _is_partial(bounds: Mapping[str, str], row: dict[str, Any], column: str) -> bool:
    """Return whether a known value lacks a part, by the column that says so."""
    return row.get(column) is not None and column in bounds and not row[bounds[column]]


def _data(value: object, text: str) -> Html:
    """Return a value with the number that programs read."""
    return joined(text) if value is None else tag("data", text, value=str(value))


def _scrolled(name: str, head: Iterable[Html], rows: Iterable[Html]) -> Html:
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows))
    return tag("div", table, class_="table-scroll", tabindex=0, role="region", aria_label=name)


def _anchor(title: str) -> str:
    """Return a section's id: figures have the names of their questions."""
    return f"about-{title.lower().replace(' ', '-')}"
