"""What tokens cost: list prices by model and date, as data with their sources.

`price_of(model, when)` gives the `Price` that applied, None where none is known: an unknown price
is not zero. `Price.cost(tokens)` gives a `Cost` in US dollars, which says whether it is complete.
The rows are in `prices.toml` next to this module. `PriceTable.from_document` reads others, with
these behind them.
"""

from contextgauge.pricing.bundled import bundled_prices, price_of
from contextgauge.pricing.price import Cost, Price, Rates, TokenCounts, total
from contextgauge.pricing.table import PriceTable

__all__ = [
    "Cost",
    "Price",
    "PriceTable",
    "Rates",
    "TokenCounts",
    "bundled_prices",
    "price_of",
    "total",
]
