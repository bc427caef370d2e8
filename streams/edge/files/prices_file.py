"""A person's own prices: a TOML file like the bundled one, whose rows come first."""

from pathlib import Path

from contextgauge.pricing import PriceTable, bundled_prices
from streams.core.sections import Fault, Table
from streams.edge.files.toml_file import read_toml


def read_prices(path: Path) -> PriceTable:
    """Return the file's prices, with the bundled ones behind them. Raises ConfigError."""

    def check(content: Table) -> tuple[PriceTable | None, list[Fault]]:
        try:
            return PriceTable.from_document(content, bundled_prices()), []
        except ValueError as error:
            return None, [Fault(("price",), f"is wrong: {error}")]

    return read_toml(path, "prices", check)
