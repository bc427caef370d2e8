"""The project worker on a real Kafka and a real Redis."""

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from contextgauge.clock import SystemClock
from contextgauge.kafka.options import KafkaOptions
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import LocalStack
from streams.edge.memory.log import MemoryLog
from streams.edge.redis.view_store import RedisViews
from streams.flow.project.polling import PartitionPoller
from tests.contract.logs import delete_topics
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, ProjectKit, patient, sample_records

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]


@pytest.mark.extended
async def test_redis_holds_the_fold_while_workers_join_and_leave(
    kafka: str, redis_url: str, topic_prefix: str, key_prefix: str
) -> None:
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka, session_timeout_ms=6_000))
    store = RedisViews(redis_url, key_prefix)
    kit = ProjectKit(log, store, topic_prefix, SystemClock())
    await kit.create_topic()
    async with kit.running() as first:
        # A new installation: nothing on the topic, and yet readers have a generation.
        assert await kit.active() == 1
        await kit.append(SOME)
        await kit.caught_up(first)
        killed = kit.start_worker()
        await until(lambda: ("worker_partitions", "project") in killed.figures.gauges)
        await kit.append(MORE[:100])
        await killed.kill()
        await kit.append(MORE[100:])
        assert await kit.caught_up(first) == 1
    assert await kit.documents(1) == await kit.expected()
    await store.stop()
    await log.stop()


async def test_projection_survives_a_redis_outage(own_stack: Callable[..., LocalStack]) -> None:
    stack = own_stack("redis")
    store = RedisViews(stack.services()["redis"].address)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        stack.kill("redis")
        await kit.append(MORE[:50])
        await until(lambda: worker.figures.total("worker_retries") > 0)
        stack.start(["redis"])
        # What Redis had not yet put on disk is read again.
        generation = await kit.caught_up(worker)
        await kit.append(MORE[50:])
        assert await kit.caught_up(worker) == generation == 1
    assert await kit.documents(1) == await kit.expected()
    await store.stop()


async def test_an_emptied_redis_is_rebuilt(own_stack: Callable[..., LocalStack]) -> None:
    url = own_stack("redis").services()["redis"].address
    store, redis = RedisViews(url), Redis.from_url(url)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        await redis.flushall()
        await kit.append(MORE)
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()
    await redis.aclose()
    await store.stop()


async def test_a_worker_waits_for_a_full_redis(own_stack: Callable[..., LocalStack]) -> None:
    url = own_stack("redis").services()["redis"].address
    store, redis = RedisViews(url), Redis.from_url(url)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        await redis.config_set("maxmemory", "1")
        await kit.append(MORE)
        await until(lambda: worker.figures.total("worker_retries") > 0)
        await redis.script_flush()
        await redis.config_set("maxmemory", "0")
        assert await kit.caught_up(worker) == 1
    assert await kit.documents(1) == await kit.expected()
    await redis.aclose()
    await store.stop()


KEYS = ("recent", "pressure", "idle", "stats", "live", "held", "pos", "s:", "c:", "e:", "r:")


@pytest.mark.extended
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
async def test_a_key_that_is_lost_is_rebuilt(
    redis_url: str, key_prefix: str, key: str, busy: bool
) -> None:
    store, redis = RedisViews(redis_url, key_prefix), Redis.from_url(redis_url)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    await kit.create_topic()
    async with kit.running() as worker:
        await kit.append(SOME)
        await kit.caught_up(worker)
        base = f"{key_prefix}:{{1:0}}:{key}"
        names = [name async for name in redis.scan_iter(match=base + "*")]
        assert await redis.unlink(names[0]) == 1
        if busy:
            await kit.append(MORE)
        generation = await kit.caught_up(worker, at_least=2)
    assert await kit.documents(generation) == await kit.expected()
    await redis.aclose()
    await store.stop()


@pytest.mark.extended
async def test_a_topic_that_is_created_again_is_read_from_its_beginning(
    kafka: str, redis_url: str, topic_prefix: str, key_prefix: str
) -> None:
    """While a worker runs, and with more records than the former one had."""
    log = KafkaLog(KafkaOptions(bootstrap_servers=kafka, session_timeout_ms=6_000))
    store = RedisViews(redis_url, key_prefix)
    kit = ProjectKit(log, store, topic_prefix, SystemClock())
    await kit.create_topic()
    await kit.append(SOME)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        await recreate(kit)
        await kit.append(RECORDS)
        generation = await kit.caught_up(worker, at_least=2)
    assert await kit.documents(generation) == await kit.expected()
    await store.stop()
    await log.stop()


async def recreate(kit: ProjectKit) -> None:
    """Delete the topic of records and create it again."""
    log, name = kit.log, kit.topic.name
    assert isinstance(log, KafkaLog)
    former = (await log.topic_ids([name]))[name]
    await delete_topics(log.options.bootstrap_servers, name)

    async def is_new() -> bool:
        await log.create_topics([kit.topic], PARTITIONS)
        return (await log.topic_ids([name]))[name] not in {None, former}

    await until(patient(is_new))


@pytest.mark.extended
async def test_two_groups_of_projectors_share_a_key_prefix(redis_url: str, key_prefix: str) -> None:
    """They take turns: slow, but every document is right, and the heartbeats tell of it."""
    log, store = MemoryLog(SystemClock()), RedisViews(redis_url, key_prefix)
    kit = ProjectKit(log, store, clock=SystemClock())
    other = ProjectKit(log, store, "other-", SystemClock())
    other.topic, other.config = kit.topic, replace(kit.config, group="other")
    await kit.create_topic()
    async with kit.running() as worker, other.running() as rival:
        for start in range(0, len(RECORDS), 20):
            await kit.append(RECORDS[start : start + 20])
            await kit.caught_up(worker, rival)

        async def is_reported() -> bool:
            places = [await store.position(1, partition) for partition in range(PARTITIONS)]
            return any(
                position and position.heartbeat and position.heartbeat.rivals for position in places
            )

        await until(is_reported)
        assert await kit.documents(1) == await kit.expected()
        assert (await store.generations()).active == 1
    await store.stop()


async def test_views_that_are_built_again_are_no_other_projector_s(
    redis_url: str, key_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisViews(redis_url, key_prefix)
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=SystemClock())
    refused = []

    async def until_rebuilt(poller: PartitionPoller, error: Exception) -> None:
        refused.append(error)
        await until(lambda: poller._ports.generations.current.active == 2)  # noqa: SLF001 -- as it is

    # A partition that was refused looks at its position only once the next generation is active.
    monkeypatch.setattr(PartitionPoller, "pause_before_rereading", until_rebuilt)
    await kit.create_topic()
    await kit.append(SOME)
    with capture_logs() as logs:
        async with kit.running(replace(kit.config, watch_s=1.0)) as worker:
            await kit.caught_up(worker)
            redis: Any = Redis.from_url(redis_url)
            await redis.unlink(*[key async for key in redis.scan_iter(match=f"{key_prefix}:*")])
            await redis.aclose()
            await kit.append(MORE)
            await kit.caught_up(worker, at_least=2)
    assert refused
    assert not [entry for entry in logs if "another projector" in entry["event"]]
    await store.stop()
