"""This version continues what the last released one left in Kafka and Redis, amid sessions.

The released one is taken from its tag in git and run by this environment's Python and dependencies,
so nothing of it has to be recorded. `UPGRADE_FROM` names another commit.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgauge.kafka.options import KafkaOptions
from streams.edge.kafka.log import KafkaLog
from streams.flow.simulator import SimulationOptions, simulate
from tests.commands import Command, command_environment
from tests.flow.derive_kit import DeriveKit, until
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).parents[2]

_FIRST = (0, 2, 0)
"""The first version whose data are kept (docs/COMPATIBILITY.md)."""


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", _ROOT, *arguments], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"git {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


def _last_release() -> str:
    """Return the newest version's tag, or the commit of `UPGRADE_FROM`."""
    if commit := os.environ.get("UPGRADE_FROM"):
        return commit
    tags = _git("tag", "--list", "v*.*.*", "--sort=-version:refname").decode().split()
    releases = [tag for tag in tags if tag[1:].replace(".", "").isdigit()]
    if not releases or tuple(map(int, releases[0][1:].split("."))) < _FIRST:
        pytest.skip(
            "no tag of a released version from v0.2.0 on: a clone without tags, or none yet"
        )
    return releases[0]


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Return the released version's files."""
    archive = io.BytesIO(_git("archive", "--format=tar", _last_release()))
    with tarfile.open(fileobj=archive) as files:
        files.extractall(tmp_path / "released", filter="data")
    return tmp_path / "released"


class Released:
    """Runs the released version's commands."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder = folder
        self._environment = command_environment(settings) | {"PYTHONPATH": str(folder)}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "streams", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._processes.append(process)
        return process

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command to its end; return what it printed."""
        process = self.start(*arguments)
        return process.communicate(stdin, timeout=PATIENCE_S)[0]

    def end(self) -> None:
        """End what runs, in good order."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def former(released: Path, settings: dict[str, str]) -> Iterator[Released]:
    settings["PARTITIONS"] = "4"
    former = Released(released, settings)
    yield former
    former.end()


@pytest.mark.extended
async def test_the_present_version_goes_on_in_the_middle_of_sessions(
    former: Released, command: Command, kafka: str, prefix: str, settings: dict[str, str]
) -> None:
    options = SimulationOptions(sessions=4, turns=6, providers=("claude",))
    lines = [message.named() + b"\n" for message in simulate(options)]
    half = len(lines) // 2
    former.run("topics", "create")
    workers = [former.start("derive"), former.start("project")]
    former.run("publish", "--no-live", "-", stdin=b"".join(lines[:half]))

    async def has_sessions() -> bool:
        listed = await asyncio.to_thread(former.run, "sessions", "--json")
        return listed.count(b'"session_id"') > 1

    await until(has_sessions)
    former.end()
    assert [worker.returncode for worker in workers] == [0, 0]

    command.start("project", **settings)
    command.start("derive", **settings)
    sent = command("publish", "--no-live", "-", stdin=b"".join(lines[half:]).decode(), **settings)
    assert sent.returncode == 0, sent.stderr

    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    kit.config = kit.renamed(prefix + "contextgauge-derive")
    await kit.log.start()
    await kit.caught_up()
    sequences: dict[str, list[int]] = {}
    for partition in await kit.events():
        for record in partition:
            sequences.setdefault(record.data.session_id, []).append(record.sequence)
    await kit.log.stop()
    assert len(sequences) == options.sessions
    for numbers in sequences.values():
        assert numbers == list(range(1, len(numbers) + 1))

    def is_whole() -> bool:
        audited = command("rebuild", "--audit", "--json", **settings)
        result = json.loads(audited.stdout or "null") or {}
        return audited.returncode == 0 and result["compared_sessions"] == len(sequences)

    await until(lambda: asyncio.to_thread(is_whole))
