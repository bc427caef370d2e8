"""Chains under other settings, summed by model, and what to use."""

from dataclasses import replace
from decimal import Decimal
from functools import cache

import pytest

from contextgauge.runtime_settings import SettingOf
from streams.core.costs import session_costs
from streams.core.until_compaction import Threshold
from streams.core.whatif.advice import advise
from streams.core.whatif.compaction_facts import FactPool, Spread, spread_of
from streams.core.whatif.comparison import ChainComparison, ChainResult, CostChange
from streams.core.whatif.costs import cost_of
from streams.core.whatif.models import by_model
from streams.core.whatif.new_settings import Setting, default_trigger, triggers_of
from streams.core.whatif.replay import After, Kept, recorded_path
from streams.core.whatif.turns import ChainLog, RecordedCompaction, read_logs
from streams.core.whatif.usage import CachedCalls, usages
from streams.flow.simulator import SimulationOptions
from tests.core.whatif.whatif_kit import (
    MODEL,
    PRICE,
    compaction,
    derived,
    log_of,
    price_at,
)

RISE = tuple(range(40_000, 160_000, 4_000))
"""A context that grows evenly; it is compacted at 160 000."""

LOG = log_of(*RISE, compaction(160_000), *RISE, compaction(160_000), *RISE[:10])

ONCE: tuple[int | RecordedCompaction, ...] = (*RISE, compaction(160_000))
LONG = log_of(*ONCE * 10, 40_000)
LARGE = log_of(*ONCE * 10, 40_000, window=1_000_000, session="s-2")
GROWN = replace(LONG, turns=(*LONG.turns[:200], *LARGE.turns[200:]))

LOW = Setting("60%", Threshold(percent=60))
HIGH = Setting("180,000", Threshold(tokens=180_000))
SAME = Setting("recorded trigger")


def compared(
    *logs: ChainLog, settings: tuple[Setting, ...] = (LOW, SAME), engine: After | None = None
) -> list[ChainResult]:
    comparison = ChainComparison(FactPool(logs), settings, price_at, (50, 75))
    return [comparison.of(log, [engine] * len(settings)) for log in logs]


def test_the_recorded_trigger_changes_nothing() -> None:
    (result,) = compared(LOG)
    low, same = result.results
    assert same.totals == result.recorded
    assert set(same.changes[MODEL]) == {Decimal(0)}
    assert same.trigger == 160_000
    assert low.totals[MODEL].compactions > result.recorded[MODEL].compactions
    change = low.changes[MODEL]
    assert change.low < change.middle < change.high
    assert change.middle == low.totals[MODEL].cost.amount - result.recorded[MODEL].cost.amount
    assert len(result.paid) == len(result.judged) == 2


def test_what_is_left_is_uncertain_as_recorded_compactions_differ() -> None:
    assert spread_of([5], "chain") == Spread(2, 5, 10, 1, "chain")
    assert spread_of(range(1, 10), "all") == Spread(1, 5, 9, 9, "all")
    assert spread_of(range(1, 20), "all") == Spread(2, 10, 18, 19, "all")


def test_facts_are_of_the_narrowest_group_that_has_enough() -> None:
    few = log_of(150_000, compaction(), 20_000)
    many = log_of(*(each for _ in range(9) for each in (150_000, compaction(), 30_000)))
    other = replace(many, runtime="codex")
    pool = FactPool([few, many, other])
    own, foreign = pool.of(few).after, FactPool([few, other]).of(few).after
    assert own == Spread(20_000, 30_000, 30_000, 10, "model")
    assert foreign == Spread(20_000, 30_000, 30_000, 10, "all")
    three = log_of(*(each for _ in range(3) for each in (150_000, compaction(), 25_000)))
    nearest = FactPool([three]).of(three).after
    assert nearest == Spread(12_500, 25_000, 50_000, 3, "chain")
    assert FactPool([few]).of(few).after == Spread(10_000, 20_000, 40_000, 1, "chain")
    nothing = log_of(100_000)
    assert FactPool([nothing]).of(nothing).at("low").after is None


def test_where_the_size_left_is_unknown_all_is_as_recorded() -> None:
    log = log_of(*RISE)
    (result,) = compared(log)
    assert not result.results[0].is_known
    assert result.results[0].totals == result.recorded
    (model,) = by_model([result])
    assert [each.unknown for each in model.settings] == [1, 0]
    assert advise(model).verdict == "not_possible"


def test_the_engine_makes_all_compactions() -> None:
    strategy = Setting("default", None, None, "default")
    compacted = Kept(50_000, has_call=False, pins_kept=4, pins=5, duration_ms=20)
    (result,) = compared(LOG, settings=(strategy,), engine=lambda _at, _size: compacted)
    own = result.results[0].totals[MODEL]
    assert (own.pins_kept, own.pins) == (4 * own.compactions, 5 * own.compactions)
    assert own.summaries.prompt == 0
    assert len(set(result.results[0].changes[MODEL][:3])) == 1
    assert advise(by_model([result])[0]).verdict == "not_possible"
    (without,) = compared(LOG, settings=(strategy,))
    assert not without.results[0].is_known


