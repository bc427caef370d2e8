"""The contract of the memory of alerts, held against all that there is."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from streams.edge.alerts.memories import (
    KEPT_S,
    FileAlertMemory,
    RedisAlertMemory,
)
from streams.ports import AlertMemory
from tests.doubles.alerts import MemoryAlertMemory

Again = Callable[[], AlertMemory]


@pytest.fixture(params=["memory", "file", pytest.param("redis", marks=pytest.mark.service)])
async def again(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Again]:
    """Give what makes a memory of the same place: another process, or this one later."""
    made: list[AlertMemory] = []
    same = MemoryAlertMemory()
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    prefix = request.getfixturevalue("key_prefix")

    def make() -> AlertMemory:
        if request.param == "memory":
            return same
        if request.param == "file":
            made.append(FileAlertMemory(tmp_path / "deep" / "alerted.sqlite", SystemClock()))
        else:
            made.append(RedisAlertMemory(url, prefix))
        return made[-1]

    yield make
    for memory in made:
        await memory.stop()


async def test_only_remembered_alerts_are_known(again: Again) -> None:
    memory = again()
    await memory.start()
    assert not await memory.knows("ops:1")
    await memory.remember("ops:1")
    await memory.remember("ops:1")
    assert await memory.knows("ops:1")
    assert not await memory.knows("slack:1")


async def test_another_process_knows_it_too(again: Again) -> None:
    first, second = again(), again()
    await first.start()
    await second.start()
    await first.remember("ops:1")
    assert await second.knows("ops:1")
    await second.remember("ops:2")
    assert await first.knows("ops:2")


async def test_redis_forgets_in_time(redis_url: str, key_prefix: str) -> None:
    from redis.asyncio import Redis  # noqa: PLC0415 -- to look at what is stored

    memory = RedisAlertMemory(redis_url, key_prefix)
    await memory.remember("ops:1")
    client = Redis.from_url(redis_url)
    left_s = await client.ttl(f"{key_prefix}:alerted:ops:1")
    await client.aclose()
    await memory.stop()
    assert KEPT_S - 60 < left_s <= KEPT_S


async def test_an_unavailable_redis_raises_a_retry_error() -> None:
    memory = RedisAlertMemory("redis://127.0.0.1:1/0", "cg")
    with pytest.raises(RetryError):
        await memory.knows("ops:1")
    with pytest.raises(RetryError):
        await memory.remember("ops:1")
    await memory.stop()


async def test_a_file_forgets_old_alerts(tmp_path: Path) -> None:
    class Later(SystemClock):
        def now_ms(self) -> int:
            return super().now_ms() + (KEPT_S + 60) * 1_000

    path = tmp_path / "alerted.sqlite"
    memory = FileAlertMemory(path, SystemClock())
    await memory.start()
    await memory.remember("ops:1")
    await memory.stop()
    later = FileAlertMemory(path, Later())
    await later.start()
    assert not await later.knows("ops:1")
    await later.stop()


async def test_an_unusable_file_raises_a_config_error_at_start(tmp_path: Path) -> None:
    path = tmp_path / "alerted.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(ConfigError, match="CONTEXTGAUGE_STATE_FOLDER"):
        await FileAlertMemory(path, SystemClock()).start()


async def test_a_locked_file_raises_a_retry_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.edge.alerts.memories._BUSY_S", 0.01)
    path = tmp_path / "alerted.sqlite"
    memory = FileAlertMemory(path, SystemClock())
    await memory.start()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RetryError):
        await memory.remember("ops:1")
    other.execute("ROLLBACK")
    other.close()
    await memory.remember("ops:1")
    assert await memory.knows("ops:1")
    await memory.stop()


async def test_groups_do_not_share_sent_alerts(redis_url: str, key_prefix: str) -> None:
    one = RedisAlertMemory(redis_url, key_prefix, group="one-")
    other, none = (
        RedisAlertMemory(redis_url, key_prefix, group="other-"),
        RedisAlertMemory(redis_url, key_prefix),
    )
    await one.remember("ops:1")
    assert await one.knows("ops:1")
    assert not await other.knows("ops:1")
    assert not await none.knows("ops:1")
    for memory in (one, other, none):
        await memory.stop()


async def test_a_file_in_long_use_forgets_old_alerts(tmp_path: Path) -> None:
    class Given(SystemClock):
        at_ms = 1_793_534_400_000

        def now_ms(self) -> int:
            return self.at_ms

    clock = Given()
    memory = FileAlertMemory(tmp_path / "alerted.sqlite", clock)
    await memory.start()
    await memory.remember("ops:1")
    clock.at_ms += KEPT_S * 1_000 + 1
    assert await memory.knows("ops:1")
    await memory.remember("ops:2")
    assert not await memory.knows("ops:1")
    assert await memory.knows("ops:2")
    await memory.stop()
