"""Plots as SVG, written by hand: a plot of five bars is not worth a dependency."""

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape

from bench.measure import Measured

_WIDTH, _LABEL, _ROW, _BAR, _MARGIN = 860, 270, 46, 22, 34
_TOP, _LEFT, _BOTTOM, _HEIGHT = 40, 70, 44, 320
_TICKS = 5
_COLOURS = ("#1f6f8b", "#9aa5b1")
"""Ours, and the others."""


def throughput(runs: Mapping[str, Sequence[Measured]]) -> str:
    """Draw the median rate of each system as a bar, and each run as a dot."""
    shown = {title: done for title, done in runs.items() if done}
    highest = max(run.messages_per_s for done in shown.values() for run in done)
    height = 2 * _MARGIN + _ROW * len(shown)
    scale = (_WIDTH - _LABEL - 110) / highest
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        (
            f'<text x="{_LABEL}" y="20" font-weight="bold">messages per second: '
            "median, and each run</text>"
        ),
    ]
    for place, (title, done) in enumerate(shown.items()):
        top = _MARGIN + place * _ROW
        middle = top + _BAR / 2
        rate = statistics.median(run.messages_per_s for run in done)
        end = _LABEL + rate * scale
        parts += [
            (
                f'<text x="{_LABEL - 10}" y="{middle + 4:.0f}" text-anchor="end">'
                f"{escape(title)}</text>"
            ),
            (
                f'<rect x="{_LABEL}" y="{top}" width="{rate * scale:.1f}" height="{_BAR}" '
                f'fill="{_COLOURS[min(place, 1)]}"/>'
            ),
            *(
                f'<circle cx="{_LABEL + run.messages_per_s * scale:.1f}" cy="{top + _BAR + 7}" '
                'r="2.5" fill="#333"/>'
                for run in done
            ),
            f'<text x="{end + 8:.0f}" y="{middle + 4:.0f}">{rate:,.0f}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, is_log: bool = False
) -> str:
    """Draw series of points as lines, from zero up; `is_log` is of what is to the right."""
    points = [point for some in series.values() for point in some]
    ahead = math.log10 if is_log else float
    first, last = ahead(min(x for x, _ in points)), ahead(max(x for x, _ in points))
    highest = _round_up(max(y for _, y in points))
    wide, high = _WIDTH - _LEFT - 40, _HEIGHT - _TOP - _BOTTOM

    def across(x: float) -> float:
        return _LEFT + (ahead(x) - first) / ((last - first) or 1) * wide

    def up(y: float) -> float:
        return _TOP + high * (1 - y / highest)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    for step in range(_TICKS + 1):
        y = highest * step / _TICKS
        parts += [
            (
                f'<line x1="{_LEFT}" y1="{up(y):.1f}" x2="{_LEFT + wide}" y2="{up(y):.1f}" '
                'stroke="#ddd"/>'
            ),
            f'<text x="{_LEFT - 8}" y="{up(y) + 4:.1f}" text-anchor="end">{y:,.0f}</text>',
        ]
    ticks = sorted({x for x, _ in points}) if is_log else _even(points)
    parts += [
        (
            f'<text x="{across(x):.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">'
            f"{x:,.0f}</text>"
        )
        for x in ticks
    ]
    for place, (name, some) in enumerate(series.items()):
        colour = _COLOURS[min(place, 1)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in some)
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            (
                f'<rect x="{_LEFT + place * 240}" y="{_HEIGHT - 16}" width="14" height="4" '
                f'fill="{colour}"/>'
            ),
            f'<text x="{_LEFT + 20 + place * 240}" y="{_HEIGHT - 10}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _round_up(figure: float) -> float:
    """Return the next figure that is divided well."""
    power: float = 10.0 ** math.floor(math.log10(figure))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= figure)


def _even(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return where to write figures under a line that goes evenly."""
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    return [first + (last - first) * step / _TICKS for step in range(_TICKS + 1)]
