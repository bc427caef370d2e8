"""Values of answers as people read them; what is not known is `unknown`, never 0."""

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from contextgauge.pricing import Cost
from streams.cli.screen.figures import UNKNOWN, duration, safe, thousands
from streams.cli.screen.money import amount


class Unit(StrEnum):
    """What a number counts."""

    NUMBER = ""
    TOKENS = "tokens"
    DURATION = "ms"
    PERCENT = "percent"
    MONEY = "usd"


_BY_END: Final = {f"_{unit}" if unit is Unit.DURATION else str(unit): unit for unit in Unit if unit}
"""Columns are named by their unit (`median_ms`, `tokens_saved`, `percent`)."""


_DURATIONS: Final = ((3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
"""Milliseconds."""


ESTIMATED: Final = "_estimated"
"""How the names of columns end whose numbers are estimates."""


def unit_of(column: str) -> Unit:
    """Return the unit that the name of a column tells."""
    return next((unit for part, unit in _BY_END.items() if part in column), Unit.NUMBER)


def number(value: float | Decimal, unit: Unit, *, exact: bool = False) -> str:
    """Return a number in its unit: 1,234 or 58K or 1 min 5 s or 12.5%; `exact`: as it is."""
    if unit is Unit.MONEY:
        return amount(Cost(Decimal(value), is_complete=True), exact=exact)
    if unit is Unit.TOKENS and not exact:
        return thousands(round(value))
    if unit is Unit.DURATION and not exact:
        return duration(round(value))
    ends = {Unit.PERCENT: "%", Unit.DURATION: " ms"}
    return f"{value:,.1f}".removesuffix(".0") + ends.get(unit, "")


def tick(value: float, unit: Unit) -> str:
    """Return a value at an axis, which is round."""
    if not value:
        return "0"
    if unit is Unit.DURATION:
        size, name = next(each for each in _DURATIONS if value >= each[0])
        return f"{value / size:g} {name}"
    return f"${value:,g}" if unit is Unit.MONEY else number(value, unit)


def shown(value: object, unit: Unit = Unit.NUMBER, *, exact: bool = False) -> str:
    """Return any value of an answer."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{day(value)}, {value:%H:%M}"
    if isinstance(value, date):
        return day(value)
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, int | float | Decimal):
        return number(value, unit, exact=exact)
    raise TypeError(type(value))


def day(value: date) -> str:
    """Return a day: 3 May 2026."""
    return f"{value.day} {value:%b %Y}"


def heading(column: str) -> str:
    """Return the name of a column as words: `average_pre_tokens` is Average pre tokens.

    Units that values show are left out.
    """
    words = (
        column.removesuffix("_ms")
        .removesuffix("_percent")
        .removesuffix("_usd")
        .removesuffix(ESTIMATED)
        .removeprefix("is_")
        .replace("_", " ")
    )
    return words[:1].upper() + words[1:]
