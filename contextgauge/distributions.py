"""Distributions of token counts and of durations: a part of the views (`views.py`)."""

from bisect import bisect_left
from dataclasses import field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from dataclasses import dataclass
else:
    from contextgauge.frozen import dataclass

_LARGEST = 1 << 55
"""Above the largest size: the sum of three counts, each less than 2^53."""


def _edges() -> tuple[int, ...]:
    """Return the upper edges of buckets whose values differ by at most 1 : 51/49.

    With 2 % relative error the ratio is (1 + 0.02) / (1 - 0.02) = 51/49. A recurrence of integers
    gives the same edges on every machine, which the logarithm of floating point would not:
    docs/adr/0039-percentiles-from-buckets-of-two-percent.md.
    """
    edges = [0]
    while edges[-1] < _LARGEST:
        edges.append(max(edges[-1] + 1, edges[-1] * 51 // 49))
    return tuple(edges)


BUCKET_EDGES: tuple[int, ...] = _edges()
"""Upper edges, inclusive, of the buckets of token counts and of durations in ms.

Up to 49 each value has a bucket of its own.
"""


def mean(total: int, count: int) -> float:
    """Return the mean of `count` values, rounded to one digit, halves up: 23 of 8 are 2.9."""
    return (20 * total + count) // (2 * count) / 10


FEW_VALUES = 20
"""So many values have exact medians. They take no more bytes than their buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Whole numbers counted. `buckets` has counts by upper edge (as text), empty ones left out.

    `values` are the numbers themselves in order, as long as they are few (`FEW_VALUES`).
    """

    count: int = 0
    sum: int = 0
    min: int | None = None
    max: int | None = None
    buckets: dict[str, int] = field(default_factory=dict)
    values: tuple[int, ...] | None = None


def few_values(parts: "Iterable[Distribution]") -> tuple[int, ...] | None:
    """Return all values of distributions in order; None: they are not few."""
    values: list[int] = []
    for part in parts:
        if part.count:
            if part.values is None or len(values) + part.count > FEW_VALUES:
                return None
            values.extend(part.values)
    return tuple(sorted(values)) if values else None


def bucket(value: int) -> str:
    """Return the name of the bucket that a value is counted in: its upper edge.

    A value beyond the last one, which contextgauge writes in no record, is counted there.
    """
    return str(BUCKET_EDGES[min(bisect_left(BUCKET_EDGES, value), len(BUCKET_EDGES) - 1)])
