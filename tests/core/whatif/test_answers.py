"""A session's stored records are enough for an answer; what is not stored is left out."""

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from contextgauge.frozen import replace
from contextgauge.pricing import Price
from schemas.records import ContextReading, Record
from schemas.views import STREAM_ENTRIES
from streams.codec.what_if import what_if_document
from streams.core.until_compaction import Threshold
from streams.core.whatif.answers import WhatIfAnswer, priced, stored_answer
from streams.core.whatif.new_settings import read_triggers, setting_of
from streams.flow.simulator import SimulationOptions
from tests.core.history import START_MS, History
from tests.core.whatif.whatif_kit import PRICE, derived, price_at

SETTINGS = [setting_of(each) for each in read_triggers("60%, 150_000")]


def answer(records: list[Record]) -> WhatIfAnswer:
    return stored_answer(records, SETTINGS, price_at, (50, 75))


def reading(history: History, used: int) -> Record:
    record = history.reading(used)
    assert isinstance(record.data, ContextReading)
    return replace(record, data=replace(record.data, response_id=record.id))


def test_a_session_is_compared_by_model_chain_and_rule() -> None:
    options = SimulationOptions(seed=1, sessions=1, turns=150, providers=("claude",))
    answered = answer(list(derived(options, 3_000)))
    assert answered.is_whole
    document = what_if_document(answered)
    assert [each["name"] for each in document["settings"]] == ["60%", "150,000"]
    chain, (model, *_) = document["chains"][0], document["models"]
    assert "reproduced" in {each["verdict"] for each in chain["compactions"]}
    less, more = (each["totals"]["compactions"] for each in model["settings"])
    assert less > more >= model["recorded"]["compactions"] > 0
    assert [len(each["compactions"]) for each in chain["settings"]] == [less, more]
    boundaries = next(row for row in document["rules"] if row["kind"] == "compact_boundary")
    assert boundaries["settings"] == [less, more]
    assert boundaries["derived_again"] is None


def test_with_prices_a_document_has_amounts_and_when_compactions_paid_off() -> None:
    options = SimulationOptions(seed=1, sessions=1, turns=150, providers=("claude",))
    answered = stored_answer(list(derived(options, 3_000)), SETTINGS, lambda _: PRICE, ())
    chain = what_if_document(answered)["chains"][0]
    (recorded,), setting = chain["recorded"], chain["settings"][0]
    assert Decimal(recorded["cost"]) > 0
    assert {Decimal(each["break_even"]["saved"]) > 0 for each in chain["compactions"]} == {True}
    change = setting["changes"][0]
    assert Decimal(change["low"]) <= Decimal(change["middle"]) <= Decimal(change["high"])
    assert Decimal(setting["totals"][0]["cost"]) - Decimal(recorded["cost"]) == Decimal(
        change["middle"]
    )


def test_of_a_longer_session_what_is_stored_is_compared() -> None:
    history = History()
    boundary = history.boundary(number=1)
    readings = [reading(history, 20_000 + 50 * number) for number in range(STREAM_ENTRIES)]
    many = answer([boundary, *readings])
    # The boundary is stored, the readings before it are not.
    assert [each.compactions for each in (chain.log for chain in many.chains)] == [[]]
    assert (len(many.chains[0].log.turns), many.is_whole) == (STREAM_ENTRIES, False)
    first = reading(history, 20_000)
    events = [history.boundary(number=number) for number in range(STREAM_ENTRIES)]
    few = answer([history.info(runtime="claude-code"), first, *events, reading(history, 30_000)])
    # Boundaries between the two readings may be missing: the first one is left out.
    assert [turn.used for turn in few.chains[0].log.turns] == [30_000]
    assert (few.chains[0].log.runtime, few.is_whole) == ("claude-code", False)


def test_triggers_are_percentages_or_tokens_and_named() -> None:
    assert read_triggers("60%, 12.5, 150_000,") == [
        Threshold(percent=60),
        Threshold(percent=12.5),
        Threshold(tokens=150_000),
    ]
    for wrong in ("x", "0", "101%", "999", "9" * 13):
        with pytest.raises(ValueError, match=re.escape(wrong)):
            read_triggers(f"50,{wrong}")
    sixty = Threshold(percent=60)
    assert setting_of(sixty, 400_000, "default").name == "60% of 400,000, default"
    assert setting_of(None).name == "recorded trigger"
    assert setting_of(None, 400_000).name == "window 400,000"


def test_prices_are_of_the_hour_where_a_time_is_known() -> None:
    asked: list[tuple[str | None, datetime | None]] = []

    def lookup(model: str | None, when: datetime | None, _tier: str | None) -> Price:
        asked.append((model, when))
        return PRICE

    history = History()
    records = [reading(history, 5), reading(history, 6)]
    untimed = History(sequence=history.sequence, at=None)
    (chain,) = stored_answer([*records, reading(untimed, 7)], (), priced(lookup), ()).chains
    hour = datetime.fromtimestamp(START_MS / 1_000, UTC)
    assert asked == [("claude-sonnet-5", hour), ("claude-sonnet-5", None)]
    assert chain.recorded["claude-sonnet-5"].cost.is_complete
