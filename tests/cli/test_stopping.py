"""Stopping a worker: gracefully, by force when the time is up, at once at a second signal."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgauge.documents import document
from streams.cli.exits import Exit, by_signal
from tests.cli.worker_kit import Runs, running
from tests.patience import PATIENCE, PATIENCE_S

pytestmark = pytest.mark.service


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with running(tmp_path) as start:
        yield start


def test_a_graceful_stop_logs_its_duration(runs: Runs) -> None:
    run = runs("orderly")
    assert run.ask("/readyz")[0] == 200
    assert run.end() == Exit.DONE
    assert run.lines("stopping")[0]["signal"] == "SIGTERM"
    seconds = run.lines("stopped")[0]["seconds"]
    assert isinstance(seconds, float)
    assert 0 <= seconds < PATIENCE_S


@pytest.mark.extended
@pytest.mark.parametrize("work", ["deaf", "blocked"])
def test_a_worker_that_does_not_stop_in_time_is_ended_by_force(runs: Runs, work: str) -> None:
    """Even if the event loop is stuck and receives no signal."""
    run = runs(work, STOP_TIMEOUT_S="1")
    run.until("started")
    assert run.end() == Exit.TIME_LIMIT
    (line,) = run.lines("ended by force: the time to stop is up")
    assert line["worker"] == "derive"
    assert line["doing"] == (["commit of partition 3"] if work == "deaf" else [])
    assert not run.lines("stopped")


@pytest.mark.extended
@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(runs: Runs, again: signal.Signals) -> None:
    run = runs("deaf", STOP_TIMEOUT_S="3600")
    run.until("started")
    run.process.send_signal(signal.SIGINT)
    run.until("stopping")
    assert run.end(again) == by_signal(again)
    assert run.lines("ending at once")[0]["signal"] == again.name


@pytest.mark.extended
def test_a_stuck_event_loop_is_reported_over_http(runs: Runs) -> None:
    run = runs("blocked", STUCK_AFTER_S=f"{5 * PATIENCE:.0f}")
    assert run.ask("/healthz")[0] == 200
    until = time.monotonic() + PATIENCE_S
    while (answer := run.ask("/healthz"))[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    status, document = answer
    assert (status, document["live"]) == (503, False)
    assert "the event loop has stood still for" in str(document["reasons"])


def test_an_internal_error_is_shown_without_its_text(runs: Runs) -> None:
    run = runs("broken")
    assert run.wait() == Exit.INTERNAL
    assert run.lines("stopped")[0]["exit_code"] == Exit.INTERNAL
    log = run.log()
    assert "builtins.KeyError" in log
    assert "KeyError: " not in log
    assert log.count("text of a message") == 0


def test_the_exit_code_of_a_stop_error_is_logged(runs: Runs) -> None:
    run = runs("misplaced")
    assert run.wait() == Exit.POSITION
    assert run.lines("stopped")[0]["error"] == "PositionError"
    assert run.lines("stopped")[0]["exit_code"] == Exit.POSITION
    assert run.log().splitlines()[-2:] == [
        "contextgauge: the position is gone",
        f'What to do: "A position is out of range" in {document("RUNBOOK.md")}',
    ]
