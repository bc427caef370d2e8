"""A growing projects folder is followed while everything is killed: the views equal a replay.

Publisher, derive and project workers, broker and Redis are killed at random while transcripts
grow, are replaced by longer copies, and appear. It takes ten minutes. What each kill does alone is
shown in short: of a publisher in tests/e2e/test_follow.py, of workers in test_chaos.py, of Redis in
test_rebuild_live.py, of a broker in tests/flow/test_derive_kafka.py.

    make test-long TESTS=tests/chaos/test_follow.py

`CHAOS_SEED` chooses another course of events.
"""

import asyncio
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.edge.local_stack.stack import LocalStack, Name
from streams.edge.redis.views import RedisViews
from streams.flow.simulator import SimulatedMessage, SimulationOptions, simulate
from tests.conftest import Command, command_environment
from tests.doubles.dump import dump

pytestmark = pytest.mark.long
SEED = int(os.environ.get("CHAOS_SEED", "1"))
DURATION_S = 600.0
PAUSE_S = (2.0, 8.0)
"""Between two acts."""

MESSAGES_A_SECOND = 150
PARTITIONS = 4
WORKERS = ("publisher", "derive-1", "derive-2", "project")
SERVICES: tuple[Name, ...] = ("kafka", "redis")

logger = logging.getLogger("chaos")


class Growth:
    """A projects folder that grows: lines in halves, new files, files replaced by longer copies."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder = folder
        self.lines = 0
        self._dice = dice
        most = int(DURATION_S * MESSAGES_A_SECOND * 2)
        self._messages = simulate(SimulationOptions(seed=SEED, sessions=30, turns=25), most)

    async def run(self, until_s: float) -> None:
        """Write until then, about so many lines a second."""
        while time.monotonic() < until_s:
            for _ in range(MESSAGES_A_SECOND // 10):
                await self._write(next(self._messages))
            await asyncio.sleep(0.1)

    async def _write(self, message: SimulatedMessage) -> None:
        path = self.folder / message.file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and self._dice.random() < 0.002:
            copy = path.with_name("copy-under-way")
            shutil.copyfile(path, copy)
            copy.replace(path)
        line = message.value + b"\n"
        half = self._dice.randrange(len(line)) if self._dice.random() < 0.02 else 0
        with path.open("ab", buffering=0) as target:
            if half:
                target.write(line[:half])
                await asyncio.sleep(0.3)
            target.write(line[half:])
        self.lines += 1

    def sizes(self) -> dict[str, int]:
        """Return the size of each file."""
        return {str(path): path.stat().st_size for path in self.folder.rglob("*.jsonl")}


class System:
    """The processes of the pipeline; each may be killed, and is started again."""

    def __init__(self, stack: LocalStack, logs: Path, folder: Path, checkpoint: Path) -> None:
        self.stack = stack
        self._logs = logs
        self._following = ("publish", "-f", "--no-live", "--checkpoint", str(checkpoint))
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, int] = {}

    @property
    def settings(self) -> dict[str, str]:
        """The settings of all commands."""
        addresses = {name: service.address for name, service in self.stack.services().items()}
        return {
            "BOOTSTRAP_SERVERS": addresses["kafka"],
            "REDIS_URL": addresses["redis"],
            "PARTITIONS": str(PARTITIONS),
            "SESSION_TIMEOUT_MS": "6000",
            "BATCH_MESSAGES": "200",
        }

    def start(self, name: str, settings: dict[str, str]) -> None:
        """Start a process."""
        arguments: tuple[str, ...] = (name.partition("-")[0],)
        if name == "publisher":
            arguments = (*self._following, str(self._folder))
        with (self._logs / f"{name}.log").open("ab") as log:
            self._begun[name] = log.tell()
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "streams", *arguments],
                env=command_environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str, settings: dict[str, str]) -> None:
        """Kill a process, and start it again."""
        self.check()
        self._running[name].kill()
        self._running[name].wait()
        self.start(name, settings)

    def check(self) -> None:
        """Raise where one ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                log = (self._logs / f"{name}.log").read_text(errors="replace")
                raise AssertionError(f"{name} ended with {process.returncode}:\n{log[-5_000:]}")

    def _heard(self, name: str) -> bool:
        """Return whether a process has said anything since it was started."""
        return (self._logs / f"{name}.log").stat().st_size > self._begun[name]

    async def end(self, name: str) -> int:
        """End a process in good order; return its exit code."""
        # One that was just killed and started again cannot hear yet.
        await eventually(lambda: self._heard(name), self)
        process = self._running.pop(name)
        process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(process.wait, 40)

    def discard(self) -> None:
        """Kill what still runs."""
        for process in self._running.values():
            process.kill()
            process.wait()


