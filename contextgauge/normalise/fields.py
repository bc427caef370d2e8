"""Reading known fields tolerantly (R3): a wrong type is the same as absence.

Where two names are given, they are two spellings of one field; the first that is there with the
right type counts. `spellings.py` has those of the fields next to a message.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from contextgauge.normalise.signals import Body
from contextgauge.records import Json
from contextgauge.units import DAY_MS

MAX_COUNT: Final = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly; a larger count is no plausible count."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FIRST_YEAR, _LAST_YEAR = 2020, 2100
_FIRST_MS: Final = (datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
_END_MS: Final = (datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND


MAX_NAME: Final = 1_024
"""Longest name of a model, an agent, a version and the like, characters. Real ones have some 60;
a bound keeps what is stored of a session small, whatever is sent."""

MAX_LONG_NAME: Final = 16_384
"""Longest session id and folder, characters: paths have up to 4 096."""


def text(body: Body, *names: str) -> str | None:
    """Return a string that is not empty."""
    for each in names:
        value = body.get(each)
        if isinstance(value, str) and value:
            return value
    return None


def name(body: Body, *names: str) -> str | None:
    """Return a string of at most MAX_NAME characters; a longer one is no name."""
    for each in names:
        value = body.get(each)
        if isinstance(value, str) and value:
            return value if len(value) <= MAX_NAME else None
    return None


def long_name(body: Body, *names: str) -> str | None:
    """Return a session's id or a folder, of at most MAX_LONG_NAME characters."""
    for each in names:
        value = body.get(each)
        if isinstance(value, str) and value:
            return value if len(value) <= MAX_LONG_NAME else None
    return None


def count(body: Body, *names: str) -> int | None:
    """Return a whole number of 0 to MAX_COUNT."""
    for name in names:
        value = body.get(name)
        if type(value) is int and 0 <= value <= MAX_COUNT:
            return value
    return None


def window(body: Body, *names: str) -> int | None:
    """Return a window in tokens: a count above 0."""
    return count(body, *names) or None


def truth(body: Body, *names: str) -> bool | None:
    """Return a boolean."""
    for name in names:
        value = body.get(name)
        if isinstance(value, bool):
            return value
    return None


def flag(body: Body, *names: str) -> bool:
    """Return whether the field is true."""
    return truth(body, *names) is True


def mapping(body: Body, *names: str) -> dict[str, Json] | None:
    """Return an object."""
    for name in names:
        value = body.get(name)
        if isinstance(value, dict):
            return value
    return None


def items(body: Body, *names: str) -> list[dict[str, Json]]:
    """Return the objects of a list, others left out."""
    for name in names:
        value = body.get(name)
        if isinstance(value, list):
            return [item for item in value if isinstance(item, dict)]
    return []


def in_range(time_ms: int) -> int | None:
    """Return a time if it lies in 2020 to 2100 (R28)."""
    return time_ms if _FIRST_MS <= time_ms < _END_MS else None


def moment_ms(value: object) -> int | None:
    """Return what a timestamp says, milliseconds since 1970, if it is valid (R28).

    One without a zone is not: which hour it means cannot be known.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    passed = moment - _EPOCH  # its parts are added up: a division takes twice as long
    return in_range(passed.days * DAY_MS + passed.seconds * 1_000 + passed.microseconds // 1_000)


_UUID7: Final = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z"
)
"""A UUID of version 7 begins with its time, 48 bits of milliseconds since 1970 (RFC 9562)."""


def uuid7_ms(value: object) -> int | None:
    """Return when a UUID of version 7 was made, milliseconds since 1970; None for anything else."""
    parts = _UUID7.match(value) if isinstance(value, str) else None
    return None if parts is None else in_range(int(parts[1] + parts[2], 16))