def test_a_setting_is_used_where_it_costs_less_even_at_worst() -> None:
    (model,) = by_model(compared(LONG, settings=(LOW, HIGH)))
    advice = advise(model)
    assert (advice.verdict, advice.trigger_tokens, advice.is_lowest) == ("use", 120_000, True)
    assert advice.runtime_setting == SettingOf("autoCompactWindow", 153_000)
    assert advice.change is not None
    assert advice.change.high < 0
    assert advice.compactions == model.settings[0].totals.compactions - 10
    assert advice.wait_ms == advice.compactions * 30_000


@pytest.mark.parametrize("logs", [(LONG, LARGE), (GROWN,)], ids=["of sessions", "of one session"])
def test_a_percentage_of_several_windows_is_no_size_to_use(logs: tuple[ChainLog, ...]) -> None:
    tokens = Setting("120,000", Threshold(tokens=120_000))
    (model,) = by_model(compared(*logs, settings=(LOW, tokens)))
    assert model.settings[0].triggers == {120_000, 600_000}
    assert (advise(model).setting, advise(model).trigger_tokens) == (tokens, 120_000)
    assert advise(model._replace(settings=model.settings[:1])).verdict == "not_possible"


def test_a_difference_within_its_uncertainty_is_none() -> None:
    (model,) = by_model(compared(LOG, settings=(LOW,)))
    assert advise(model).verdict == "no_difference"
    assert advise(model).setting == LOW
    (model,) = by_model(compared(LOG, settings=(SAME,)))
    assert advise(model) == advise(model)._replace(verdict="no_difference", setting=None)


def test_sessions_that_differ_widen_the_interval() -> None:
    other = replace(log_of(*RISE[:5], compaction(56_100), *RISE[:3]), session_id="s-2")
    (alone,) = by_model(compared(LOG, settings=(LOW,)))
    (both,) = by_model(compared(LOG, other, settings=(LOW,)))
    changes = [each.settings[0].change for each in (alone, both)]
    assert changes[0] is not None and changes[1] is not None  # noqa: PT018 -- for the types
    assert (changes[0].sessions, changes[1].sessions) == (1, 2)
    assert changes[1].high - changes[1].low > changes[0].high - changes[0].low


def _fixed(session: str, amount: int, doubt: int = 0) -> ChainResult:
    """Return a long session that would have cost this much more, at most by so much else."""
    low, middle, high = (Decimal(amount + each) for each in (-doubt, 0, doubt))
    change = CostChange(middle, low, high, middle, middle)
    (result,) = _long()
    own = result.results[0]._replace(changes={MODEL: change})
    return result._replace(log=replace(LONG, session_id=session), results=[own])


@cache
def _long() -> list[ChainResult]:
    return compared(LONG, settings=(LOW,))


def test_few_sessions_are_a_small_sample() -> None:
    (model,) = by_model([_fixed("s-1", -1), _fixed("s-2", -3)])
    change = model.settings[0].change
    assert change is not None
    # Student's t of one degree of freedom, 6.314, times the deviation of a sum, 2.
    assert float(change.high) == pytest.approx(-4 + 12.628)
    assert advise(model).verdict == "no_difference"
    (many,) = by_model([_fixed(f"s-{each}", -1 - each % 2) for each in range(100)])
    change = many.settings[0].change
    assert change is not None
    assert float(change.high) == pytest.approx(-150 + 1.697 * 5.02519, abs=0.001)
    assert advise(many).verdict == "use"


def test_one_session_gives_advice_by_the_interval_of_its_compactions_alone() -> None:
    alone = _fixed("s-1", -3, doubt=2)
    assert advise(by_model([alone])[0]).verdict == "use"
    none = alone._replace(results=[alone.results[0]._replace(compactions=())])
    assert advise(by_model([none])[0]).verdict == "no_difference"


def test_calls_whose_output_nothing_reports_are_counted() -> None:
    unknown = LOG.turns[-1]._replace(output=0, is_output_known=False)
    (result,) = compared(replace(LOG, turns=(*LOG.turns[:-1], unknown)))
    (low, same), recorded = result.results, result.recorded[MODEL]
    assert (recorded.unreported, same.totals[MODEL].unreported) == (1, 1)
    bare = compaction()._replace(summary_output=None)
    (result,) = compared(log_of(*RISE, bare, *RISE))
    assert result.recorded[MODEL].unreported == 1
    low = result.results[0]
    assert low.totals[MODEL].unreported == len(low.compactions) > 1


