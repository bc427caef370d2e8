"""Reads the bundled prices, `prices.toml` next to this module."""

import tomllib
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from contextgauge.pricing.price import Price
from contextgauge.pricing.table import PriceTable

_FILE = Path(__file__).parent / "prices.toml"


@cache
def bundled_prices() -> PriceTable:
    """Return the prices that this version ships with."""
    with _FILE.open("rb") as file:
        return PriceTable.from_document(tomllib.load(file, parse_float=Decimal))


def price_of(
    model: str | None, when: datetime | None, service_tier: str | None = None
) -> Price | None:
    """Return a model's bundled price at a time, None where none is known: see `PriceTable.find`."""
    return bundled_prices().find(model, when, service_tier)
