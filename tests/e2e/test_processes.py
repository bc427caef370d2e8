"""`contextgauge derive --processes 2` on a real Kafka: the same records, and nobody left behind."""

import asyncio
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.settings.local_stack import start_mark
from streams.cli.exits import Exit, by_signal
from streams.edge.kafka.log import KafkaLog
from tests.commands import Command
from tests.flow.derive_kit import DeriveKit, expected, samples, until

pytestmark = pytest.mark.extended

MESSAGES = samples(7)
THIRD = len(MESSAGES) // 3


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own, and how to look at them."""
    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    kit.config = kit.renamed(prefix + "contextgauge-derive")
    await kit.create_topics()
    yield kit
    await kit.log.stop()


@pytest.fixture
def settings(kafka: str, prefix: str) -> dict[str, str]:
    """Names of this test's own on the real service."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "SESSION_TIMEOUT_MS": "6000",
        "LOG_FORMAT": "json",
    }


def lines(log: Path, event: str) -> list[dict[str, Any]]:
    """Return the log's lines of an event."""
    text = [line for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in map(json.loads, text) if line["event"] == event]


def owners(log: Path) -> dict[int, list[int]]:
    """Return the partitions that each process was assigned last."""
    return {line["process"]: line["partitions"] for line in lines(log, "partitions assigned")}


async def shared(log: Path) -> None:
    """Wait until both processes have partitions."""
    await until(lambda: sorted(map(len, owners(log).values())) == [2, 2])


def pids(log: Path) -> dict[int, int]:
    """Return the processes' pids by number."""
    (started,) = [line for line in lines(log, "started") if "processes" in line]
    return {int(number): pid for number, pid in started["processes"].items()}


async def test_two_processes_share_the_partitions_and_derive_the_same(
    command: Command, kit: DeriveKit, settings: dict[str, str], tmp_path: Path
) -> None:
    """Over a stop in good order, a process and then the supervisor that are killed."""
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    await kit.publish(MESSAGES[:THIRD])
    worker = command.start_logging(first, "derive", "--processes", "2", **settings)
    await shared(first)
    assert sorted(itertools.chain(*owners(first).values())) == [0, 1, 2, 3]
    await kit.caught_up()
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 60) == Exit.DONE, first.read_text()
    assert not any(map(start_mark, pids(first).values()))

    worker = command.start_logging(second, "derive", "--processes", "2", **settings)
    await shared(second)
    await kit.publish(MESSAGES[THIRD : 2 * THIRD])
    os.kill(pids(second)[1], signal.SIGKILL)
    assert await asyncio.to_thread(worker.wait, 60) == by_signal(signal.SIGKILL)
    (entry,) = lines(second, "a process ended by itself: stopping the others")
    assert entry["process"] == 1
    assert not any(map(start_mark, pids(second).values()))

    worker = command.start_logging(third, "derive", "--processes", "2", **settings)
    await shared(third)
    await kit.publish(MESSAGES[2 * THIRD :])
    worker.kill()
    await until(lambda: not any(map(start_mark, pids(third).values())))
    assert len(lines(third, "the supervisor is gone")) == 2

    last = tmp_path / "last"
    worker = command.start_logging(last, "derive", **settings)
    await until(lambda: len(lines(last, "partition is running")) == kit.partitions)
    await kit.caught_up()
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 60) == Exit.DONE
    assert await kit.events() == expected(MESSAGES)


async def test_more_processes_than_partitions_are_reported_once(
    command: Command, kit: DeriveKit, settings: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    await kit.publish(MESSAGES)
    worker = command.start_logging(log, "derive", "--processes", "5", **settings)
    await until(lambda: sorted(map(len, owners(log).values())) == [0, 1, 1, 1, 1])
    await kit.caught_up()
    worker.send_signal(signal.SIGINT)
    assert await asyncio.to_thread(worker.wait, 60) == Exit.DONE, log.read_text()
    (entry,) = lines(log, "more processes than partitions: some have nothing to do")
    assert (entry["processes"], entry["partitions"]) == (5, 4)
    assert await kit.events() == expected(MESSAGES)
