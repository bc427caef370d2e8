"""When a compaction is due, and why not."""

from dataclasses import replace

import pytest
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
    declined,
    failed,
    limits_of,
)
from contextgauge.compaction.profiles import DEFAULT, Window

WINDOW = Window(100_000, "given")
LIMITS = limits_of(DEFAULT, WINDOW, 0)
CALM = Situation(
    size_tokens=10_000,
    smallest_tokens=1_000,
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
    request = replace(CALM, size_tokens=75_000)
    state, decision = decide(TriggerState(), LIMITS, request)
    assert decision == Warn()
    state, decision = decide(state, LIMITS, request)
    assert decision == Idle("below_threshold")
    _, decision = decide(compacted(state), LIMITS, request)
    assert decision == Warn()


def test_at_the_threshold_a_compaction_is_due() -> None:
    assert decide(TriggerState(), LIMITS, FULL)[1] == Due(overflow=False)
    assert decide(TriggerState(), LIMITS, replace(FULL, size_tokens=97_000))[1] == Due(
        overflow=True
    )


def test_never_while_a_call_is_open() -> None:
    request = replace(FULL, size_tokens=120_000, open_calls=True)
    assert decide(TriggerState(), LIMITS, request)[1] == Idle("open_calls")


def test_a_request_that_fits_at_no_size_is_reported_once() -> None:
    request = replace(FULL, size_tokens=99_000, smallest_tokens=LIMITS.usable_tokens)
    state, decision = decide(TriggerState(), LIMITS, request)
    assert decision == Unreachable()
    assert decide(state, LIMITS, request)[1] == Idle("threshold_unreachable")
    request = replace(request, smallest_tokens=LIMITS.usable_tokens - 1)
    assert decide(state, LIMITS, request)[1] == Due(overflow=True)


def test_thresholds_are_shares_of_what_can_be_changed() -> None:
    limits = limits_of(DEFAULT, WINDOW, 10_000, fixed_tokens=70_000)
    assert (limits.usable_tokens, limits.changeable_tokens) == (90_000, 20_000)
    assert limits.warn_at_tokens == 70_000 + 15_000
    assert limits.compact_at_tokens == 70_000 + 17_000
    assert limits.compact_to_tokens == 70_000 + 10_000


def test_a_goal_of_the_whole_window_leaves_room_over_a_large_fixed_part() -> None:
    whole = replace(DEFAULT, shares_of="usable")
    for fixed, goal in ((0, 50_000), (30_000, 50_000), (70_000, 77_500), (90_000, 87_500)):
        limits = limits_of(whole, Window(110_000, "given"), 10_000, fixed_tokens=fixed)
        assert limits.compact_at_tokens == 85_000
        assert limits.compact_to_tokens == goal


def test_a_reserve_that_no_request_names_leaves_most_of_a_small_window() -> None:
    assert limits_of(DEFAULT, Window(4_000, "given"), 0).usable_tokens == 3_000
    assert limits_of(DEFAULT, Window(4_000, "given"), 3_900).usable_tokens == 100


def test_a_compactions_effect_is_awaited_before_the_next() -> None:
    state = compacted(decide(TriggerState(), LIMITS, FULL)[0])
    assert decide(state, LIMITS, replace(FULL, effect_tokens=None))[1] == Idle("awaiting_effect")


def test_after_two_that_did_not_help_nothing_is_done_until_the_users_next_turn() -> None:
    state = TriggerState()
    request = replace(FULL, size_tokens=92_000, effect_tokens=82_000)
    for _ in range(2):
        state, decision = decide(state, LIMITS, request)
        assert decision == Due(overflow=False)
        state = compacted(state)
    request = replace(request, size_tokens=95_000)
    state, decision = decide(state, LIMITS, request)
    assert decision == Idle("no_progress")
    assert decide(state, LIMITS, replace(request, turns=2))[1] == Due(overflow=False)


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
    assert decide(state, LIMITS, replace(FULL, now_ms=30_999))[1] == Idle("pause_after_failure")
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


def test_a_pause_is_over_where_the_clock_was_set_back() -> None:
    state = failed(TriggerState(), 4_000_000_000_000)
    assert decide(state, LIMITS, FULL)[1] == Due(overflow=False)


@pytest.mark.parametrize(
    "state",
    [
        failed(TriggerState(), 1_000),
        failed(TriggerState(), 1_000, final_at_turns=1),
        declined(TriggerState(), 1_000, 1),
        TriggerState(awaiting_effect=True),
        TriggerState(unhelpful=2, stopped_at_turns=1),
    ],
    ids=["failed", "final", "declined", "awaiting", "stopped"],
)
def test_a_request_that_does_not_fit_waits_for_no_pause_and_takes_the_floor(
    state: TriggerState,
) -> None:
    request = replace(FULL, effect_tokens=None)
    assert isinstance(decide(state, LIMITS, request)[1], Idle)
    request = replace(request, size_tokens=LIMITS.usable_tokens)
    assert decide(state, LIMITS, request)[1] == Due(overflow=True, floor=True)
    without = replace(LIMITS, floor=False)
    assert isinstance(decide(state, without, request)[1], Idle)


def test_a_tenth_of_what_can_be_changed_lies_between_two_compactions() -> None:
    calm = replace(DEFAULT, warn_at=None)
    limits = limits_of(calm, WINDOW, 20_000, fixed_tokens=60_000)  # 20 000 can be changed
    state = compacted(TriggerState())
    left = replace(FULL, size_tokens=76_500, effect_tokens=76_500)
    state, decision = decide(state, limits, left)
    assert decision == Idle("below_threshold")
    assert decide(state, limits, replace(left, size_tokens=78_499))[1] == Idle("below_threshold")
    assert decide(state, limits, replace(left, size_tokens=78_500))[1] == Due(overflow=False)
    state = compacted(state)
    state, _ = decide(state, limits, replace(left, effect_tokens=79_500))
    assert decide(state, limits, replace(left, size_tokens=79_999))[1] == Idle("below_threshold")


@given(
    st.lists(
        st.tuples(st.integers(0, 200_000), st.booleans(), st.booleans(), st.sampled_from("csf")),
        max_size=60,
    )
)
def test_compactions_without_effect_are_bounded_by_the_users_turns(
    steps: list[tuple[int, bool, bool, str]],
) -> None:
    """Whatever sizes come: two without effect for each turn of the user, but for the floor."""
    state, turns, unhelped = TriggerState(), 1, 0
    for size, is_turn, is_open, outcome in steps:
        turns += is_turn
        unhelped = 0 if is_turn or size < LIMITS.compact_at_tokens else unhelped
        request = replace(
            CALM,
            size_tokens=size,
            turns=turns,
            open_calls=is_open,
            effect_tokens=size,
        )
        state, decision = decide(state, LIMITS, request)
        if isinstance(decision, Due) and not decision.floor:
            if outcome == "f":
                state = failed(state, request.now_ms)
            else:
                state = compacted(state)
                unhelped += 1
        elif isinstance(decision, Due):
            assert size >= LIMITS.usable_tokens
            state = compacted(state)
        assert unhelped <= 2
