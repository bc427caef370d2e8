"""Durations in a session's view: reported after the boundary, or of a summary made in advance."""

import pytest

from schemas.views import UntimedCompaction
from tests.core.history import History, view_of


@pytest.mark.parametrize("measured_first", [True, False])
def test_a_timing_sets_the_duration_of_its_boundary(*, measured_first: bool) -> None:
    history = History()
    boundary = history.boundary(None, number=7, duration_ms=None, model="gpt-5")
    before = view_of(boundary).chains["main"].untimed
    assert before == UntimedCompaction(
        boundary_id=boundary.id,
        number=7,
        trigger=None,
        model="gpt-5",
        time_ms=boundary.time_ms,
    )
    complete, timing = history.complete(boundary), history.timing(boundary, 3_069)
    later = (complete, timing) if measured_first else (timing, complete)
    view = view_of(boundary, *later)
    (brief,) = view.compactions.last
    assert (brief.duration_ms, brief.duration_source) == (3_069, "reported")
    assert (brief.tokens_after, brief.tokens_saved) == (30_000, 130_000)
    assert (view.chains["main"].pending, view.chains["main"].untimed) == (None, None)


def test_a_timing_waits_for_the_latest_boundary_without_a_duration() -> None:
    history = History()
    first, second = history.boundary(duration_ms=None), history.boundary(number=2)
    chain = view_of(first, second).chains["main"]
    assert chain.pending is not None
    assert chain.untimed is not None
    assert (chain.pending.number, chain.untimed.number) == (2, 1)
    for record in (history.timing(second), history.reading(5), history.complete(second)):
        assert view_of(first, second, record).chains["main"].untimed == chain.untimed
    third = history.boundary(number=3, duration_ms=None)
    latest = view_of(first, second, third).chains["main"].untimed
    assert latest is not None
    assert latest.number == 3


def test_a_precomputed_duration_is_shown_with_its_source() -> None:
    history = History()
    view = view_of(history.boundary(duration_ms=90_000, duration_source="precomputed"))
    (brief,) = view.compactions.last
    assert (brief.duration_ms, brief.duration_source) == (90_000, "precomputed")
