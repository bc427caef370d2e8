"""Workers as real processes, killed and stopped at random while messages come in.

A SIGKILL is a crash: the transaction under way is left open. A SIGSTOP beyond the session
time-out makes a zombie: another worker takes its partitions over, then it wakes with a batch in
hand. Everything random follows from the seed; what the system does in between does not.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tests.flow.derive_kit import DeriveKit, Sent, until

Act: TypeAlias = Literal["kill", "stop"]

SESSION_TIMEOUT_MS = 3_000
"""Short, so that many takeovers fit into a test; the local broker allows it."""

_STOPPED_S = SESSION_TIMEOUT_MS / 1000 + 1.5
"""How long a zombie sleeps: long enough to be expelled and its partitions taken over."""

_CHUNK_MESSAGES = 40
_CHUNK_PAUSE_S = 0.05
"""Messages come at some 800 a second: the workers are always in the middle of something."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens in one run."""

    seed: int
    kills: int
    stops: int

    def acts(self, dice: random.Random) -> list[Act]:
        """Return the acts in a random order."""
        acts: list[Act] = [*["kill"] * self.kills, *["stop"] * self.stops]  # type: ignore[list-item]
        dice.shuffle(acts)
        return acts


class WorkerProcess:
    """One worker, started anew whenever it was killed."""

    def __init__(self, command: str, environment: Mapping[str, str], log_file: Path) -> None:
        self._command = command
        self._environment = environment
        self._log_file = log_file
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log_file.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "streams", self._command],
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def check(self) -> None:
        """Raise where it ended by itself: nothing that happens here may end a worker."""
        if self._process.poll() is not None:
            raise AssertionError(
                f"{self._command} ended with {self._process.returncode}:\n" + self.log()[-5_000:]
            )

    def log(self) -> str:
        """Return what it has said, and those before it."""
        return self._log_file.read_text(errors="replace")

    def kill(self) -> None:
        """Crash it, and start another."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    async def sleep(self, seconds: float) -> None:
        """Stop it for so long, as a machine that hangs."""
        self._process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    async def end(self) -> int:
        """End it in good order; return its exit code."""
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, 30)

    def discard(self) -> None:
        """Kill it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Chaos:
    """One run: publishes all messages while the plan's acts befall the workers."""

    def __init__(
        self, kit: DeriveKit, workers: Sequence[WorkerProcess], plan: Plan, messages: Sequence[Sent]
    ) -> None:
        self._kit = kit
        self._workers = workers
        self._plan = plan
        self._messages = messages
        self._dice = random.Random(plan.seed)  # noqa: S311 -- for a test's course, not for secrets
        self._sent = 0

    async def run(self) -> int:
        """Do it all; return how many messages were published."""
        acting = asyncio.Event()
        publishing = asyncio.create_task(self._publish(acting))
        try:
            for act in self._plan.acts(self._dice):
                # Each act hits workers that work: the one before has been got over.
                await self._progress()
                await asyncio.sleep(self._dice.uniform(0.05, 1.5))
                worker = self._dice.choice(self._workers)
                if act == "kill":
                    worker.kill()
                else:
                    await worker.sleep(_STOPPED_S)
                self._check()
            acting.set()
            await publishing
        finally:
            publishing.cancel()
        await self._until_caught_up()
        return self._sent

    async def _publish(self, done: asyncio.Event) -> None:
        """Publish in small portions until the acts are over, at least as much as planned."""
        while not done.is_set():
            portion = self._messages[self._sent : self._sent + _CHUNK_MESSAGES]
            if not portion:
                raise AssertionError("too few messages for this plan")
            await self._kit.publish(portion)
            self._sent += len(portion)
            await asyncio.sleep(_CHUNK_PAUSE_S)

    async def _derived(self) -> dict[int, int]:
        config = self._kit.config
        return await self._kit.log.committed(config.group, config.messages_topic)

    async def _progress(self) -> None:
        """Wait until every partition has been worked on since now."""
        before = await self._derived()

        async def moved() -> bool:
            self._check()
            now = await self._derived()
            return all(now.get(p, 0) > before.get(p, 0) for p in range(self._kit.partitions))

        await until(moved)

    async def _until_caught_up(self) -> None:
        await self._kit.caught_up()
        self._check()

    def _check(self) -> None:
        for worker in self._workers:
            worker.check()
