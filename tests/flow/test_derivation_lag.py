"""Readers learn that figures are old where the derive workers are behind."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from schemas.topics import AGENT_MESSAGES
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryViews
from streams.flow.project.config import ProjectConfig
from streams.flow.project.derivation_lag import DerivationLag
from streams.flow.project.polling import ProjectPorts
from streams.ports import NewRecord
from tests.flow.control.control_kit import until_so
from tests.flow.derive_kit import Figures, board, until
from tests.flow.project_kit import ProjectKit
from tests.patience import PATIENCE_S

TOPIC = AGENT_MESSAGES.name
GROUP = ProjectConfig().derive_group


class StepClock(SystemClock):
    """Each pause takes its time at once, and lets the others run."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.looks = 0

    def monotonic_s(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.looks += 1
        await asyncio.sleep(0)


class Messages(MemoryLog):
    """A topic of messages of two partitions, and the derive workers' group."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.error: Exception | None = None

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        if self.error is not None:
            raise self.error
        return await super().committed(group, topic)

    async def publish(self, count: int, partition: int = 0) -> None:
        producer = self.producer()
        await producer.start()
        for _ in range(count):
            await producer.send(NewRecord(TOPIC, partition, b"key", b"value", ()))
        await producer.flush()
        await producer.stop()

    def derived(self, partition: int, offset: int) -> None:
        self.group(GROUP, TOPIC).offsets[partition] = offset


@pytest.fixture
async def log() -> Messages:
    log = Messages()
    await log.create_topics([AGENT_MESSAGES], 2)
    return log


def _lag(log: Messages, clock: StepClock) -> DerivationLag:
    ports = ProjectPorts(
        telemetry=Figures(),
        health=board(),
        clock=clock,
        stop=asyncio.Event(),
        log=log,
        store=MemoryViews(),
        config=ProjectConfig(),
    )
    return DerivationLag(ports, lambda: [0, 1])


async def _look(lag: DerivationLag, clock: StepClock, times: int = 3) -> None:
    running, upto = asyncio.create_task(lag.run()), clock.looks + times
    await until_so(lambda: clock.looks >= upto or running.done())
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_message_waits_from_when_it_was_seen_until_it_is_derived(log: Messages) -> None:
    clock = StepClock()
    lag = _lag(log, clock)
    log.derived(0, 0)
    await log.publish(3)
    await _look(lag, clock)
    first_ms = lag.ms(0)
    await log.publish(2)
    await _look(lag, clock)
    assert lag.ms(0) > first_ms > 0
    assert lag.ms(1) == 0
    log.derived(0, 3)  # the first ones: now the others wait, since later
    await _look(lag, clock, 2)
    assert 0 < lag.ms(0) < clock.now_s * 1_000 - first_ms
    log.derived(0, 5)
    await _look(lag, clock, 2)
    assert lag.ms(0) == 0


async def test_the_lag_of_a_group_without_positions_is_not_known(log: Messages) -> None:
    clock = StepClock()
    lag = _lag(log, clock)
    await log.publish(3)
    await _look(lag, clock)
    assert lag.ms(0) == 0


async def test_kafka_that_is_away_is_asked_again_and_one_that_refuses_is_not(
    log: Messages,
) -> None:
    clock = StepClock()
    lag = _lag(log, clock)
    log.derived(0, 0)
    await log.publish(1)
    log.error = RetryError("away")
    await _look(lag, clock)
    log.error = None
    await _look(lag, clock)
    assert lag.ms(0) > 0
    log.error = ConfigError("not allowed")
    await asyncio.wait_for(lag.run(), PATIENCE_S)


async def test_views_that_are_complete_are_as_late_as_their_records(log: Messages) -> None:
    kit = ProjectKit(log, MemoryViews())
    await kit.log.create_topics([kit.topic], 2)
    log.derived(1, 0)
    await log.publish(1, partition=1)

    async def lags(partition: int) -> bool:
        position = await kit.store.position(1, partition)
        return (
            position is not None
            and position.heartbeat is not None
            and position.heartbeat.lag_ms > 0
        )

    async with kit.running():
        await until(lambda: lags(1))
        assert not await lags(0)
