"""R13 and the numbers of the records: where a window is known from, and when it was wrong."""

from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    ContextLimits,
    ContextReading,
    ContextWarning,
)
from streams.core.derivation.rules_config import Rules
from tests.core.given import (
    CATALOG,
    LARGE,
    MILLION,
    MODEL,
    OTHER_MODEL,
    OTHER_WINDOW,
    WINDOW,
    assistant,
    boundary,
    every,
    init,
    limits,
    model_window,
    one,
    result,
    session,
    side,
    user,
)


def test_numbers_a_configured_window_is_the_best_source() -> None:
    rules = Rules(CATALOG, configured_windows={MODEL: 150_000})
    given = session(init(), result({MODEL: model_window(MILLION)}), rules=rules)
    reading = one(given.take(assistant(read=15_000)), ContextReading)
    assert (reading.window, reading.window_source, reading.used_percent) == (
        150_000,
        "configured",
        10.0,
    )


def test_numbers_a_runtime_window_comes_before_the_catalog_and_that_before_the_default() -> None:
    reading = one(session().take(assistant(read=9, model="unheard-of")), ContextReading)
    assert (reading.window, reading.window_source) == (200_000, "default")
    reading = one(session().take(assistant(read=9, model=OTHER_MODEL)), ContextReading)
    assert (reading.window, reading.window_source) == (OTHER_WINDOW, "catalog")
    given = session(result({OTHER_MODEL: model_window(9_000)}))
    reading = one(given.take(assistant(read=9, model=OTHER_MODEL)), ContextReading)
    assert (reading.window, reading.window_source) == (9_000, "runtime")


def test_numbers_the_default_is_configurable() -> None:
    rules = Rules(CATALOG, default_window=32_000)
    records = session(rules=rules).take(assistant(read=9, model="unheard-of"))
    assert limits(one(records, ContextLimits)) == (32_000, "default")


def test_numbers_a_suffix_of_inits_model_means_a_million() -> None:
    given = session(init(LARGE))
    assert limits(one(given.records, ContextLimits)) == (MILLION, "catalog")
    reading = one(given.take(assistant(read=250_000)), ContextReading)
    assert (reading.window, reading.model, reading.used_percent) == (MILLION, MODEL, 25.0)
    given.take(init(MODEL))
    assert one(given.take(assistant("b", read=10)), ContextReading).window == WINDOW


@pytest.mark.parametrize(
    "spelling",
    [("toolUseResult", "resolvedModel"), ("tool_use_result", "resolved_model")],
)
def test_r12_an_agents_result_that_names_a_model_with_its_suffix_tells_the_window(
    spelling: tuple[str, str],
) -> None:
    outer, inner = spelling
    given = session(assistant("a", read=120_000))
    result: dict[str, Any] = {outer: {"agentId": "a1", inner: LARGE, "totalTokens": 9}}
    records = given.take(user(**result))
    assert limits(one(records, ContextLimits)) == (MILLION, "catalog")
    reading = one(given.take(assistant("b", read=190_000)), ContextReading)
    assert (reading.window, reading.model, reading.used_percent) == (MILLION, MODEL, 19.0)
    given.take(init(MODEL))
    assert one(given.take(assistant("c", read=10)), ContextReading).window == WINDOW


@pytest.mark.parametrize(
    "result",
    [
        {"resolvedModel": MODEL},
        {"resolvedModel": f"{OTHER_MODEL}[1m]"},
        {"resolvedModel": f"about {LARGE}"},
        {"resolvedModel": "[1m]" * 400},
        {"resolvedModel": 1},
        f"{LARGE}",
        [LARGE],
    ],
)
def test_r12_another_result_of_a_tool_changes_no_window_of_this_model(result: object) -> None:
    given = session(assistant("a", read=120_000))
    assert every(given.take(user(toolUseResult=result)), ContextLimits) == []
    assert one(given.take(assistant("b", read=190_000)), ContextReading).window == WINDOW


def test_r12_a_suffix_after_a_larger_size_gives_the_window_back() -> None:
    given = session(init(), assistant("a", read=250_000), assistant("b", read=251_000))
    assert limits(one(given.take(init(LARGE)), ContextLimits)) == (MILLION, "catalog")
    given = session(assistant("a", read=250_000), assistant("b", read=251_000))
    records = given.take(user(toolUseResult={"resolvedModel": LARGE}))
    assert limits(one(records, ContextLimits)) == (MILLION, "catalog")
    records = given.take(assistant("c", read=MILLION + 1))
    assert limits(one(records, ContextLimits)) == (None, "exceeded")


@pytest.mark.parametrize("model", [MODEL, "unheard-of"])
def test_numbers_a_reading_beyond_an_assumed_window_voids_it(model: str) -> None:
    given = session(init(model), assistant("a", read=150_000, model=model))
    records = given.take(assistant("b", read=200_001, model=model))
    assert limits(one(records, ContextLimits)) == (None, "exceeded")
    reading = one(records, ContextReading)
    assert (reading.window, reading.window_source, reading.used_percent) == (None, "exceeded", None)
    assert not every(records, ContextWarning)
    later = one(given.take(assistant("c", read=100, model=model)), ContextReading)
    assert (later.window, later.window_source) == (None, "exceeded")


