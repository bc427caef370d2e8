"""R12: the window and other limits, and who tells them."""

import pytest

from schemas.records import (
    Category,
    CompactBoundary,
    ContextLimits,
    ContextReading,
)
from streams.core.derivation.limits import MAX_MODELS
from tests.core.given import (
    ANSWER,
    LARGE,
    MILLION,
    MODEL,
    OTHER_MODEL,
    OTHER_WINDOW,
    SESSION,
    WINDOW,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    every,
    init,
    kinds,
    limits,
    model_window,
    one,
    result,
    rollout,
    session,
    side,
    system,
    token_count,
    usage_answer,
    user,
)


def test_r12_the_first_record_comes_with_the_main_chains_first_model_by_init() -> None:
    records = session(user()).take(init())
    assert limits(one(records, ContextLimits)) == (WINDOW, "catalog")


def test_r12_the_first_record_comes_with_the_main_chains_first_model_by_response() -> None:
    records = session(user()).take(assistant(read=10, model=OTHER_MODEL))
    assert limits(one(records, ContextLimits)) == (OTHER_WINDOW, "catalog")


def test_r12_known_facts_are_not_announced_again() -> None:
    assert not every(session(init()).take(init(), assistant(read=10)), ContextLimits)


def test_r12_a_reading_without_any_model_assumes_the_default() -> None:
    records = session().take(assistant(read=10, model=None))
    assert limits(one(records, ContextLimits)) == (200_000, "default")
    reading = one(records, ContextReading)
    assert (reading.window, reading.window_source, reading.model) == (200_000, "default", None)


def test_r12_a_subagents_first_window_is_not_announced_but_a_change_is() -> None:
    given = session(init())
    assert not every(given.take(side(assistant("s", read=10, model=OTHER_MODEL))), ContextLimits)
    records = given.take(side(assistant("t", read=10, model=MODEL)))
    record = one(records, ContextLimits)
    assert (record.chain, record.model, *limits(record)) == ("a1b2", MODEL, WINDOW, "catalog")


def test_r12_a_changed_source_of_a_subagents_window_is_not_announced() -> None:
    given = session(init(), side(assistant("s", read=10, model=OTHER_MODEL)))
    assert not every(given.take(result({OTHER_MODEL: model_window(OTHER_WINDOW)})), ContextLimits)


def test_r12_model_usage_reports_a_chains_window_by_model_name() -> None:
    given = session(init(), assistant("a", read=10))
    records = given.take(result({MODEL: model_window(MILLION)}))
    assert limits(one(records, ContextLimits)) == (MILLION, "runtime")
    reading = one(given.take(assistant("b", read=20)), ContextReading)
    assert (reading.window, reading.window_source, reading.used_percent) == (
        MILLION,
        "runtime",
        0.0,
    )


def test_r12_never_the_first_nor_the_largest_entry() -> None:
    given = session(init(), assistant("a", read=10))
    helpers = {"helper-1": model_window(50_000), "helper-2": model_window(2_000_000)}
    assert not every(given.take(result(helpers)), ContextLimits)
    records = given.take(result(helpers | {MODEL: model_window(300_000)}))
    assert limits(one(records, ContextLimits)) == (300_000, "runtime")


def test_r12_a_suffix_of_the_entrys_name_does_not_count() -> None:
    records = session(init(LARGE)).take(result({LARGE: model_window(MILLION)}))
    assert limits(one(records, ContextLimits)) == (MILLION, "runtime")


def test_r12_an_entry_is_matched_by_its_canonical_name_too() -> None:
    windows = {"sonnet-on-some-cloud": model_window(300_000, canonical=MODEL)}
    records = session(init()).take(result(windows))
    assert limits(one(records, ContextLimits)) == (300_000, "runtime")


def test_r12_a_name_of_its_own_comes_before_a_canonical_one() -> None:
    windows = {"cloud": model_window(300_000, canonical=MODEL), MODEL: model_window(400_000)}
    assert limits(one(session(init()).take(result(windows)), ContextLimits)) == (400_000, "runtime")


