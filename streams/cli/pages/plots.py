"""Plots as SVG. Places are percentages: a plot fits any width, and its texts keep their size.

Colours are classes of the style sheet, so that a plot follows the reader's theme. A plot has no
figures of its own: the table below it is its text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import Final, NamedTuple

from streams.cli.pages.markup import Html, tag
from streams.cli.pages.values import Unit, tick

_INTERVALS: Final = 4
"""Lines across a plot, at most: more are no help to read a value."""

_DURATIONS_MS: Final = tuple(
    number * unit
    for numbers, unit in (
        ((1, 2, 5, 10, 20, 50, 100, 200, 500), 1),
        ((1, 2, 5, 10, 15, 30), 1_000),
        ((1, 2, 5, 10, 15, 30), 60_000),
        ((1, 2, 4, 8, 12, 24), 3_600_000),
    )
    for number in numbers
)

_MOST_LABELS: Final = 8
"""Along a plot of 400 pixels; half of them where it is narrower."""

_WIDEST: Final = 11.0
"""Percent of the plot: a bar of few is no block."""


class Series(NamedTuple):
    """Values of one colour, one for each label; null where there is none.

    `texts` are the values in words, and `partial` tells which of them lack a part.
    """

    name: str
    values: Sequence[float | None]
    texts: Sequence[str]
    partial: Sequence[bool]
    colour: str


def bars(labels: Sequence[str], series: Sequence[Series], unit: Unit, about: str) -> Html:
    """Return stacked bars. Raises ValueError without labels."""
    most = max(sum(values) for values in _columns(series))
    top, lines = axis(most, unit)
    slot = 100 / len(labels)
    width = min(slot * 0.74, _WIDEST)
    marks = []
    for number, label in enumerate(labels):
        middle, bottom = slot * (number + 0.5), 100.0
        for each in series:
            height = 100 * (each.values[number] or 0) / top
            if height > 0:
                bottom -= height
                kind = f"bar {each.colour}{' partial' if each.partial[number] else ''}"
                marks.append(_rect(middle - width / 2, bottom, width, height, kind))
        marks.append(_tip(slot * number, slot, _told(label, series, number)))
    ticks = _labels(labels, lambda number: slot * (number + 0.5))
    return plot(about, *lines, *marks, *ticks)


def line(labels: Sequence[str], series: Sequence[Series], unit: Unit, about: str) -> Html:
    """Return lines over labels that are equally far apart. Raises ValueError without labels."""
    most = max(value or 0 for each in series for value in each.values)
    top, lines = axis(most, unit)
    step = 100 / max(len(labels) - 1, 1)
    begin = 0 if len(labels) > 1 else 50
    marks: list[Html] = []
    for each in series:
        for part in _unbroken(each.values):
            places = [(begin + number * step, 100 - 100 * value / top) for number, value in part]
            points = " ".join(f"{x:.6g},{y:.6g}" for x, y in places)
            marks.append(stretched(tag("polyline", points=points, class_=f"line {each.colour}")))
            if len(part) == 1 or len(labels) <= 2 * _MOST_LABELS + 5:
                marks += [
                    tag("circle", cx=f"{x:.6g}%", cy=f"{y:.6g}%", r=3, class_=f"dot {each.colour}")
                    for x, y in places
                ]
    for number, label in enumerate(labels):
        left = max(step * (number - 0.5), 0)
        marks.append(_tip(left, min(step, 100 - left), _told(label, series, number)))
    return plot(about, *lines, *marks, *_labels(labels, lambda number: begin + step * number))


def meter(share: float, colour: str) -> Html:
    """Return a bar of a table's row, which takes a share (0 to 1) of its cell."""
    width = f"{max(0.0, min(share, 1.0)) * 100:.4g}%"
    return tag(
        "svg",
        tag("rect", width=width, height="100%", rx=2, class_=f"bar {colour}"),
        class_="meter",
        aria_hidden="true",
    )


def axis_end(most: float, *, in_ms: bool = False) -> tuple[float, float]:
    """Return where an axis from 0 ends, and how far its lines are apart; both are round."""
    wanted = max(most, 1) / _INTERVALS
    steps = _DURATIONS_MS if in_ms and wanted <= _DURATIONS_MS[-1] else _decimal_steps()
    step = next(each for each in steps if each >= wanted)
    return ceil(max(most, 1) / step) * step, step


def _decimal_steps() -> Iterator[float]:
    unit = 1
    while True:
        yield from (unit, 2 * unit, *((2.5 * unit,) if unit > 1 else ()), 5 * unit)
        unit *= 10


def axis(most: float, unit: Unit) -> tuple[float, list[Html]]:
    """Return the value at the top of a plot, and the lines across it with their values."""
    top, step = axis_end(most, in_ms=unit is Unit.DURATION)
    marks = []
    for number in range(round(top / step) + 1):
        y = f"{100 - 100 * number * step / top:.6g}%"
        marks.append(tag("line", x1=0, x2="100%", y1=y, y2=y, class_="base" if not number else ""))
        marks.append(
            tag(
                "text",
                tick(number * step, unit),
                x=-8,
                y=y,
                dy=4,
                class_="value",
            )
        )
    return top, marks


def _labels(labels: Sequence[str], place: Callable[[int], float]) -> list[Html]:
    """Return the words below a plot, as many as there is room for."""
    each = ceil(len(labels) / _MOST_LABELS)
    are_many = len(labels) > _MOST_LABELS / 2
    return [
        tag(
            "text",
            label,
            x=f"{place(number):.6g}%",
            y="100%",
            dy=18,
            class_="label wide" if are_many and number // each % 2 else "label",
        )
        for number, label in enumerate(labels)
        if number % each == 0
    ]


def _columns(series: Sequence[Series]) -> Iterator[tuple[float, ...]]:
    for values in zip(*(each.values for each in series), strict=True):
        yield tuple(value or 0 for value in values)


def _unbroken(values: Sequence[float | None]) -> Iterator[list[tuple[int, float]]]:
    """Yield the stretches without an unknown value: a line does not pass over what is unknown."""
    part: list[tuple[int, float]] = []
    for number, value in enumerate(values):
        if value is not None:
            part.append((number, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _told(label: str, series: Sequence[Series], number: int) -> str:
    return "\n".join([label, *(f"{each.name}: {each.texts[number]}" for each in series)])


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Html:
    places = {"x": x, "y": y, "width": width, "height": height}
    return tag(
        "rect", class_=kind, rx=1.5, **{name: f"{each:.6g}%" for name, each in places.items()}
    )


def _tip(x: float, width: float, words: str) -> Html:
    return tag(
        "rect",
        tag("title", words),
        x=f"{x:.6g}%",
        width=f"{width:.6g}%",
        height="100%",
        class_="hit",
    )


def stretched(shape: Html | Iterable[Html]) -> Html:
    """Return shapes whose points are percentages, which `points` cannot say."""
    return tag(
        "svg", shape, viewBox="0 0 100 100", preserveAspectRatio="none", width="100%", height="100%"
    )


def plot(about: str, *marks: Html) -> Html:
    """Return marks as one picture. `about` says what it shows."""
    return tag("div", tag("svg", marks, role="img", aria_label=about), class_="plot")
