"""A rebuild under live load, with readers that poll: no reader error, no mixture.

Real workers, the real command, a real Kafka and a real Redis; messages come in at a steady rate
the whole time. With all tests run only the kills, with few sessions. The long form, with 10 000
sessions and readers (in short, with the services in memory: tests/flow/test_rebuild.py), reports
its figures:

    make test-long TESTS=tests/chaos/test_rebuild_live.py
"""

import asyncio
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest

from contextgauge.kafka.options import KafkaOptions
from contextgauge.partitioner import partition_of
from schemas.views import PARTITION_FIELD, PartitionView
from streams import codec
from streams.codec import view_codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.redis.view_store import RedisViews
from streams.flow.simulator import SimulationOptions, simulate
from streams.ports import NewRecord
from tests.chaos.oracle import read_records, until_projected
from tests.chaos.workers import SESSION_TIMEOUT_MS, WorkerProcess
from tests.commands import Command
from tests.conftest import LONG
from tests.doubles.dump import dump, fold_views
from tests.flow.derive_kit import DeriveKit, until
from tests.flow.rebuild_kit import polling
from tests.patience import PATIENCE

pytestmark = pytest.mark.extended


class Load(NamedTuple):
    """How much there is, and how much comes in."""

    sessions: int
    per_second: int
    readers: int


LOAD = Load(11_000, 150, 4) if LONG else Load(120, 60, 2)
"""Some of the sessions begin only while it is rebuilt."""

PATIENCE_S = (1_500.0 if LONG else 120.0) * PATIENCE
MESSAGES_A_SESSION = 22
"""Before the rebuild; each session has a few more, which come meanwhile."""

WORKERS = ("derive", "project", "project")

logger = logging.getLogger("rebuild")


@pytest.fixture
def stack(own_stack: Callable[..., LocalStack]) -> LocalStack:
    """A Redis of the test's own."""
    return own_stack("redis")


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own, and how to look at them."""
    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    kit.config = kit.renamed(prefix + "contextgauge-derive")
    await kit.create_topics()
    yield kit
    await kit.log.stop()


@pytest.fixture
async def views(stack: LocalStack) -> AsyncIterator[RedisViews]:
    """Give the view store."""
    views = RedisViews(stack.services()["redis"].address, "cg")
    await views.start()
    yield views
    await views.stop()


@pytest.fixture
def settings(kafka: str, stack: LocalStack, prefix: str) -> dict[str, str]:
    """Settings of the workers and of the command."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": stack.services()["redis"].address,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
    }


@pytest.fixture
def workers(
    kit: DeriveKit,  # noqa: ARG001 -- the topics are there before the workers
    settings: dict[str, str],
    tmp_path: Path,
) -> Iterator[list[WorkerProcess]]:
    """Start the workers, and see to it that none outlives the test."""
    environment = {f"CONTEXTGAUGE_{name}": value for name, value in settings.items()}
    started = [
        WorkerProcess(name, environment, tmp_path / f"{number}-{name}.log")
        for number, name in enumerate(WORKERS)
    ]
    yield started
    for worker in started:
        worker.discard()


class Publisher:
    """Publishes what simulated sessions say: much at once, then at a steady rate."""

    def __init__(self, kit: DeriveKit) -> None:
        self._kit, self._producer = kit, kit.log.producer()
        endless = simulate(SimulationOptions(sessions=LOAD.sessions, turns=1), sys.maxsize)
        self._messages = ((message.session_id, message.named()) for message in endless)
        self._stopped = asyncio.Event()
        self.sent = 0
        self.sessions: set[str] = set()

    async def much(self) -> None:
        """Publish what is there before the rebuild."""
        todo = LOAD.sessions * MESSAGES_A_SESSION
        await self._producer.start()
        while self.sent < todo:
            await self._publish(min(2_000, todo - self.sent))

    async def steadily(self) -> None:
        """Publish at the rate until stopped; a busy machine may be behind with it."""
        begin_s, before = time.monotonic(), self.sent
        while not self._stopped.is_set():
            due = int((time.monotonic() - begin_s) * LOAD.per_second) - (self.sent - before)
            await self._publish(min(due, LOAD.per_second))
            await asyncio.sleep(0.1)
        await self._producer.stop()

    def stop(self) -> None:
        """End the steady stream in good order."""
        self._stopped.set()

    async def _publish(self, count: int) -> None:
        for session_id, value in islice(self._messages, count):
            self.sessions.add(session_id)
            partition = partition_of(session_id, self._kit.partitions)
            topic, key = self._kit.config.messages_topic, codec.key_bytes(session_id)
            await self._producer.send(NewRecord(topic, partition, key, value))
        await self._producer.flush()
        self.sent += count


