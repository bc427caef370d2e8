"""One partition in the control plane: what its rules remember, and what is to be acknowledged.

A record is acknowledged when all of its alerts are done with and those of every record before it.
So a worker that dies has lost none: what was not acknowledged is read again.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from schemas.records import DATA_CLASS_BY_KIND, CompactBoundary, event_type
from streams import codec
from streams.core.alerts.rules import AlertPlan, Exhaustion, Pressure
from streams.core.alerts.watch import RECALLED_KINDS, WATCHED_KINDS, Alert, Watch
from streams.flow.common.lag import Lag
from streams.flow.common.ranges import read_back, read_range
from streams.ports import Clock, Headers, Log, LogRecord, ReceivedRecord, started


def _others(kinds: frozenset[str]) -> frozenset[bytes]:
    return frozenset(event_type(kind).encode() for kind in DATA_CLASS_BY_KIND if kind not in kinds)


_BOUNDARY = frozenset({event_type(CompactBoundary.kind).encode()})

_NOT_WATCHED, _NOT_RECALLED = _others(WATCHED_KINDS), _others(RECALLED_KINDS)
"""Types that are not read at all. One that this build does not know is, and so refused: it may be
worth an alert."""


@dataclass(slots=True, eq=False)
class QueuedAlert:
    """An alert of a partition, for one target."""

    alert: Alert
    target: str
    partition: "ControlPartition"
    deadline_s: float
    pause_s: float
    tries: int = 0
    is_done: bool = False
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> str:
        """What identifies the alert and its target in the memory."""
        return f"{self.target}:{self.alert.id}"

    def is_live(self) -> bool:
        """Return whether this worker still has to send it."""
        return not self.is_done and self.partition.is_ours

    def finish(self) -> None:
        """Mark it as done, once."""
        if not self.is_done:
            self.is_done = True
            self.partition.advance()
            self.hurry.set()


@dataclass(slots=True)
class UnacknowledgedRecord:
    """A record that is not acknowledged yet; `alerts` is complete once it is `handled`."""

    arrival: ReceivedRecord
    alerts: list[QueuedAlert] = field(default_factory=list)
    handled: bool = False

    def is_done(self) -> bool:
        """Return whether it may be acknowledged."""
        return self.handled and all(alert.is_done for alert in self.alerts)


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
        self._compacted: dict[tuple[str, str], int] = {}
        """By session and chain: the last boundary that waited when the partition was taken over."""

    def observe(self, record: LogRecord, now_ms: int) -> list[Alert]:
        """Return the alerts that a record raises. Raises VersionError."""
        if _is_of(record.headers, _NOT_WATCHED):
            return []
        event = codec.from_binary(record.headers, record.value or b"")
        return self.watch.observe(event, record.timestamp_ms, now_ms)

    def advance(self) -> None:
        """Acknowledge what is done with, in order."""
        while self.waiting and self.waiting[0].is_done():
            self.waiting.popleft().arrival.acknowledge()

    async def restore(self, log: Log, topic: str, clock: Clock) -> int:
        """Read again what the rules must remember of the records before the position.

        They raise no alerts: they were acknowledged, so their alerts were handled. Of the records
        that wait, it is noted which chains were compacted. Returns how many records were read.
        """
        self.watch.clear()
        self._compacted.clear()
        count, since_ms = 0, clock.now_ms() - self._memory_ms
        async with started(log.reader(topic, [self.number])) as reader:
            async for batch in read_back(reader, clock, self.number, since_ms, self.position):
                if not self.is_ours:
                    break
                for record in batch.records:
                    if not _is_of(record.headers, _NOT_RECALLED):
                        event = codec.from_binary(record.headers, record.value or b"")
                        self.watch.recall(event, record.timestamp_ms)
                count += len(batch.records)
            _, end = await reader.bounds(self.number)
            async for batch in read_range(reader, clock, self.number, self.position, end):
                if not self.is_ours:
                    break
                for record in batch.records:
                    if _is_of(record.headers, _BOUNDARY):
                        data = codec.from_binary(record.headers, record.value or b"").data
                        self._compacted[data.session_id, data.chain] = record.offset
                count += len(batch.records)
        return count

    def is_outdated(self, alert: Alert, offset: int) -> bool:
        """Return whether an alert on a full window is older than a compaction that waited with it.

        So a worker that starts late sends none of what has passed.
        """
        compacted_at = self._compacted.get((alert.session_id, alert.chain), -1)
        return compacted_at > offset and isinstance(alert.rule.condition, Pressure | Exhaustion)


def _is_of(headers: Headers, types: frozenset[bytes]) -> bool:
    return any(name == "ce_type" and value in types for name, value in headers)
