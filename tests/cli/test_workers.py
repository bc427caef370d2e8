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


@pytest.mark.parametrize("name", ["derive", "project"])
def test_an_outage_and_its_end_are_logged_in_a_few_lines(
    command: Command,
    killable_kafka: LocalStack,
    killable_settings: dict[str, str],
    tmp_path: Path,
    name: str,
) -> None:
    stack, settings = killable_kafka, killable_settings
    assert command("topics", "create", **settings).returncode == 0
    errors = tmp_path / "errors"
    worker = command.start_logging(errors, name, **settings)

    def times(words: str) -> int:
        return errors.read_text().count(words)

    def reports() -> int:
        return times("Kafka does not answer") + times("trying again")

    def ends() -> int:
        return times("Kafka answers again") + times("it works again") + times("joined the group")

    running = "partition is running" if name == "derive" else '"following"'
    _until(lambda: times(running) == 2, errors)
    joined = ends()
    stack.kill("kafka")
    _until(lambda: reports() >= 1, errors)
    stack.start(["kafka"])
    _until(lambda: ends() > joined, errors)
    stack.kill("kafka")
    before = reports()
    _until(lambda: reports() > before, errors)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(PATIENCE_S) == 0, errors.read_text()
    assert times('"stopped"') == 1
    told = errors.read_text()
    assert all(line.startswith("{") for line in told.splitlines()), told
    assert len(told.splitlines()) < 60, told


def _started(log: Path) -> str:
    """Return the address that a worker's log tells."""
    for line in log.read_text().splitlines():
        told = json.loads(line)
        if told["event"] == "started":
            return str(told["metrics"]).removesuffix("/metrics")
    return ""


def _ask(address: str, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(address + path) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


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