class Freshness:
    """How long it takes until the active generation has what the log has."""

    def __init__(self, kit: DeriveKit, views: RedisViews) -> None:
        self._kit, self._views = kit, views
        self.took_s: list[float] = []

    async def run(self) -> None:
        """Measure until cancelled."""
        partitions = range(self._kit.partitions)
        reader = self._kit.log.reader(self._kit.config.events_topic, partitions)
        await reader.start()
        try:
            while True:
                for partition in partitions:
                    _, end = await reader.bounds(partition)
                    begin_s = time.monotonic()
                    await until(partial(self._is_at, partition, end))
                    self.took_s.append(time.monotonic() - begin_s)
                await asyncio.sleep(0.05)
        finally:
            await reader.stop()

    async def _is_at(self, partition: int, end: int) -> bool:
        active = (await self._views.generations()).active
        position = await self._views.position(active, partition) if active else None
        return position is not None and position.offset >= end

    def take(self) -> str:
        """Return the figures so far, and begin anew."""
        took, self.took_s = sorted(self.took_s), []
        share = {name: took[int(len(took) * part)] for name, part in (("p50", 0.5), ("p99", 0.99))}
        figures = " ".join(f"{name} {seconds * 1_000:.0f} ms" for name, seconds in share.items())
        return f"{figures} max {took[-1] * 1_000:.0f} ms of {len(took)}"


async def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait until a command has ended; return its exit code and what it said."""
    out, errors = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
    return process.returncode, out, errors


async def until_equal(kit: DeriveKit, views: RedisViews) -> None:
    """Wait until the views have all that is on the log."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await kit.caught_up()
                await until_projected(kit, views)
            except TimeoutError:
                continue
            return


async def records_in(kit: DeriveKit, views: RedisViews, generation: int) -> int:
    """Return how many records a generation was folded from."""
    stats = [await views.stats(generation, partition) for partition in range(kit.partitions)]
    name = PARTITION_FIELD.encode()
    return sum(view_codec.decode(PartitionView, counts[name]).records for counts in stats)


@pytest.mark.long
@pytest.mark.usefixtures("workers")
async def test_under_load_readers_see_no_error_and_no_mixture(
    kit: DeriveKit, views: RedisViews, settings: dict[str, str], command: Command
) -> None:
    publisher, freshness = Publisher(kit), Freshness(kit, views)
    began_s = time.monotonic()
    await publisher.much()
    await until_equal(kit, views)
    loaded = len(publisher.sessions)
    loaded_s = time.monotonic() - began_s
    before = await records_in(kit, views, 1)
    live, measuring = (
        asyncio.create_task(publisher.steadily()),
        asyncio.create_task(freshness.run()),
    )
    async with polling(views, LOAD.readers, pause_s=0.1) as readers:
        await asyncio.sleep(20)
        figures = [f"loaded {before:,} records in {loaded_s:.0f} s", f"before {freshness.take()}"]
        polls, began_s = sum(reader.polls for reader in readers), time.monotonic()
        code, out, errors = await ended(command.start("rebuild", "--json", **settings))
        took_s = time.monotonic() - began_s
        polls = sum(reader.polls for reader in readers) - polls
        figures.append(f"during {freshness.take()}")
        await asyncio.sleep(1)
    measuring.cancel()
    await asyncio.wait([measuring])
    publisher.stop()
    await live
    assert code == 0, errors
    done = json.loads(out)
    records = await records_in(kit, views, 2)
    logger.warning(
        "%s; rebuilt %d records in %.1f s (%.0f/s), %d polls meanwhile; %s",
        done,
        records,
        took_s,
        records / took_s,
        polls,
        "; ".join(figures),
    )
    logger.warning("%s", errors)
    assert done["generation"] == 2
    assert loaded > LOAD.sessions * 0.8
    assert [reader.generations for reader in readers] == [[1, 2]] * LOAD.readers
    assert polls > 0
    assert records > before
    await until_equal(kit, views)


@pytest.mark.has_long_form
async def test_killed_workers_commands_and_redis_only_delay_it(
    kit: DeriveKit,
    views: RedisViews,
    settings: dict[str, str],
    command: Command,
    workers: list[WorkerProcess],
    stack: LocalStack,
) -> None:
    publisher = Publisher(kit)
    await publisher.much()
    await until_equal(kit, views)
    live = asyncio.create_task(publisher.steadily())
    killed = command.start("rebuild", **settings)

    async def is_begun() -> bool:
        return (await views.generations()).next is not None

    await until(is_begun)
    killed.send_signal(signal.SIGKILL)
    workers[1].kill()
    assert (await ended(killed))[0] == -signal.SIGKILL
    again = command.start("rebuild", "--json", **settings)
    await asyncio.sleep(1.5)
    stack.kill("redis")
    await asyncio.sleep(1)
    stack.start(["redis"])
    workers[2].kill()
    code, out, errors = await ended(again)
    if code == 75:  # it had not yet connected: a supervisor would start it again
        code, out, errors = await ended(command.start("rebuild", "--json", **settings))
    publisher.stop()
    await live
    done = json.loads(out or "null")
    assert code == 0, errors
    await until_equal(kit, views)
    for partition, part in enumerate(await read_records(kit)):
        assert await dump(views, done["generation"], partition) == fold_views(part)