@pytest.mark.parametrize(("model", "window"), [(LARGE, MILLION), (MODEL, 200_001)])
def test_r12_of_several_suffixes_that_of_the_latest_init(model: str, window: int) -> None:
    both = {MODEL: model_window(200_001), LARGE: model_window(MILLION)}
    for value in (both, dict(reversed(both.items()))):
        given = session(init(MODEL), init(LARGE), init(model))
        given.take(result(value))
        assert one(given.take(assistant(read=10)), ContextReading).window == window


def test_r12_a_later_init_selects_again_among_the_suffixes() -> None:
    both = {MODEL: model_window(200_001), LARGE: model_window(MILLION)}
    given = session(init(LARGE), result(both), init(MODEL))
    assert one(given.take(assistant(read=10)), ContextReading).window == 200_001


def test_r12_several_suffixes_and_none_is_the_latest_inits() -> None:
    given = session(init("claude-sonnet-5[500k]"))
    given.take(result({MODEL: model_window(200_001), LARGE: model_window(MILLION)}))
    reading = one(given.take(assistant(read=10)), ContextReading)
    assert (reading.window, reading.window_source) == (500_000, "catalog")


def test_r12_runtime_windows_serve_every_chain_of_the_model() -> None:
    given = session(init(), side(assistant("s", read=10)), side(assistant("t", read=9), "b2"))
    records = given.take(result({MODEL: model_window(300_000)}))
    found = every(records, ContextLimits)
    assert [(one.chain, one.window) for one in found] == [
        ("main", 300_000), ("a1b2", 300_000), ("b2", 300_000)
    ]  # fmt: skip
    later = given.take(side(assistant("u", read=10), "c3"))
    assert one(later, ContextReading).window == 300_000


def test_r12_several_for_one_message_are_main_first_then_by_subject() -> None:
    given = session(side(assistant("s", read=9), "zz"), side(assistant("t", read=9), "aa"), init())
    records = given.take(result({MODEL: model_window(300_000)}))
    assert [record.subject for record in records] == ["main", "aa", "zz"]


@pytest.mark.parametrize("wrong", [0, -1, "200000", None, 1.5])
def test_r12_an_invalid_window_is_ignored(wrong: object) -> None:
    assert not every(session(init()).take(result({MODEL: model_window(wrong)})), ContextLimits)
    assert not every(session(init()).take(result({MODEL: 5})), ContextLimits)


@pytest.mark.parametrize(
    "body",
    [
        any_message("autocompact_state", enabled=True, effective_window=180_000, threshold=167_000),
        system("autocompact_state", enabled=True, effective_window=180_000, threshold=167_000),
        any_message("autocompact_state", autocompact_state={
            "enabled": True, "effective_window": 180_000, "threshold": 167_000}),
        result(autocompact_state={
            "enabled": True, "effective_window": 180_000, "threshold": 167_000}),
        init(autocompact_state={
            "enabled": True, "effective_window": 180_000, "threshold": 167_000}),
        any_message("autocompact_state", value={
            "enabled": True, "effective_window": 180_000, "threshold": 167_000}),
    ],
)  # fmt: skip
def test_r12_autocompact_state_reports_auto_compact_facts(body: Body) -> None:
    record = one(session(init()).take(body), ContextLimits)
    facts = (record.auto_compact_enabled, record.auto_compact_threshold, record.effective_window)
    assert facts == (True, 167_000, 180_000)
    assert (limits(record), record.total_tokens, record.categories) == (
        (WINDOW, "catalog"),
        None,
        None,
    )


def test_r12_an_autocompact_state_without_facts_gives_no_record() -> None:
    assert session(init()).take(any_message("autocompact_state", enforced=True)) == []


def test_r12_facts_that_are_not_repeated_are_kept() -> None:
    given = session(init(), any_message("autocompact_state", enabled=True, threshold=167_000))
    records = given.take(any_message("autocompact_state", effective_window=180_000))
    record = one(records, ContextLimits)
    facts = (record.auto_compact_enabled, record.auto_compact_threshold, record.effective_window)
    assert facts == (True, 167_000, 180_000)


def test_r12_auto_compact_facts_are_the_main_chains() -> None:
    given = session(init(), side(assistant("s", read=10)))
    records = given.take(any_message("autocompact_state", enabled=True, threshold=167_000))
    assert [value.chain for value in every(records, ContextLimits)] == ["main"]
    changed = given.take(result({MODEL: model_window(300_000)}))
    of_side = every(changed, ContextLimits)[1]
    assert (of_side.chain, of_side.auto_compact_threshold) == ("a1b2", None)


