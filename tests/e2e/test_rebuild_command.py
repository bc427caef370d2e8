"""`contextgauge rebuild` as a user runs it, over a real Kafka and a real Redis.

What is not the command's own is done without starting processes: records are written to
context.events, and views are looked at, right here.
"""

import json
import signal
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from redis.asyncio import Redis

from contextgauge.kafka.options import KafkaOptions
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.view_store import RedisViews
from tests.commands import Command
from tests.flow.derive_kit import until
from tests.flow.project_kit import ProjectKit, sample_records
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.extended

SESSIONS = 12


def as_text(found: bytes | str) -> str:
    """Return what Redis answered; the stubs leave open which it is."""
    return found.decode() if isinstance(found, bytes) else found


class Rebuilding(NamedTuple):
    """Services with names of this test's own, a project worker's work done, and the settings."""

    kit: ProjectKit
    redis: Redis
    settings: dict[str, str]

    async def keys(self, pattern: str) -> list[str]:
        """Return the keys of this test's that match."""
        names = await self.redis.keys(f"{self.settings['KEY_PREFIX']}:{pattern}")
        return sorted(as_text(key) for key in names)


@pytest.fixture
async def rebuilding(kafka: str, redis_url: str, prefix: str) -> AsyncIterator[Rebuilding]:
    """The sample's views, folded by a worker that has ended."""
    log = KafkaLog(KafkaOptions(kafka, session_timeout_ms=6_000))
    store, redis = RedisViews(redis_url, prefix), Redis.from_url(redis_url)
    kit = ProjectKit(log, store, prefix)
    await kit.create_topic()
    await kit.append([record for part in sample_records() for record in part])
    async with kit.running() as worker:
        await kit.caught_up(worker)
    settings = {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": prefix,
        "SESSION_TIMEOUT_MS": "6000",
    }
    yield Rebuilding(kit, redis, settings)
    await redis.aclose()
    await store.stop()
    await log.stop()


async def test_a_damaged_view_is_found_and_repaired(
    command: Command, rebuilding: Rebuilding
) -> None:
    kit, redis, settings = rebuilding
    key = (await rebuilding.keys("{1:?}:s:*"))[0]
    name = key.partition(":s:")[2]
    view = as_text(await redis.get(key) or b"")
    await redis.set(key, view.replace('"chains":{"main"', '"chains":{"maim"'))

    damaged = command("rebuild", "--audit", **settings)
    assert damaged.returncode == 7, damaged.stderr
    assert f"compared {SESSIONS} sessions and the aggregates with the log: 1 difference\n" in (
        damaged.stdout
    )
    assert f"session {name}: chains.maim, chains.main\n" in damaged.stdout

    command.start("project", **settings)
    rebuilt = command("rebuild", "--json", **settings)
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert json.loads(rebuilt.stdout) == {"generation": 2, "former": 1}
    assert await kit.documents(2) == await kit.expected()
    audited = command("rebuild", "--audit", "--json", **settings)
    assert audited.returncode == 0, audited.stderr
    result = json.loads(audited.stdout)
    assert (result["differences"], result["compared_sessions"]) == (0, SESSIONS)


async def test_an_interrupt_leaves_the_build_to_the_workers(
    command: Command, rebuilding: Rebuilding
) -> None:
    kit, _, settings = rebuilding
    process = command.start("rebuild", **settings)

    async def has_begun() -> bool:
        return bool(await rebuilding.keys("next"))

    await until(has_begun)
    # No worker runs, so it waits.
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "contextgauge rebuild --status" in errors
    status = command("rebuild", "--status", "--json", **settings)
    assert json.loads(status.stdout)["generation"] == 2
    command.start("project", **settings)
    again = command("rebuild", **settings)
    assert again.returncode == 0, again.stderr
    assert "generation 2 is already being built" in again.stderr
    assert await kit.documents(2) == await kit.expected()


async def test_a_rebuild_that_would_lose_records_has_to_be_accepted(
    command: Command, rebuilding: Rebuilding
) -> None:
    kit, _, settings = rebuilding
    admin = AIOKafkaAdminClient(bootstrap_servers=settings["BOOTSTRAP_SERVERS"])
    await admin.start()
    await admin.delete_records({TopicPartition(kit.topic.name, 1): RecordsToDelete(20)})
    await admin.close()
    refused = command("rebuild", **settings)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "partition 1 (offsets 0 to 19). To rebuild nevertheless" in refused.stderr
    assert await rebuilding.keys("next") == []
    command.start("project", **settings)
    accepted = command("rebuild", "--accept-loss", **settings)
    assert accepted.returncode == 0, accepted.stderr
    assert await kit.documents(2) == await kit.expected()


def test_without_views_or_with_exclusive_options_nothing_is_done(
    command: Command, redis_url: str, prefix: str
) -> None:
    settings = {"REDIS_URL": redis_url, "KEY_PREFIX": prefix}
    nothing = command("rebuild", **settings)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert "no views yet" in nothing.stderr
    both = command("rebuild", "--audit", "--status", **settings)
    assert both.returncode == 2
    assert "cannot be combined" in both.stderr
    neither = command("rebuild", "--audit", "--accept-loss", **settings)
    assert neither.returncode == 2
    assert "for a rebuild only" in neither.stderr
