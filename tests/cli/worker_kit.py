"""Workers whose work is made up: processes of their own, run as the commands run theirs."""

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

from tests.commands import command_environment
from tests.patience import PATIENCE_S

_SCRIPT = """
import asyncio, sys, time
import structlog
from streams.cli import app
from streams.cli.workers import commands
from contextgauge.errors import PositionError

logger = structlog.get_logger()

async def orderly(worker):
    worker.health.worker("member")
    logger.info("works", instance=worker.settings.instance_id)
    await worker.stop.wait()

async def deaf(worker):
    logger.info("works")
    with worker.health.step("commit", 3, 20.0):
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

async def blocked(worker):
    await asyncio.sleep(0.1)
    time.sleep(600)

async def broken(worker):
    raise KeyError("text of a message")

async def misplaced(worker):
    raise PositionError("the position is gone")

async def second_fails(worker):
    logger.info("works")
    if structlog.contextvars.get_contextvars()["process"] == 2:
        raise PositionError("the position is gone")
    await worker.stop.wait()

work, run = globals()[sys.argv[1]], commands.run
commands.run = lambda *_, **more: run("derive", work, **more)
sys.argv[1:] = ["derive", *sys.argv[2:]]
app.main()
"""


class Run:
    """One command, and its processes: its process group is its own, as a shell's job is."""

    def __init__(self, folder: Path, work: str, *options: str, **settings: str) -> None:
        self._log = folder / "log"
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SCRIPT, work, *options],
                env=command_environment({"LOG_FORMAT": "json", **settings}),
                stderr=errors,
                start_new_session=True,
            )

    def log(self) -> str:
        """Return the log."""
        return self._log.read_text()

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Return the log's lines of an event."""
        lines = [line for line in self.log().splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def until(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        """Wait for an event of the log; return its lines."""
        wait_until(
            lambda: self.process.poll() is not None or len(self.lines(event)) >= times, self.log
        )
        assert len(self.lines(event)) >= times, self.log()
        return self.lines(event)

    def started(self) -> dict[str, Any]:
        """Wait for the start of the command; return its line of the log."""

        def own() -> list[dict[str, Any]]:
            return [line for line in self.lines("started") if "process" not in line]

        wait_until(lambda: self.process.poll() is not None or bool(own()), self.log)
        return own()[0]

    def working(self, processes: int = 2) -> dict[int, int]:
        """Wait until all processes work; return their pids by number."""
        self.until("works", processes)
        return {int(number): pid for number, pid in self.started()["processes"].items()}

    def end(self, received: signal.Signals = signal.SIGTERM) -> int:
        """Send the command a signal; return its exit code."""
        self.process.send_signal(received)
        return self.wait()

    def wait(self) -> int:
        """Return the exit code, once it has ended."""
        return self.process.wait(PATIENCE_S)

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the answer of the status address."""
        address = self.started()["metrics"].removesuffix("/metrics")
        try:
            with urllib.request.urlopen(address + path) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def is_running(self) -> bool:
        """Tell whether any of its processes runs."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


Runs = Callable[..., Run]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Runs]:
    """Give what starts such workers; kill what still runs at the end."""
    started: list[Run] = []

    def start(work: str, *options: str, **settings: str) -> Run:
        started.append(Run(folder, work, *options, **settings))
        return started[-1]

    yield start
    for run in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()


def wait_until(happened: Callable[[], bool], log: Callable[[], str]) -> None:
    """Wait for a condition; fail with the log if it never holds."""
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, log()
        time.sleep(0.05)
