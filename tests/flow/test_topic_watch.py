"""When a worker says that Kafka does not answer: not of a connection that ended and came back."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from schemas.topics import CONTEXT_EVENTS
from streams.flow.common.topic_watch import AGAIN_S, LOOK_S, known_topics, watch_topics
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import HastyClock

LOST = RetryError("the connection is closed")


class _ScriptedLog(FaultyLog):
    """A log of which looks fail as scripted; then the watch is over."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.looks = ""
        """Each of the next ones, in their order: `.` is answered, `x` fails."""

    async def topic_ids(self, names: Sequence[str]) -> dict[str, UUID | None]:
        look, self.looks = self.looks[:1], self.looks[1:]
        if not look:
            raise asyncio.CancelledError
        if look == "x":
            raise LOST
        return await super().topic_ids(names)


async def _watched(looks: str) -> tuple[list[str], list[float]]:
    """Return what is logged, and the pauses between looks."""
    log, clock = _ScriptedLog(), HastyClock()
    await log.create_topics([CONTEXT_EVENTS], 1)
    log.looks = "."
    topics = await known_topics(log, clock, [CONTEXT_EVENTS.name])
    log.looks = looks
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await watch_topics(log, clock, topics)
    return [entry["event"] for entry in logs], clock.pauses


async def test_a_connection_that_ended_is_no_outage() -> None:
    """As at the end of a SASL session, or behind a proxy that ends idle connections."""
    logs, pauses = await _watched(".x.x.")
    assert logs == []
    assert pauses == [LOOK_S, AGAIN_S, LOOK_S, AGAIN_S, LOOK_S]


async def test_a_broker_that_stays_away_is_an_outage_within_seconds() -> None:
    logs, pauses = await _watched("xxx..")
    assert logs == ["Kafka does not answer", "Kafka answers again"]
    assert pauses == [AGAIN_S, LOOK_S, LOOK_S, LOOK_S, LOOK_S]
