"""Prices and costs: exact decimal US dollars, and whether a cost is complete."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

_MILLION: Final = 6
"""Decimal places between a price of a million tokens and that of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """The tokens of one call, or of several at one price. None is unknown, not zero.

    `input` are fresh ones: neither read from a cache nor written to one. A cache write whose
    lifetime is not reported is one of five minutes, the providers' default. A provider that does
    not charge for writes reports none: leave these at 0.
    """

    input: int | None = 0
    output: int | None = 0
    cache_write_5m: int | None = 0
    cache_write_1h: int | None = 0
    cache_read: int | None = 0

    @property
    def prompt(self) -> int:
        """All tokens but the output, as far as they are known."""
        parts = (self.input, self.cache_write_5m, self.cache_write_1h, self.cache_read)
        return sum(part or 0 for part in parts)


class Cost(NamedTuple):
    """A cost in US dollars. An incomplete one leaves out what is unknown: it is a minimum."""

    amount: Decimal
    is_complete: bool


def total(costs: Iterable[Cost | None]) -> Cost | None:
    """Return the sum; None, which is unknown, where none is known.

    One that is unknown makes the sum of others incomplete.
    """
    listed = list(costs)
    known = [cost for cost in listed if cost is not None]
    if not known:
        return None
    is_complete = len(known) == len(listed) and all(cost.is_complete for cost in known)
    return Cost(sum((cost.amount for cost in known), Decimal(0)), is_complete)


class Rates(NamedTuple):
    """US dollars per million tokens.

    None: the provider has no rate of its own for it. What is read from a cache or written to it for
    five minutes then counts as input; what is written for an hour has no price.
    """

    input: Decimal
    output: Decimal
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    cache_read: Decimal | None = None

    def with_input(self) -> "Rates":
        """Return the rates with that of input where there is none of the cache for minutes."""
        written = self.input if self.cache_write_5m is None else self.cache_write_5m
        read = self.input if self.cache_read is None else self.cache_read
        return self._replace(cache_write_5m=written, cache_read=read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A model's list price from a date on.

    `long` are the rates of calls whose prompt exceeds so many tokens, ascending: all tokens of such
    a call have them. `tiers` are what a service tier multiplies each rate by; the standard tier is
    not among them. `hours` are the UTC hours in which it holds, empty for all.
    """

    model: str
    rates: Rates
    long: tuple[tuple[int, Rates], ...] = ()
    tiers: Mapping[str, Decimal] = field(default_factory=dict)
    valid_from: date | None = None
    hours: frozenset[int] = frozenset()
    source: str
    checked: date

    def rates_of(self, prompt: int) -> Rates:
        """Return the rates of a call with so many tokens in its prompt."""
        rates = self.rates
        for above, others in self.long:
            if prompt > above:
                rates = others
        return rates

    def cost(self, tokens: TokenCounts, prompt: int | None = None) -> Cost:
        """Return what the tokens of one call cost.

        `prompt` is the call's, where `tokens` are only a part of it.
        """
        rates = self.rates_of(tokens.prompt if prompt is None else prompt).with_input()
        parts = (
            (tokens.input, rates.input),
            (tokens.output, rates.output),
            (tokens.cache_write_5m, rates.cache_write_5m),
            (tokens.cache_write_1h, rates.cache_write_1h),
            (tokens.cache_read, rates.cache_read),
        )
        amount, is_complete = Decimal(0), True
        for count, rate in parts:
            if count is None or (count and rate is None):
                is_complete = False
            elif count and rate is not None:
                amount += rate * count
        return Cost(amount.scaleb(-_MILLION), is_complete)
