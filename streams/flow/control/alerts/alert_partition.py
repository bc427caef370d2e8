"""One partition of the alerts: what its rules remember, and the alerts that its records raise.

A record is acknowledged when all of its alerts are done with and those of every record before it.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.errors import RetryError
from schemas.records import DATA_CLASS_BY_KIND, CompactBoundary, event_type
from streams import codec
from streams.core.alerts.alert import Alert, Who
from streams.core.alerts.rules import AlertPlan, Exhaustion, Pressure
from streams.core.alerts.watch import RECALLED_KINDS, WATCHED_KINDS, Watch
from streams.flow.common.lag import Lag
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.ranges import read_back, read_range
from streams.flow.common.retry import RetryLoop
from streams.flow.control.alerts.webhook_delivery import TargetQueue
from streams.flow.control.control_loop import AssignedPartition, PartitionHandler, PendingRecord
from streams.flow.control.session_owners import OwnerOf
from streams.ports import (
    AlertMemory,
    Ends,
    Headers,
    Log,
    LogRecord,
    RecordStream,
    Webhook,
    started,
)

_LOOK_EVERY_S: Final = 1.0
"""How often silent attempts are checked for: rules give seconds and minutes."""

logger = structlog.get_logger()


def _others(kinds: frozenset[str]) -> frozenset[bytes]:
    return frozenset(event_type(kind).encode() for kind in DATA_CLASS_BY_KIND if kind not in kinds)


_BOUNDARY = frozenset({event_type(CompactBoundary.kind).encode()})

_NOT_WATCHED, _NOT_RECALLED = _others(WATCHED_KINDS), _others(RECALLED_KINDS)
"""Types that are not read at all. One that this build does not know is, and so refused: it may be
worth an alert."""


@dataclass(frozen=True, kw_only=True)
class ControlPorts(WorkerPorts):
    """What alerts need of the outside world. `log` reads back what was acknowledged."""

    stream: RecordStream
    log: Log
    webhooks: Mapping[str, Webhook]
    memory: AlertMemory
    owner_of: OwnerOf
    dice: random.Random


class AlertPartition(PartitionHandler):
    """The partition, from its assignment until it is revoked.

    `make_room` is called after each record: too many may wait for their alerts.
    """

    def __init__(
        self,
        partition: AssignedPartition,
        plan: AlertPlan,
        topic: str,
        ports: ControlPorts,
        queues: Mapping[str, TargetQueue],
        make_room: Callable[[], None],
    ) -> None:
        super().__init__(partition)
        self._number = partition.number
        self._plan, self._topic, self._ports = plan, topic, ports
        self._queues, self._make_room = queues, make_room
        self._watch = Watch(plan)
        self._lag = Lag(ports, partition.number, "control_lag_records", "control_lag_seconds")
        self._position = partition.position
        """The next offset to be handled."""
        self._handled_ms = 0
        """Kafka time up to which all records are handled."""
        self._compacted: dict[tuple[str, str], int] = {}
        """By session and chain: the last boundary that waited when the partition was taken over."""
        ports.health.partition(partition.number, "restoring")

    async def run(self) -> None:
        """Read back what the rules must remember; then raise the alerts of silent attempts."""
        count = await RetryLoop(self._ports, "kafka").run(self._restore)
        self.is_ready.set()
        self._ports.health.partition(self._number, "running")
        logger.info("read back", partition=self._number, records=count)
        clock, stop = self._ports.clock, self._ports.stop
        while not stop.is_set():
            await sleep_until(clock, stop, _LOOK_EVERY_S)
            now_ms = clock.now_ms()
            behind = self._report_lag()
            # A sign of life may be among what is not handled yet: then silence is known of up to
            # the last record that is.
            until_ms = now_ms if behind == 0 else min(now_ms, self._handled_ms)
            for alert in self._watch.due(until_ms):
                await self._send(alert)
            self._watch.forget(now_ms - self._plan.max_age_ms)

    def close(self) -> None:
        """Leave the partition to its next owner, which sends what was not sent."""
        self._lag.forget()
        for queue in self._queues.values():
            queue.drop_unwanted()

    async def handle(self, pending: PendingRecord) -> None:
        """Queue the alerts of a record. Raises VersionError."""
        record = pending.arrival.record
        alerts = self._observe(record)
        self._position = record.offset + 1
        self._handled_ms = max(self._handled_ms, record.timestamp_ms)
        for alert in alerts:
            if self._is_outdated(alert, record.offset):
                self._ports.telemetry.count("control_skipped", reason="compacted_since")
            else:
                await self._send(alert, pending)
        self._ports.telemetry.count("control_records", partition=str(self._number))
        if self.partition.is_ours:  # it may have gone while an agent was looked up
            self._report_lag(record.timestamp_ms)
        self._make_room()

    async def _send(self, alert: Alert, pending: PendingRecord | None = None) -> None:
        """Give an alert to the queues of its rule's targets, if it is to be sent at all.

        `pending` is the record that raised it, and must wait for it.
        """
        logged_ms = None if pending is None else pending.arrival.record.timestamp_ms
        targets = [name for name in alert.rule.targets if self._is_due(alert, name, logged_ms)]
        if not targets:
            reason = "no_time" if alert.time_ms is None else "old"
            self._ports.telemetry.count("control_skipped", reason=reason)
            return
        is_agent_known = True
        if alert.who.agent_id is None:
            try:
                owner = await self._ports.owner_of(alert.session_id)
                alert = alert.of(Who.of(owner.agent_id, owner.cwd))
            except RetryError:
                is_agent_known = False  # a needless alert is better than a missing one
        if is_agent_known and not alert.rule.agents.fit(alert.who.agent_id):
            self._ports.telemetry.count("control_skipped", reason="other_agent")
            return
        self._ports.telemetry.count("control_alerts", kind=alert.kind)
        for name in targets:
            self._queues[name].offer(alert, self.partition, pending)

    def _is_due(self, alert: Alert, name: str, logged_ms: int | None) -> bool:
        """Return whether an alert is young enough to be sent, or was and may still be retried.

        So an alert that its target did not take outlives the worker that tried to send it.
        """
        now_ms, max_age_ms = self._ports.clock.now_ms(), self._plan.max_age_ms
        if logged_ms is None or alert.is_fresh(now_ms, max_age_ms):
            return alert.is_fresh(now_ms, max_age_ms)
        tried_ms = self._queues[name].give_up_after_ms
        return alert.is_fresh(logged_ms, max_age_ms) and now_ms - logged_ms <= tried_ms

    def _report_lag(self, last_ms: int | None = None) -> int | None:
        """Report the lag; return how many offsets the partition is behind, if that is known."""
        behind, position = self._ports.stream.behind(self._number), self._position
        ends = None if behind is None else Ends(position + behind, position + behind)
        self._lag.report(position, ends, last_ms)
        return behind

    def _observe(self, record: LogRecord) -> list[Alert]:
        if _is_of(record.headers, _NOT_WATCHED):
            return []
        event = codec.from_binary(record.headers, record.value or b"")
        return self._watch.observe(event, record.timestamp_ms, self._ports.clock.now_ms())

    async def _restore(self) -> int:
        """Read again what the rules must remember of the records before the position.

        They raise no alerts: they were acknowledged, so their alerts were handled. Of the records
        that wait, it is noted which chains were compacted. Returns how many records were read.
        """
        log, clock, number, position = (
            self._ports.log,
            self._ports.clock,
            self._number,
            self._position,
        )
        self._watch.clear()
        self._compacted.clear()
        count, since_ms = 0, clock.now_ms() - self._plan.memory_ms
        async with started(log.reader(self._topic, [number])) as reader:
            async for batch in read_back(reader, clock, number, since_ms, position):
                for record in batch.records:
                    if not _is_of(record.headers, _NOT_RECALLED):
                        event = codec.from_binary(record.headers, record.value or b"")
                        self._watch.recall(event, record.timestamp_ms)
                count += len(batch.records)
            _, end = await reader.bounds(number)
            async for batch in read_range(reader, clock, number, position, end):
                for record in batch.records:
                    if _is_of(record.headers, _BOUNDARY):
                        data = codec.from_binary(record.headers, record.value or b"").data
                        self._compacted[data.session_id, data.chain] = record.offset
                count += len(batch.records)
        return count

    def _is_outdated(self, alert: Alert, offset: int) -> bool:
        """Return whether an alert on a full window is older than a compaction that waited with it.

        So a worker that starts late sends none of what has passed.
        """
        compacted_at = self._compacted.get((alert.session_id, alert.chain), -1)
        return compacted_at > offset and isinstance(alert.rule.condition, Pressure | Exhaustion)


def _is_of(headers: Headers, types: frozenset[bytes]) -> bool:
    return any(name == "ce_type" and value in types for name, value in headers)
