"""Record what a build leaves in Kafka and Redis: `tests/cases/former_build.json`.

    cd CHECKOUT_OF_THE_FORMER_BUILD
    PYTHONPATH=. python THIS_CHECKOUT/tools/record_build.py REDIS_URL FILE

`tests/flow/test_upgrade.py` starts the workers of this build on it. Run it once, with the build
before a change of the state's, the views' or the keys' format; Redis must be empty. The messages
are of three sessions: one in the middle, with warnings announced; one with an open compaction; one
that was compacted.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from redis import Redis

from contextgauge.clock import SystemClock
from streams.edge.memory.log import MemoryLog
from streams.edge.redis.view_store import RedisViews
from tests.flow.derive_kit import DeriveKit, Sent
from tests.flow.project_kit import ProjectKit

_PREFIX = "cg"
_START = 1_793_534_400
"""Seconds; the messages are a second apart."""


class _Session:
    """Writes a session's messages as Claude Code streams them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.messages: list[Sent] = []
        self.add(type="system", subtype="init", model="claude-sonnet-4-5")

    def add(self, **fields: Any) -> None:  # noqa: ANN401 -- of a message
        number = len(self.messages)
        minutes, seconds = divmod(number, 60)
        common = {
            "session_id": self.name,
            "uuid": f"{self.name}-{number}",
            "timestamp": f"2026-11-01T12:{minutes:02}:{seconds:02}.000Z",
            "parent_tool_use_id": None,
        }
        self.messages.append(Sent(self.name, json.dumps(common | fields).encode()))

    def response(self, tokens: int) -> None:
        self.add(
            type="assistant",
            message={
                "id": f"msg_{len(self.messages)}",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "…"}],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": tokens - 10},
            },
        )

    def status(self, status: str | None, **more: str) -> None:
        self.add(type="system", subtype="status", status=status, **more)


def _messages() -> list[Sent]:
    announced, attempt, compacted = (
        _Session(name) for name in ("announced", "attempt", "compacted")
    )
    announced.response(110_000)
    announced.response(150_000)
    attempt.response(160_000)
    attempt.status("compacting")
    compacted.response(161_000)
    compacted.status("compacting")
    compacted.status(None, compact_result="success")
    compacted.add(
        type="system",
        subtype="compact_boundary",
        compact_metadata={"trigger": "auto", "pre_tokens": 165_000},
    )
    compacted.add(
        type="user",
        isSynthetic=True,
        message={"role": "user", "content": "What happened so far."},
    )
    compacted.response(30_000)
    return announced.messages + attempt.messages + compacted.messages


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


async def _log(log: MemoryLog, topic: str) -> list[list[dict[str, Any]]]:
    """Return a topic's records by partition; bytes as Latin-1."""
    kit = DeriveKit(log, "")
    return [
        [
            {
                "timestamp_ms": record.timestamp_ms,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [[name, _text(value)] for name, value in record.headers],
            }
            for record in await kit.read(topic, partition)
        ]
        for partition in range(kit.partitions)
    ]


def _keys(redis: Any) -> dict[str, Any]:  # noqa: ANN401 -- of Redis
    """Return all keys with their types and values; bytes as Latin-1."""
    found = {}
    for key in sorted(redis.scan_iter(f"{_PREFIX}:*")):
        kind = redis.type(key).decode()
        value: Any
        match kind:
            case "string":
                value = _text(redis.get(key))
            case "hash":
                value = {_text(name): _text(each) for name, each in redis.hgetall(key).items()}
            case "zset":
                value = {
                    _text(name): score for name, score in redis.zrange(key, 0, -1, withscores=True)
                }
            case _:
                value = [
                    [_text(name), {_text(field): _text(each) for field, each in fields.items()}]
                    for name, fields in redis.xrange(key)
                ]
        found[_text(key)] = [kind, value]
    return found


async def _record(url: str) -> dict[str, Any]:
    log, views = MemoryLog(SystemClock()), RedisViews(url, _PREFIX)
    derive = DeriveKit(log, "")
    await derive.create_topics()
    await derive.publish(_messages())
    await derive.run_until_caught_up()
    project = ProjectKit(log, views)
    async with project.running() as worker:
        await project.caught_up(worker)
    await views.stop()
    config = derive.config
    topics = {
        "messages": config.messages_topic,
        "events": config.events_topic,
        "state": config.state_topic,
    }
    topics_by_name = {name: await _log(log, topic) for name, topic in topics.items()}
    return {**topics_by_name, "redis": _keys(Redis.from_url(url))}


if __name__ == "__main__":
    recorded = asyncio.run(_record(sys.argv[1]))
    Path(sys.argv[2]).write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
