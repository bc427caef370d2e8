"""The same lines give the same records and views, through Kafka and Redis or by `replay`.

Everything runs as its user runs it: the product's own commands, a real Kafka, a real Redis.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contextgauge.kafka.options import KafkaOptions
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.view_store import RedisViews
from tests.commands import Command
from tests.doubles.dump import dump
from tests.flow.derive_kit import DeriveKit, until

COMPARED = ("id", "type", "subject", "time", "sequence", "data")
"""What golden property 5 names; `rules` is the same too where the settings are."""

Events = dict[str, list[dict[str, Any]]]


@pytest.fixture
async def kit(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give topics of the test's own, and how to look at them."""
    kit = DeriveKit(KafkaLog(KafkaOptions(kafka)), prefix)
    kit.config = kit.renamed(f"{prefix}contextgauge-derive")
    await kit.log.start()
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
def settings(kafka: str, redis_url: str, prefix: str, key_prefix: str) -> dict[str, str]:
    """Settings of every command: services of the tests', names of this test's own."""
    return {
        "BOOTSTRAP_SERVERS": kafka,
        "REDIS_URL": redis_url,
        "TOPIC_PREFIX": prefix,
        "GROUP_PREFIX": prefix,
        "KEY_PREFIX": key_prefix,
    }


@pytest.fixture
def sessions(command: Command, tmp_path: Path) -> list[str]:
    """Paths of simulated sessions of every kind."""
    folder = tmp_path / "projects"
    result = command("simulate", "--sample", "--seed", "7", "--out", str(folder))
    assert result.returncode == 0, result.stderr
    return [str(folder)]


def by_session(events: list[dict[str, Any]]) -> Events:
    found: Events = defaultdict(list)
    for event in events:
        compared = {name: event.get(name) for name in COMPARED}
        found[event["data"]["session_id"]].append(compared)
    return found


def parsed(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


async def test_kafka_and_redis_give_what_replay_gives(
    sessions: list[str],
    command: Command,
    settings: dict[str, str],
    kit: DeriveKit,
    views: RedisViews,
) -> None:
    await check_same(sessions, command, settings, kit, views)


@pytest.mark.shared
async def test_real_sessions_are_the_same_everywhere(
    shared: Path,
    command: Command,
    settings: dict[str, str],
    kit: DeriveKit,
    views: RedisViews,
) -> None:
    paths = [str(path) for path in sorted((shared / "fixtures").rglob("*.jsonl"))]
    await check_same(paths, command, settings, kit, views)


async def check_same(
    sessions: list[str],
    command: Command,
    settings: dict[str, str],
    kit: DeriveKit,
    views: RedisViews,
) -> None:
    replayed = command("replay", *sessions)
    assert replayed.returncode == 0, replayed.stderr
    right = by_session(parsed(replayed.stdout))
    right_views = parsed(command("replay", "--view", *sessions).stdout)

    assert command("topics", "create", **settings).returncode == 0
    for worker in ("derive", "derive", "project"):
        command.start(worker, **settings)
    published = command("publish", *sessions, **settings)
    assert published.returncode == 0, published.stderr

    expected = sum(len(records) for records in right.values())

    async def projected() -> bool:
        active = (await views.generations()).active
        if active is None:
            return False
        held = [await dump(views, active, p) for p in range(kit.partitions)]
        sequences = [json.loads(v)["sequence"] for dump in held for v in dump.views.values()]
        return bool(sum(sequences) >= expected)

    await until(projected)
    on_kafka = [record for part in await kit.events() for record in part]
    assert by_session([json.loads(codec.to_structured(record)) for record in on_kafka]) == right

    active = (await views.generations()).active
    assert active is not None
    dumps = [await dump(views, active, partition) for partition in range(kit.partitions)]
    held = [json.loads(view) for dump in dumps for view in dump.views.values()]
    assert {view["session_id"]: unplaced(view) for view in held} == {
        view["session_id"]: unplaced(view) for view in right_views
    }
    assert len(held) == len(right) > 0


def unplaced(view: dict[str, Any]) -> dict[str, Any]:
    """Return the view without its place in the log, which a replay cannot have."""
    return {name: value for name, value in view.items() if name != "position"}
