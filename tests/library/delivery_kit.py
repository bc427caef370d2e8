"""What the tests of a publisher share: a delivery over a broker in memory, and what arrived."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from contextgauge.clock import SystemClock
from contextgauge.delivery.background import Delivery
from contextgauge.delivery.outgoing import Conversation, MessageFormat
from contextgauge.delivery.queue import WhenFull
from contextgauge.delivery.sender import DeliveryConfig
from schemas.topics import AGENT_MESSAGES, Topic
from streams.ports import Clock, LogRecord
from tests.doubles.log import FaultyLog
from tests.patience import PATIENCE_S

PARTITIONS = 3
LIMIT = 2_000


async def memory(*topics: Topic) -> FaultyLog:
    log = FaultyLog(SystemClock())
    await log.create_topics(topics or (AGENT_MESSAGES,), PARTITIONS)
    return log


def delivery_over(
    log: FaultyLog,
    when_full: WhenFull = "wait",
    max_messages: int = 100,
    max_bytes: int = 1_000_000,
    text_key: bytes | None = None,
    clock: Clock | None = None,
) -> tuple[Delivery, list[str]]:
    """Return a delivery, and what it tells."""
    seen: list[str] = []
    config = DeliveryConfig(
        topic=AGENT_MESSAGES.name,
        form=MessageFormat(LIMIT, text_key),
        when_full=when_full,
        max_messages=max_messages,
        max_bytes=max_bytes,
    )
    return Delivery(log, clock or SystemClock(), config, seen.append), seen


@asynccontextmanager
async def opened(log: FaultyLog, **options: Any) -> AsyncIterator[tuple[Delivery, list[str]]]:
    """Open a delivery, and close it with all that waits sent."""
    delivery, reports = delivery_over(log, **options)
    delivery.start()
    try:
        yield delivery, reports
    finally:
        await delivery.close(PATIENCE_S)


def message(number: int, session: str = "s") -> dict[str, object]:
    return {"type": "user", "session_id": session, "uuid": f"{session}-{number}", "message": "hi"}


def written(log: FaultyLog) -> list[LogRecord]:
    partitions = (log.partition(AGENT_MESSAGES.name, number) for number in range(PARTITIONS))
    return [record for each in partitions for record in each.read(0, 10**6).records]


def numbers(log: FaultyLog, session: str = "s") -> list[int]:
    """Return what arrived of a session, in order."""
    bodies = [json.loads(record.value or b"") for record in written(log)]
    return [int(b["uuid"].rpartition("-")[2]) for b in bodies if b["session_id"] == session]


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that tells of no event."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.01)


def conversation(session_id: str | None = None) -> Conversation:
    return Conversation(session_id, (("observed", b"live"),))
