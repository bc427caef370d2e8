"""A table of prices: its rows, and how a model's name and a time find one.

A row is the price of its `model`, of the names in `also`, and of each with a date, a version or
`latest` behind it: `claude-sonnet-4-5` is that of `claude-sonnet-4-5-20250929`, but `gpt-5` not
that of `gpt-5-nano`.
The longest such row wins. Before a name may be a cloud's prefix (`us.anthropic.`) or a folder that
its vendor has (`anthropic/`). Behind another one, as in `ollama/qwen3`, is another offer, with a
price of its own: a row with all of that name.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from contextgauge.pricing.price import Price, Rates
from contextgauge.windows import base_name, plain_name

_DECORATION: Final = re.compile(
    r"(?:[-@](?:latest|v\d+|00\d|\d{4}|\d{6}|\d{8}|\d{4}-\d\d-\d\d|\d\d-\d\d|\d\d-\d{4})|:\d+)+"
)
"""What may follow a name: a date in any spelling, a version. One digit is another model's name."""

_FOLDERS: Final = re.compile(r"[/:]")
_PLAIN_FOLDER: Final = "models"
"""Google's `publishers/google/models/`, and `models/` alone, say nothing of the vendor."""

_ROW: Final = frozenset(
    {
        *Rates._fields,
        "also",
        "model",
        "vendor",
        "from",
        "hours",
        "long",
        "tiers",
        "source",
        "checked",
    }
)
_NUMBERS: Final = (int, float, Decimal)
_HOURS: Final = 24
_REMEMBERED_NAMES: Final = 256
"""As in the catalog of windows."""


class PriceTable:
    """Prices by model, vendors' folder names, and another table to look in where it has none."""

    def __init__(
        self,
        prices: Mapping[str, tuple[Price, ...]],
        folders: Mapping[str, frozenset[str]],
        otherwise: "PriceTable | None" = None,
    ) -> None:
        self._prices, self._folders, self._otherwise = prices, folders, otherwise
        self._remembered: dict[str, tuple[Price, ...]] = {}

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], otherwise: "PriceTable | None" = None
    ) -> "PriceTable":
        """Build from a parsed TOML document.

        It has a list of tables `price`, and may have `vendors`, lists of folders by model. Rows of
        `otherwise` hold for the names that this one has no price for. Raises ValueError for what is
        wrong, with the place.
        """
        unknown = document.keys() - {"price", "vendors", "sources"}
        if unknown:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        sources = document.get("sources", {})
        prices: dict[str, tuple[Price, ...]] = {}
        folders: dict[str, frozenset[str]] = {}
        for number, row in enumerate(document.get("price", ()), 1):
            try:
                price = _price(row, sources)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise ValueError(f"price {number}: {error}") from None
            own = frozenset(document.get("vendors", {}).get(row.get("vendor"), ()))
            for name in (price.model, *row.get("also", ())):
                prices[name] = (*prices.get(name, ()), price)
                folders[name] = own
        for name, rows in prices.items():
            if len({(price.valid_from, price.hours) for price in rows}) < len(rows):
                raise ValueError(f"{name} has two prices for the same time")
        ordered = {model: tuple(sorted(rows, key=_order)) for model, rows in prices.items()}
        return cls(ordered, folders, otherwise)

    def find(
        self, model: str | None, when: datetime | None, service_tier: str | None = None
    ) -> Price | None:
        """Return the price of a call; None where it is unknown.

        `when` has a time zone; a call of unknown time has the price of a model that has had only
        one, at all hours. A tier is named as records name it, None for the standard one; one
        that the row does not have has no price.
        """
        rows = self._rows(model)
        if when is None:
            always = len(rows) == 1 and rows[0].valid_from is None and not rows[0].hours
            return _at_tier(rows[0], service_tier) if always else None
        utc = when.astimezone(UTC)
        for price in rows:
            if (price.valid_from or date.min) <= utc.date() and (
                not price.hours or utc.hour in price.hours
            ):
                return _at_tier(price, service_tier)
        return None

    def models(self) -> tuple[str, ...]:
        """Return the names that have a price."""
        others = () if self._otherwise is None else self._otherwise.models()
        return tuple(sorted({*self._prices, *others}))

    def _rows(self, model: str | None) -> tuple[Price, ...]:
        if model is None:
            return ()
        if (rows := self._remembered.get(model)) is None:
            if len(self._remembered) >= _REMEMBERED_NAMES:
                self._remembered.clear()
            rows = self._remembered[model] = self._looked_up(model)
        return rows

    def _looked_up(self, model: str) -> tuple[Price, ...]:
        whole = base_name(model)[0].strip().lower()
        name = self._row_of(whole)
        if name is None:
            before, _, last = whole.rpartition("/")
            # A tuned model is another offer.
            name = None if last.startswith("ft:") else self._row_of(plain_name(last))
            if name is not None and not _is_vendors(before, self._folders[name]):
                name = None
        if name is not None:
            return self._prices[name]
        return () if self._otherwise is None else self._otherwise._rows(model)  # noqa: SLF001 -- of its own class

    def _row_of(self, name: str) -> str | None:
        """Return the row that a name is, or that it is with a decoration behind it."""
        for end in range(len(name), 0, -1):
            begin = name[:end]
            if begin in self._prices and (
                end == len(name) or _DECORATION.fullmatch(name, end) is not None
            ):
                return begin
        return None


