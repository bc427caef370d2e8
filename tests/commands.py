"""The command line as a process of its own: run to its end, or started and ended with the test."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.fork_server import ForkServer
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[1]
_COMMAND = [sys.executable, "-m", "streams"]


def command_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with these settings (names without the prefix) and no others.

    Services that are not named are at port 1, where nothing is: never those of a developer.
    """
    given = {"BOOTSTRAP_SERVERS": "127.0.0.1:1", "REDIS_URL": "redis://127.0.0.1:1/0", **settings}
    inherited = {name: value for name, value in os.environ.items() if "CONTEXTGAUGE_" not in name}
    plain = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
    return inherited | plain | {f"CONTEXTGAUGE_{name}": value for name, value in given.items()}


def listen_to_signals() -> None:
    """Undo what is inherited: a shell's jobs in the background ignore SIGINT, `nohup`'s SIGHUP."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Command:
    """Runs `contextgauge` as a process of its own; `environment` is for what is no setting."""

    def __init__(self, server: ForkServer) -> None:
        self.environment: dict[str, str] = {}
        self._server = server
        self._started: list[subprocess.Popen[str]] = []

    def __call__(
        self,
        *arguments: str,
        stdin: str | None = None,
        **settings: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; `PARTITIONS="2"` and the like are settings."""
        environment = command_environment(settings) | self.environment
        return self._server.run(arguments, environment, stdin or "", PATIENCE_S) or subprocess.run(
            [*_COMMAND, *arguments],
            cwd=_ROOT,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, *arguments: str, **settings: str) -> "subprocess.Popen[str]":
        """Start it; its output is piped, and it is ended with the test."""
        return self._start(arguments, settings, subprocess.PIPE)

    def start_logging(
        self, errors: Path, *arguments: str, **settings: str
    ) -> "subprocess.Popen[str]":
        """Start it with a file for its standard error."""
        with errors.open("w") as target:
            return self._start(arguments, settings, target)

    def _start(
        self, arguments: Sequence[str], settings: Mapping[str, str], errors: IO[str] | int
    ) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*_COMMAND, *arguments],
            cwd=_ROOT,
            env=command_environment(settings) | self.environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            preexec_fn=listen_to_signals,  # noqa: PLW1509 -- sets two signals, no more
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill what still runs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
