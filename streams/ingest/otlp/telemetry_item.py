"""A log record or a span, and its attributes read as what they should be."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from contextgauge.normalise.fields import MAX_LONG_NAME


class TelemetryItem(NamedTuple):
    """A log record, by all that may name its event, or a span, which has no such names.

    `attributes` are its own and its resource's. `digest` returns what differs for different items:
    an item that is exported again has the same. `time_ms` is its end, milliseconds since 1970.
    """

    names: tuple[str, ...]
    attributes: Mapping[str, Any]
    time_ms: int | None
    digest: Callable[[], str]


def word(attributes: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these attributes that is a text, not empty, and no longer than a name.

    Attributes of a resource are in each of its messages: a long one would be there ten thousand
    times.
    """
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and 0 < len(value) <= MAX_LONG_NAME:
            return value
    return None


def number(attributes: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of these attributes that is a count: runtimes write some as texts."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST:
            return int(value)
        if isinstance(value, bool):
            continue
        if isinstance(value, int) and value >= 0:
            return value
        if isinstance(value, float) and math.isfinite(value) and value >= 0 and value.is_integer():
            return int(value)
    return None


_MOST = 15
"""Digits of a count: more are no tokens."""
