"""This build started on what the former one left behind, in the middle of sessions.

`tests/cases/former_build.json` is the log, the state and the Redis of the last build with rules of
version 1, state of version 2 and views of format 3; `tools/record_build.py` recorded it.
"""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from contextgauge.clock import SystemClock
from contextgauge.errors import FormerViewsError
from schemas.records import CompactBoundary, CompactionProgress, ContextWarning, Record
from schemas.views import FORMAT_VERSION
from streams import codec
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.view_store import RedisViews
from streams.ports import NewRecord
from streams.serve.views.sessions import active_sessions
from tests.flow.derive_kit import DeriveKit, Sent, until
from tests.flow.project_kit import PARTITIONS, ProjectKit
from tests.flow.test_derive_kafka import options

FORMER: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "former_build.json").read_text()
)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")


def _records(name: str, topic: str) -> Iterable[NewRecord]:
    for partition, records in enumerate(FORMER[name]):
        for record in records:
            headers = [(header, _bytes(value) or b"") for header, value in record["headers"]]
            yield NewRecord(
                topic,
                partition,
                _bytes(record["key"]),
                _bytes(record["value"]),
                tuple(headers),
                record["timestamp_ms"],
            )


async def _restore_redis(redis: Redis, prefix: str) -> None:
    for name, (kind, value) in FORMER["redis"].items():
        key = (prefix + name.removeprefix("cg")).encode("latin-1")
        if kind == "string":
            await redis.set(key, _bytes(value) or b"")
        elif kind == "hash":
            pairs = {field.encode("latin-1"): _bytes(each) for field, each in value.items()}
            await redis.hset(key, mapping=pairs)  # type: ignore[arg-type]  # bytes
        elif kind == "zset":
            await redis.zadd(
                key, {member.encode("latin-1"): score for member, score in value.items()}
            )
        else:
            for entry, fields in value:
                encoded = {_bytes(field): _bytes(each) for field, each in fields.items()}
                await redis.xadd(key, encoded, id=entry)  # type: ignore[arg-type]  # bytes


@pytest.fixture
async def derive(kafka: str, prefix: str) -> AsyncIterator[DeriveKit]:
    """Give the former build's log and state on a real broker."""
    kit = DeriveKit(KafkaLog(options(kafka)), prefix)
    await kit.create_topics()
    for name, topic in (
        ("messages", kit.config.messages_topic),
        ("events", kit.config.events_topic),
        ("state", kit.config.state_topic),
    ):
        await kit.append(_records(name, topic))
    yield kit
    await kit.log.stop()


@pytest.fixture
async def redis(redis_url: str, key_prefix: str) -> AsyncIterator[Redis]:
    """Give a Redis with the former build's views."""
    client = Redis.from_url(redis_url)
    await _restore_redis(client, key_prefix)
    yield client
    await client.aclose()


@pytest.fixture
async def store(redis: Redis, redis_url: str, key_prefix: str) -> AsyncIterator[RedisViews]:  # noqa: ARG001 -- it holds the views
    """Give this build's view store on that Redis."""
    store = RedisViews(redis_url, key_prefix)
    yield store
    await store.stop()


def _message(session: str, number: int, second: int, **fields: Any) -> Sent:
    common = {
        "session_id": session,
        "uuid": f"{session}-later-{number}",
        "timestamp": f"2026-11-01T12:00:{second:02}.000Z",
        "parent_tool_use_id": None,
    }
    return Sent(session, json.dumps(common | fields).encode())


def _response(session: str, number: int, second: int, tokens: int) -> Sent:
    message = {
        "id": f"msg_later_{number}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "…"}],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": tokens - 10},
    }
    return _message(session, number, second, type="assistant", message=message)


LATER = [
    _response("announced", 1, 10, 155_000),
    _response("announced", 2, 11, 185_000),
    _message("attempt", 1, 32, type="system", subtype="status", status="compacting"),
    _message(
        "attempt",
        2,
        42,
        type="system",
        subtype="compact_boundary",
        compact_metadata={"trigger": "auto", "pre_tokens": 160_000},
    ),
]


