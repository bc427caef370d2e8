"""A control worker that is killed at every step and at random, against a real webhook server.

Every alert comes at least once, none comes that nobody asked for, and whoever heeds the id takes
none twice. The short form kills once at each step, with the memory in Redis; `make test-long` kills
more often, also at random, and with the memory in files (which tests/contract holds to the same).
"""

import asyncio
import logging
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import pytest
from aiohttp import web

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.topics import CONTEXT_EVENTS
from streams import codec
from streams.core.alerts.watch import Watch
from streams.edge.alerts.rules_file import read_plan
from streams.edge.alerts.webhooks import signature_of
from streams.edge.kafka.log import KafkaLog
from streams.ports import NewRecord
from streams.settings import load_settings
from tests.chaos.workers import SESSION_TIMEOUT_MS, WorkerProcess
from tests.conftest import LONG
from tests.core.given import Given, assistant, compacting, failed
from tests.flow.derive_kit import until
from tests.web_kit import web_server

pytestmark = [pytest.mark.extended, pytest.mark.has_long_form]
SEED = int(os.environ.get("CHAOS_SEED", "1"))
RANDOM_KILLS = 15 if LONG else 0
ROUNDS = 4 if LONG else 1
PARTITIONS = 2
SECRET = "the secret"  # noqa: S105 -- of this test's own server

Step: TypeAlias = Literal["asked", "answered", "remembered", "committed"]
"""Where the worker is killed: in its call; when it has the answer; when it remembers it; when it
has reported to Kafka."""
_AFTER_S: dict[Step, float] = {"answered": 0.0, "remembered": 0.05, "committed": 1.3}

RULES = """
max_age = "1h"
memory = "{memory}"

[[targets]]
name = "steady"
url = "{url}/steady"
secret_env = "CHAOS_SECRET"
timeout = "5s"

[[targets]]
name = "moody"
url = "{url}/moody"
secret_env = "CHAOS_SECRET"
timeout = "5s"

[[rules]]
name = "nearly full"
when = "pressure"
at_percent = 80
targets = ["steady", "moody"]

[[rules]]
name = "failed"
when = "failed"
targets = ["steady"]

[[rules]]
name = "silent"
when = "stalled"
after = "2s"
targets = ["moody"]
"""

logger = logging.getLogger("chaos")


class Receivers:
    """A webhook server of two addresses; the moody one fails every third call."""

    def __init__(self) -> None:
        self.taken: dict[str, Counter[str]] = {"/steady": Counter(), "/moody": Counter()}
        self.calls = 0
        self.forged = 0
        self.url = ""
        self.kill_at: Step | None = None
        self.worker: WorkerProcess | None = None

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        alert = request.headers["webhook-id"]
        signed_s = int(request.headers["webhook-timestamp"])
        right = signature_of(SECRET.encode(), alert, signed_s, body)
        self.forged += request.headers["webhook-signature"] != right
        self.forged += codec.loads(body)["id"] != alert
        self.calls += 1
        step, self.kill_at = self.kill_at, None
        if step == "asked" and self.worker is not None:
            self.worker.kill()  # and nothing is made of what it asked
            return web.Response()
        if request.path == "/moody" and self.calls % 3 == 0:
            self.kill_at = step
            return web.Response(status=503)
        self.taken[request.path][alert] += 1
        if step is not None and self.worker is not None:
            asyncio.get_running_loop().call_later(_AFTER_S[step], self.worker.kill)
        return web.Response()


@pytest.fixture
async def receivers() -> AsyncIterator[Receivers]:
    receiving = Receivers()
    async with web_server(receiving.handle) as receiving.url:
        yield receiving


@pytest.fixture
async def log(kafka: str, prefix: str) -> AsyncIterator[KafkaLog]:
    log = KafkaLog(KafkaOptions(kafka))
    await log.start()
    topic = load_settings({"topic_prefix": prefix}).topic(CONTEXT_EVENTS)
    await log.create_topics([topic], PARTITIONS)
    yield log
    await log.stop()


