"""Workers under random SIGKILLs and SIGSTOPs: no record is missing and none is there twice.

Two derive workers and a project worker. The records on the topic must equal what one deriver
derives of the same messages, and the documents in Redis the fold of those records. The short
form runs with all tests. The long form, at least 20 SIGKILLs and 5 SIGSTOPs in one run:

    make test-long TESTS=tests/chaos/test_chaos.py

`CHAOS_SEED` chooses another course of events; the seed of a failed run is in its output.
"""

import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contextgauge.kafka.options import KafkaOptions
from schemas.records import Record
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.views import RedisViews
from streams.flow.project.fold import LoggedRecord
from streams.flow.simulator import SimulationOptions, simulate
from tests.chaos.chaos import SESSION_TIMEOUT_MS, Chaos, Plan, WorkerProcess
from tests.conftest import LONG
from tests.doubles.dump import dump, fold_views
from tests.flow.derive_kit import DeriveKit, Sent, expected, until

pytestmark = pytest.mark.has_long_form
PLAN = Plan(
    seed=int(os.environ.get("CHAOS_SEED", "1")),
    kills=24 if LONG else 2,
    stops=6 if LONG else 1,
)
MESSAGES = 400_000 if LONG else 60_000
"""More than can be published in the time."""

WORKERS = ("derive", "derive", "project")

logger = logging.getLogger("chaos")


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own, and how to look at them."""
    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    kit.config = kit.renamed(prefix + "contextgauge-derive")
    await kit.create_topics()
    yield kit
    await kit.log.stop()


@pytest.fixture
async def views(redis_url: str, key_prefix: str) -> AsyncIterator[RedisViews]:
    """Give the view store that the project worker writes to."""
    views = RedisViews(redis_url, key_prefix)
    await views.start()
    yield views
    await views.stop()


@pytest.fixture
def environment(kafka: str, redis_url: str, prefix: str, key_prefix: str) -> dict[str, str]:
    """Settings of the workers: names of their own, short time-outs, and small batches."""
    return {
        "CONTEXTGAUGE_BOOTSTRAP_SERVERS": kafka,
        "CONTEXTGAUGE_REDIS_URL": redis_url,
        "CONTEXTGAUGE_TOPIC_PREFIX": prefix,
        "CONTEXTGAUGE_GROUP_PREFIX": prefix,
        "CONTEXTGAUGE_KEY_PREFIX": key_prefix,
        "CONTEXTGAUGE_SESSION_TIMEOUT_MS": str(SESSION_TIMEOUT_MS),
        "CONTEXTGAUGE_BATCH_MESSAGES": "50",
    }


@pytest.fixture
def workers(
    kit: DeriveKit,  # noqa: ARG001 -- the topics are there before the workers
    environment: dict[str, str],
    tmp_path: Path,
) -> Iterator[list[WorkerProcess]]:
    """Start the workers, and see to it that none outlives the test."""
    started = [
        WorkerProcess(command, environment, tmp_path / f"{number}-{command}.log")
        for number, command in enumerate(WORKERS)
    ]
    yield started
    for worker in started:
        worker.discard()


async def test_records_and_views_are_complete_without_duplicates(
    kit: DeriveKit, views: RedisViews, workers: list[WorkerProcess]
) -> None:
    options = SimulationOptions(seed=PLAN.seed, sessions=40)
    messages = [Sent(m.session_id, m.named()) for m in simulate(options, MESSAGES)]
    logger.warning("%s", PLAN)
    sent = await Chaos(kit, workers, PLAN, messages).run()
    *deriving, projecting = workers
    # One that was started a moment ago does not listen to the signal yet.
    for worker in deriving:
        ended = await worker.end()
        assert ended in {0, -signal.SIGTERM}, f"{ended}\n{worker.log()[-4_000:]}"
    await kit.settle()
    placed = await read_events(kit)
    await until_projected(kit, views)
    assert await projecting.end() in {0, -signal.SIGTERM}

    right = expected(messages[:sent])
    logger.warning("%d messages, %d records", sent, sum(map(len, right)))
    assert ids([[item.record for item in part] for part in placed]) == ids(right)
    assert [[item.record for item in part] for part in placed] == right
    active = (await views.generations()).active
    assert active is not None
    for partition, part in enumerate(placed):
        assert await dump(views, active, partition) == fold_views(part)


def ids(records: list[list[Record]]) -> list[list[str]]:
    """Return what is compared first: its difference is read more easily."""
    return [[record.id for record in part] for part in records]


async def read_events(kit: DeriveKit) -> list[list[LoggedRecord]]:
    """Return the derived records at their places, by partition."""
    return [
        [
            LoggedRecord(r.offset, r.timestamp_ms, codec.from_binary(r.headers, r.value or b""))
            for r in await kit.read(kit.config.events_topic, partition)
        ]
        for partition in range(kit.partitions)
    ]


async def until_projected(kit: DeriveKit, views: RedisViews) -> None:
    """Wait until the active generation holds all that is on the topic."""
    reader = kit.log.reader(kit.config.events_topic, range(kit.partitions))
    await reader.start()
    ends = [(await reader.bounds(partition))[1] for partition in range(kit.partitions)]
    await reader.stop()

    async def done() -> bool:
        active = (await views.generations()).active
        if active is None:
            return False
        positions = [await views.position(active, p) for p in range(kit.partitions)]
        return all(
            position is not None and position.offset >= end
            for position, end in zip(positions, ends, strict=True)
        )

    await until(done)
