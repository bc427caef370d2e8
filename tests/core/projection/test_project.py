"""The session view: given records, when the next one comes, then these figures."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Category, Trigger, TriggerReason
from schemas.views import (
    LAST_COMPACTIONS,
    MAX_CHAINS,
    AttemptView,
    Breakdown,
    ChainView,
    CompactionBrief,
    Identity,
    SessionView,
)
from streams.core.projection.project import project
from tests.core.history import START_MS, WINDOW, History, view_of


def main(view: SessionView) -> ChainView:
    return view.chains["main"]


def test_a_first_reading_begins_a_view() -> None:
    history = History()
    view = view_of(history.reading(50_000, messages=3))
    assert (view.session_id, view.position, view.sequence) == ("s-1", 1, 1)
    assert view.first_ms == view.last_ms == START_MS + 1000
    assert view.identity == Identity()
    assert view.attempt is None
    assert main(view) == ChainView(
        chain="main",
        model="claude-sonnet-5",
        state="measured",
        used_tokens=50_000,
        used_percent=25.0,
        window=WINDOW,
        window_source="default",
        breakdown=Breakdown(input_tokens=10, cache_creation_tokens=None, cache_read_tokens=49_990),
        as_of_ms=START_MS + 1000,
        peak_tokens=50_000,
        peak_percent=25.0,
        messages=3,
        messages_total=103,
        oldest_ms=START_MS + 1000,
        last_sequence=1,
    )


def test_a_record_below_the_views_position_is_in_it_already() -> None:
    history = History()
    view = view_of(history.reading(50_000), history.reading(60_000))
    assert view.position == 3
    again = history.reading(70_000)
    assert project(view, again, 2) is view
    assert main(project(view, again, 3)).used_tokens == 70_000


def test_times_are_those_of_the_records() -> None:
    history = History()
    view = view_of(*(history.reading(1, at=second) for second in (None, 50, 20)))
    assert view.first_ms == START_MS + 50_000
    assert view.last_ms == START_MS + 50_000
    assert main(view).as_of_ms == START_MS + 20_000
    assert main(view).oldest_ms == START_MS + 50_000
    assert view_of(History().reading(1, at=None)).last_ms is None
    last = view_of(*(history.reading(1, at=second) for second in (50, None))).last_ms
    assert last == START_MS + 50_000


def test_identity_holds_the_latest_reported_facts() -> None:
    history = History()
    view = view_of(
        history.info(runtime="claude-code", runtime_version="2.1.0", cwd="/a", model="m[1m]"),
        history.info(cwd="/b", forked_from="s-0"),
        history.reading(5, task_id="t-1"),
        history.info(runtime_version="2.1.1", publisher_agent_id="a-1"),
        history.info(model="m[1m]"),
    )
    assert view.identity == Identity(
        runtime="claude-code",
        runtime_version="2.1.1",
        model="m[1m]",
        cwd="/b",
        forked_from="s-0",
        task_id="t-1",
        publisher_agent_id="a-1",
    )
    assert list(view.chains) == ["main"]
    assert not view_of(history.info(cwd="/c")).chains


def test_chains_are_independent() -> None:
    history = History()
    view = view_of(
        history.reading(50_000),
        history.reading(9_000, chain="a1", subagent_type="Explore", model="claude-haiku-4-5"),
        history.reading(8_000, chain="a1", model=None),
    )
    assert main(view).used_tokens == 50_000
    side = view.chains["a1"]
    assert (side.used_tokens, side.model, side.subagent_type) == (
        8_000,
        "claude-haiku-4-5",
        "Explore",
    )


def test_the_least_recent_chain_leaves_but_never_main() -> None:
    history = History()
    records = [history.reading(1)]
    records += [history.reading(1, chain=f"a{number}") for number in range(MAX_CHAINS - 1)]
    records.append(history.reading(2, chain="a0"))
    full = view_of(*records)
    assert len(full.chains) == MAX_CHAINS
    view = view_of(*records, history.reading(1, chain="new"))
    assert len(view.chains) == MAX_CHAINS
    assert set(full.chains) - set(view.chains) == {"a1"}


@pytest.mark.parametrize(
    ("sizes", "growth", "left"),
    [
        ([1_000], None, None),
        ([1_000, 1_000, 900], None, None),
        ([1_000, 2_000], 1_000, 198),
        ([1_000, 2_000, 4_001], 1_500, 130),
        ([1_000, 2_000, 1_500, 4_000, 9_000], 2_833, 67),
        ([1_000, 1_100, 1_200, 9_200], 2_733, 69),
        ([100_000, 300_000], 200_000, -1),
    ],
)
def test_growth_is_the_integer_mean_of_positive_differences(
    sizes: list[int], growth: int | None, left: int | None
) -> None:
    history = History()
    chain = main(view_of(*[history.reading(size) for size in sizes]))
    assert chain.growth_tokens == growth
    assert chain.responses_left == left


def test_growth_knows_the_last_twenty_differences_only() -> None:
    history = History()
    sizes = [0, 1_000, 1_007, 1_008]
    sizes += [1_008 + 10 * number for number in range(1, 19)]
    chain = main(view_of(*[history.reading(size) for size in sizes]))
    assert chain.differences == (7, 1, *[10] * 18)
    assert chain.growth_tokens == 9


def test_growth_restarts_with_an_epoch() -> None:
    history = History()
    before = [history.reading(1_000), history.reading(2_000)]
    for ends in (history.boundary, history.reset):
        after = main(view_of(*before, ends()))
        assert (after.differences, after.growth_tokens, after.responses_left) == ((), None, None)
        first = main(view_of(*before, ends(), history.reading(9_000)))
        assert first.growth_tokens is None


def test_the_peak_stays() -> None:
    history = History()
    records = history.reading(150_000), history.boundary(pre=150_000), history.reading(30_000)
    chain = main(view_of(*records))
    assert (chain.peak_tokens, chain.peak_percent) == (150_000, 75.0)
    chain = main(view_of(history.reading(50), history.reading(60, window=None)))
    assert (chain.peak_tokens, chain.peak_percent) == (60, None)


def test_r22_after_a_boundary_the_size_is_unknown_until_the_next_reading() -> None:
    history = History()
    before = [history.reading(150_000, messages=40), history.boundary(at=100)]
    chain = main(view_of(*before))
    assert (chain.state, chain.used_tokens, chain.used_percent) == ("unknown", None, None)
    assert (chain.breakdown, chain.until_compaction_tokens) == (None, None)
    assert (chain.messages, chain.messages_total) == (0, 140)
    assert chain.as_of_ms == chain.oldest_ms == START_MS + 100_000
    assert chain.window == WINDOW
    chain = main(view_of(*before, history.reading(30_000, messages=2, at=130)))
    assert (chain.state, chain.used_tokens, chain.messages) == ("measured", 30_000, 2)
    assert chain.oldest_ms == START_MS + 100_000


def test_r27_after_a_reset_the_size_is_unknown() -> None:
    history = History()
    view = view_of(history.reading(150_000), history.reset())
    assert main(view).state == "unknown"
    assert view.compactions.last == ()


def test_limits_determine_when_compaction_is_due() -> None:
    history = History()
    limits = history.limits(threshold=160_000, enabled=True)
    view = view_of(limits, history.reading(100_000), history.reading(110_000))
    chain = main(view)
    assert (chain.until_compaction_tokens, chain.responses_left) == (50_000, 5)
    off = main(project(view, history.limits(threshold=160_000, enabled=False), 99))
    assert (off.until_compaction_tokens, off.responses_left) == (None, 9)
    wider = main(project(view, history.limits(window=1_000_000, threshold=105_000), 99))
    assert (wider.used_percent, wider.until_compaction_tokens) == (11.0, -5_000)
    assert wider.responses_left == -1
    unknown = main(project(view, history.limits(window=None), 99))
    assert (unknown.used_percent, unknown.responses_left) == (None, None)
    assert main(view_of(history.limits(threshold=5))).until_compaction_tokens is None


def test_a_runtimes_total_is_an_estimate_where_nothing_was_measured() -> None:
    history = History()
    category = Category(id="messages", name=None, kind=None, tokens=5)
    limits = history.limits(total=20_000, categories=(category,))
    chain = main(view_of(limits))
    assert (chain.state, chain.used_tokens, chain.used_percent) == ("estimated", 20_000, 10.0)
    assert chain.categories == (category,)
    assert chain.as_of_ms == limits.time_ms
    assert chain.peak_tokens is None
    measured = main(view_of(history.reading(30_000), limits))
    assert (measured.state, measured.used_tokens) == ("measured", 30_000)
    after = view_of(history.reading(30_000), history.boundary(), limits, history.limits())
    assert (main(after).state, main(after).used_tokens) == ("estimated", 20_000)
    assert main(after).categories == (category,)
    grown = main(project(after, history.reading(40_000), 99))
    assert (grown.state, grown.growth_tokens) == ("measured", None)


def test_an_open_attempt_shows_as_compacting_with_the_size_before() -> None:
    history = History()
    start = history.start("manual", at=10)
    view = view_of(history.reading(150_000), start)
    assert view.attempt == AttemptView(
        attempt_id=start.id,
        chain="main",
        trigger_reason="manual",
        started_ms=START_MS + 10_000,
        last_heartbeat_ms=None,
        elapsed_ms=None,
        used_tokens=150_000,
        used_percent=75.0,
    )
    assert (main(view).state, main(view).used_tokens) == ("compacting", 150_000)
    beat = history.progress(start)
    view = project(view, beat, 90)
    assert view.attempt is not None
    assert (view.attempt.last_heartbeat_ms, view.attempt.elapsed_ms) == (beat.time_ms, 30_000)
    # A reading while the runtime says that it is about to end changes the size, not that.
    view = project(view, history.reading(151_000), 91)
    assert (main(view).state, main(view).used_tokens) == ("compacting", 151_000)
    ended = project(view, history.boundary("manual"), 92)
    assert ended.attempt is None
    assert main(ended).state == "unknown"


def test_an_orphan_start_shows_as_in_progress() -> None:
    history = History()
    view = view_of(history.start(used=None), history.exhausted(), history.reading(5, chain="a1"))
    assert view.attempt is not None
    assert main(view).state == "compacting"
    assert view.chains["a1"].state == "measured"


def test_another_chains_boundary_ends_no_attempt() -> None:
    history = History()
    view = view_of(history.start(), history.boundary(chain="a1"))
    assert view.attempt is not None
    assert view.chains["a1"].state == "unknown"


def test_a_heartbeat_of_an_unknown_attempt_is_ignored() -> None:
    history = History()
    start = history.start()
    other = replace(start, id="other")
    assert view_of(history.progress(start)).attempt is None
    view = view_of(start, history.progress(other))
    assert view.attempt is not None
    assert view.attempt.last_heartbeat_ms is None


@pytest.mark.parametrize("sizes", [(None, "unknown"), (150_000, "measured")])
def test_a_failed_attempt_restores_the_previous_state(sizes: tuple[int | None, str]) -> None:
    used, state = sizes
    history = History()
    before = [] if used is None else [history.reading(used)]
    view = view_of(*before, history.start(used=used), history.failed())
    assert view.attempt is None
    assert main(view).state == state
    assert view.compactions.failed == 1


def test_compactions_are_counted_and_summarised() -> None:
    history = History()
    boundary = history.boundary("manual", messages=40)
    view = view_of(
        boundary,
        history.complete(boundary),
        history.boundary("auto", number=2, pre=None, messages=11),
        history.boundary(None, number=3, duration_ms=None),
    )
    counts = view.compactions
    assert (counts.manual, counts.automatic, counts.unknown_trigger, counts.failed) == (1, 1, 1, 0)
    assert (counts.messages, counts.messages_per_compaction) == (91, 30.3)
    first, second, third = counts.last
    assert first == CompactionBrief(
        record_id=boundary.id,
        chain="main",
        number=1,
        outcome="succeeded",
        trigger="manual",
        error=None,
        model="claude-sonnet-5",
        time_ms=boundary.time_ms,
        tokens_before=160_000,
        tokens_after=30_000,
        tokens_saved=130_000,
        duration_ms=30_000,
        duration_source="reported",
        messages_since_last=40,
    )
    assert (second.tokens_before, second.tokens_after) == (None, None)
    # An orphan boundary: nothing tells how long it took.
    assert third.duration_ms is None


def test_23_messages_before_8_compactions_are_2_9_each() -> None:
    history = History()
    each = (1, 2, 3, 4, 5, 6, 1, 1)
    boundaries = [history.boundary(number=n, messages=m) for n, m in enumerate(each, 1)]
    counts = view_of(*boundaries).compactions
    assert (counts.messages, counts.messages_per_compaction) == (23, 2.9)


def test_a_boundary_counts_the_messages_since_the_last_reading() -> None:
    history = History()
    view = view_of(
        history.reading(9, messages=3),
        history.reading(9, messages=4, chain="a1"),
        history.boundary(messages=104, total=104),
    )
    assert (main(view).messages, main(view).messages_total) == (0, 104)
    assert view.chains["a1"].messages_total == 104
    view = project(view, history.reset(), 9)
    view = project(view, history.boundary(number=2, messages=7, total=111), 10)
    assert main(view).messages_total == 111
    side = project(view, history.boundary(chain="a1", messages=110, total=110), 11)
    assert (main(side).messages_total, side.chains["a1"].messages_total) == (111, 110)


@pytest.mark.parametrize(
    ("reason", "trigger"), [("manual", "manual"), ("threshold_exceeded", "auto"), (None, None)]
)
def test_a_failure_is_summarised(reason: TriggerReason | None, trigger: Trigger | None) -> None:
    history = History()
    records = history.start(reason), history.failed("blocked", "by a hook")
    (brief,) = view_of(*records).compactions.last
    assert (brief.outcome, brief.error, brief.trigger) == ("blocked", "by a hook", trigger)
    assert (brief.tokens_before, brief.duration_ms, brief.number) == (150_000, 5_000, None)
    (orphan,) = view_of(history.failed()).compactions.last
    assert (orphan.trigger, orphan.tokens_before) == (None, None)


def test_the_peak_is_not_below_a_size_before_a_compaction() -> None:
    history = History()
    reading = history.reading(161_819)
    chain = view_of(reading, history.boundary(pre=171_791)).chains["main"]
    assert (chain.peak_tokens, chain.peak_percent) == (171_791, 85.89)
    chain = view_of(reading, history.boundary(pre=100_000)).chains["main"]
    assert (chain.peak_tokens, chain.peak_percent) == (161_819, 80.9)
    chain = view_of(reading, history.boundary(pre=None)).chains["main"]
    assert chain.peak_tokens == 161_819
    chain = view_of(history.boundary(pre=171_791)).chains["main"]
    assert (chain.peak_tokens, chain.peak_percent) == (171_791, None)


def test_the_last_five_compactions_are_kept() -> None:
    history = History()
    records = [history.boundary(number=number) for number in range(1, LAST_COMPACTIONS + 2)]
    view = view_of(*records, history.complete(records[0]))
    assert [brief.number for brief in view.compactions.last] == [2, 3, 4, 5, 6]
    assert view.compactions.automatic == 6
    view = view_of(*records, history.failed())
    assert [brief.number for brief in view.compactions.last] == [3, 4, 5, 6, None]


@given(st.lists(st.integers(0, 400_000), min_size=1, max_size=40))
def test_figures_are_those_of_a_slow_count(sizes: list[int]) -> None:
    history = History()
    chain = main(view_of(*[history.reading(size) for size in sizes]))
    grown = [b - a for a, b in pairwise(sizes) if b > a][-20:]
    assert chain.peak_tokens == max(sizes)
    assert chain.used_tokens == sizes[-1]
    if not grown:
        assert chain.growth_tokens is None
        return
    assert chain.growth_tokens == sum(grown) // len(grown)
    assert chain.responses_left == (WINDOW - sizes[-1]) // chain.growth_tokens
