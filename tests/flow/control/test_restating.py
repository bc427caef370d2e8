"""Settings outlive the retention of their log; what is of the past is forgotten."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.commands import ThresholdsSet
from streams.flow.control.commands import restating
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.restating import expiring, forget, write_again
from tests.flow.control.command_kit import PARTITIONS, SESSION, CommandKit

DAY_MS = 24 * 3_600_000
PARTITION = partition_of(SESSION, PARTITIONS)


def setting(
    scope: str, name: str, compact_at: str | None = "70%", *, automatic: bool | None = None
) -> ThresholdsSet:
    return ThresholdsSet(
        scope=scope,  # type: ignore[arg-type]  # a literal
        name=name,
        requested_by="ada",
        automatic=automatic,
        compact_at=compact_at,
    )


def of_partition(count: int) -> list[str]:
    names = (f"session-{number}" for number in range(1_000))
    return [name for name in names if partition_of(name, PARTITIONS) == PARTITION][:count]


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created()


@pytest.mark.parametrize("scope", ["session", "agent"])
async def test_settings_are_written_again_before_the_log_drops_them(
    kit: CommandKit, scope: str
) -> None:
    now_ms = SystemClock().now_ms()
    off = setting(scope, SESSION, None, automatic=False)
    await kit.send(off, time_ms=now_ms - 20 * DAY_MS)
    async with kit.worker():
        await kit.until(lambda: len(kit.of(ThresholdsSet)) == 2)
    assert kit.of(ThresholdsSet) == [off, off]
    log = CommandLog(kit.ports(asyncio.Event()), PARTITION)
    async with log.owned():  # the next owner finds them young
        assert expiring(log, now_ms - 15 * DAY_MS) == {}


async def test_what_is_young_removed_or_replaced_is_not_written_again(kit: CommandKit) -> None:
    now_ms = SystemClock().now_ms()
    young, removed, replaced = of_partition(3)
    await kit.send(setting("session", young), time_ms=now_ms - DAY_MS)
    for scope, name in (("session", removed), ("agent", removed)):
        await kit.send(setting(scope, name), time_ms=now_ms - 21 * DAY_MS)
        await kit.send(setting(scope, name, None), time_ms=now_ms - 20 * DAY_MS)
    await kit.send(setting("session", replaced), time_ms=now_ms - 20 * DAY_MS)
    await kit.send(setting("session", replaced, "60%"), time_ms=now_ms - 19 * DAY_MS)
    log = CommandLog(kit.ports(asyncio.Event()), PARTITION)
    async with log.owned():
        due = expiring(log, now_ms - 15 * DAY_MS)
        assert due == {("session", replaced): setting("session", replaced, "60%")}
        forget(log, now_ms - 10 * DAY_MS)
        assert ("agent", removed) not in log.thresholds
        assert set(log.sessions) == {young}


async def test_settings_of_sessions_are_bounded(
    kit: CommandKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restating, "MOST_SESSIONS", 2)
    now_ms = SystemClock().now_ms()
    names = of_partition(4)
    for number, name in enumerate(names):
        await kit.send(setting("session", name), time_ms=now_ms - (20 - number) * DAY_MS)
    log = CommandLog(kit.ports(asyncio.Event()), PARTITION)
    async with log.owned():
        due = expiring(log, now_ms - 15 * DAY_MS)
    assert [name for _, name in due] == names[-2:]


@pytest.mark.parametrize("scope", ["session", "agent"])
async def test_a_setting_that_is_made_meanwhile_is_not_taken_back(
    kit: CommandKit, scope: str
) -> None:
    now_ms = SystemClock().now_ms()
    await kit.send(setting(scope, SESSION), time_ms=now_ms - 20 * DAY_MS)
    ports = kit.ports(asyncio.Event())
    log = CommandLog(ports, PARTITION)
    async with log.owned():
        due = expiring(log, now_ms - 15 * DAY_MS)
        await kit.send(setting(scope, SESSION, "60%"), time_ms=now_ms)
        following = asyncio.create_task(log.follow())
        await write_again(ports, log, due, now_ms)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    assert [each.compact_at for each in kit.of(ThresholdsSet)] == ["70%", "60%"]
