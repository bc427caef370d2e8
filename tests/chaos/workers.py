"""Workers as real processes: killed, paused, restarted, and started again as a supervisor does."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.commands import listen_to_signals

SESSION_TIMEOUT_MS: Final = 3_000
"""Short, so that many takeovers fit into a test; the local broker allows it."""

STOPPED_S: Final = SESSION_TIMEOUT_MS / 1000 + 1.5
"""How long a zombie sleeps: long enough to be expelled and its partitions taken over."""


TRACEBACK: Final = "a traceback"
"""A worker's errors are sentences in its log: this one is a mistake in it, or in a library."""

_ALWAYS: Final = ("dead letters", "CONTEXTGAUGE_KAFKA_SECURITY_PROTOCOL")
"""What is logged without any fault: of the stream's broken messages, and of the brokers' users."""


class EndedError(AssertionError):
    """A worker ended by itself, although nothing that happened may end one."""


class WorkerProcess:
    """One worker, which is started again whenever it was killed."""

    def __init__(
        self, command: str, environment: Mapping[str, str], log_file: Path, *arguments: str
    ) -> None:
        self.command = command
        self.environment = dict(environment)
        self.log_file = log_file
        self._arguments = arguments
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "streams", self.command, *self._arguments],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=listen_to_signals,  # noqa: PLW1509 -- sets two signals, no more
            )

    def code(self) -> int | None:
        """Return with what it ended, None while it runs."""
        return self._process.poll()

    def check(self) -> None:
        """Raise where it ended by itself: nothing that happens here may end a worker."""
        if self.code() is not None:
            raise EndedError(f"{self.command} ended with {self.code()}:\n" + self.log()[-5_000:])

    def log(self) -> str:
        """Return what it logged, and those before it."""
        return self.log_file.read_text(errors="replace")

    def start_again(self, environment: Mapping[str, str] | None = None) -> None:
        """Start another in place of one that has ended, with other settings where given."""
        self.environment |= environment or {}
        self._process = self._start()

    def crash(self) -> None:
        """Crash it."""
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """Crash it, and start another."""
        self.crash()
        self.start_again()

    def freeze(self) -> None:
        """Stop it, as a machine that hangs."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    async def sleep(self, seconds: float) -> None:
        """Stop it for so long."""
        self.freeze()
        await asyncio.sleep(seconds)
        self.thaw()

    async def end(self) -> int:
        """End it in good order; return its exit code."""
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, 40)

    def discard(self) -> None:
        """Kill it if it still runs."""
        if self.code() is None:
            self.crash()


class Fleet:
    """The workers of one round, by name, and a supervisor of them."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self.environment, self._folder = dict(environment), folder
        self.workers: dict[str, WorkerProcess] = {}
        self.tolerated: frozenset[int] = frozenset()
        """Exit codes after which the supervisor starts a worker again."""
        self.stopping: frozenset[int] = frozenset()
        """Exit codes that a worker of this fault is to end with, and stay away."""

    def add(self, name: str, *arguments: str, **settings: str) -> WorkerProcess:
        """Start a worker: its name is its command and a number."""
        own = {f"CONTEXTGAUGE_{key}": value for key, value in settings.items()}
        environment = self.environment | own
        worker = WorkerProcess(
            name.partition("-")[0], environment, self._folder / f"{name}.log", *arguments
        )
        self.workers[name] = worker
        return worker

    def of(self, command: str) -> list[WorkerProcess]:
        """Return the workers of a kind."""
        return [worker for worker in self.workers.values() if worker.command == command]

    def tend(self) -> None:
        """Start again what may end; raise where something ended that must not."""
        for worker in self.workers.values():
            code = worker.code()
            if code is None or code in self.stopping:
                continue
            if code not in self.tolerated:
                worker.check()
            worker.start_again()

    def have_ended(self, command: str, code: int) -> bool:
        """Return whether all workers of a kind have ended with this code."""
        return all(worker.code() == code for worker in self.of(command))

    async def end(self, command: str | None = None) -> dict[str, int]:
        """End workers in good order; return their exit codes."""
        ending = [n for n, w in self.workers.items() if command in {None, w.command}]
        codes = await asyncio.gather(*(self.workers.pop(name).end() for name in ending))
        return dict(zip(ending, codes, strict=True))

    def discard(self) -> None:
        """Kill what still runs."""
        for worker in self.workers.values():
            worker.discard()

    def warnings(self) -> Counter[str]:
        """Count what all workers warned of, by the line's text and the kind of its error."""
        return Counter(
            warning
            for path in sorted(self._folder.glob("*.log"))
            for warning in _warnings_of(path.read_text(errors="replace"))
        )


def _warnings_of(log: str) -> Iterator[str]:
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            if line.startswith("Traceback"):
                yield TRACEBACK
            continue
        if entry.get("level") in {"warning", "error", "critical"}:
            text = str(entry.get("event")).partition("\n")[0]
            if not text.startswith(_ALWAYS):
                error = f" ({entry.get('error')})" if text == "stopped" else ""
                yield text + error
