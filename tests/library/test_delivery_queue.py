"""A publisher's queue: a broker that is away or refuses, and what is done when it is full."""

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.delivery.background import Delivery
from contextgauge.delivery.outgoing import OutgoingMessage, keyed
from contextgauge.delivery.queue import SendQueue, WhenFull
from contextgauge.errors import ClosedError, ConfigError, RetryError
from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES
from streams.edge.memory.log import MemoryProducer
from streams.ports import NewRecord
from tests.doubles.log import FaultyLog
from tests.library.delivery_kit import (
    LIMIT,
    PARTITIONS,
    conversation,
    delivery_over,
    memory,
    message,
    numbers,
    opened,
    until,
)
from tests.patience import PATIENCE_S


async def test_delivery_waits_for_a_broker_unavailable_at_start() -> None:
    log = await memory()
    log.away = True
    async with opened(log) as (delivery, result):
        assert await delivery.submit(message(1), conversation()) == "queued"
        await until(lambda: bool(result))
        assert "away" in (delivery.stats.problem or "")
        assert not delivery.stats.connected
        log.away = False
        await delivery.connected(5)
        assert delivery.stats.problem is None
    assert numbers(log) == [1]


async def test_close_gives_up_on_a_broker_that_never_answers() -> None:
    log = await memory()
    log.away = True
    delivery, _ = delivery_over(log)
    delivery.start()
    await delivery.submit(message(1), conversation())
    await delivery.submit(message(2), conversation())
    with pytest.raises(RetryError, match="away"):
        await delivery.connected(0.05)
    assert await delivery.close(0.05) == 2
    assert delivery.stats.waiting == 2


class EndlessClock(SystemClock):
    """Its pauses never end."""

    async def sleep(self, seconds: float) -> None:
        """Wait for ever."""
        del seconds
        await asyncio.Event().wait()


async def test_close_does_not_wait_for_the_pause_between_retries() -> None:
    log = await memory()
    log.away = True
    delivery, reports = delivery_over(log, clock=EndlessClock())
    delivery.start()
    await delivery.submit(message(1), conversation())
    await until(lambda: bool(reports))
    log.away = False
    assert await delivery.close(PATIENCE_S) == 0
    assert numbers(log) == [1]


@pytest.mark.parametrize("away", [False, True])
async def test_close_sends_queued_messages_after_the_sender_was_cancelled(*, away: bool) -> None:
    """`asyncio.run` cancels all tasks of a program that ends, an agent's and the sender's."""
    log = await memory()
    log.away = True
    delivery, reports = delivery_over(log)
    delivery.start()
    await delivery.submit(message(1), conversation())
    await until(lambda: bool(reports))
    (sender,) = [each for each in asyncio.all_tasks() if "contextgauge" in each.get_name()]
    sender.cancel()
    log.away = away
    assert await delivery.close(0.2 if away else PATIENCE_S) == int(away)
    assert numbers(log) == ([] if away else [1])
    assert sender.cancelled()


async def test_slow_shortening_is_not_mistaken_for_a_silent_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contextgauge.delivery.sender._SILENCE_S", 0.05)
    usual, released = keyed, threading.Event()

    def slow(line: Line, limit: int) -> tuple[str, bytes] | DeadLetter | None:
        released.wait(PATIENCE_S)
        return usual(line, limit)

    log = await memory()
    async with opened(log) as (delivery, result):
        await delivery.connected(5)
        monkeypatch.setattr("contextgauge.delivery.outgoing.keyed", slow)
        await delivery.submit(message(1) | {"message": "x" * LIMIT}, conversation())
        await asyncio.sleep(0.2)
        assert delivery.stats.connected
        released.set()
    assert result == []
    assert numbers(log) == [1]


async def test_a_missing_topic_is_reported_and_used_once_it_exists() -> None:
    log = FaultyLog(SystemClock())
    async with opened(log) as (delivery, result):
        await delivery.submit(message(1), conversation())
        await until(lambda: bool(result))
        assert "contextgauge topics create" in result[0]
        await log.create_topics([AGENT_MESSAGES], PARTITIONS)
    assert numbers(log) == [1]


async def test_a_record_that_the_broker_refuses_does_not_block_others() -> None:
    log = await memory(replace(AGENT_MESSAGES, max_message_bytes=300))
    async with opened(log) as (delivery, result):
        for number in range(6):
            padding = {"padding": "x" * 400} if number == 3 else {}
            await delivery.submit(message(number) | padding, conversation())
    assert sorted(set(numbers(log))) == [0, 1, 2, 4, 5]
    assert (delivery.stats.sent, delivery.stats.refused) == (5, 1)
    assert "max.message.bytes" in result[-1]


