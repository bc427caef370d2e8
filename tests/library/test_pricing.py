"""Prices: which row a name finds at a time, what a call costs, what an own table changes."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from contextgauge.pricing import (
    Cost,
    PriceTable,
    Rates,
    TokenCounts,
    bundled_prices,
    price_of,
    total,
)

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def row(model: str = "m-1", **more: object) -> dict[str, object]:
    own = {"model": model, "input": 2, "output": 10, "source": "test", "checked": date(2026, 1, 1)}
    return own | more


def whole(usd: int) -> Cost:
    return Cost(Decimal(usd), is_complete=True)


def part(usd: int) -> Cost:
    return Cost(Decimal(usd), is_complete=False)


def table(*rows: dict[str, object], **more: Any) -> PriceTable:
    return PriceTable.from_document({"price": rows, **more})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        (
            "arn:aws:bedrock:eu-1:1:inference-profile/eu.anthropic.claude-opus-4-6",
            "claude-opus-4-6",
        ),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter:anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("GPT-5-2025-08-07", "gpt-5"),
        ("gpt-5-codex", "gpt-5"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("moonshotai/kimi-k2.5", "kimi-k2.5"),
        ("z-ai/glm-4.6", "glm-4.6"),
        ("x-ai/grok-4.5", "grok-4.5"),
        ("qwen/qwen3-coder-plus", "qwen3-coder-plus"),
        ("deepseek-v4-pro", "deepseek-v4-pro"),
        # Another model, another offer, or none that is known.
        ("claude-sonnet-4-5-7", None),
        ("gpt-5-unheard-of", None),
        ("ollama/qwen3-coder-plus", None),
        ("ft:gpt-4o-2024-08-06:org::id", None),
        ("<synthetic>", None),
        (None, None),
    ],
)
def test_a_name_finds_its_own_price_or_none(model: str | None, name: str | None) -> None:
    price = price_of(model, NOON)
    assert (price and price.model) == name


def test_every_bundled_price_has_a_source_a_date_and_rates_that_fit_each_other() -> None:
    prices = [bundled_prices().find(model, NOON) for model in bundled_prices().models()]
    assert len([price for price in prices if price is not None]) > 150
    for price in filter(None, prices):
        rates = price.rates
        assert "PyPI" in price.source
        assert price.checked >= date(2026, 11, 1)
        assert 0 < rates.input <= rates.output or rates.output == 0
        assert (rates.cache_read or 0) <= rates.input <= (rates.cache_write_1h or rates.input)
        assert [above for above, _ in price.long] == sorted({above for above, _ in price.long})


def test_prices_change_with_the_date_and_with_the_hour() -> None:
    o3 = [price_of("o3", datetime(2025, 6, day, tzinfo=UTC)) for day in (9, 10)]
    assert [price and price.rates.input for price in o3] == [Decimal(10), Decimal(2)]
    peak, night = (price_of("deepseek-v4-pro", NOON.replace(hour=hour)) for hour in (2, 12))
    assert peak
    assert night
    assert peak.rates.input == 2 * night.rates.input
    # Whose time is not known has the price of a model that has had only one.
    assert price_of("o3", None) is None
    assert price_of("deepseek-v4-pro", None) is None
    assert price_of("claude-sonnet-4-5", None) == price_of("claude-sonnet-4-5", NOON)


def test_a_call_costs_its_tokens_at_their_rates() -> None:
    tokens = TokenCounts(
        input=1_000, output=2_000, cache_write_5m=3_000, cache_write_1h=4_000, cache_read=50_000
    )
    price = price_of("claude-opus-4-6", NOON)
    assert price
    # 5, 25, 6.25, 10 and 0.5 dollars a million
    assert price.cost(tokens) == Cost(Decimal("0.13875"), is_complete=True)


def test_what_is_unknown_makes_a_cost_incomplete() -> None:
    price = table(row()).find("m-1", NOON)
    assert price
    assert price.cost(TokenCounts(input=1_000_000, output=None)) == part(2)
    assert price.cost(TokenCounts(cache_write_1h=5)) == part(0)
    # Without rates of their own, what is read from a cache and written to it is input.
    assert price.cost(TokenCounts(cache_read=500_000, cache_write_5m=500_000)) == whole(2)


def test_a_long_prompt_has_other_rates_for_all_of_its_tokens() -> None:
    long = [{"above": 200, "input": 4, "output": 20}, {"above": 100, "input": 3, "output": 15}]
    price = table(row(long=long)).find("m-1", NOON)
    assert price
    inputs = [price.cost(TokenCounts(input=size)).amount / size * 10**6 for size in (100, 101, 201)]
    assert inputs == [2, 3, 4]
    assert price.cost(TokenCounts(input=100), 201).amount == Decimal("0.0004")


def test_a_service_tier_multiplies_and_one_without_a_price_has_none() -> None:
    long = [{"above": 100, "input": 4, "output": 20}]
    prices = table(row(tiers={"flex": 0.5}, long=long, cache_read=1))
    flex = prices.find("m-1", NOON, "flex")
    assert flex
    assert flex.rates == Rates(Decimal(1), Decimal(5), None, None, Decimal("0.5"))
    assert flex.long == ((100, Rates(Decimal(2), Decimal(10))),)
    assert prices.find("m-1", NOON, "priority") is None


def test_own_rows_come_before_the_bundled_ones() -> None:
    rows = [
        row("claude-opus-4-6", also=["my-opus"]),
        row("ollama/qwen3", input=0, output=0),
        row("m-2", **{"from": date(2026, 6, 1)}),
        row("m-2", hours=[12], **{"from": date(2026, 6, 1)}, input=7),
    ]
    document = {"price": rows, "vendors": {"me": ["my-gateway"]}}
    own = PriceTable.from_document(document, bundled_prices())

    def input_rate(model: str, when: datetime = NOON) -> Decimal | None:
        price = own.find(model, when)
        return None if price is None else price.rates.input

    assert input_rate("claude-opus-4-6-20260205") == input_rate("my-opus") == 2
    assert input_rate("claude-opus-4-5") == 5
    assert input_rate("ollama/qwen3") == 0
    assert input_rate("my-gateway/my-opus") is None
    assert input_rate("m-2") == 7
    assert input_rate("m-2", NOON.replace(hour=13)) == 2
    assert input_rate("m-2", NOON.replace(month=5)) is None
    assert {"my-opus", "claude-opus-4-5"} <= set(own.models())


def test_a_table_remembers_few_names() -> None:
    prices = table(row())
    assert all(prices.find(f"m-{number}", NOON) is None for number in range(2, 600))
    assert prices.find("m-1", NOON)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"prices": []}, "unknown: prices"),
        ({"price": [row(cost=1)]}, "price 1: unknown: cost"),
        ({"price": [row(), row("M-2")]}, "price 2: model 'M-2' is not a lower-case name"),
        ({"price": [row(source="x", checked=None)]}, "no source and no date"),
        ({"price": [row(**{"from": "2026-05-01"})]}, "from is not a date"),
        ({"price": [row(hours=[24])]}, "hours are 0 to 23"),
        ({"price": [{"model": "m", "source": "s", "checked": date.max}]}, "input and output"),
        ({"price": [row(output=-1)]}, "output is not an amount"),
        ({"price": [row(output="1")]}, "output is not an amount"),
        ({"price": [row(output=float("inf"))]}, "output is not an amount"),
        ({"price": [row(long=[{"input": 1, "output": 1}])]}, "above is not a count"),
        ({"price": [row(), row()]}, "m-1 has two prices for the same time"),
    ],
)
def test_a_wrong_table_says_where(document: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PriceTable.from_document(document)


def test_a_sum_with_an_unknown_part_is_not_complete() -> None:
    assert total([whole(1), whole(1)]) == whole(2)
    assert total([whole(1), None]) == part(1)
    assert total([whole(1), part(1)]) == part(2)
    assert total([None]) is None
