"""Another trigger over the same growth, and the recorded one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.core.whatif.replay import GrowthPath, Kept, recorded_path, replay
from streams.core.whatif.triggers import judge
from streams.core.whatif.turns import ChainLog
from tests.core.whatif.whatif_kit import FAILED, MANUAL, RESET, compaction, log_of

LEFT = 30_000

LOG = log_of(100_000, 120_000, 159_000, compaction(161_000), 30_000, 60_000, 90_000)


def replayed(log: ChainLog, trigger: int | None, left: int | None = LEFT) -> GrowthPath:
    compacted = None if left is None else Kept(left)
    return replay(log, [trigger] * len(log.between), lambda _at, _size: compacted)


def places(path: GrowthPath) -> list[int]:
    return [each.at for each in path.compactions]


def test_the_recorded_trigger_gives_the_recorded_path() -> None:
    assert replayed(LOG, 161_000) == recorded_path(LOG)


def test_a_lower_trigger_compacts_earlier_and_grows_on_as_recorded() -> None:
    path = replayed(LOG, 110_000)
    assert path.sizes == (100_000, 120_000, 30_000, 32_000, 62_000, 92_000)
    (only,) = path.compactions
    assert (only.at, only.previous, only.before, only.after) == (2, 120_000, 159_000, LEFT)
    assert only.recorded is None


def test_without_a_trigger_it_grows_on() -> None:
    path = replayed(LOG, None)
    assert path.compactions == ()
    assert path.sizes[3:] == (161_000, 191_000, 221_000)


def test_what_was_asked_for_and_a_reset_come_where_they_came() -> None:
    log = log_of(50_000, compaction(51_000, MANUAL), 20_000, 70_000, RESET, 15_000, 40_000)
    path = replayed(log, 60_000)
    assert path.sizes == (50_000, 20_000, 70_000, 15_000, 40_000)
    assert places(path) == [1]


@pytest.mark.parametrize(("cause", "trigger", "futile"), [(MANUAL, 60_000, 0), ("auto", 12_000, 3)])
def test_a_recorded_compaction_never_leaves_more_than_there_would_be(
    cause: str, trigger: int, futile: int
) -> None:
    log = log_of(75_000, 150_000, compaction(150_000, cause), 45_000, 45_500)
    path = replayed(log, trigger, left=15_000)
    assert (path.sizes[:3], path.compactions[0].at) == ((75_000, 15_000, 15_000), 1)
    assert [each.recorded for each in path.compactions] == [None] * len(path.compactions)
    assert path.futile == futile
    as_recorded = log_of(20_000, compaction(20_000, MANUAL), 45_000)
    assert replayed(as_recorded, None) == recorded_path(as_recorded), "as it was, it does"


def test_the_engine_replaces_what_was_asked_for_too() -> None:
    log = log_of(50_000, compaction(51_000, MANUAL), 20_000, 30_000)
    path = replay(log, [None] * 4, lambda _at, _size: Kept(25_000), replaces=True)
    assert path.sizes == (50_000, 25_000, 35_000)
    assert path.compactions[0].recorded is not None
    assert path.compactions[0].kept == Kept(25_000)


def test_before_the_first_response_and_after_the_last_nothing_is_replayed() -> None:
    log = log_of(compaction(None, None), 150_000, 155_000)
    assert places(replayed(log, 100_000)) == [0, 1]
    assert places(replayed(log_of(10_000, 150_000), 100_000)) == []


def test_a_recorded_compaction_at_the_end_has_no_response_after_it() -> None:
    log = log_of(100_000, 150_000, compaction(151_000))
    assert places(replayed(log, 151_000)) == [2]
    assert places(replayed(log, 152_000)) == []
    path = replay(log, [151_000] * 3, lambda _at, _size: Kept(LEFT), replaces=True)
    assert (path.sizes, path.compactions[0].after) == ((100_000, 150_000), None)


def test_none_comes_where_an_attempt_failed_or_no_less_would_be_left() -> None:
    log = log_of(100_000, 150_000, FAILED, 160_000, 165_000)
    assert places(replayed(log, 140_000)) == [3]
    path = replayed(log, 140_000, left=190_000)
    assert (places(path), path.futile) == ([], 1)
    end = log_of(100_000, 150_000, compaction(151_000))
    path = replay(end, [151_000] * 3, lambda _at, _size: Kept(190_000), replaces=True)
    assert (places(path), path.futile, len(path.sizes)) == ([], 1, 2)


def test_sizes_end_where_a_compaction_would_have_left_an_unknown_one() -> None:
    path = replayed(log_of(100_000, 150_000, 160_000), 140_000, left=None)
    assert (path.unknown_at, path.sizes) == (2, (100_000, 150_000))


GROWTH = st.lists(st.integers(0, 40_000), min_size=1, max_size=40)
TRIGGERS = st.integers(60_000, 200_000)


def recorded_with(trigger: int, grown: list[int]) -> ChainLog:
    """Return a chain that was compacted at a trigger, each time to the same size."""
    steps: list[object] = [LEFT]
    size = LEFT
    for each in grown:
        if size + 100 >= trigger:
            steps.append(compaction(size + 100))
            size = LEFT
        else:
            size += each
        steps.append(size)
    return log_of(*steps)  # type: ignore[arg-type]  # as they are


@given(TRIGGERS, GROWTH)
def test_at_the_recorded_trigger_nothing_differs(trigger: int, grown: list[int]) -> None:
    log = recorded_with(trigger, grown)
    assert replayed(log, trigger) == recorded_path(log)
    judged, unrecorded = judge(log)
    assert {each.verdict for each in judged} <= {"reproduced"}
    assert unrecorded == []


@given(TRIGGERS, GROWTH, TRIGGERS, TRIGGERS)
def test_a_higher_trigger_never_gives_more_compactions(
    trigger: int, grown: list[int], one: int, other: int
) -> None:
    log = recorded_with(trigger, grown)
    lower, higher = (replayed(log, each) for each in sorted((one, other)))
    assert len(higher.compactions) <= len(lower.compactions)
