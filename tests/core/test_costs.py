"""Costs of a session and of its compactions, from its records."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from contextgauge.pricing import Cost, Price, PriceTable
from schemas.records import Record, ReportedReceipt
from schemas.views import STREAM_ENTRIES
from streams.core.costs import CompactionProfit, session_costs, stored_costs
from tests.core.history import History

# A dollar a token is read from the cache, ten are input, 20 and 40 written, 100 output.
ROW = {
    "model": "claude-sonnet-5",
    "source": "test",
    "checked": date(2026, 1, 1),
    "input": 10_000_000,
    "output": 100_000_000,
    "cache_write_5m": 20_000_000,
    "cache_write_1h": 40_000_000,
    "cache_read": 1_000_000,
    "tiers": {"flex": 0.5},
}
TABLE = PriceTable.from_document({"price": [ROW]})


def changed(record: Record, **changes: Any) -> Record:
    return replace(record, data=replace(record.data, **changes))


class Session(History):
    """Readings with a response of their own: ten fresh tokens, the rest from the cache."""

    def response(self, used: int, **changes: object) -> Record:
        record = self.reading(used)
        own: dict[str, object] = {"response_id": record.id, "output_tokens": 1}
        return changed(record, **(own | changes))

    def compacted(self, receipt: ReportedReceipt | None = None, **more: object) -> Record:
        return changed(self.boundary(pre=1_000), receipt=receipt, **more)


def usd(cost: Cost | None) -> tuple[int, bool] | None:
    return None if cost is None else (int(cost.amount), cost.is_complete)


def cost_of(*records: Record) -> tuple[int, bool] | None:
    return usd(session_costs(records, TABLE.find).cost)


def profit_of(*records: Record) -> CompactionProfit:
    (profit,) = session_costs(records, TABLE.find).compactions
    return profit


def test_a_response_costs_its_parts() -> None:
    session = Session()
    assert cost_of(session.response(500)) == (100 + 490 + 100, True)
    written = {"cache_read_tokens": 90, "cache_creation_tokens": 30}
    assert cost_of(session.response(130, **written)) == (100 + 90 + 600 + 100, True)
    hour = written | {"cache_creation_1h_tokens": 10}
    assert cost_of(session.response(130, **hour)) == (100 + 90 + 400 + 400 + 100, True)
    assert cost_of(session.response(130, **written, service_tier="flex")) == (445, True)


def test_what_no_record_says_is_not_in_the_sum() -> None:
    session = Session()
    first = session.response(500, output_tokens=None)
    assert cost_of(first) == (590, False)
    # The next reading of the chain has it.
    second = session.response(500, previous_output_tokens=2)
    assert cost_of(first, second) == (590 + 200 + 690, True)
    assert cost_of(session.response(500, input_tokens=None)) == (590, False)
    assert cost_of(session.reading(500, model=None)) is None
    assert cost_of() is None


def test_an_unknown_price_is_not_zero() -> None:
    session = Session()
    records = [
        session.response(500),
        session.response(500, model="my-own"),
        session.response(1, model=None),
    ]
    costs = session_costs(records, TABLE.find)
    assert usd(costs.cost) == (690, False)
    assert [(each.model, each.calls, each.unpriced, usd(each.cost)) for each in costs.models] == [
        (None, 1, 1, None),
        ("claude-sonnet-5", 1, 0, (690, True)),
        ("my-own", 1, 1, None),
    ]
    tier = session.response(500, service_tier="priority")
    assert cost_of(tier) is None
    assert cost_of(replace(session.response(500), time_ms=None)) == (690, True)


def test_each_response_counts_once_and_a_copy_not_at_all() -> None:
    session = Session()
    begun = session.response(500)
    ended = changed(session.response(600), response_id=begun.id)
    copy = session.response(500, inherited=True)
    assert cost_of(begun, ended, copy) == (790, True)


SUMMARY = ReportedReceipt(
    summary_input_tokens=1_000,
    summary_cache_read_tokens=900,
    summary_output_tokens=3,
)
WRITTEN = {"summary_cache_creation_tokens": 90, "summary_cache_creation_1h_tokens": 40}
SUMMARY_USD = 100 + 900 + 50 * 20 + 40 * 40 + 300


def test_a_compaction_is_weighed_against_what_it_saves() -> None:
    session = Session()
    before = session.response(1_000)
    boundary = session.compacted(SUMMARY, **WRITTEN)
    after = session.response(
        400, cache_read_tokens=100, cache_creation_tokens=290, cache_creation_1h_tokens=90
    )
    complete = session.complete(boundary, 400, cache_rewrite=290)
    records = [before, boundary, after, complete, session.response(420), session.response(440)]
    profit = profit_of(*records)
    assert usd(profit.summary) == (SUMMARY_USD, True)
    assert (profit.rewrite_tokens, usd(profit.rewrite)) == (290, (200 * 20 + 90 * 40, True))
    assert (profit.tokens_saved, usd(profit.saving)) == (600, (600, True))
    spent = SUMMARY_USD + 7_600
    assert (profit.responses, profit.break_even) == (3, -(-spent // 600))
    assert usd(profit.net) == (3 * 600 - spent, True)
    assert (profit.cache_share_before, profit.cache_share_after) == (0.99, 0.25)
    assert (profit.duration_ms, profit.waited_ms) == (30_000, 30_000)
    # Its call is in the session's cost, too.
    assert cost_of(before, boundary) == (1_190 + SUMMARY_USD, True)
    # The next boundary and a reset end what it saves.
    for end in (session.compacted(number=2), session.reset()):
        later = session.response(450)
        costs = session_costs([*records, end, later], TABLE.find)
        assert costs.profits[boundary.id] == profit


@pytest.mark.parametrize(
    ("receipt", "summary", "net"),
    [
        (None, None, (600 - 100, False)),
        (ReportedReceipt(reason="urgent"), None, (600 - 100, False)),
        (ReportedReceipt(summary_output_tokens=3), (300, False), (600 - 400, False)),
        (ReportedReceipt(summary_input_tokens=5), (50, False), (600 - 150, False)),
    ],
)
def test_without_the_summarys_cost_the_net_is_not_complete(
    receipt: ReportedReceipt | None, summary: tuple[int, bool] | None, net: tuple[int, bool]
) -> None:
    session = Session()
    boundary = session.compacted(receipt)
    after = session.response(400, cache_read_tokens=385, cache_creation_tokens=5)
    profit = profit_of(boundary, after, session.complete(boundary, 400, cache_rewrite=5))
    assert (usd(profit.summary), usd(profit.net)) == (summary, net)
    assert (profit.break_even is None) == (summary is None)
    assert profit.cache_share_before is None


def test_before_the_next_response_nothing_is_weighed() -> None:
    session = Session()
    boundary = session.compacted(SUMMARY)
    profit = profit_of(boundary)
    assert (profit.rewrite, profit.saving, profit.net, profit.responses) == (None, None, None, 0)
    unmeasured = [boundary, session.response(400), session.complete(boundary, None)]
    assert profit_of(*unmeasured).saving is None
    unpriced = [boundary, session.response(400, model="my-own"), session.complete(boundary, 400)]
    assert profit_of(*unpriced).saving is None


def test_a_context_that_grew_saves_less_than_nothing() -> None:
    session = Session()
    boundary = session.compacted(SUMMARY)
    profit = profit_of(
        boundary, session.response(1_200), session.complete(boundary, 1_200, cache_rewrite=0)
    )
    assert (usd(profit.saving), profit.break_even) == ((-200, True), None)


def test_without_a_cache_what_is_saved_is_input() -> None:
    session = Session()
    boundary = session.compacted(SUMMARY)
    fresh = session.response(400, input_tokens=400, cache_read_tokens=None)
    profit = profit_of(boundary, fresh, session.complete(boundary, 400, cache_rewrite=None))
    assert (usd(profit.saving), profit.rewrite, profit.net) == ((6_000, True), None, None)


def test_an_empty_prompt_has_no_share() -> None:
    session = Session()
    empty = session.response(0, input_tokens=0, cache_read_tokens=0)
    assert profit_of(empty, session.compacted()).cache_share_before is None


def test_no_agent_waits_for_a_compaction_in_the_background() -> None:
    session = Session()
    profit = profit_of(session.boundary(duration_source="precomputed"))
    assert (profit.duration_ms, profit.waited_ms) == (30_000, 0)
    boundary = session.boundary(duration_ms=None)
    profit = profit_of(boundary, session.timing(boundary))
    assert (profit.duration_ms, profit.waited_ms) == (3_069, 3_069)


def test_without_the_oldest_records_all_is_a_minimum() -> None:
    session = Session()
    records = [session.response(500) for _ in range(STREAM_ENTRIES)]
    assert not stored_costs(records, TABLE.find).is_whole
    costs = stored_costs(records[1:], TABLE.find)
    assert costs.is_whole
    assert costs.cost
    assert costs.cost.is_complete
    assert usd(stored_costs(records, TABLE.find).cost) == (690 * STREAM_ENTRIES, False)
    assert stored_costs([session.reset()] * STREAM_ENTRIES, TABLE.find).cost is None


def test_prices_are_looked_up_at_the_records_time() -> None:
    asked: list[tuple[str | None, datetime | None, str | None]] = []

    def price_of(model: str | None, when: datetime | None, tier: str | None) -> Price | None:
        asked.append((model, when, tier))
        return None

    session = Session(at=0)
    record = session.response(500)
    assert session_costs([record], price_of).cost is None
    (call,) = asked
    assert call == ("claude-sonnet-5", datetime(2026, 11, 1, 12, 0, 1, tzinfo=UTC), None)
