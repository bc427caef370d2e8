"""Several processes of one command: how they end, gracefully and otherwise, without Kafka."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgauge.settings.local_stack import start_mark
from streams.cli.exits import Exit, by_signal
from tests.cli.worker_kit import Runs, running, wait_until

pytestmark = pytest.mark.service


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with running(tmp_path) as start:
        yield start


@pytest.mark.extended
@pytest.mark.parametrize("received", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_processes_gracefully(runs: Runs, received: signal.Signals) -> None:
    run = runs("orderly", "--processes", "3")
    pids = run.working(3)
    assert set(pids) == {1, 2, 3}
    assert run.end(received) == Exit.DONE, run.log()
    stopped = run.lines("stopped")
    assert sorted(line.get("process", 0) for line in stopped) == [0, 1, 2, 3]
    assert stopped[-1]["exit_code"] == Exit.DONE
    assert not run.is_running()


def test_a_signal_to_the_process_group_counts_once(runs: Runs) -> None:
    """A terminal's Ctrl-C and systemd reach the supervisor and its processes."""
    run = runs("orderly", "--processes", "2")
    run.working()
    os.killpg(run.process.pid, signal.SIGTERM)
    assert run.wait() == Exit.DONE, run.log()
    assert len(run.lines("stopped")) == 3


def test_a_second_signal_ends_all_at_once(runs: Runs) -> None:
    run = runs("deaf", "--processes", "2", STOP_TIMEOUT_S="3600")
    run.working()
    run.process.send_signal(signal.SIGTERM)
    run.until("stopping", 3)
    assert run.end(signal.SIGINT) == by_signal(signal.SIGINT)
    assert run.lines("ending at once")[0]["processes"] == [1, 2]
    assert not run.is_running()


@pytest.mark.extended
def test_each_process_has_the_whole_time_limit(runs: Runs) -> None:
    run = runs("deaf", "--processes", "2", STOP_TIMEOUT_S="1")
    run.working()
    assert run.end() == Exit.TIME_LIMIT
    assert len(run.lines("ended by force: the time to stop is up")) == 2
    assert not run.is_running()


@pytest.mark.extended
def test_a_process_that_cannot_end_itself_is_killed(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2", STOP_TIMEOUT_S="1")
    pids = run.working()
    os.kill(pids[1], signal.SIGSTOP)
    assert run.end() == Exit.TIME_LIMIT, run.log()
    assert run.lines("killed: the time to stop is up")[0]["processes"] == [1]
    assert not run.is_running()


def test_when_one_is_killed_all_stop(runs: Runs) -> None:
    run = runs("orderly", "--processes", "3")
    pids = run.working(3)
    os.kill(pids[2], signal.SIGKILL)
    assert run.wait() == by_signal(signal.SIGKILL), run.log()
    (line,) = run.lines("a process ended by itself: stopping the others")
    assert (line["process"], line["pid"], line["exit_code"]) == (2, pids[2], 137)
    assert {line.get("process") for line in run.lines("stopped")} == {1, 3, None}
    assert not run.is_running()


@pytest.mark.extended
def test_when_one_is_stopped_by_a_signal_all_stop_with_exit_1(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2")
    pids = run.working()
    os.kill(pids[1], signal.SIGTERM)
    assert run.wait() == Exit.STOPPED, run.log()
    (line,) = run.lines("a process ended by itself: stopping the others")
    assert (line["process"], line["exit_code"]) == (1, 0)
    assert not run.is_running()


@pytest.mark.extended
def test_when_one_fails_all_stop_with_its_exit_code(runs: Runs) -> None:
    run = runs("second_fails", "--processes", "2")
    assert run.wait() == Exit.POSITION, run.log()
    assert run.log().count("contextgauge: the position is gone") == 1
    (line,) = run.lines("a process ended by itself: stopping the others")
    assert (line["process"], line["exit_code"]) == (2, Exit.POSITION)
    assert not run.is_running()


def test_no_process_outlives_the_supervisor(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2")
    pids = run.working()
    run.process.kill()
    run.wait()
    wait_until(lambda: not any(map(start_mark, pids.values())), run.log)
    assert len(run.lines("the supervisor is gone")) == 2
    assert len(run.lines("stopped")) == 2


@pytest.mark.extended
def test_one_address_reports_on_all(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2")
    pids = run.working()
    status, document = run.ask("/readyz")
    assert (status, document["ready"]) == (200, True)
    assert document["processes"].keys() == {"1", "2"}
    os.kill(pids[1], signal.SIGSTOP)
    status, document = run.ask("/healthz")
    assert (status, document["reasons"]) == (503, ["process 1 does not answer"])
    os.kill(pids[1], signal.SIGCONT)
    assert run.ask("/healthz")[0] == 200


@pytest.mark.extended
def test_static_members_have_ids_of_their_own(runs: Runs) -> None:
    run = runs("orderly", DERIVE_PROCESSES="2", INSTANCE_ID="node")
    run.working()
    assert sorted(line["instance"] for line in run.lines("works")) == ["node-1", "node-2"]
    assert run.end() == Exit.DONE


@pytest.mark.extended
def test_the_option_overrides_the_setting(runs: Runs) -> None:
    run = runs("orderly", "--processes", "1", DERIVE_PROCESSES="2", INSTANCE_ID="node")
    run.until("works")
    (started,) = run.lines("started")
    assert not started.keys() & {"process", "processes"}
    assert run.lines("works")[0]["instance"] == "node"
    assert run.end() == Exit.DONE


@pytest.mark.extended
@pytest.mark.parametrize("number", ["0", "257", "two"])
def test_invalid_numbers_are_rejected(runs: Runs, number: str) -> None:
    run = runs("orderly", "--processes", number)
    assert run.wait() == Exit.WRONG
    assert "Invalid value for '--processes'" in run.log()
    run = runs("orderly", DERIVE_PROCESSES=number)
    assert run.wait() == Exit.WRONG
    assert f"CONTEXTGAUGE_DERIVE_PROCESSES='{number}'" in run.log()


@pytest.mark.extended
def test_a_taken_port_is_reported_before_anything_is_started(runs: Runs) -> None:
    first = runs("orderly")
    port = first.started()["metrics"].removesuffix("/metrics").rpartition(":")[2]
    run = runs("orderly", "--processes", "2", METRICS_PORT=port)
    assert run.wait() == Exit.WRONG
    assert f"port {port} is taken: name another with CONTEXTGAUGE_METRICS_PORT" in run.log()
    assert run.lines("started") == []
