"""The few settings that a status line needs, read without what reads all of them.

The settings proper (`streams/settings`) are checked by a library that takes longer to import than
a status line may take to be drawn. What is wrong here is told by every other command, so a value
that cannot be read is passed over, with a reason.
"""

from collections.abc import Mapping
from os import path
from typing import NamedTuple

from streams.edge.files.objects import object_of

_PREFIX = "CONTEXTGAUGE_"

_DIGITS = 15
"""Of the largest window that there may be; Python reads no number of any length."""

_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})
"""What pydantic reads as false."""

_PROJECT_FOLDER = path.dirname(path.dirname(path.dirname(path.dirname(path.abspath(__file__)))))
STACK_FILE = path.join(_PROJECT_FOLDER, ".stack", "stack.json")
"""Addresses of this project's local stack, written by `streams/edge/local_stack/stack.py`."""


class GlanceSettings(NamedTuple):
    """Settings by the names that they have in `streams/settings`; files are paths."""

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


def read_settings(environment: Mapping[str, str]) -> tuple[GlanceSettings, list[str]]:
    """Return the settings, and for each that cannot be read why; its default holds then."""
    wrong: list[str] = []
    texts = {
        name: environment[_PREFIX + name.upper()]
        for name in GlanceSettings._fields
        if environment.get(_PREFIX + name.upper())
    }
    windows = texts.pop("windows", None)
    default_window = texts.pop("default_window", None)
    check = texts.pop("redis_check_hostname", "true").strip().lower() not in _FALSE
    found = GlanceSettings(**texts, redis_check_hostname=check)  # type: ignore[arg-type]  # texts
    if default_window is not None:
        if len(default_window) <= _DIGITS and default_window.isdecimal() and int(default_window):
            found = found._replace(default_window=int(default_window))
        else:
            wrong.append(f"{_PREFIX}DEFAULT_WINDOW is no number above 0")
    if windows is not None:
        told = _windows(windows)
        if told is None:
            wrong.append(f"{_PREFIX}WINDOWS is no JSON object from models to tokens above 0")
        else:
            found = found._replace(windows=told)
    if found.redis_url is None:
        found = found._replace(redis_url=_of_stack())
    return found, wrong


def _windows(text: str) -> dict[str, int] | None:
    told = object_of(text)
    if told is None:
        return None
    fitting = {name: size for name, size in told.items() if type(size) is int and size > 0 and name}
    return fitting if len(fitting) == len(told) else None


def _of_stack() -> str | None:
    """Return the address of the Redis that `contextgauge stack up` started, if it was."""
    try:
        with open(STACK_FILE, "rb") as file:
            found = object_of(file.read()) or {}
        address = found["redis"]["address"]
    except (OSError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None
