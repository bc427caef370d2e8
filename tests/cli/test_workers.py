"""A worker whose Kafka goes away: a few lines of its own, what it tells, and an end in time."""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.cli.exits import Exit
from streams.edge.local_stack.stack import LocalStack
from tests.commands import Command
from tests.patience import PATIENCE_S


def _until(happened: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


@pytest.fixture
def killable_settings(killable_kafka: LocalStack, redis_url: str, prefix: str) -> dict[str, str]:
    """Names of the test's own on a Kafka that it may kill."""
    return {
        "BOOTSTRAP_SERVERS": killable_kafka.services()["kafka"].address,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": prefix,
        "PARTITIONS": "2",
        "REPLICAS": "1",
        "LOG_FORMAT": "json",
    }


class _Logging:
    """A worker, and what its log has of an outage."""

    def __init__(self, command: Command, name: str, folder: Path, settings: dict[str, str]) -> None:
        self.log = folder / name
        self.process = command.start_logging(self.log, name, **settings)
        self._running = "partition is running" if name == "derive" else '"following"'

    def times(self, *words: str) -> int:
        text = self.log.read_text()
        return sum(text.count(each) for each in words)

    def runs(self) -> int:
        return self.times(self._running)

    def reports(self) -> int:
        return self.times("Kafka does not answer", "trying again")

    def ends(self) -> int:
        return self.times("Kafka answers again", "it works again", "joined the group")

    def wait(self, count: Callable[[], int], least: int) -> None:
        _until(lambda: count() >= least, self.log)


@pytest.mark.extended
def test_an_outage_and_its_end_are_logged_in_a_few_lines(
    command: Command,
    killable_kafka: LocalStack,
    killable_settings: dict[str, str],
    tmp_path: Path,
) -> None:
    stack, settings = killable_kafka, killable_settings
    assert command("topics", "create", **settings).returncode == 0
    workers = [_Logging(command, name, tmp_path, settings) for name in ("derive", "project")]
    for worker in workers:
        worker.wait(worker.runs, 2)
    joined = [worker.ends() for worker in workers]
    stack.kill("kafka")
    for worker in workers:
        worker.wait(worker.reports, 1)
    stack.start(["kafka"])
    for worker, before in zip(workers, joined, strict=True):
        worker.wait(worker.ends, before + 1)
    stack.kill("kafka")
    reported = [worker.reports() for worker in workers]
    for worker, before in zip(workers, reported, strict=True):
        worker.wait(worker.reports, before + 1)
        worker.process.send_signal(signal.SIGINT)
        assert worker.process.wait(PATIENCE_S) == 0, worker.log.read_text()
        assert worker.times('"stopped"') == 1
        lines = worker.log.read_text().splitlines()
        assert all(line.startswith("{") for line in lines), lines
        assert len(lines) < 60, lines


def _started(log: Path) -> str:
    """Return the address that a worker's log tells."""
    for line in log.read_text().splitlines():
        document = json.loads(line)
        if document["event"] == "started":
            return str(document["metrics"]).removesuffix("/metrics")
    return ""


def _ask(address: str, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(address + path) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["derive", "project"])
def test_a_worker_whose_broker_hangs_stops_in_time(
    command: Command,
    killable_kafka: LocalStack,
    killable_settings: dict[str, str],
    tmp_path: Path,
    name: str,
) -> None:
    settings = killable_settings | {"STOP_TIMEOUT_S": "5"}
    assert command("topics", "create", **settings).returncode == 0
    errors = tmp_path / "errors"
    worker = command.start_logging(errors, name, **settings)
    _until(lambda: bool(_started(errors)), errors)
    address = _started(errors)
    _until(lambda: _ask(address, "/readyz")[0] == 200, errors)
    _, ready = _ask(address, "/readyz")
    assert ready["partitions"].keys() == {"0", "1"}  # type: ignore[attr-defined]  # a JSON object
    assert _ask(address, "/healthz")[0] == 200

    broker = killable_kafka.services()["kafka"].process.pid
    os.kill(broker, signal.SIGSTOP)
    try:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_S) in {Exit.DONE, Exit.TIME_LIMIT}, errors.read_text()
    finally:
        os.kill(broker, signal.SIGCONT)
