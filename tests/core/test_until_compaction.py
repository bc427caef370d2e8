"""How far a chain is from compaction: the best source wins, and a learned one may be disproved."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.records import CompactBoundary, WindowSource
from schemas.views import Aggregates, ChainView, SessionView
from streams import codec
from streams.core.projection.statistics import counted
from streams.core.session_status import status_of
from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
    SessionPoint,
    Threshold,
    UntilCompaction,
    models_to_learn,
    until_compaction,
    usual_point,
)
from tests.core.history import History, view_of

CHAIN = ChainView(chain="main", model="claude-sonnet-5", used_tokens=100_000, window=200_000)
LEARNED = CompactionPoints(learned=(("claude-sonnet-5", 160_000),))
CONFIGURED = LEARNED._replace(
    configured=(
        ("claude", Threshold(tokens=120_000)),
        ("claude-sonnet", Threshold(percent=90.5)),
        ("gpt", Threshold(tokens=1)),
    )
)


def of(
    chain: ChainView, session: int | None, points: CompactionPoints, *, repeated: bool = False
) -> tuple[Any, ...] | None:
    point = None if session is None else SessionPoint(session, repeated)
    until = until_compaction(chain, point, points)
    return until and (until.tokens, until.threshold_tokens, until.source, until.estimated)


def test_the_best_source_wins() -> None:
    reported = replace(CHAIN, auto_compact_threshold=150_000)
    assert of(reported, 165_000, CONFIGURED) == (50_000, 150_000, "reported", False)
    assert of(CHAIN, 165_000, CONFIGURED) == (81_000, 181_000, "configured", False)
    assert of(CHAIN, 165_000, LEARNED) == (65_000, 165_000, "learned_session", True)
    assert of(CHAIN, None, LEARNED) == (60_000, 160_000, "learned_model", True)
    assert of(CHAIN, None, NO_POINTS) is None
    assert of(replace(CHAIN, model="gpt-5"), None, LEARNED) is None
    assert of(replace(CHAIN, model=None), None, CONFIGURED) is None


def test_nothing_is_expected_where_automatic_compaction_is_off() -> None:
    off = replace(CHAIN, auto_compact_enabled=False, auto_compact_threshold=150_000)
    assert of(off, 165_000, CONFIGURED) is None


def test_a_percentage_needs_a_window() -> None:
    assert of(replace(CHAIN, window=None), None, CONFIGURED) == (
        60_000,
        160_000,
        "learned_model",
        True,
    )


def test_a_learned_point_is_disproved_by_a_size_far_above_it_or_a_smaller_window() -> None:
    near, far = replace(CHAIN, used_tokens=180_000), replace(CHAIN, used_tokens=300_000)
    assert of(near, 165_000, NO_POINTS) == (-15_000, 165_000, "learned_session", True)
    assert of(replace(far, window=1_000_000), 165_000, LEARNED) is None
    assert of(CHAIN, 900_000, LEARNED) == (60_000, 160_000, "learned_model", True)
    reported = replace(far, auto_compact_threshold=150_000)
    assert of(reported, None, NO_POINTS) == (-150_000, 150_000, "reported", False)


def test_a_learned_point_is_disproved_by_a_window_of_more_than_twice_its_size() -> None:
    larger = replace(CHAIN, used_tokens=170_000, window=1_000_000, window_source="runtime")
    assert of(larger, 165_000, LEARNED) is None
    assert of(replace(larger, window=330_000), 165_000, NO_POINTS) is not None
    assert of(larger, 165_000, CONFIGURED) == (735_000, 905_000, "configured", False)
    # An assumed window disproves nothing.
    assumed = replace(CHAIN, used_tokens=20_000, window_source="default")
    assert of(assumed, 28_000, NO_POINTS) == (8_000, 28_000, "learned_session", True)


def test_r33_what_the_chain_did_repeatedly_is_plausible_under_any_window() -> None:
    larger = replace(CHAIN, used_tokens=324_000, window=1_000_000, window_source="catalog")
    assert of(larger, 367_000, LEARNED) is None
    assert of(larger, 367_000, LEARNED, repeated=True) == (43_000, 367_000, "learned_session", True)
    # A size far above it still disproves it.
    assert of(replace(larger, used_tokens=500_000), 367_000, NO_POINTS, repeated=True) is None


def _compacted(*sizes: int, model: str = "claude-opus-4-7", **boundary: Any) -> SessionView:
    history = History()
    records = [history.reading(60_000, window=1_000_000, model=model)]
    for number, size in enumerate(sizes, 1):
        records.append(history.boundary("auto", pre=size, number=number, model=model, **boundary))
    view = view_of(*records, history.reading(324_000, window=1_000_000, model="claude-opus-4-7"))
    chain = replace(view.chains["main"], window_source="catalog")
    return replace(view, chains={"main": chain})


@pytest.mark.parametrize(
    ("view", "doubts", "point"),
    [
        (_compacted(367_000, 365_000), {"main": "contradicted"}, 365_000),
        (_compacted(367_000, 365_000, inherited=True), {"main": "contradicted"}, 365_000),
        (_compacted(900_000, 367_000, 367_000), {"main": "contradicted"}, 367_000),
        (_compacted(900_000, 905_000), {}, 905_000),
        (_compacted(367_000), {}, None),
        (_compacted(367_000, 167_000), {}, None),
        (_compacted(367_000, 367_000, model="claude-sonnet-5"), {}, None),
    ],
)
def test_r33_repeated_compactions_of_this_model_and_window_contradict_its_window(
    view: SessionView, doubts: dict[str, str], point: int | None
) -> None:
    status = status_of(view)
    until = status.until_compaction.get("main")
    assert (status.window_doubts, until and until.threshold_tokens) == (doubts, point)


def test_r33_a_window_that_is_reported_or_assumed_is_not_contradicted() -> None:
    view = _compacted(367_000, 367_000)
    cases: list[tuple[WindowSource, dict[str, str]]] = [
        ("runtime", {}),
        ("configured", {}),
        ("default", {"main": "assumed"}),
    ]
    for source, doubts in cases:
        chain = replace(view.chains["main"], window_source=source)
        status = status_of(replace(view, chains={"main": chain}))
        assert (status.window_doubts, status.until_compaction["main"].tokens) == (doubts, 43_000)
    percentage = CompactionPoints(configured=(("claude", Threshold(percent=90.0)),))
    assert status_of(view, percentage).until_compaction["main"].estimated


def test_a_percentage_of_an_assumed_window_is_an_estimate() -> None:
    assumed = replace(CHAIN, window_source="default")
    assert of(assumed, None, CONFIGURED) == (81_000, 181_000, "configured", True)
    full = replace(assumed, used_tokens=190_000)
    assert of(full, None, CONFIGURED) == (-9_000, 181_000, "configured", True)
    known = replace(full, window_source="catalog")
    assert of(known, None, CONFIGURED) == (-9_000, 181_000, "configured", False)
    tokens = CompactionPoints(configured=(("claude", Threshold(tokens=120_000)),))
    assert of(full, None, tokens) == (-70_000, 120_000, "configured", False)


def test_responses_left_follow_from_growth_and_tokens_are_unknown_with_the_size() -> None:
    grown = replace(CHAIN, growth_tokens=7_000)
    assert until_compaction(grown, SessionPoint(165_000)) == UntilCompaction(
        65_000, 9, 165_000, "learned_session", estimated=True
    )
    unknown = replace(grown, used_tokens=None)
    assert until_compaction(unknown, SessionPoint(165_000)) == UntilCompaction(
        None, None, 165_000, "learned_session", estimated=True
    )


def test_a_session_learns_from_its_last_automatic_compaction_of_the_chain() -> None:
    history = History()
    view = view_of(
        history.boundary("auto", pre=150_000),
        history.boundary("auto", pre=160_000, number=2),
        history.boundary("manual", pre=90_000, number=3),
        history.boundary(None, pre=80_000, number=4),
        history.boundary("auto", pre=70_000, chain="sub"),
        history.failed(),
        history.reading(100_000),
    )
    status = status_of(view)
    assert status.until_compaction["main"].threshold_tokens == 160_000
    assert status.until_compaction["sub"].threshold_tokens == 70_000


def test_r33_a_compaction_of_an_idle_session_teaches_nothing() -> None:
    history = History()
    records = [
        history.boundary("auto", pre=150_000),
        history.boundary("idle", pre=90_000, number=2),
    ]
    silent = history.boundary("auto", pre=80_000, number=3)
    assert isinstance(silent.data, CompactBoundary)
    silent = replace(silent, data=replace(silent.data, idle_ms=400_000))
    view = view_of(*records, silent, history.reading(70_000))
    assert status_of(view).until_compaction["main"].threshold_tokens == 150_000
    counts = view.compactions
    assert (counts.automatic, counts.idle, counts.messages_per_compaction) == (2, 1, 40)
    total = Aggregates()
    for record in (*records, silent):
        total = counted(total, record, None)
    assert usual_point([codec.loads(codec.dumps(total))]) == 150_000
    assert (total.automatic.succeeded, total.idle.succeeded) == (2, 1)


def test_a_compaction_of_unknown_size_hides_no_earlier_one() -> None:
    history = History()
    view = view_of(
        history.boundary("auto", pre=150_000),
        history.boundary("auto", pre=None, number=2),
        history.reading(100_000),
    )
    assert view.compactions.last[-1].tokens_before is None
    assert status_of(view).until_compaction["main"].threshold_tokens == 150_000


@pytest.mark.parametrize(
    ("compacted_at", "points", "severity"),
    [
        (None, NO_POINTS, "normal"),
        (104_900, NO_POINTS, "critical"),
        (105_100, NO_POINTS, "normal"),
        (None, CompactionPoints(learned=(("claude-sonnet-5", 104_900),)), "critical"),
        (None, CompactionPoints(configured=(("claude", Threshold(tokens=90_000)),)), "critical"),
    ],
)
def test_any_known_threshold_that_is_near_is_critical(
    compacted_at: int | None, points: CompactionPoints, severity: str
) -> None:
    history = History()
    before = [] if compacted_at is None else [history.boundary("auto", pre=compacted_at)]
    status = status_of(view_of(*before, history.reading(100_000)), points)
    assert (status.severity, status.severities) == (severity, {"main": severity})


def test_models_are_learned_whose_threshold_is_not_reported() -> None:
    history = History()
    records = [history.reading(5), history.reading(5, chain="sub", model="other")]
    assert models_to_learn(view_of(*records)) == {"claude-sonnet-5", "other"}
    assert models_to_learn(view_of(*records, history.limits(threshold=9))) == {"other"}


@pytest.mark.parametrize(
    ("partitions", "point"),
    [
        ([], None),
        ([[]], None),
        ([[167_094]], 167_094),
        ([[150_000, 160_000], [170_000]], 160_000),
        ([[100_000], [160_000], [161_000, 162_000, 163_000]], 161_000),
    ],
)
def test_the_usual_point_of_a_model_is_the_median_over_partitions(
    partitions: list[list[int]], point: int | None
) -> None:
    documents = []
    for sizes in partitions:
        history, total = History(), Aggregates()
        for size in sizes:
            total = counted(total, history.boundary("auto", pre=size), None)
        total = counted(total, history.boundary("manual", pre=5_000), None)
        documents.append(codec.loads(codec.dumps(total)))
    usual = usual_point(documents)
    if point is None or usual is None:
        assert usual is point
    else:
        assert abs(usual - point) * 100 <= 2 * point
