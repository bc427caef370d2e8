"""The control worker amid trouble: rebalances, restarts, a memory or a target that fails."""

import asyncio

import pytest

from contextgauge.errors import RetryError
from streams.core.alerts.rules import Stalled
from streams.flow.control.alerts import webhook_delivery as delivery
from streams.ports import WebhookResult
from tests.core.given import START_MS, Given, assistant, compacting
from tests.doubles.alerts import MemoryAlertMemory
from tests.doubles.record_stream import MemoryRecordStream
from tests.flow.control.control_kit import (
    AWAY,
    DELIVERED,
    ControlKit,
    GivenClock,
    Receiver,
    pressured,
    rule,
    until_so,
)


async def test_an_alert_that_fails_at_its_target_blocks_no_other(kit: ControlKit) -> None:
    class Picky(Receiver):
        async def call(self, alert_id: str, body: bytes) -> WebhookResult:
            self.always = AWAY if b'"s1"' in body else DELIVERED
            return await super().call(alert_id, body)

    kit.receivers["ops"] = Picky()
    await kit.write([*pressured(90), *pressured(90, session="s2")])
    async with kit.running():
        await kit.until_taken(1)
    assert [body["session_id"] for body in kit.receivers["ops"].bodies] == ["s2"]


async def test_while_records_wait_silence_is_measured_up_to_the_last_handled_one(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryRecordStream, "behind", lambda _self, _partition: 1)
    kit.by(rule(Stalled(60_000), "silent"))
    given = Given()
    await kit.write(given.take(compacting(at=0)))
    async with kit.running():
        await kit.until_acknowledged()
        kit.clock.at_ms = START_MS + 600_000
        await asyncio.sleep(0.1)
        assert kit.receivers["ops"].calls == []
        await kit.write(pressured(50, session="s2"), logged_ms=START_MS + 60_000)
        await kit.until_taken(1)


async def test_a_hanging_memory_is_not_queried_for_each_alert(kit: ControlKit) -> None:
    class Hanging(MemoryAlertMemory):
        asked = 0

        async def knows(self, key: str) -> bool:  # noqa: ARG002 -- the port's
            self.asked += 1
            await asyncio.sleep(0.2)
            raise RetryError("no answer in time")

        async def remember(self, key: str) -> None:
            await self.knows(key)

    kit.memory = memory = Hanging()
    await kit.write([one for name in "abcdefgh" for one in pressured(90, session=name)])
    async with kit.running():
        await kit.until_taken(8)
        assert memory.asked == 1


async def test_a_rebalance_amid_a_batch_loses_no_alert(kit: ControlKit) -> None:
    await kit.write([*pressured(90), *pressured(90, session="s2")])
    kit.agents_gate = gate = asyncio.Event()
    async with kit.running():
        await until_so(lambda: kit.asked == ["s1"])
        await kit.stream.rebalance()
        await asyncio.sleep(0.02)
        gate.set()
        await kit.until_taken(2)
        await kit.until_acknowledged()
    assert [body["session_id"] for body in kit.receivers["ops"].bodies] == ["s1", "s2"]


async def test_a_partition_may_be_revoked_during_an_agent_lookup(kit: ControlKit) -> None:
    kit.by(rule(Stalled(60_000), "silent"))
    given = Given()
    await kit.write(given.take(compacting(at=0)))
    await kit.write(Given().take({**compacting(at=0), "session_id": "s2"}), partition=1)
    async with kit.running() as running:
        await kit.until_acknowledged()
        await until_so(lambda: kit.acknowledged.get(1) == 1)
        kit.agents_gate = gate = asyncio.Event()
        kit.clock.at_ms = START_MS + 60_000
        await until_so(lambda: len(kit.asked) >= 1)
        running.worker.loop.revoked()
        gate.set()
        await asyncio.sleep(0.05)
        assert not running.task.done()
    assert not [name for name in kit.figures.gauges if name[0].startswith("control_lag")]


async def test_after_a_rebalance_no_alert_waits_for_a_revoked_partition(
    kit: ControlKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LongPauses(GivenClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds if seconds > 60 else 0.005)

    kit.clock = LongPauses()
    monkeypatch.setattr(delivery, "MOST_QUEUED", 2)
    await kit.write([*pressured(90), *pressured(90, session="s2")])
    kit.receivers["ops"].answers = [WebhookResult("retry", "it answered 429", 3_600.0)]
    async with kit.running():
        await until_so(lambda: kit.figures.counts["control_deliveries", "ops", "failed"] == 1)
        await until_so(lambda: kit.figures.gauges["control_queued_alerts", "ops"] == 2)
        await kit.stream.rebalance()
        await kit.until_taken(2)
        await kit.until_acknowledged()
    assert kit.figures.counts["control_deliveries", "ops", "given_up"] == 0


@pytest.mark.parametrize(("passed_ms", "sent"), [(3_000_000, ["s1"]), (3_700_000, [])])
async def test_a_pending_alert_survives_a_restart_at_any_age(
    kit: ControlKit, passed_ms: int, sent: list[str]
) -> None:
    kit.receivers["ops"].always = AWAY
    kit.acknowledged[0] = 0
    await kit.write(pressured(90))
    async with kit.running() as running:
        await until_so(lambda: len(kit.receivers["ops"].calls) >= 2)
        running.kill()
        await asyncio.gather(running.task, return_exceptions=True)
    kit.clock.at_ms += passed_ms
    kit.receivers["ops"].always = DELIVERED
    await kit.write(
        Given().take({**assistant("y", read=190_000, at=passed_ms / 1_000), "session_id": "new"})
    )
    async with kit.running():
        await kit.until_taken(1 + len(sent))
    assert [body["session_id"] for body in kit.receivers["ops"].bodies] == [*sent, "new"]
