"""Files of settings in TOML, with a line number for every fault."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from contextgauge.errors import ConfigError
from streams.core.sections import Fault, Table
from streams.core.sections import Path as Place

_Plan = TypeVar("_Plan")

_DIGEST: Final = 12
"""Hexadecimal digits: enough to distinguish files; nothing else rests on it."""

_MOST_BYTES: Final = 1024 * 1024
"""No such file is longer; a wrong path may name something that never ends."""


def read_toml(
    path: Path, what: str, check: Callable[[Table], tuple[_Plan | None, list[Fault]]]
) -> _Plan:
    """Return what `check` makes of a file of `what`.

    Raises ConfigError, with a line for each fault.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read ({error.strerror}): name the file of {what}"
        ) from None
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"{path} is too long for a file of {what}: name the right file")
    try:
        text = raw.decode()
        content = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: name the file of {what}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    plan, faults = check(content)
    if plan is None:
        raise ConfigError("\n".join(_located(path, text, fault) for fault in faults))
    return plan


def digest_of(path: Path, what: str) -> str:
    """Return what two files have in common exactly where they mean the same; no secret.

    Raises ConfigError as `read_toml` does.
    """

    def canonical(content: Table) -> tuple[str, list[Fault]]:
        return json.dumps(content, sort_keys=True, default=str), []

    return hashlib.sha256(read_toml(path, what, canonical).encode()).hexdigest()[:_DIGEST]


def noted(faults: list[str], make: Callable[[], _Plan]) -> _Plan | None:
    """Return what is made; None where that raises ConfigError, whose text is added to faults."""
    try:
        return make()
    except ConfigError as error:
        faults.append(str(error))
        return None


def _located(path: Path, text: str, fault: Fault) -> str:
    line = line_of(text, fault.path)
    place = path.name if line is None else f"{path.name}:{line}"
    return f"{place}: {fault.path[-1]} {fault.problem}"


def line_of(text: str, place: Place) -> int | None:
    """Return the line of a key, counted from 1; of its table where the key itself is missing."""
    lines = text.splitlines()
    begin, end = 0, len(lines)
    if len(place) > 1:
        section, number = str(place[0]), place[1]
        marks = r"\[\[", r"\]\]"
        if isinstance(number, str):  # of a table of its own, not of a list of them
            number, marks = 0, (r"\[", r"\]")
        header = re.compile(rf"\s*{marks[0]}\s*{re.escape(section)}\s*{marks[1]}")
        headers = [index for index, line in enumerate(lines) if header.match(line)]
        if number >= len(headers):
            # Written as a list of inline tables: the list's own line is as near as it gets.
            return line_of(text, (section,))
        begin = headers[number]
    for index in range(begin + (len(place) > 1), end):
        if re.match(r"\s*\[", lines[index]):
            break
        if re.match(rf"""\s*["']?{re.escape(str(place[-1]))}["']?\s*=""", lines[index]):
            return index + 1
    return begin + 1 if len(place) > 1 else None
