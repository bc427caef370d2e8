"""The alerts' worker: records of a stream in, alerts for targets out.

All runs in one event loop, so what one record does is done before the next is looked at. A queue
for each target sends; a clock looks each second for attempts that have gone silent.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from contextgauge.backoff import sleep_until
from contextgauge.errors import RetryError
from streams.core.alerts.rules import AlertPlan
from streams.core.alerts.watch import Alert, Who
from streams.flow.common.lag import Lag
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.flow.control.alerts.alert_partition import ControlPartition, UnacknowledgedRecord
from streams.flow.control.alerts.sent_alerts import SentAlerts
from streams.flow.control.alerts.webhook_delivery import TargetQueue
from streams.ports import (
    AlertMemory,
    Ends,
    Log,
    ReceivedRecord,
    RecordStream,
    Webhook,
)

GROUP: Final = "contextgauge-control"
"""The consumer group of the alerts, behind the settings' prefix. Each role of `contextgauge
control` has one of its own: a process without alert rules takes no partition of one with them."""

MOST_WAITING: Final = 50_000
"""Records that may wait to be acknowledged behind alerts that are not sent yet, in all: some tens
of megabytes. Beyond, the oldest of these alerts is given up."""

_LOOK_EVERY_S: Final = 1.0
"""How often silent attempts are checked for: rules give seconds and minutes."""

logger = structlog.get_logger()

WhoOf = Callable[[str], Awaitable[Who]]


@dataclass(frozen=True, kw_only=True)
class ControlPorts(WorkerPorts):
    """What the worker needs of the outside world. `log` reads back what was acknowledged."""

    stream: RecordStream
    log: Log
    webhooks: Mapping[str, Webhook]
    memory: AlertMemory
    who_of: WhoOf
    dice: random.Random


class ControlWorker:
    """Handles the records of one stream by one plan."""

    def __init__(self, plan: AlertPlan, topic: str, ports: ControlPorts) -> None:
        self._plan, self._topic, self._ports = plan, topic, ports
        self._clock, self._telemetry, self._stop = ports.clock, ports.telemetry, ports.stop
        self._memory = SentAlerts(ports.memory, ports)
        self._queues = {
            target.name: TargetQueue(
                target, ports.webhooks[target.name], self._memory, ports, ports.dice, plan.link
            )
            for target in plan.targets
        }
        self._give_up_after_ms = {target.name: target.give_up_after_ms for target in plan.targets}
        self._partitions: dict[int, ControlPartition] = {}
        self._restoring: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Run until stopped. Raises StopError, RetryError, or the error of any task."""
        stop = self._stop
        self._failed = asyncio.get_running_loop().create_future()
        end_stream = asyncio.Event()
        streaming = asyncio.create_task(self._ports.stream.run(self, end_stream))
        sending = [asyncio.create_task(queue.run()) for queue in self._queues.values()]
        looking = asyncio.gather(self._look(), self._store())
        stopping = asyncio.create_task(stop.wait())
        tasks: list[asyncio.Future[Any]] = [streaming, looking, *sending, self._failed]
        try:
            await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                # What is being sent is acknowledged still, and so committed.
                await _first_failure(asyncio.gather(looking, *sending), streaming, self._failed)
                await self._memory.store_rest(is_last_chance=True)
                end_stream.set()
                await streaming
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in (stopping, *tasks, *self._restoring):
                task.cancel()
            await asyncio.gather(stopping, *tasks, *self._restoring, return_exceptions=True)

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Take partitions over, and begin to read back what their rules must remember."""
        self.revoked()
        self._telemetry.count("worker_rebalances", worker="control")
        self._telemetry.gauge("worker_partitions", len(positions), worker="control")
        self._ports.health.worker("member")
        logger.info("assigned", partitions=sorted(positions))
        for number, position in positions.items():
            lag = Lag(self._ports, number, "control_lag_records", "control_lag_seconds")
            partition = ControlPartition(number, position, self._plan, lag)
            self._partitions[number] = partition
            self._ports.health.partition(number, "restoring")
            task = asyncio.create_task(self._restore(partition))
            self._restoring.add(task)
            task.add_done_callback(self._restoring.discard)

    def revoked(self) -> None:
        """Release all partitions: their next worker sends what was not sent."""
        for partition in self._partitions.values():
            partition.is_ours = False
            partition.is_restored.set()
            partition.lag.forget()
        for queue in self._queues.values():
            queue.drop_unwanted()
        self._partitions.clear()
        self._ports.health.released()
        self._telemetry.gauge("worker_partitions", 0, worker="control")

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Handle records, in order. Raises VersionError, at which nothing is acknowledged."""
        for arrival in arrivals:
            partition = self._partitions.get(arrival.partition)
            if partition is None or not arrival.is_current():
                continue  # of a former assignment: it is read again
            if not partition.is_restored.is_set():
                await partition.is_restored.wait()
            if (
                partition.is_ours
                and arrival.is_current()
                and arrival.record.offset >= partition.position
            ):
                await self._handle(partition, arrival)
        for partition in self._partitions.values():
            partition.advance()
        self._make_room()

    async def _handle(self, partition: ControlPartition, arrival: ReceivedRecord) -> None:
        record = arrival.record
        alerts = partition.observe(record, self._clock.now_ms())
        partition.position = record.offset + 1
        partition.handled_ms = max(partition.handled_ms, record.timestamp_ms)
        waiting = UnacknowledgedRecord(arrival)
        partition.waiting.append(waiting)
        for alert in alerts:
            if partition.is_outdated(alert, record.offset):
                self._telemetry.count("control_skipped", reason="compacted_since")
            else:
                await self._send(partition, alert, waiting)
        waiting.handled = True
        arrival.release()
        self._telemetry.count("control_records", partition=str(partition.number))
        if partition.is_ours:  # it may have gone while an agent was looked up
            self._report_lag(partition, record.timestamp_ms)

    async def _send(
        self,
        partition: ControlPartition,
        alert: Alert,
        waiting: UnacknowledgedRecord | None = None,
    ) -> None:
        """Give an alert to the queues of its rule's targets, if it is to be sent at all.

        `waiting` is the record that raised it, and must wait for it.
        """
        logged_ms = None if waiting is None else waiting.arrival.record.timestamp_ms
        targets = [name for name in alert.rule.targets if self._is_due(alert, name, logged_ms)]
        if not targets:
            reason = "no_time" if alert.time_ms is None else "old"
            self._telemetry.count("control_skipped", reason=reason)
            return
        is_agent_known = True
        if alert.who.agent_id is None:
            try:
                alert = alert.of(await self._ports.who_of(alert.session_id))
            except RetryError:
                is_agent_known = False  # a needless alert is better than a missing one
        if is_agent_known and not alert.rule.agents.fit(alert.who.agent_id):
            self._telemetry.count("control_skipped", reason="other_agent")
            return
        self._telemetry.count("control_alerts", kind=alert.kind)
        for name in targets:
            queued = self._queues[name].offer(alert, partition)
            if waiting is not None:
                waiting.alerts.append(queued)

    def _is_due(self, alert: Alert, name: str, logged_ms: int | None) -> bool:
        """Return whether an alert is young enough to be sent, or was and may still be retried.

        So an alert that its target did not take outlives the worker that tried to send it.
        """
        now_ms, max_age_ms = self._clock.now_ms(), self._plan.max_age_ms
        if logged_ms is None or alert.is_fresh(now_ms, max_age_ms):
            return alert.is_fresh(now_ms, max_age_ms)
        tried_ms = self._give_up_after_ms[name]
        return alert.is_fresh(logged_ms, max_age_ms) and now_ms - logged_ms <= tried_ms

    async def _restore(self, partition: ControlPartition) -> None:
        retry, log = RetryLoop(self._ports, "kafka"), self._ports.log
        try:
            count = await retry.run(partition.restore, log, self._topic, self._clock)
        except RetryError:
            return  # the worker stops, and this has only given up waiting
        except Exception as error:  # noqa: BLE001 -- `run` raises it
            if self._failed is not None and not self._failed.done():
                self._failed.set_exception(error)
            return
        partition.is_restored.set()
        if partition.is_ours:
            self._ports.health.partition(partition.number, "running")
            logger.info("read back", partition=partition.number, records=count)

    async def _look(self) -> None:
        """Raise the alerts of silent attempts, and report the lags, each second."""
        while not self._stop.is_set():
            await sleep_until(self._clock, self._stop, _LOOK_EVERY_S)
            now_ms = self._clock.now_ms()
            for partition in list(self._partitions.values()):
                if not partition.is_ours or not partition.is_restored.is_set():
                    continue  # it may have gone while another's agent was looked up
                behind = self._report_lag(partition)
                # A sign of life may be among what is not handled yet: then silence is known of up
                # to the last record that is.
                until_ms = now_ms if behind == 0 else min(now_ms, partition.handled_ms)
                for alert in partition.watch.due(until_ms):
                    await self._send(partition, alert)
                partition.watch.forget(now_ms - self._plan.max_age_ms)

    async def _store(self) -> None:
        """Store what the memory could not, in a task of its own: it may hang for seconds."""
        while not self._stop.is_set():
            await sleep_until(self._clock, self._stop, _LOOK_EVERY_S)
            await self._memory.store_rest()

    def _report_lag(self, partition: ControlPartition, last_ms: int | None = None) -> int | None:
        """Report a partition's lag; return how many offsets it is behind, if that is known."""
        behind, position = self._ports.stream.behind(partition.number), partition.position
        ends = None if behind is None else Ends(position + behind, position + behind)
        partition.lag.report(position, ends, last_ms)
        return behind

    def _make_room(self) -> None:
        """Give up the alerts that most records wait behind, where these are too many."""
        waiting = [part for part in self._partitions.values() if part.waiting]
        while sum(len(part.waiting) for part in waiting) > MOST_WAITING:
            longest = max(waiting, key=lambda part: len(part.waiting))
            for alert in longest.waiting[0].alerts:
                self._queues[alert.target].abandon(alert, "too many records wait behind it")
            longest.advance()


async def _first_failure(awaited: asyncio.Future[Any], *others: asyncio.Future[Any]) -> None:
    """Wait for what is wanted, or for one of the others to fail."""
    await asyncio.wait({awaited, *others}, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        if other.done():
            awaited.cancel()
            other.result()
    await awaited
