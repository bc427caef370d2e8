"""Ending a worker: in good order, by force when the time is up, at once at a second signal.

The work is made up, and run in a process of its own as the commands run theirs.
"""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.cli.exits import Exit, by_signal
from tests.conftest import command_environment

pytestmark = pytest.mark.service

_PATIENCE_S = 60.0

_SCRIPT = """
import asyncio, sys, time
from streams.cli import app
from streams.cli.workers import commands as workers
from contextgauge.errors import PositionError

async def orderly(chosen, telemetry, health, stop):
    health.worker("member")
    await stop.wait()

async def deaf(chosen, telemetry, health, stop):
    with health.step("commit", 3, 20.0):
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

async def blocked(chosen, telemetry, health, stop):
    await asyncio.sleep(0.1)
    time.sleep(600)

async def broken(chosen, telemetry, health, stop):
    raise KeyError("text of a message")

async def misplaced(chosen, telemetry, health, stop):
    raise PositionError("the position is gone")

work, run = globals()[sys.argv[1]], workers.run
workers.run = lambda *_, **more: run("derive", work, **more)
sys.argv[1:] = ["derive"]
app.main()
"""


class Run:
    """One made-up worker."""

    def __init__(self, folder: Path, work: str, **settings: str) -> None:
        self.log = folder / "log"
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SCRIPT, work],
                env=command_environment({"LOG_FORMAT": "json", **settings}),
                stderr=errors,
            )

    def events(self) -> dict[str, dict[str, object]]:
        """Return the log's lines by their event."""
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return {told["event"]: told for told in map(json.loads, lines)}

    def until(self, event: str) -> dict[str, object]:
        """Wait for an event of the log."""
        until = time.monotonic() + _PATIENCE_S
        while event not in self.events():
            is_over = self.process.poll() is not None and event not in self.events()
            assert not is_over, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)
        return self.events()[event]

    def end(self, received: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end; return its exit code."""
        self.process.send_signal(received)
        return self.process.wait(_PATIENCE_S)

    def ask(self, path: str) -> tuple[int, dict[str, object]]:
        """Return what it answers over HTTP."""
        address = str(self.until("started")["metrics"]).removesuffix("/metrics")
        try:
            with urllib.request.urlopen(address + path) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


class Runs:
    """Starts made-up workers; what still runs at the end is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Run] = []

    def __call__(self, work: str, **settings: str) -> Run:
        run = Run(self._folder, work, **settings)
        self._started.append(run)
        return run

    def end(self) -> None:
        for run in self._started:
            run.process.kill()
            run.process.wait()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.end()


def test_an_end_in_good_order_tells_how_long_it_took(runs: Runs) -> None:
    run = runs("orderly")
    assert run.ask("/readyz")[0] == 200
    assert run.end() == Exit.DONE
    assert run.events()["stopping"]["signal"] == "SIGTERM"
    seconds = run.events()["stopped"]["seconds"]
    assert isinstance(seconds, float)
    assert 0 <= seconds < _PATIENCE_S


@pytest.mark.parametrize("work", ["deaf", "blocked"])
def test_when_the_time_is_up_it_is_ended_by_force(runs: Runs, work: str) -> None:
    """Also where the event loop stands still, and hears of no signal itself."""
    run = runs(work, STOP_TIMEOUT_S="1")
    run.until("started")
    assert run.end() == Exit.TIME_LIMIT
    told = run.events()["ended by force: the time to stop is up"]
    assert told["worker"] == "derive"
    assert told["doing"] == (["commit of partition 3"] if work == "deaf" else [])
    assert "stopped" not in run.events()


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(runs: Runs, again: signal.Signals) -> None:
    run = runs("deaf", STOP_TIMEOUT_S="3600")
    run.until("started")
    run.process.send_signal(signal.SIGINT)
    run.until("stopping")
    assert run.end(again) == by_signal(again)
    assert run.events()["ending at once"]["signal"] == again.name


def test_a_loop_that_stands_still_is_told_over_http(runs: Runs) -> None:
    run = runs("blocked", STUCK_AFTER_S="5")
    assert run.ask("/healthz")[0] == 200
    until = time.monotonic() + _PATIENCE_S
    while (answer := run.ask("/healthz"))[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.2)
    status, document = answer
    assert (status, document["live"]) == (503, False)
    assert "the event loop has stood still for" in str(document["reasons"])


def test_an_error_of_the_program_is_told_without_what_it_quotes(runs: Runs) -> None:
    run = runs("broken")
    assert run.process.wait(_PATIENCE_S) == Exit.INTERNAL
    assert run.events()["stopped"]["exit_code"] == Exit.INTERNAL
    told = run.log.read_text()
    assert "builtins.KeyError" in told
    assert "KeyError: " not in told
    assert told.count("text of a message") == 0


def test_a_reason_to_stop_has_its_exit_code_in_the_log_too(runs: Runs) -> None:
    run = runs("misplaced")
    assert run.process.wait(_PATIENCE_S) == Exit.POSITION
    assert run.events()["stopped"]["error"] == "PositionError"
    assert run.events()["stopped"]["exit_code"] == Exit.POSITION
    assert run.log.read_text().splitlines()[-2:] == [
        "contextgauge: the position is gone",
        'What to do: "A position is out of range" in docs/RUNBOOK.md',
    ]