def _is_vendors(before: str, folders: frozenset[str]) -> bool:
    """Return whether what is before a name leads to its vendor."""
    if not before or before.startswith("arn:"):
        return True
    parts = [part for part in _FOLDERS.split(before) if part and part != _PLAIN_FOLDER]
    return not parts or parts[-1] in folders


def _at_tier(price: Price, tier: str | None) -> Price | None:
    if tier is None:
        return price
    factor = price.tiers.get(tier)
    if factor is None:
        return None
    long = tuple((above, _times(rates, factor)) for above, rates in price.long)
    return replace(price, rates=_times(price.rates, factor), long=long)


def _times(rates: Rates, factor: Decimal) -> Rates:
    return Rates._make(None if rate is None else rate * factor for rate in rates)


def _order(price: Price) -> tuple[int, bool]:
    """Return what rows of a model are looked through by: the latest first, all hours last."""
    return -(price.valid_from or date.min).toordinal(), not price.hours


def _price(row: Mapping[str, Any], sources: Mapping[str, Any]) -> Price:
    unknown = row.keys() - _ROW
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    model = row.get("model")
    if not isinstance(model, str) or model != model.strip().lower() or not model:
        raise ValueError(f"model {model!r} is not a lower-case name")
    source, checked = row.get("source"), row.get("checked")
    if isinstance(source, str) and source in sources:
        source, checked = sources[source]["name"], sources[source]["date"]
    if not isinstance(source, str) or type(checked) is not date:
        raise ValueError(f"{model} has no source and no date on which it was checked")
    valid_from = row.get("from")
    if valid_from is not None and type(valid_from) is not date:
        raise ValueError(f"{model}: from is not a date, as in 2026-05-01")
    hours = frozenset(row.get("hours", ()))
    if not hours <= frozenset(range(_HOURS)):
        raise ValueError(f"{model}: hours are 0 to 23")
    long = tuple((_above(model, part), _rates(model, part)) for part in row.get("long", ()))
    return Price(
        model=model,
        rates=_rates(model, row),
        long=tuple(sorted(long)),
        tiers={name: _amount(model, name, value) for name, value in row.get("tiers", {}).items()},
        valid_from=valid_from,
        hours=hours,
        source=source,
        checked=checked,
    )


def _rates(model: str, row: Mapping[str, Any]) -> Rates:
    if "input" not in row or "output" not in row:
        raise ValueError(f"{model}: input and output are needed, in US dollars per million tokens")
    return Rates(**{name: _amount(model, name, row[name]) for name in Rates._fields if name in row})


def _above(model: str, part: Mapping[str, Any]) -> int:
    above = part.get("above")
    if type(above) is not int or above < 1:
        raise ValueError(f"{model}: above is not a count of tokens")
    return above


def _amount(model: str, name: str, value: object) -> Decimal:
    # A float is as it was written: its shortest text.
    amount = Decimal(str(value)) if type(value) in _NUMBERS else None
    if amount is None or not amount.is_finite() or amount < 0:
        raise ValueError(f"{model}: {name} is not an amount")
    return amount
