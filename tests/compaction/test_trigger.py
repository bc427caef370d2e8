"""When a compaction is due, and why not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction.engine.trigger import (
    Due,
    Idle,
    Situation,
    TriggerState,
    Unreachable,
    Warn,
    compacted,
    decide,
    failed,
    limits_of,
)
from contextgauge.compaction.profiles import DEFAULT, Window

WINDOW = Window(100_000, "given")
LIMITS = limits_of(DEFAULT, WINDOW, 0)
CALM = Situation(
    size_tokens=10_000,
    fixed_tokens=1_000,
    messages=10,
    turns=1,
    effect_tokens=10_000,
    open_calls=False,
    now_ms=1_000,
)
FULL = replace(CALM, size_tokens=90_000, effect_tokens=90_000)


def test_the_answers_reserve_is_what_the_request_says() -> None:
    assert limits_of(DEFAULT, WINDOW, 20_000).usable_tokens == 80_000
    assert limits_of(DEFAULT, WINDOW, 0).usable_tokens == 96_000


def test_below_the_thresholds_nothing_is_done() -> None:
    assert decide(TriggerState(), LIMITS, CALM) == (TriggerState(), Idle("below_threshold"))


def test_the_warning_comes_once_until_the_next_compaction() -> None:
    at = replace(CALM, size_tokens=75_000)
    state, decision = decide(TriggerState(), LIMITS, at)
    assert decision == Warn()
    state, decision = decide(state, LIMITS, at)
    assert decision == Idle("below_threshold")
    _, decision = decide(compacted(state), LIMITS, at)
    assert decision == Warn()


def test_at_the_threshold_a_compaction_is_due() -> None:
    assert decide(TriggerState(), LIMITS, FULL)[1] == Due(overflow=False)
    assert decide(TriggerState(), LIMITS, replace(FULL, size_tokens=97_000))[1] == Due(
        overflow=True
    )


def test_never_while_a_call_is_open() -> None:
    at = replace(FULL, size_tokens=120_000, open_calls=True)
    assert decide(TriggerState(), LIMITS, at)[1] == Idle("open_calls")


def test_an_unreachable_threshold_is_reported_once() -> None:
    at = replace(FULL, fixed_tokens=LIMITS.compact_at_tokens)
    state, decision = decide(TriggerState(), LIMITS, at)
    assert decision == Unreachable()
    assert decide(state, LIMITS, at)[1] == Idle("threshold_unreachable")


def test_a_compactions_effect_is_awaited_before_the_next() -> None:
    state = compacted(decide(TriggerState(), LIMITS, FULL)[0])
    assert decide(state, LIMITS, replace(FULL, effect_tokens=None))[1] == Idle("awaiting_effect")


def test_after_two_that_did_not_help_nothing_is_done_until_the_users_next_turn() -> None:
    state = TriggerState()
    for messages in (10, 20):
        state, decision = decide(state, LIMITS, replace(FULL, messages=messages))
        assert decision == Due(overflow=False)
        state = compacted(state)
    at = replace(FULL, messages=30)
    state, decision = decide(state, LIMITS, at)
    assert decision == Idle("no_progress")
    state, decision = decide(state, LIMITS, replace(at, messages=31, turns=2))
    assert decision == Due(overflow=False)


def test_one_that_helped_ends_the_count() -> None:
    state = compacted(decide(TriggerState(), LIMITS, FULL)[0])
    state, _ = decide(state, LIMITS, FULL)
    state = compacted(state)
    state, decision = decide(state, LIMITS, CALM)
    assert (decision, state.unhelpful) == (Idle("below_threshold"), 0)


def test_pauses_after_failures_grow_and_heed_what_the_provider_asks_for() -> None:
    state = failed(TriggerState(), 1_000)
    assert state.retry_at_ms == 31_000
    assert decide(state, LIMITS, FULL)[1] == Idle("pause_after_failure")
    assert decide(state, LIMITS, replace(FULL, now_ms=31_000))[1] == Due(overflow=False)
    assert failed(state, 1_000).retry_at_ms == 61_000
    assert failed(state, 1_000, retry_after_ms=300_000).retry_at_ms == 301_000
    assert failed(state, 1_000, retry_after_ms=5_000).retry_at_ms == 6_000


def test_what_no_repetition_can_mend_waits_for_the_users_next_turn() -> None:
    state = failed(TriggerState(), 1_000, final_at_turns=1)
    assert state.retry_at_ms is None
    later = replace(FULL, now_ms=10**9)
    assert decide(state, LIMITS, later)[1] == Idle("pause_after_failure")
    assert decide(state, LIMITS, replace(later, turns=2))[1] == Due(overflow=False)


def test_a_full_window_does_not_wait_for_a_pause_but_needs_growth() -> None:
    state = failed(replace(TriggerState(), tried_at_messages=10), 1_000)
    at = replace(FULL, size_tokens=99_000)
    assert decide(state, LIMITS, at)[1] == Idle("pause_after_failure")
    assert decide(state, LIMITS, replace(at, messages=11))[1] == Due(overflow=True)


@given(
    st.lists(
        st.tuples(st.integers(0, 200_000), st.booleans(), st.booleans(), st.sampled_from("csf")),
        max_size=60,
    )
)
def test_compactions_without_effect_are_bounded_by_the_users_turns(
    steps: list[tuple[int, bool, bool, str]],
) -> None:
    """Whatever sizes come: at most two compactions without effect for each turn of the user."""
    state, turns, unhelped = TriggerState(), 1, 0
    for number, (size, is_turn, is_open, outcome) in enumerate(steps):
        turns += is_turn
        unhelped = 0 if is_turn or size < LIMITS.compact_at_tokens else unhelped
        at = replace(
            CALM,
            size_tokens=size,
            messages=number,
            turns=turns,
            open_calls=is_open,
            effect_tokens=size,
        )
        state, decision = decide(state, LIMITS, at)
        if isinstance(decision, Due):
            if outcome == "f":
                state = failed(state, at.now_ms)
            else:
                state = compacted(state)
                unhelped += 1
        assert unhelped <= 2
