"""Shares with 95 % intervals, and the difference of two of them.

Wilson's score interval of a share, and Newcombe's of a difference (Newcombe 1998, method 10), which
hold for few and for none. Both take each case as independent of the others.
"""

import math
from typing import Final, Literal, NamedTuple, TypeAlias

Z: Final = 1.959963984540054
"""Of the standard normal distribution: 95 % lie within."""

Outcome: TypeAlias = Literal["more", "less", "no difference beyond chance", "unknown"]


class Interval(NamedTuple):
    """Where a share or a difference lies, with 95 % confidence."""

    low: float
    high: float


class CaseShare(NamedTuple):
    """So many of `n` cases."""

    hits: int
    n: int

    def plus(self, other: "CaseShare") -> "CaseShare":
        """Return the share of both together."""
        return CaseShare(self.hits + other.hits, self.n + other.n)

    @property
    def value(self) -> float:
        """The share, 0 to 1. Raises ZeroDivisionError where there is no case."""
        return self.hits / self.n

    def interval(self) -> Interval:
        """Return Wilson's interval. Raises ZeroDivisionError where there is no case."""
        p, n = self.value, self.n
        middle = p + Z * Z / (2 * n)
        half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        whole = 1 + Z * Z / n
        return Interval(max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole))


class ShareComparison(NamedTuple):
    """A share after boundaries, and the same without one."""

    after: CaseShare = CaseShare(0, 0)
    control: CaseShare = CaseShare(0, 0)

    def plus(self, other: "ShareComparison") -> "ShareComparison":
        """Return the comparison of both together."""
        return ShareComparison(self.after.plus(other.after), self.control.plus(other.control))

    def difference(self) -> Interval | None:
        """Return the interval of `after` less `control`; None where one of them has no case."""
        if not self.after.n or not self.control.n:
            return None
        p, q = self.after.value, self.control.value
        (p_low, p_high), (q_low, q_high) = self.after.interval(), self.control.interval()
        return Interval(
            p - q - math.hypot(p - p_low, q_high - q), p - q + math.hypot(p_high - p, q - q_low)
        )

    def outcome(self) -> Outcome:
        """Return what the difference says."""
        difference = self.difference()
        if difference is None:
            return "unknown"
        if difference.low > 0:
            return "more"
        return "less" if difference.high < 0 else "no difference beyond chance"