def test_numbers_a_reading_of_exactly_the_window_does_not_void_it() -> None:
    reading = one(session().take(assistant(read=WINDOW)), ContextReading)
    assert (reading.window, reading.used_percent) == (WINDOW, 100.0)


def test_numbers_a_voided_window_is_null_until_a_runtime_reports_one() -> None:
    given = session(init(), assistant("a", read=250_000), init())
    assert one(given.take(assistant("b", read=10)), ContextReading).window is None
    records = given.take(result({MODEL: model_window(MILLION)}))
    assert limits(one(records, ContextLimits)) == (MILLION, "runtime")
    assert one(given.take(assistant("c", read=250_000)), ContextReading).used_percent == 25.0


def test_numbers_a_window_is_voided_for_this_session_and_model_only() -> None:
    given = session(init(), assistant("a", read=250_000))
    other = given.take(assistant("b", read=10, model=OTHER_MODEL))
    assert one(other, ContextReading).window == OTHER_WINDOW
    elsewhere = given.take(assistant("c", read=10, session_id="another"))
    assert one(elsewhere, ContextReading).window == WINDOW


def test_numbers_a_voided_window_is_void_for_every_chain_of_the_model() -> None:
    given = session(init(), side(assistant("s", read=10)))
    records = given.take(assistant("a", read=250_000))
    assert [(value.chain, value.window) for value in every(records, ContextLimits)] == [
        ("main", None), ("a1b2", None)
    ]  # fmt: skip


def test_r13_a_reported_window_is_never_voided_and_nothing_is_clamped() -> None:
    given = session(init(), result({MODEL: model_window(100_000)}))
    records = given.take(assistant(read=150_000))
    reading, warning = one(records, ContextReading), one(records, ContextWarning)
    assert (reading.window, reading.used_percent) == (100_000, 150.0)
    assert (warning.context_used_percent, warning.context_remaining_percent) == (150.0, -50.0)


def test_r13_pre_tokens_may_exceed_the_window() -> None:
    records = session(init()).take(boundary({"trigger": "auto", "pre_tokens": 212_345}))
    assert one(records, CompactBoundary).pre_tokens == 212_345


DATED = f"{MODEL}-20260929"


@pytest.mark.parametrize(("model", "reported"), [(MODEL, DATED), (DATED, MODEL)])
def test_r12_an_alias_and_its_dated_name_are_one_model(model: str, reported: str) -> None:
    given = session(init(model), result({reported: model_window(1_000_000)}))
    reading = one(given.take(assistant("a", read=150_000, model=model)), ContextReading)
    assert (reading.window, reading.window_source) == (1_000_000, "runtime")


def test_r12_two_different_dates_are_two_models() -> None:
    given = session(init(DATED), result({f"{MODEL}-20260101": model_window(1_000_000)}))
    reading = one(given.take(assistant("a", read=9, model=DATED)), ContextReading)
    assert (reading.window, reading.window_source) == (WINDOW, "catalog")


def test_r12_of_several_dates_the_latest_reported_counts() -> None:
    old, new = f"{MODEL}-20250101", f"{MODEL}-20260101"
    given = session(init(), result({old: model_window(300_000)}))
    given.take(result({new: model_window(400_000)}))
    assert one(given.take(assistant("a", read=9)), ContextReading).window == 400_000
    given.take(result({old: model_window(300_000)}))
    assert one(given.take(assistant("b", read=9)), ContextReading).window == 300_000


def test_r12_a_name_of_its_own_comes_before_a_dated_one() -> None:
    given = session(init(), result({MODEL: model_window(300_000), DATED: model_window(1_000_000)}))
    assert one(given.take(assistant("a", read=9)), ContextReading).window == 300_000


def test_r12_a_suffix_of_inits_alias_is_the_dated_models() -> None:
    given = session(init(f"{MODEL}[1m]"))
    reading = one(given.take(assistant("a", read=150_000, model=DATED)), ContextReading)
    assert reading.window == 1_000_000


@pytest.mark.parametrize(("first", "second"), [(MODEL, DATED), (DATED, MODEL)])
def test_r12_the_latest_init_decides_on_the_suffix_of_either_name(first: str, second: str) -> None:
    given = session(init(f"{first}[1m]"), assistant("a", read=9, model=first), init(second))
    reading = one(given.take(assistant("b", read=9, model=second)), ContextReading)
    assert reading.window == WINDOW


def test_r12_the_latest_report_counts_by_whichever_name_it_matches() -> None:
    given = session(init(), result({f"{MODEL}-20250101": model_window(300_000)}))
    given.take(result({"alias": model_window(400_000, f"{MODEL}-20260101")}))
    assert one(given.take(assistant("a", read=9)), ContextReading).window == 400_000