@pytest.fixture
def system(
    own_stack: Callable[..., LocalStack], command: Command, tmp_path: Path
) -> Iterator[System]:
    """Start everything."""
    folder = tmp_path / "projects"
    folder.mkdir()
    system = System(own_stack(*SERVICES), tmp_path, folder, tmp_path / "checkpoint.json")
    created = command("topics", "create", **system.settings)
    assert created.returncode == 0, created.stderr
    for name in WORKERS:
        system.start(name, system.settings)
    yield system
    system.discard()


async def act(system: System, dice: random.Random) -> str:
    """Kill something; a service comes back after a while."""
    settings = system.settings
    name = dice.choice([*WORKERS, "publisher", *SERVICES])
    if name in WORKERS:
        system.kill(name, settings)
        return name
    service: Name = "kafka" if name == "kafka" else "redis"
    system.stack.kill(service)
    await asyncio.sleep(dice.uniform(0.5, 40.0 if dice.random() < 0.1 else 3.0))
    await asyncio.to_thread(system.stack.start, [service])
    return name


async def test_the_views_of_a_growing_folder_equal_a_replay_of_it(
    system: System, command: Command, tmp_path: Path
) -> None:
    dice = random.Random(SEED)  # noqa: S311 -- for a test's course, not for secrets
    growth = Growth(tmp_path / "projects", random.Random(SEED + 1))  # noqa: S311 -- as above
    until_s = time.monotonic() + DURATION_S
    growing = asyncio.create_task(growth.run(until_s))
    acts: Counter[str] = Counter()
    while time.monotonic() < until_s:
        await asyncio.sleep(dice.uniform(*PAUSE_S))
        acts[await act(system, dice)] += 1
    await growing
    await eventually(lambda: sent(tmp_path / "checkpoint.json") == growth.sizes(), system)
    assert await system.end("publisher") == 0

    replayed = command("replay", "--view", str(growth.folder))
    assert replayed.returncode == 0, replayed.stderr
    right = by_session([json.loads(line) for line in replayed.stdout.splitlines()])
    views = RedisViews(system.settings["REDIS_URL"], "cg")
    await views.start()
    try:
        held: dict[str, Any] = {}
        for _ in range(600):
            system.check()
            held = await shown(views)
            if held == right:
                break
            await asyncio.sleep(0.2)
    finally:
        await views.stop()
    logger.warning(
        "%s lines in %s files, %s sessions; killed: %s",
        growth.lines,
        len(growth.sizes()),
        len(right),
        dict(acts),
    )
    assert held.keys() == right.keys()
    for session, view in right.items():
        assert held[session] == view
    assert right


async def eventually(done: Callable[[], bool], system: System) -> None:
    for _ in range(600):
        system.check()
        if done():
            return
        await asyncio.sleep(0.2)
    raise AssertionError("the publisher does not catch up")


def sent(checkpoint: Path) -> dict[str, int]:
    """Return up to where each file was sent, by the checkpoint."""
    if not checkpoint.exists():
        return {}
    positions = json.loads(checkpoint.read_bytes())["files"]
    return {position["path"]: position["offset"] for position in positions}


async def shown(views: RedisViews) -> dict[str, Any]:
    active = (await views.generations()).active
    if active is None:
        return {}
    dumps = [await dump(views, active, partition) for partition in range(PARTITIONS)]
    return by_session([json.loads(view) for dump in dumps for view in dump.views.values()])


def by_session(views: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the views without places in the log and in the session's order.

    A replay reads a session's file whole before its subagents'; followed, they come as they grew,
    so the records of different chains are numbered otherwise.
    """
    for view in views:
        del view["position"]
        for chain in view["chains"].values():
            del chain["last_sequence"]
    return {view["session_id"]: view for view in views}
