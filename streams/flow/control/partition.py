"""One partition in the control plane: what its rules remember, and what is to be acknowledged.

A record is acknowledged when all of its alerts are done with and those of every record before it.
So a worker that dies has lost none: what was not acknowledged is read again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from schemas.records import DATA_CLASS_BY_KIND, event_type
from streams import codec
from streams.core.alerts.rules import AlertPlan
from streams.core.alerts.watch import RECALLED_KINDS, WATCHED_KINDS, Alert, Watch
from streams.flow.common.lag import Lag
from streams.flow.common.retry import RetryLoop
from streams.ports import Headers, Log, LogRecord, ReceivedRecord


def _others(kinds: frozenset[str]) -> frozenset[bytes]:
    return frozenset(event_type(kind).encode() for kind in DATA_CLASS_BY_KIND if kind not in kinds)


_NOT_WATCHED, _NOT_RECALLED = _others(WATCHED_KINDS), _others(RECALLED_KINDS)
"""Types that are not read at all. One that this build does not know is, and so refused: it may be
worth an alert."""

_HISTORY_RECORDS = 2_000
_HISTORY_WAIT_S = 1.0


@dataclass(slots=True)
class UnacknowledgedRecord:
    """A record that is not acknowledged yet; `open_alerts` of its alerts are still in queues."""

    arrival: ReceivedRecord
    open_alerts: int = 0
    abandon: Callable[[str], None] = lambda _why: None
    """Gives up the alerts that this record waits for."""


class ControlPartition:
    """The partition, from its assignment until it is revoked."""

    def __init__(self, number: int, position: int, plan: AlertPlan, lag: Lag) -> None:
        self.number, self.position = number, position
        """The position is the next offset to be handled."""
        self.handled_ms = 0
        """Kafka time up to which all records are handled."""
        self.lag = lag
        """Not reported any more once the partition is revoked."""
        self.watch = Watch(plan)
        self.is_ours = True
        self.is_restored = asyncio.Event()
        self.waiting: deque[UnacknowledgedRecord] = deque()
        self._memory_ms = plan.memory_ms

    def observe(self, record: LogRecord, now_ms: int) -> list[Alert]:
        """Return the alerts that a record raises. Raises VersionError."""
        if _is_of(record.headers, _NOT_WATCHED):
            return []
        event = codec.from_binary(record.headers, record.value or b"")
        return self.watch.observe(event, record.timestamp_ms, now_ms)

    def advance(self) -> None:
        """Acknowledge what is done with, in order."""
        while self.waiting and not self.waiting[0].open_alerts:
            self.waiting.popleft().arrival.acknowledge()

    async def restore(self, log: Log, topic: str, now_ms: int, retry: RetryLoop) -> int:
        """Read again what the rules must remember of the records before the position.

        They raise no alerts: they were acknowledged, so their alerts were handled. Returns how many
        records were read.
        """
        count = await retry.run(self._read_again, log, topic, now_ms)
        self.is_restored.set()
        return count

    async def _read_again(self, log: Log, topic: str, now_ms: int) -> int:
        self.watch.clear()
        reader = log.reader(topic, [self.number])
        await reader.start()
        count = 0
        try:
            first, end = await reader.bounds(self.number)
            begin = max(first, await reader.offset_at(self.number, now_ms - self._memory_ms))
            upto = min(self.position, end)
            at = begin
            if begin < upto:
                reader.seek(self.number, begin)
            while at < upto and self.is_ours:
                batch = await reader.poll(self.number, _HISTORY_RECORDS, _HISTORY_WAIT_S)
                for record in batch.records:
                    if record.offset >= upto:
                        break
                    if not _is_of(record.headers, _NOT_RECALLED):
                        event = codec.from_binary(record.headers, record.value or b"")
                        self.watch.recall(event, record.timestamp_ms)
                    count += 1
                at = batch.position
        finally:
            await reader.stop()
        return count


def _is_of(headers: Headers, types: frozenset[bytes]) -> bool:
    return any(name == "ce_type" and value in types for name, value in headers)