async def _written(kit: DeriveKit) -> list[tuple[bytes | None, Any]]:
    return [
        (record.value, record.headers)
        for partition in range(kit.partitions)
        for record in await kit.read(kit.config.events_topic, partition)
    ]


async def test_the_deriver_goes_on_in_the_middle_of_sessions(derive: DeriveKit) -> None:
    before = await _written(derive)
    await derive.publish(LATER)
    figures = await derive.run_until_caught_up()
    assert figures.total("derive_restored_entries") > 0
    after = await _written(derive)
    assert [record for record in after if record in before] == before
    records: dict[str, list[Record]] = {}
    for record in [record for partition in await derive.events() for record in partition]:
        records.setdefault(record.data.session_id, []).append(record)
    for of_session in records.values():
        assert [each.sequence for each in of_session] == list(range(1, len(of_session) + 1))
    crossed = [
        record.data.thresholds_crossed
        for record in records["announced"]
        if isinstance(record.data, ContextWarning)
    ]
    assert crossed == [(10, 20, 30, 40, 50), (60, 70), (80, 90)]
    (start,) = [each for each in records["attempt"] if each.kind == "compaction_start"]
    *_, heartbeat, boundary = records["attempt"]
    assert isinstance(heartbeat.data, CompactionProgress)
    assert isinstance(boundary.data, CompactBoundary)
    assert heartbeat.data.attempt_id == boundary.data.attempt_id == start.id
    assert (boundary.data.duration_ms, boundary.data.duration_source) == (40_000, "paired")
    assert boundary.rules != start.rules


async def test_the_projector_rebuilds_views_of_the_former_format(
    derive: DeriveKit, store: RedisViews, redis: Redis, key_prefix: str, prefix: str
) -> None:
    with pytest.raises(FormerViewsError, match=r"format 3.*a project worker of this build"):
        await active_sessions(store, SystemClock())
    kit = ProjectKit(derive.log, store, prefix)
    async with kit.running() as worker:
        assert await kit.caught_up(worker, at_least=2) == 2
        assert await kit.documents(2) == await kit.expected()
        await derive.publish(LATER)
        await derive.run_until_caught_up()
        await kit.caught_up(worker, at_least=2)
        assert await kit.documents(2) == await kit.expected()
        sessions = await active_sessions(store, SystemClock())
        view = await sessions.find("attempt")
        assert (view.attempt, view.compactions.automatic) == (None, 1)

        async def former_is_gone() -> bool:
            return not await redis.exists(f"{key_prefix}:{{1:3}}:s:compacted")

        await until(former_is_gone)
    for partition in range(PARTITIONS):
        stored = await redis.hget(f"{key_prefix}:{{2:{partition}}}:pos", "format")
        assert int(stored or 0) == FORMAT_VERSION
    assert worker.figures.total("project_losses") == 0


async def test_views_of_a_later_format_are_refused(
    derive: DeriveKit, store: RedisViews, redis: Redis, key_prefix: str, prefix: str
) -> None:
    for partition in range(PARTITIONS):
        await redis.hset(f"{key_prefix}:{{1:{partition}}}:pos", "format", "99")
    error = await ProjectKit(derive.log, store, prefix).start_worker().failed()
    assert "format 99" in str(error)
    assert "CONTEXTGAUGE_KEY_PREFIX" in str(error)
    assert (await store.generations()).next is None


def test_the_fixture_is_of_the_former_formats() -> None:
    assert FORMER["redis"]["cg:{1:3}:pos"][1]["format"] == "3"
    values = [each["value"] for partition in FORMER["state"] for each in partition]
    assert {value[:3] for value in values} == {"[2,", '{"v'}
    assert codec.loads(FORMER["redis"]["cg:{1:3}:s:attempt"][1])["version"] == 2
