"""The settings of the status line, read without pydantic.

`streams/settings` validates with pydantic, which takes longer to import than a status line may
take in all. Every other command reports a wrong setting as an error; here an invalid value is
skipped with a warning.
"""

from collections.abc import Mapping
from os import path
from typing import NamedTuple

from contextgauge.user_folders import stack_folder
from streams.core.until_compaction import Threshold, parse_threshold
from streams.edge.files.objects import object_of

_PREFIX = "CONTEXTGAUGE_"

_DIGITS = 15
"""Of the largest possible window; int() rejects numbers of arbitrary length."""

_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})
"""What pydantic reads as false."""


class StatusLineSettings(NamedTuple):
    """Settings, named as in `streams/settings`; files are paths."""

    redis_url: str | None = None
    redis_username: str | None = None
    redis_password: str | None = None
    redis_password_file: str | None = None
    redis_ca_file: str | None = None
    redis_certificate_file: str | None = None
    redis_key_file: str | None = None
    redis_key_password: str | None = None
    redis_key_password_file: str | None = None
    redis_check_hostname: bool = True
    key_prefix: str = "cg"
    default_window: int = 200_000
    windows: Mapping[str, int] = {}
    compaction_thresholds: Mapping[str, Threshold] = {}


def read_settings(environment: Mapping[str, str]) -> tuple[StatusLineSettings, list[str]]:
    """Return the settings and a warning for each invalid one, which keeps its default."""
    problems: list[str] = []
    texts = {
        name: environment[_PREFIX + name.upper()]
        for name in StatusLineSettings._fields
        if environment.get(_PREFIX + name.upper())
    }
    windows = texts.pop("windows", None)
    default_window = texts.pop("default_window", None)
    thresholds = texts.pop("compaction_thresholds", None)
    check = texts.pop("redis_check_hostname", "true").strip().lower() not in _FALSE
    settings = StatusLineSettings(**texts, redis_check_hostname=check)  # type: ignore[arg-type]  # texts
    if default_window is not None:
        if len(default_window) <= _DIGITS and default_window.isdecimal() and int(default_window):
            settings = settings._replace(default_window=int(default_window))
        else:
            problems.append(f"{_PREFIX}DEFAULT_WINDOW must be a whole number above 0")
    if windows is not None:
        sizes = _windows(windows)
        if sizes is None:
            problems.append(f"{_PREFIX}WINDOWS must be a JSON object from models to tokens above 0")
        else:
            settings = settings._replace(windows=sizes)
    if thresholds is not None:
        points = _thresholds(thresholds)
        if points is None:
            problems.append(
                f"{_PREFIX}COMPACTION_THRESHOLDS must be a JSON object from models to tokens above "
                "0 or percentages"
            )
        else:
            settings = settings._replace(compaction_thresholds=points)
    if settings.redis_url is None:
        settings = settings._replace(redis_url=_of_stack())
    return settings, problems


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


def _of_stack() -> str | None:
    """Return the address of the Redis that `contextgauge stack up` started, if it was."""
    try:
        with open(path.join(stack_folder(), "stack.json"), "rb") as file:
            stack = object_of(file.read()) or {}
        address = stack["redis"]["address"]
    except (OSError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None
