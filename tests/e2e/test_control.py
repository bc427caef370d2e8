"""Control workers as processes: they share the work, and a broker that restarts is waited for."""

import asyncio
import json
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from schemas.topics import CONTEXT_EVENTS
from streams import codec
from streams.cli.exits import Exit
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.ports import NewRecord
from streams.settings import load_settings
from tests.commands import Command
from tests.contract.logs import delete_topics
from tests.core.given import Given, assistant
from tests.flow.derive_kit import until
from tests.web_kit import web_server

PARTITIONS = 4
RULES = """
memory = "file"

[[targets]]
name = "ops"
url = "{url}"

[[rules]]
name = "full"
when = "pressure"
at_percent = 80
targets = ["ops"]
"""


class Hook:
    """A webhook server that takes all that comes, and counts it."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.taken[(await request.json())["session_id"]] += 1
        return web.Response()


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    hook = Hook()
    async with web_server(hook.handle) as hook.url:
        yield hook


class Sessions:
    """Full sessions of now, appended to a topic; each is one alert."""

    def __init__(self, log: KafkaLog, topic: str) -> None:
        self._log, self._topic = log, topic
        self.names: set[str] = set()

    async def write(self, count: int) -> None:
        producer = self._log.producer()
        await producer.start()
        for _ in range(count):
            name = f"session-{len(self.names)}"
            self.names.add(name)
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            body: dict[str, Any] = assistant("r", read=190_000)
            for record in Given().take(body | {"session_id": name, "timestamp": now}):
                headers, value = codec.to_binary(record)
                partition = partition_of(name, PARTITIONS)
                await producer.send(
                    NewRecord(self._topic, partition, name.encode(), value, headers)
                )
        await producer.flush()
        await producer.stop()


async def sessions_on(log: KafkaLog, prefix: str) -> Sessions:
    """Make a topic of the test's own."""
    topic = load_settings({"topic_prefix": prefix}).topic(CONTEXT_EVENTS)
    await log.start()
    await log.create_topics([topic], PARTITIONS)
    return Sessions(log, topic.name)


def settings(address: str, prefix: str, folder: Path, hook: Hook) -> dict[str, str]:
    """Write the rules; return the settings of a worker."""
    rules = folder / "alerts.toml"
    rules.write_text(RULES.format(url=hook.url))
    return {
        "BOOTSTRAP_SERVERS": address,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "ALERTS_FILE": str(rules),
        "STATE_FOLDER": str(folder / "state"),
        "SESSION_TIMEOUT_MS": "6000",
    }


def said(log: Path, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


async def has(count: int, hook: Hook) -> bool:
    return len(hook.taken) >= count


async def has_partitions(log: Path) -> bool:
    return bool(said(log, "assigned"))


async def end(worker: "subprocess.Popen[str]") -> int:
    worker.terminate()
    return await asyncio.to_thread(worker.wait, 30)


@pytest.mark.extended
async def test_workers_share_the_partitions_and_a_stopped_one_leaves_no_alert_unsent(
    kafka: str, prefix: str, command: Command, tmp_path: Path, hook: Hook
) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    sessions = await sessions_on(log, prefix)
    options = settings(kafka, prefix, tmp_path, hook)
    files = tmp_path / "first", tmp_path / "second"
    first = command.start_logging(files[0], "control", **options)
    await sessions.write(20)
    await until(lambda: has(20, hook))
    second = command.start_logging(files[1], "control", **options)

    async def shared() -> bool:
        shares = [said(file, "assigned")[-1:] for file in files]
        return [len(share[0]["partitions"]) for share in shares if share] == [2, 2]

    await until(shared)
    await sessions.write(20)
    await until(lambda: has(40, hook))
    assert await end(first) == 0
    await sessions.write(20)
    await until(lambda: has(60, hook))
    assert await end(second) == 0
    # Both ended, or handed over, in good order: so nothing even came twice.
    assert hook.taken == Counter(dict.fromkeys(sessions.names, 1))
    await log.stop()


@pytest.mark.extended
async def test_control_waits_for_an_unavailable_broker(
    killable_kafka: LocalStack, prefix: str, command: Command, tmp_path: Path, hook: Hook
) -> None:
    stack = killable_kafka
    address = stack.services()["kafka"].address
    log = KafkaLog(KafkaOptions(address))
    sessions = await sessions_on(log, prefix)
    file = tmp_path / "log"
    worker = command.start_logging(file, "control", **settings(address, prefix, tmp_path, hook))
    await sessions.write(5)
    await until(lambda: has(5, hook))
    stack.kill("kafka")

    async def away() -> bool:
        return bool(said(file, "trying again"))

    await until(away)
    (metrics,) = re.findall(r'http://[^"]*/metrics', file.read_text())
    async with ClientSession() as client:
        ready = await client.get(metrics.replace("metrics", "readyz"))
        live = await client.get(metrics.replace("metrics", "healthz"))
        assert (ready.status, live.status) == (503, 200), await ready.text()
    await asyncio.to_thread(stack.start, ["kafka"])
    await sessions.write(5)
    await until(lambda: has(10, hook))
    assert worker.poll() is None
    assert await end(worker) == 0
    assert set(hook.taken) == sessions.names
    await log.stop()


@pytest.mark.extended
async def test_a_topic_that_is_recreated_ends_the_worker_and_the_next_one_begins_with_it(
    kafka: str, prefix: str, command: Command, tmp_path: Path, hook: Hook
) -> None:
    log = KafkaLog(KafkaOptions(kafka))
    sessions = await sessions_on(log, prefix)
    options = settings(kafka, prefix, tmp_path, hook)
    topic = prefix + CONTEXT_EVENTS.name
    first = command.start_logging(tmp_path / "first", "control", **options)
    await sessions.write(5)
    await until(lambda: has(5, hook))
    await delete_topics(kafka, topic)

    async def is_gone() -> bool:
        return (await log.partition_counts([topic]))[topic] is None

    await until(is_gone)
    await sessions_on(log, prefix)
    await sessions.write(10)  # the former positions are outgrown
    assert await asyncio.to_thread(first.wait, 60) == Exit.AWAY
    (stopped,) = said(tmp_path / "first", "stopped")
    assert stopped["exit_code"] == Exit.AWAY
    assert "was deleted and created again. Create what is missing" in (
        (tmp_path / "first").read_text()
    )
    second = command.start_logging(tmp_path / "second", "control", **options)
    await until(lambda: has(15, hook))
    # The first one may have sent some of them before it noticed.
    await until(lambda: has_partitions(tmp_path / "second"))
    assert await end(second) == 0
    assert hook.taken == Counter(dict.fromkeys(sessions.names, 1))
    await log.stop()
