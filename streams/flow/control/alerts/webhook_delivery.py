"""Delivery of alerts: a queue for each target, so that a dead one delays no other.

An alert is done with when its target took it, when the target refused it for good, or when it was
given up: after the target's time for that, where the queue is full, or where too many records wait
behind it. Each of the latter is logged and counted. Calls of a target are made one after the other,
in the order of the alerts; one that failed several times lets the others go first.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from contextgauge.backoff import first_of
from streams.core.alerts.alert import Alert
from streams.core.alerts.rules import Target
from streams.flow.common.ports import WorkerPorts
from streams.flow.control.alerts.sent_alerts import SentAlerts
from streams.flow.control.alerts.webhook_bodies import body_of
from streams.flow.control.control_loop import AssignedPartition, PendingRecord
from streams.ports import Webhook

MOST_QUEUED: Final = 1_000
"""For one target: far more than a person reads, and some megabytes."""

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 300.0
_GROWTH: Final = 2.0
_TRIES_IN_TURN: Final = 5
"""Then others go first: the target may fail at this one alert only."""
_JITTER: Final = 0.5
"""A pause is at least this share of its length: workers do not retry in step."""

logger = structlog.get_logger()


@dataclass(slots=True, eq=False)
class QueuedAlert:
    """An alert of a partition, for one target; `pending` is the record that waits for it."""

    alert: Alert
    target: str
    partition: AssignedPartition
    pending: PendingRecord | None
    deadline_s: float
    pause_s: float
    tries: int = 0
    is_done: bool = False
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.pending is not None:
            self.pending.hold()

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
            self.hurry.set()
            if self.pending is not None:
                self.pending.done()


class TargetQueue:
    """The alerts for one target, and the task that sends them."""

    def __init__(
        self,
        target: Target,
        webhook: Webhook,
        memory: SentAlerts,
        ports: WorkerPorts,
        dice: random.Random,
        link_of: Callable[[str], str | None],
    ) -> None:
        self._target, self._webhook, self._memory = target, webhook, memory
        self.give_up_after_ms = target.give_up_after_ms
        self._telemetry, self._clock, self._stop = ports.telemetry, ports.clock, ports.stop
        self._dice, self._link_of = dice, link_of
        self._queue: deque[QueuedAlert] = deque()
        self._has_come = asyncio.Event()
        # Initialised with 0: the first event of a new series would not show as an increase.
        for outcome in ("delivered", "failed", "given_up"):
            self._count(outcome, 0)
        self._report_length()

    def offer(
        self, alert: Alert, partition: AssignedPartition, pending: PendingRecord | None
    ) -> None:
        """Queue a partition's alert; where the queue is full, it is given up at once."""
        if not partition.is_ours:
            return  # it went while its agent was looked up
        deadline_s = self._clock.monotonic_s() + self.give_up_after_ms / 1_000
        delivery = QueuedAlert(
            alert, self._target.name, partition, pending, deadline_s, _FIRST_PAUSE_S
        )
        if len(self._queue) >= MOST_QUEUED:
            self.abandon(delivery, "the queue of its target is full")
            return
        self._queue.append(delivery)
        self._has_come.set()
        self._report_length()

    def abandon_alerts_of(self, pending: PendingRecord) -> None:
        """Give up the alerts that a record waits for."""
        for delivery in [queued for queued in self._queue if queued.pending is pending]:
            self.abandon(delivery, "too many records wait behind it")

    def abandon(self, delivery: QueuedAlert, why: str) -> None:
        """Give an alert up before its time."""
        if delivery.is_done:
            return
        self._count("given_up")
        logger.error(
            "alert given up",
            alert=delivery.alert.id,
            rule=delivery.alert.rule.name,
            target=self._target.name,
            reason=why,
        )
        delivery.finish()
        self._remove(delivery)

    def drop_unwanted(self) -> None:
        """Drop alerts that are another worker's now."""
        for delivery in [queued for queued in self._queue if not queued.partition.is_ours]:
            delivery.hurry.set()
            self._queue.remove(delivery)
        self._report_length()

    def _remove(self, delivery: QueuedAlert) -> None:
        if delivery in self._queue:
            self._queue.remove(delivery)
        self._report_length()

    def _report_length(self) -> None:
        """Report how many alerts wait."""
        waiting = sum(not delivery.is_done for delivery in self._queue)
        self._telemetry.gauge("control_queued_alerts", waiting, target=self._target.name)

    async def run(self) -> None:
        """Send alerts until stopped; a call that is under way then is completed."""
        while not self._stop.is_set():
            if not self._queue:
                self._has_come.clear()
                await first_of(self._has_come.wait(), self._stop.wait())
                continue
            delivery = self._queue[0]
            if delivery.is_live():
                await self._send(delivery)
                if self._stop.is_set() and not delivery.is_done:
                    return
                if delivery.is_live():
                    self._queue.append(self._queue.popleft())  # others have their turn
                    continue
            self._remove(delivery)

    async def _send(self, delivery: QueuedAlert) -> None:
        """Send one alert until it is done, is another worker's, or the worker stops."""
        if await self._memory.knows(delivery.key):
            self._telemetry.count("control_skipped", reason="sent_before")
            delivery.finish()
            return
        try:
            link = self._link_of(delivery.alert.session_id)
            body = body_of(delivery.alert, self._target.format, link)
        except Exception as error:  # noqa: BLE001 -- an alert that cannot be written holds up no other
            await self._memory.remember(delivery.key)
            self.abandon(delivery, f"it cannot be written ({type(error).__name__})")
            return
        began_s = self._clock.monotonic_s()
        while delivery.is_live():
            answer = await self._webhook.call(delivery.alert.id, body)
            if answer.outcome == "delivered":
                await self._memory.remember(delivery.key)
                self._count("delivered")
                took_s = self._clock.monotonic_s() - began_s
                self._telemetry.observe("control_delivery_seconds", took_s)
                logger.info(
                    "alert sent",
                    alert=delivery.alert.id,
                    rule=delivery.alert.rule.name,
                    target=self._target.name,
                )
                delivery.finish()
                return
            left_s = delivery.deadline_s - self._clock.monotonic_s()
            if answer.outcome == "refused" or left_s <= 0:
                await self._memory.remember(delivery.key)
                self.abandon(delivery, answer.reason)
                return
            self._count("failed")
            asked_s = answer.retry_after_s or 0.0
            jittered_s = delivery.pause_s * self._dice.uniform(_JITTER, 1.0)
            wait_s = min(max(asked_s, jittered_s), left_s)
            logger.warning(
                "alert not sent: trying again",
                target=self._target.name,
                rule=delivery.alert.rule.name,
                reason=answer.reason,
                pause_s=round(wait_s, 1),
            )
            delivery.pause_s = min(delivery.pause_s * _GROWTH, _LONGEST_PAUSE_S)
            delivery.tries += 1
            pause = self._clock.sleep(wait_s)
            await first_of(pause, delivery.hurry.wait(), self._stop.wait())
            if self._stop.is_set():
                return
            if delivery.tries % _TRIES_IN_TURN == 0 and len(self._queue) > 1:
                return

    def _count(self, outcome: str, amount: int = 1) -> None:
        target = self._target.name
        self._telemetry.count("control_deliveries", amount, target=target, outcome=outcome)
