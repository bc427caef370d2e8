"""What a probe learns of a worker, from the notes that its work left."""

from typing import Any, cast

import pytest

from contextgauge.clock import SystemClock
from streams.ports import Health


class FakeClock(SystemClock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def board(clock: FakeClock) -> Health:
    """A board with a patience of 60 s, of a worker that has just begun."""
    board = Health("derive", clock, 60.0)
    board.beat()
    return board


def _pass(clock: FakeClock, board: Health, seconds: float) -> None:
    """Let time pass in which the event loop turns."""
    clock.now_s += seconds
    board.beat()


def test_an_idle_worker_is_live_and_a_standby_is_ready(clock: FakeClock, board: Health) -> None:
    board.worker("member")
    _pass(clock, board, 100_000)
    assert board.live() == (
        True,
        {"live": True, "worker": "derive", "phase": "member", "reasons": []},
    )
    assert board.ready() == (
        True,
        {"ready": True, "worker": "derive", "phase": "member", "reasons": [], "partitions": {}},
    )


def test_a_blocked_event_loop_is_not_live(clock: FakeClock, board: Health) -> None:
    clock.now_s += 60
    assert board.live().ok
    clock.now_s += 1
    answer = board.live()
    assert not answer.ok
    assert answer.document["reasons"] == ["the event loop has stood still for 61 s (limit 60 s)"]
    board.beat()
    assert board.live().ok


def test_before_the_loop_runs_the_worker_counts_as_live(clock: FakeClock) -> None:
    board = Health("derive", clock, 60.0)
    clock.now_s += 1_000
    assert board.live().ok
    assert board.ready().document["reasons"] == ["the worker is starting"]


def test_a_step_that_does_not_end_is_not_live(clock: FakeClock, board: Health) -> None:
    with board.step("commit", 3, 20.0), board.step("poll", 4) as poll:
        assert board.doing() == ["commit of partition 3", "poll of partition 4"]
        _pass(clock, board, 50)
        poll.restart()
        _pass(clock, board, 30)
        assert board.live().ok
        _pass(clock, board, 1)
        answer = board.live()
        assert answer.document["reasons"] == [
            "commit of partition 3 has not ended for 81 s (limit 80 s)"
        ]
        assert not answer.ok
    assert board.live().ok
    assert board.doing() == []


def test_step_limits_pause_while_a_service_is_down(clock: FakeClock, board: Health) -> None:
    """Restarting does not bring it back; and once it is there the step has its time again."""
    board.worker("member")
    with board.step("write", 0):
        board.away("one", "redis", "connection refused")
        board.away("other", "redis", "connection refused")
        _pass(clock, board, 3_600)
        assert board.live().ok
        answer = board.ready()
        assert not answer.ok
        assert answer.document["reasons"] == ["redis is away: connection refused"]
        board.back("one")
        assert not board.ready().ok
        board.back("other")
        board.back("never asked")
        assert board.ready().ok
        _pass(clock, board, 60)
        assert board.live().ok
        _pass(clock, board, 1)
        assert not board.live().ok


def test_a_server_that_is_the_wrong_one_for_long_is_not_live(
    clock: FakeClock, board: Health
) -> None:
    """It answers: what a restart reads again may name another one."""
    for _ in range(7):
        board.away("one", "redis", "READONLY", is_wrong_server=True)
        assert board.live().ok
        _pass(clock, board, 10)
    board.away("one", "redis", "READONLY", is_wrong_server=True)
    answer = board.live()
    assert not answer.ok
    assert answer.document["reasons"] == [
        "redis has been the wrong server, or not ready, for 70 s (limit 60 s): READONLY"
    ]
    assert board.ready().document["reasons"] == [
        "the worker is starting",
        "redis is away: READONLY",
    ]
    board.back("one")
    assert board.live().ok


def test_the_time_of_a_wrong_server_ends_with_its_last_answer(
    clock: FakeClock, board: Health
) -> None:
    board.away("one", "redis", "LOADING", is_wrong_server=True)
    _pass(clock, board, 50)
    board.away("one", "redis", "LOADING", is_wrong_server=True)
    _pass(clock, board, 3_600)  # no one asks
    assert board.live().ok
    board.away("one", "redis", "connection refused")
    _pass(clock, board, 50)
    board.away("one", "redis", "LOADING", is_wrong_server=True)
    _pass(clock, board, 50)
    board.away("one", "redis", "LOADING", is_wrong_server=True)
    assert board.live().ok


def test_a_restoring_partition_is_not_ready_and_reports_progress(
    clock: FakeClock, board: Health
) -> None:
    board.partition(10, "running")
    board.partition(2, "restoring")
    board.worker("member")
    _pass(clock, board, 5)
    board.partition(2, "restoring", done=40, total=100)
    answer = board.ready()
    assert not answer.ok
    assert answer.document["reasons"] == ["partition 2 is restoring"]
    assert answer.document["partitions"] == {
        "2": {"phase": "restoring", "for_s": 5.0, "done": 40, "total": 100},
        "10": {"phase": "running", "for_s": 5.0},
    }
    board.partition(2, "waiting", "fenced")
    assert board.ready().document["reasons"] == ["partition 2 is waiting: fenced"]
    board.partition(2, "running")
    assert board.ready().ok


def test_released_partitions_are_not_reported(board: Health) -> None:
    board.worker("member")
    for number in range(3):
        board.partition(number, "building")
    board.released(1)
    assert board.ready().document["partitions"] == {
        "0": {"phase": "building", "for_s": 0.0},
        "2": {"phase": "building", "for_s": 0.0},
    }
    board.released()
    assert board.ready().ok


def test_a_worker_that_waits_joins_or_stops_is_not_ready(board: Health) -> None:
    board.worker("waiting", "no broker answers")
    assert board.ready().document["reasons"] == ["the worker is waiting: no broker answers"]
    board.worker("joining")
    assert board.ready().document["reasons"] == ["the worker is joining"]
    board.worker("stopping")
    board.worker("member")
    assert not board.ready().ok
    assert board.live().ok


def test_a_worker_is_ready_when_each_of_its_roles_is_and_names_the_one_that_is_not(
    board: Health,
) -> None:
    alerts, service = board.role("alerts"), board.role("decisions")
    board.worker("member")
    alerts.worker("member")
    alerts.partition(0, "running")
    service.worker("member")
    service.partition(0, "restoring")
    verdict = board.ready()
    assert not verdict.ok
    assert verdict.document["reasons"] == ["decisions: partition 0 is restoring"]
    alerts.released()  # of its own partitions only
    service.partition(0, "running")
    assert board.ready().ok
    roles: Any = board.ready().document["roles"]
    assert {name: list(role["partitions"]) for name, role in roles.items()} == {
        "alerts": [],
        "decisions": ["0"],
    }


def test_a_role_that_is_stuck_makes_the_worker_not_live_and_is_named(
    clock: FakeClock, board: Health
) -> None:
    service = board.role("decisions")
    with service.step("a commit", 3):
        assert board.doing() == ["a commit of partition 3"]
        _pass(clock, board, 61.0)
        verdict = board.live()
    assert not verdict.ok
    assert verdict.document["reasons"] == [
        "decisions: a commit of partition 3 has not ended for 61 s (limit 60 s)"
    ]
    board.worker("stopping")
    assert "decisions: the worker is stopping" in cast(
        "list[str]", board.ready().document["reasons"]
    )


def test_a_member_that_its_group_refuses_stands_by_and_says_why(board: Health) -> None:
    role = board.role("alerts")
    board.worker("member")
    role.worker("member")
    role.refused("another configuration")
    verdict = board.ready()
    shown: Any = verdict.document["roles"]
    assert verdict.ok
    assert shown["alerts"]["refused"] == "another configuration"
    role.refused("")
    shown = board.ready().document["roles"]
    assert "refused" not in shown["alerts"]