async def test_a_sender_error_is_reported_by_type_and_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = await memory()
    usual = MemoryProducer.send
    failures = [ValueError("secret words")]

    async def send(self: MemoryProducer, record: NewRecord) -> None:
        if failures:
            raise failures.pop()
        await usual(self, record)

    monkeypatch.setattr(MemoryProducer, "send", send)
    async with opened(log) as (delivery, result):
        await delivery.submit(message(1), conversation())
    assert numbers(log) == [1]
    assert result == ["sending failed (ValueError): trying again"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"when_full": "never"},
        {"max_messages": 0},
        {"max_bytes": 0},
    ],
)
async def test_invalid_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"when_full is|at least 1"):
        delivery_over(await memory(), **wrong)


async def full(when_full: WhenFull, count: int = 6) -> tuple[Delivery, FaultyLog, list[str]]:
    """Return a delivery with room for three, given `count` messages while the broker is away."""
    log = await memory()
    log.away = True
    delivery, reports = delivery_over(log, when_full, max_messages=3)
    delivery.start()
    for number in range(count):
        await delivery.submit(message(number), conversation())
    return delivery, log, reports


@pytest.mark.parametrize(
    ("when_full", "left"), [("drop_new", [0, 1, 2]), ("drop_oldest", [3, 4, 5])]
)
async def test_a_full_queue_drops_messages_by_policy(when_full: WhenFull, left: list[int]) -> None:
    delivery, log, result = await full(when_full)
    stats = delivery.stats
    assert (stats.dropped, stats.waiting) == (3, 3)
    assert [line for line in result if "queue is full" in line] == [
        "the queue is full, messages are dropped: 1 so far"
    ]
    log.away = False
    assert await delivery.close(PATIENCE_S) == 0
    assert numbers(log) == left
    assert result[-1] == "the queue was full, messages were dropped: 3 in all"


async def test_a_full_queue_blocks_the_caller_by_policy() -> None:
    delivery, log, _ = await full("wait", 3)
    waiting = [
        asyncio.create_task(delivery.submit(message(number), conversation()))
        for number in range(3, 9)
    ]
    cancelled = asyncio.create_task(delivery.submit(message(99), conversation()))
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in waiting)
    cancelled.cancel()
    log.away = False
    assert set(await asyncio.gather(*waiting)) == {"queued"}
    assert await delivery.close(PATIENCE_S) == 0
    assert numbers(log) == list(range(9))


async def test_close_raises_in_callers_waiting_for_room() -> None:
    delivery, _, _ = await full("wait", 3)
    waiting = asyncio.create_task(delivery.submit(message(9), conversation()))
    await asyncio.sleep(0.01)
    assert await delivery.close(0.01) == 3
    with pytest.raises(ClosedError, match="waited for room"):
        await waiting


async def test_bytes_are_bounded_and_a_single_larger_message_fits() -> None:
    outbox = SendQueue("drop_new", 10, 100)
    items = [OutgoingMessage("s", bytes(size), None, ()) for size in (150, 1, 60, 40, 1)]
    assert [await outbox.put(item) for item in items[:2]] == [True, False]
    assert list(await outbox.take()) == items[:1]
    assert [await outbox.put(item) for item in items[2:]] == [True, True, False]
    assert (outbox.bytes, len(outbox), outbox.dropped) == (100, 2, 2)


async def test_a_caller_that_never_waits_does_not_starve_the_sender() -> None:
    log = await memory()
    async with opened(log, when_full="drop_new", max_messages=200) as (delivery, _):
        for number in range(5_000):
            await delivery.submit(message(number), conversation())
    assert delivery.stats.dropped == 0
    assert numbers(log) == list(range(5_000))


async def test_a_message_cannot_overtake_one_that_waits_for_room() -> None:
    outbox = SendQueue("wait", 2, 100)
    items = [OutgoingMessage("s", bytes([number]), None, ()) for number in range(4)]
    assert await outbox.put(items[0])
    assert await outbox.put(items[1])
    waiting = asyncio.create_task(outbox.put(items[2]))
    await asyncio.sleep(0)
    assert list(await outbox.take()) == items[:2]
    assert await outbox.put(items[3])
    assert await waiting
    assert list(await outbox.take()) == items[2:]
