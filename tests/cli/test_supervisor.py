"""Several processes of one command: how they end, in good order and otherwise, without Kafka.

The work is made up, and run as the command runs its own.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.cli.exits import Exit, by_signal
from streams.edge.local_stack.processes import start_mark
from tests.conftest import command_environment

pytestmark = pytest.mark.service

_PATIENCE_S = 60.0

_SCRIPT = """
import asyncio, os, signal, sys
import structlog
from streams.cli import app
from streams.cli.workers import commands as workers
from contextgauge.errors import PositionError

logger = structlog.get_logger()

async def orderly(chosen, telemetry, health, stop):
    health.worker("member")
    logger.info("works", instance=chosen.instance_id)
    await stop.wait()

async def deaf(chosen, telemetry, health, stop):
    logger.info("works")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def second_fails(chosen, telemetry, health, stop):
    logger.info("works")
    if structlog.contextvars.get_contextvars()["process"] == 2:
        raise PositionError("the position is gone")
    await stop.wait()

work, run = globals()[sys.argv[1]], workers.run
workers.run = lambda *_, **more: run("derive", work, **more)
sys.argv[1:] = ["derive", *sys.argv[2:]]
app.main()
"""


class Run:
    """One command of several processes; its process group is its own, as a shell's job is."""

    def __init__(self, folder: Path, work: str, *options: str, **settings: str) -> None:
        self._log = folder / "log"
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SCRIPT, work, *options],
                env=command_environment({"LOG_FORMAT": "json", **settings}),
                stderr=errors,
                start_new_session=True,
            )

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Return the log's lines of an event."""
        told = [line for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, told) if line["event"] == event]

    def log(self) -> str:
        """Return all that was said."""
        return self._log.read_text()

    def until(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        """Wait for an event of the log."""
        _until(lambda: self.process.poll() is not None or len(self.lines(event)) >= times, self.log)
        assert len(self.lines(event)) >= times, self.log()
        return self.lines(event)

    def working(self, processes: int = 2) -> dict[int, int]:
        """Wait until all processes work; return their pids by number."""
        self.until("works", processes)
        (started,) = [line for line in self.lines("started") if "process" not in line]
        return {int(number): pid for number, pid in started["processes"].items()}

    def end(self, received: signal.Signals = signal.SIGTERM) -> int:
        """Tell the supervisor to end; return its exit code."""
        self.process.send_signal(received)
        return self.process.wait(_PATIENCE_S)

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return what the supervisor answers over HTTP."""
        (started,) = [line for line in self.lines("started") if "process" not in line]
        try:
            with urllib.request.urlopen(started["metrics"].replace("/metrics", path)) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def discard(self) -> None:
        """Kill what still runs of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _until(happened: Callable[[], bool], why: Callable[[], str]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not happened():
        assert time.monotonic() < until, why()
        time.sleep(0.05)


def _group(run: Run) -> bool:
    """Tell whether any process of the command is there."""
    try:
        os.killpg(run.process.pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start made-up workers; what still runs at the end is killed."""
    started: list[Run] = []

    def start(*arguments: str, **settings: str) -> Run:
        started.append(Run(tmp_path, *arguments, **settings))
        return started[-1]

    yield start
    for run in started:
        run.discard()


Runs = Callable[..., Run]


@pytest.mark.parametrize("received", [signal.SIGTERM, signal.SIGINT])
def test_all_end_in_good_order_when_told_to(runs: Runs, received: signal.Signals) -> None:
    run = runs("orderly", "--processes", "3")
    pids = run.working(3)
    assert set(pids) == {1, 2, 3}
    assert run.end(received) == Exit.DONE, run.log()
    told = run.lines("stopped")
    assert sorted(line.get("process", 0) for line in told) == [0, 1, 2, 3]
    assert told[-1]["exit_code"] == Exit.DONE
    assert not _group(run)


def test_a_signal_to_all_of_them_at_once_is_one_signal(runs: Runs) -> None:
    """A terminal's Ctrl-C and systemd reach the supervisor and its processes."""
    run = runs("orderly", "--processes", "2")
    run.working()
    os.killpg(run.process.pid, signal.SIGTERM)
    assert run.process.wait(_PATIENCE_S) == Exit.DONE, run.log()
    assert len(run.lines("stopped")) == 3


def test_a_second_signal_ends_all_at_once(runs: Runs) -> None:
    run = runs("deaf", "--processes", "2", STOP_TIMEOUT_S="3600")
    run.working()
    run.process.send_signal(signal.SIGTERM)
    run.until("stopping", 3)
    assert run.end(signal.SIGINT) == by_signal(signal.SIGINT)
    assert run.lines("ending at once")[0]["processes"] == [1, 2]
    assert not _group(run)


def test_the_time_limit_is_that_of_one_process(runs: Runs) -> None:
    run = runs("deaf", "--processes", "2", STOP_TIMEOUT_S="1")
    run.working()
    assert run.end() == Exit.TIME_LIMIT
    assert len(run.lines("ended by force: the time to stop is up")) == 2
    assert not _group(run)


def test_a_process_that_cannot_end_itself_is_killed(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2", STOP_TIMEOUT_S="1")
    pids = run.working()
    os.kill(pids[1], signal.SIGSTOP)
    assert run.end() == Exit.TIME_LIMIT, run.log()
    assert run.lines("killed: the time to stop is up")[0]["processes"] == [1]
    assert not _group(run)


def test_when_one_is_killed_all_end(runs: Runs) -> None:
    run = runs("orderly", "--processes", "3")
    pids = run.working(3)
    os.kill(pids[2], signal.SIGKILL)
    assert run.process.wait(_PATIENCE_S) == by_signal(signal.SIGKILL), run.log()
    (told,) = run.lines("a process ended by itself: stopping the others")
    assert (told["process"], told["pid"], told["exit_code"]) == (2, pids[2], 137)
    assert {line.get("process") for line in run.lines("stopped")} == {1, 3, None}
    assert not _group(run)


def test_when_somebody_else_ends_one_all_end_and_that_is_no_success(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2")
    pids = run.working()
    os.kill(pids[1], signal.SIGTERM)
    assert run.process.wait(_PATIENCE_S) == Exit.STOPPED, run.log()
    (told,) = run.lines("a process ended by itself: stopping the others")
    assert (told["process"], told["exit_code"]) == (1, 0)
    assert not _group(run)


def test_when_one_fails_all_end_with_its_code(runs: Runs) -> None:
    run = runs("second_fails", "--processes", "2")
    assert run.process.wait(_PATIENCE_S) == Exit.POSITION, run.log()
    assert run.log().count("contextgauge: the position is gone") == 1
    (told,) = run.lines("a process ended by itself: stopping the others")
    assert (told["process"], told["exit_code"]) == (2, Exit.POSITION)
    assert not _group(run)


def test_none_outlives_the_supervisor(runs: Runs) -> None:
    run = runs("orderly", "--processes", "2")
    pids = run.working()
    run.process.kill()
    run.process.wait(_PATIENCE_S)
    _until(lambda: not any(map(start_mark, pids.values())), run.log)
    assert len(run.lines("the supervisor is gone")) == 2
    assert len(run.lines("stopped")) == 2


def test_one_address_tells_of_all(runs: Runs) -> None:
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


def test_static_members_have_names_of_their_own(runs: Runs) -> None:
    run = runs("orderly", DERIVE_PROCESSES="2", INSTANCE_ID="node")
    run.working()
    assert sorted(line["instance"] for line in run.lines("works")) == ["node-1", "node-2"]
    assert run.end() == Exit.DONE


def test_the_option_comes_before_the_setting(runs: Runs) -> None:
    run = runs("orderly", "--processes", "1", DERIVE_PROCESSES="2", INSTANCE_ID="node")
    run.until("works")
    (started,) = run.lines("started")
    assert not started.keys() & {"process", "processes"}
    assert run.lines("works")[0]["instance"] == "node"
    assert run.end() == Exit.DONE


@pytest.mark.parametrize("number", ["0", "257", "two"])
def test_other_numbers_are_refused(runs: Runs, number: str) -> None:
    run = runs("orderly", "--processes", number)
    assert run.process.wait(_PATIENCE_S) == Exit.WRONG
    assert "Invalid value for '--processes'" in run.log()
    run = runs("orderly", DERIVE_PROCESSES=number)
    assert run.process.wait(_PATIENCE_S) == Exit.WRONG
    assert f"CONTEXTGAUGE_DERIVE_PROCESSES='{number}'" in run.log()


def test_a_taken_port_is_told_before_anything_is_started(runs: Runs) -> None:
    first = runs("orderly")
    port = first.until("started")[0]["metrics"].removesuffix("/metrics").rpartition(":")[2]
    run = runs("orderly", "--processes", "2", METRICS_PORT=port)
    assert run.process.wait(_PATIENCE_S) == Exit.WRONG
    assert f"CONTEXTGAUGE_METRICS_PORT={port} cannot be used" in run.log()
    assert run.lines("started") == []
