"""Prices for SQL: `list_rates(model, hour, tier)`, of the same table that everything else asks."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import duckdb
import numpy as np  # noqa: F401 -- which DuckDB needs for functions, and does not name where it lacks
from duckdb import func, sqltypes

from contextgauge.pricing import Price, Rates
from streams.core.costs import PriceLookup

_PER_TOKEN: Final = -6
"""Decimal places from the price of a million tokens to that of one."""

_RATE: Final = (18, 15)
"""Digits: exact for every rate with nine decimals a million; times a count of tokens, they fit."""


def add_rates(connection: duckdb.DuckDBPyConnection, price_of: PriceLookup) -> None:
    """Give a connection the function `list_rates`: a list of rows, one for each size of a prompt.

    Each has US dollars per token and what they are from. No rows: the price is unknown.
    """
    # Types of the connection: those of the module open another one, with threads of its own.
    row = connection.struct_type(
        {
            "above": sqltypes.BIGINT,
            "up_to": sqltypes.BIGINT,
            **dict.fromkeys(Rates._fields, connection.decimal_type(*_RATE)),
            "source": sqltypes.VARCHAR,
            "checked": sqltypes.DATE,
        }
    )
    connection.create_function(
        "list_rates",
        _function(price_of),
        [sqltypes.VARCHAR, sqltypes.TIMESTAMP_TZ, sqltypes.VARCHAR],
        connection.list_type(row),
        null_handling=func.SPECIAL,
    )


def _function(
    price_of: PriceLookup,
) -> Callable[[str | None, datetime | None, str | None], list[dict[str, Any]] | None]:
    def list_rates(
        model: str | None, hour: datetime | None, tier: str | None
    ) -> list[dict[str, Any]] | None:
        price = price_of(model, hour, tier)
        return None if price is None else _rows(price)

    return list_rates


def _rows(price: Price) -> list[dict[str, Any]]:
    steps = [(-1, price.rates), *price.long]
    ends = [*(above for above, _ in price.long), None]
    return [
        {
            "above": above,
            "up_to": up_to,
            **_per_token(rates),
            "source": price.source,
            "checked": price.checked,
        }
        for (above, rates), up_to in zip(steps, ends, strict=True)
    ]


def _per_token(rates: Rates) -> dict[str, Decimal | None]:
    return {
        name: None if rate is None else rate.scaleb(_PER_TOKEN)
        for name, rate in rates.with_input()._asdict().items()
    }
