"""Intervals, against published figures."""

import pytest

from streams.core.autopsy.intervals import CaseShare, ShareComparison


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (29, 29, 0.8830, 1),
    ],
)
def test_wilsons_interval(hits: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert CaseShare(hits, n).interval() == pytest.approx((low, high), abs=5e-5)


def test_newcombes_interval_of_a_difference() -> None:
    """Newcombe 1998, Statistics in Medicine 17:873, table II, method 10: 56/70 and 48/80."""
    compared = ShareComparison(CaseShare(56, 70), CaseShare(48, 80))
    assert compared.difference() == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(
    ("after", "control", "outcome"),
    [
        ((56, 70), (48, 80), "more"),
        ((48, 80), (56, 70), "less"),
        ((71, 100), (72, 100), "no difference beyond chance"),
        ((3, 3), (0, 0), "unknown"),
        ((0, 0), (3, 3), "unknown"),
    ],
)
def test_what_a_difference_says(
    after: tuple[int, int], control: tuple[int, int], outcome: str
) -> None:
    assert ShareComparison(CaseShare(*after), CaseShare(*control)).outcome() == outcome