def test_the_compactions_of_a_chain_are_collected_once_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[str] = []

    def own(log: ChainLog) -> list[RecordedCompaction]:
        collected.append(log.session_id)
        return [each for between in log.between for each in between.compactions]

    monkeypatch.setattr(ChainLog, "compactions", property(own))
    logs = [log_of(150_000, compaction(), 30_000, session=f"s-{each}") for each in range(50)]
    pool = FactPool(logs)
    assert {pool.of(log).after for log in logs} == {Spread(30_000, 30_000, 30_000, 50, "model")}
    assert len(collected) == 2 * len(logs)


def test_an_unknown_price_gives_no_advice() -> None:
    (model,) = by_model(compared(log_of(*RISE, compaction(), *RISE, model="unheard-of")))
    assert model.settings[0].change is None
    assert advise(model).verdict == "unknown_price"


def test_models_are_apart_and_those_with_most_responses_come_first() -> None:
    turns = [turn._replace(model="other") if turn.used == 40_000 else turn for turn in LOG.turns]
    other = replace(LOG, turns=tuple(turns))
    results = by_model(compared(other, LOG))
    assert [each.model for each in results] == [MODEL, "other"]
    assert results[1].settings[0].change is None
    whole = [sum(each.recorded.responses for each in results), len(LOG.turns) * 2]
    assert whole[0] == whole[1]


def test_what_the_runtime_does_not_take_is_not_advised() -> None:
    (tiny,) = by_model(compared(LOG, settings=(Setting("1%", Threshold(percent=1)),)))
    assert tiny.settings[0].totals.futile > 0
    assert advise(tiny).verdict == "not_possible"
    own = replace(LOG, runtime="codex")
    (codex,) = by_model(compared(own, settings=(LOW,)))
    assert advise(codex).runtime_setting == SettingOf("model_auto_compact_token_limit", 120_000)
    other = replace(LOG, runtime=None)
    (service,) = by_model(compared(other, settings=(LOW,)))
    assert advise(service).runtime_setting == SettingOf("compact_at", 120_000)
    small = Setting("60,000", Threshold(tokens=60_000))
    (low,) = by_model(compared(LOG, settings=(small,)))
    assert advise(low).verdict == "not_possible"
    (high,) = by_model(compared(LOG, settings=(HIGH,)))
    assert advise(high).verdict == "not_possible"


@pytest.mark.parametrize(
    ("setting", "trigger"),
    [
        (Setting("", Threshold(percent=50)), 100_000),
        (Setting("", Threshold(percent=50), 1_000_000), 500_000),
        (Setting("", Threshold(tokens=90_000), 1_000_000), 90_000),
        (Setting("", None, 1_000_000), 967_000),
        (SAME, 160_000),
    ],
)
def test_triggers_of_settings(setting: Setting, trigger: int) -> None:
    assert set(triggers_of(LOG, setting)) == {trigger}


def test_without_a_default_another_window_is_compacted_at_the_same_share() -> None:
    other = replace(LOG, runtime="other")
    assert set(triggers_of(other, Setting("", None, 400_000))) == {320_000}
    unknown = log_of(*RISE, compaction(160_000), 40_000, window=None, runtime=None)
    assert set(triggers_of(unknown, Setting("", None, 400_000))) == {None}
    assert set(triggers_of(unknown, LOW)) == {None}
    assert set(triggers_of(log_of(*RISE), SAME)) == {None}
    assert default_trigger("claude-code", MODEL, 20_000) is None
    (wide,) = compared(LOG, settings=(Setting("", None, 1_000_000),))
    assert wide.results[0].totals[MODEL].compactions == wide.results[0].totals[MODEL].warnings == 0
    (result,) = compared(unknown, settings=(Setting("", Threshold(tokens=100_000)),))
    assert advise(by_model([result])[0]).trigger_tokens == 100_000


def test_recorded_responses_cost_as_much_as_the_session() -> None:
    options = SimulationOptions(seed=1, sessions=4, turns=100, providers=("claude",))
    records = list(derived(options, 3_000))
    logs = read_logs(records)
    for session_id in {log.session_id for log in logs}:
        own = [each for each in records if each.data.session_id == session_id]
        costs = session_costs(own, lambda _model, _when, _tier: PRICE)
        summaries = sum(
            (each.summary.amount for each in costs.compactions if each.summary), Decimal(0)
        )
        total = Decimal(0)
        for log in logs:
            if log.session_id == session_id:
                calls = CachedCalls(log, FactPool([log]).of(log), "as_recorded")
                for usage in usages(log, recorded_path(log), calls)[0]:
                    cost = cost_of(usage, PRICE)
                    assert cost is not None
                    total += cost.amount
        assert costs.cost is not None
        assert total == costs.cost.amount - summaries