@pytest.fixture(params=["redis", pytest.param("file", marks=pytest.mark.long)])
def worker(
    request: pytest.FixtureRequest,
    log: KafkaLog,  # noqa: ARG001 -- the topic is there before the worker
    receivers: Receivers,
    kafka: str,
    prefix: str,
    tmp_path: Path,
) -> Iterator[WorkerProcess]:
    rules = tmp_path / "alerts.toml"
    rules.write_text(RULES.format(url=receivers.url, memory=request.param))
    environment = {
        "CONTEXTGAUGE_ALERTS_FILE": str(rules),
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": kafka,
        "CONTEXTGAUGE_TOPIC_PREFIX": prefix,
        "CONTEXTGAUGE_GROUP_PREFIX": prefix,
        "CONTEXTGAUGE_SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
        "CONTEXTGAUGE_INSTANCE_ID": "only",
        "CONTEXTGAUGE_STATE_FOLDER": str(tmp_path / "state"),
        "CHAOS_SECRET": SECRET,
    }
    if request.param == "redis":
        environment["CONTEXTGAUGE_REDIS_URL"] = request.getfixturevalue("redis_url")
        environment["CONTEXTGAUGE_KEY_PREFIX"] = request.getfixturevalue("key_prefix")
    process = WorkerProcess("control", environment, tmp_path / "control.log")
    receivers.worker = process
    yield process
    process.discard()


class Writer:
    """Derives made-up sessions of now and appends their records, as a deriver does."""

    def __init__(self, log: KafkaLog, topic: str) -> None:
        self._log, self._topic = log, topic
        self._number = 0
        self.records: list[Record] = []

    async def write(self) -> None:
        """Append some sessions: full ones, failing ones, one that goes silent."""
        producer = self._log.transactional_producer(f"{self._topic}-writer")
        await producer.start()
        found = []
        for kind in ("full", "fails", "silent", "calm"):
            self._number += 1
            name = f"{kind}-{self._number}"
            records = Given().take(*(self._told(body, name) for body in _messages(kind)))
            self.records += records
            for record in records:
                headers, value = codec.to_binary(record)
                partition = partition_of(name, PARTITIONS)
                found.append(NewRecord(self._topic, partition, name.encode(), value, headers))
        await producer.commit(found)
        await producer.stop()

    @staticmethod
    def _told(body: dict[str, Any], session: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return body | {"session_id": session, "timestamp": now}

    def expected(self, rules: Path) -> dict[str, set[str]]:
        """Return the ids that each target is to be sent."""
        plan = read_plan(rules)
        watch = Watch(plan)
        alerts = [
            alert
            for record in self.records
            for alert in watch.observe(record, record.time_ms or 0, record.time_ms or 0)
        ]
        silent_ms = 10_000  # longer than the rule's, and less than makes an alert too old
        alerts += watch.due(max(record.time_ms or 0 for record in self.records) + silent_ms)
        assert any(alert.kind == "stalled" for alert in alerts)
        return {
            f"/{target.name}": {alert.id for alert in alerts if target.name in alert.rule.targets}
            for target in plan.targets
        }


def _messages(kind: str) -> list[dict[str, Any]]:
    if kind == "silent":
        return [compacting()]
    if kind == "fails":
        return [compacting(), failed()]
    used = (50_000, 170_000, 190_000) if kind == "full" else (50_000, 60_000)
    return [assistant(f"r{tokens}", read=tokens) for tokens in used]


async def test_every_alert_is_delivered_and_deduplicated_by_its_id(
    log: KafkaLog, receivers: Receivers, worker: WorkerProcess, prefix: str, tmp_path: Path
) -> None:
    writer = Writer(log, prefix + CONTEXT_EVENTS.name)
    dice = random.Random(SEED)
    for step in get_args(Step) * ROUNDS:
        receivers.kill_at = step
        await writer.write()
        await until(lambda: _now(receivers.kill_at is None))
        await asyncio.sleep(_AFTER_S.get(step, 0.0) + 0.2)
    for _ in range(RANDOM_KILLS):
        for _ in range(3):
            await writer.write()
            await asyncio.sleep(dice.uniform(0.0, 1.0))
        worker.kill()
        await asyncio.sleep(dice.uniform(0.0, 4.0))
    await writer.write()

    wanted = writer.expected(tmp_path / "alerts.toml")

    def missing() -> dict[str, set[str]]:
        return {path: ids - set(receivers.taken[path]) for path, ids in wanted.items()}

    try:
        await until(lambda: _now(not any(missing().values())))
    except TimeoutError:
        pytest.fail(f"seed {SEED}, missing: {missing()}\n{worker.log()[-8_000:]}")
    worker.check()
    assert await worker.end() == 0
    assert {path: set(ids) for path, ids in receivers.taken.items()} == wanted
    again = sum(count - 1 for taken in receivers.taken.values() for count in taken.values())
    logger.warning("%d alerts, %d sent again", sum(map(len, wanted.values())), again)
    assert receivers.forged == 0


async def _now(is_so: bool) -> bool:
    return is_so