def test_r12_facts_reported_before_the_first_model_are_announced_with_it() -> None:
    given = session(any_message("autocompact_state", enabled=False))
    assert not every(given.records, ContextLimits)
    assert one(given.take(init()), ContextLimits).auto_compact_enabled is False


def test_r12_a_context_usage_answer_reports_totals_and_categories() -> None:
    record = one(session(init()).take(usage_answer(**ANSWER), hint=SESSION), ContextLimits)
    assert record.total_tokens == 122_300
    assert record.categories == (
        Category(id="messages", name="Messages", kind="used", tokens=113_400),
    )
    facts = (record.auto_compact_enabled, record.auto_compact_threshold, record.effective_window)
    assert facts == (True, 167_000, 180_000)


def test_r12_a_context_usage_answer_is_no_reading() -> None:
    answer = ANSWER | {"apiUsage": {"input_tokens": 9, "cache_read_input_tokens": 121_098}}
    records = session(init()).take(usage_answer(**answer), hint=SESSION)
    assert kinds(records) == ["context_limits"]


def test_r12_context_usage_on_a_synthetic_frame_is_read_like_an_answer() -> None:
    usage_answer = {
        "model": MODEL,
        "total_tokens": 122_300,
        "raw_max_tokens": 180_000,
        "categories": [{"name": "Messages", "tokens": 113_400, "kind": "used"}],
    }
    frame = assistant("x", model="<synthetic>", context_usage=usage_answer)
    answered = one(session(init()).take(frame), ContextLimits)
    assert (answered.total_tokens, answered.effective_window) == (122_300, 180_000)
    assert answered.categories == (Category(id=None, name="Messages", kind="used", tokens=113_400),)


def test_r12_raw_max_tokens_is_the_window_only_if_no_context_window_was_reported() -> None:
    given = session(init())
    records = given.take(usage_answer(**ANSWER), hint=SESSION)
    assert limits(one(records, ContextLimits)) == (180_000, "runtime")
    record = one(given.take(result({MODEL: model_window(300_000)})), ContextLimits)
    assert (*limits(record), record.effective_window) == (300_000, "runtime", 180_000)
    later = usage_answer(**(ANSWER | {"rawMaxTokens": 150_000}))
    again = one(given.take(later, hint=SESSION), ContextLimits)
    assert (*limits(again), again.effective_window) == (300_000, "runtime", 150_000)


def test_r12_an_answer_without_a_model_applies_to_the_main_chains_model() -> None:
    without_model = {key: value for key, value in ANSWER.items() if key != "model"}
    records = session(init()).take(usage_answer(**without_model), hint=SESSION)
    assert limits(one(records, ContextLimits)) == (180_000, "runtime")


def test_r12_windows_reported_before_any_model_belong_to_the_first_model() -> None:
    without_model = {key: value for key, value in ANSWER.items() if key != "model"}
    asked = Given()
    asked.take(usage_answer(**without_model), hint=SESSION)
    assert limits(one(asked.take(init()), ContextLimits)) == (180_000, "runtime")
    rolled = Given()
    rolled.take(token_count({"input_tokens": 27_200}, 27_200), hint="r")
    rolled.take(rollout("turn_context", {"model": "any-model"}), hint="r")
    records = rolled.take(token_count({"input_tokens": 27_200}, 54_400, window=None), hint="r")
    reading = one(records, ContextReading)
    assert (reading.model, reading.window, reading.window_source) == (
        "any-model",
        272_000,
        "runtime",
    )


def test_r12_a_repeated_answer_changes_nothing() -> None:
    given = session(init())
    given.take(usage_answer(**ANSWER), hint=SESSION)
    again = usage_answer(**(ANSWER | {"percentage": 61}))
    assert given.take(again, hint=SESSION) == []


def test_r12_an_answer_with_other_totals_is_a_change() -> None:
    given = session(init())
    given.take(usage_answer(**ANSWER), hint=SESSION)
    other = usage_answer(**(ANSWER | {"totalTokens": 130_000}))
    assert one(given.take(other, hint=SESSION), ContextLimits).total_tokens == 130_000


