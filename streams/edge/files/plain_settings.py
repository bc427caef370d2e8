"""The settings of the status line, read without pydantic.

`streams/settings` validates with pydantic, which takes longer to import than a status line may
take in all. Every other command reports a wrong setting as an error; here an invalid value is
skipped with a warning.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from streams.core.until_compaction import Threshold, parse_threshold
from streams.edge.files.objects import object_of

_PREFIX = "CONTEXTGAUGE_"

_DIGITS = 15
"""Of the largest possible window; int() rejects numbers of arbitrary length."""


class StatusLineSettings(NamedTuple):
    """Settings, named as in `streams/settings`."""

    default_window: int = 200_000
    windows: Mapping[str, int] = {}
    compaction_thresholds: Mapping[str, Threshold] = {}


def read_settings(environment: Mapping[str, str]) -> tuple[StatusLineSettings, list[str]]:
    """Return the settings and a warning for each invalid one, which keeps its default."""
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, parse, form in (
        ("default_window", _window, "a whole number above 0"),
        ("windows", _windows, "a JSON object from models to tokens above 0"),
        (
            "compaction_thresholds",
            _thresholds,
            "a JSON object from models to tokens above 0 or percentages",
        ),
    ):
        variable = _PREFIX + name.upper()
        text = environment.get(variable)
        if text and (value := parse(text)) is not None:
            values[name] = value
        elif text:
            problems.append(f"{variable} must be {form}")
    return StatusLineSettings()._replace(**values), problems


def _window(text: str) -> int | None:
    is_number = len(text) <= _DIGITS and text.isdecimal()
    return (int(text) or None) if is_number else None


def _windows(text: str) -> dict[str, int] | None:
    sizes = object_of(text)
    if sizes is None:
        return None
    valid = all(type(size) is int and size > 0 and name for name, size in sizes.items())
    return sizes if valid else None


def _thresholds(text: str) -> dict[str, Threshold] | None:
    values = object_of(text)
    if values is None:
        return None
    points = {name: parse_threshold(value) for name, value in values.items()}
    valid = {name: point for name, point in points.items() if point is not None and name}
    return valid if len(valid) == len(points) else None
