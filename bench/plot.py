"""Plots as SVG, written by hand: a plot of five bars is not worth a dependency."""

import statistics
from collections.abc import Mapping, Sequence
from html import escape

from bench.measure import Measured

_WIDTH, _LABEL, _ROW, _BAR, _MARGIN = 860, 270, 46, 22, 34
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