def test_r12_a_record_after_an_answer_has_its_totals_even_if_only_a_limit_changed() -> None:
    given = session(init())
    given.take(usage_answer(**ANSWER), hint=SESSION)
    other = usage_answer(**(ANSWER | {"isAutoCompactEnabled": False}))
    record = one(given.take(other, hint=SESSION), ContextLimits)
    assert (record.auto_compact_enabled, record.total_tokens) == (False, 122_300)
    later = one(given.take(result({MODEL: model_window(MILLION)})), ContextLimits)
    assert (later.total_tokens, later.categories) == (None, None)


def test_r12_an_answer_may_lack_its_categories() -> None:
    records = session(init()).take(usage_answer(totalTokens=5), hint=SESSION)
    record = one(records, ContextLimits)
    assert (record.total_tokens, record.categories) == (5, None)


@pytest.mark.parametrize(
    "body",
    [
        usage_answer(subtype="set_model"),
        {"type": "control_response", "response": {"response": "text"}},
        {"type": "control_response"},
        {"type": "control_request", "request": {"subtype": "get_context_usage"}},
    ],
)
def test_r12_other_control_messages_are_ignored(body: Body) -> None:
    assert session(init()).take(body, hint=SESSION) == []


def test_r12_model_refusal_fallback_sets_the_main_chains_model_at_once() -> None:
    given = session(init())
    frame = system("model_refusal_fallback", original_model=MODEL, fallback_model=OTHER_MODEL)
    record = one(given.take(frame), ContextLimits)
    assert (record.model, *limits(record)) == (OTHER_MODEL, OTHER_WINDOW, "catalog")
    later = one(given.take(boundary()), CompactBoundary)
    assert later.model == OTHER_MODEL
    assert session(init()).take(system("model_refusal_fallback")) == []


def test_r12_a_local_refusal_fallback_changes_nothing() -> None:
    frame = system("model_refusal_fallback", fallback_model=OTHER_MODEL, scope="local")
    assert session(init()).take(frame) == []


@pytest.mark.parametrize("scope", ["session", None, 3])
def test_r12_any_other_refusal_fallback_changes_the_model(scope: object) -> None:
    frame = system("model_refusal_fallback", fallback_model=OTHER_MODEL, scope=scope)
    assert one(session(init()).take(frame), ContextLimits).model == OTHER_MODEL


def test_r12_a_change_of_model_within_the_main_chain_is_a_change_of_limits() -> None:
    records = session(init(), assistant("a", read=10)).take(
        assistant("b", read=4_096, model=OTHER_MODEL)
    )
    record = one(records, ContextLimits)
    assert (record.model, *limits(record)) == (OTHER_MODEL, OTHER_WINDOW, "catalog")
    assert one(records, ContextReading).used_percent == 50.0


def test_r12_a_codex_rollout_reports_the_window_of_its_model() -> None:
    given = Given()
    given.take(rollout("turn_context", {"model": "gpt-5-codex", "cwd": "/repo"}), hint="r")
    assert limits(one(given.records, ContextLimits)) == (200_000, "default")
    records = given.take(token_count({"input_tokens": 27_200}, 27_200), hint="r")
    assert limits(one(records, ContextLimits)) == (272_000, "runtime")
    assert one(records, ContextReading).used_percent == 10.0
    records = given.take(token_count({"input_tokens": 27_200}, 54_400, window=None), hint="r")
    assert one(records, ContextReading).window == 272_000


def test_r12_no_more_than_64_models_are_remembered() -> None:
    given = session(init())
    given.take(result({f"model-{number}": model_window(1_000 + number) for number in range(70)}))
    facts = given.session().facts
    assert 0 < len(facts.windows) <= 64
    assert facts.windows["model-69"] == 1_069
    for number in range(70):
        given.take(assistant(f"r{number}", read=999_999, model=f"other-{number}"))
    assert 0 < len(given.session().facts.exceeded) <= 64


def test_r12_of_too_many_models_the_windows_of_the_oldest_go() -> None:
    given = session()
    for number in range(MAX_MODELS + 2):
        given.take(result({f"model-{number}": model_window(1_000 + number)}))
    windows = given.session(SESSION).facts.reported_windows
    assert list(windows) == [f"model-{number}" for number in range(2, MAX_MODELS + 2)]
