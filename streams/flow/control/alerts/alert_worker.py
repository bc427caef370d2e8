"""The alerts' worker: records of a stream in, alerts for targets out.

All runs in one event loop, so what one record does is done before the next is looked at. A queue
for each target sends.
"""

from typing import Final

from contextgauge.backoff import sleep_until
from streams.core.alerts.rules import AlertPlan
from streams.flow.common.together import together
from streams.flow.control.alerts.alert_partition import AlertPartition, ControlPorts
from streams.flow.control.alerts.sent_alerts import SentAlerts
from streams.flow.control.alerts.webhook_delivery import TargetQueue
from streams.flow.control.control_loop import AssignedPartition, ControlLoop

GROUP: Final = "contextgauge-control"
"""The consumer group of the alerts, behind the settings' prefix. Each role of `contextgauge
control` has one of its own: a process without alert rules takes no partition of one with them."""

MOST_WAITING: Final = 50_000
"""Records that may wait to be acknowledged behind alerts that are not sent yet, in all: some tens
of megabytes. Beyond, the oldest of these alerts is given up."""

_STORE_EVERY_S: Final = 1.0


class ControlWorker:
    """Handles the records of one stream by one plan."""

    def __init__(self, plan: AlertPlan, topic: str, ports: ControlPorts) -> None:
        self._plan, self._topic, self._ports = plan, topic, ports
        self._memory = SentAlerts(ports.memory, ports)
        self._queues = {
            target.name: TargetQueue(
                target, ports.webhooks[target.name], self._memory, ports, ports.dice, plan.link
            )
            for target in plan.targets
        }
        self.loop = ControlLoop("control", ports.stream, [self._opened], ports)

    async def run(self) -> None:
        """Run until stopped. Raises StopError, RetryError, or the error of any task."""
        await self.loop.run(self._send())

    def _opened(self, partition: AssignedPartition) -> AlertPartition:
        return AlertPartition(
            partition, self._plan, self._topic, self._ports, self._queues, self._make_room
        )

    async def _send(self) -> None:
        """Send until stopped; what is being sent then is acknowledged still, and so committed."""
        await together([self._store(), *(queue.run() for queue in self._queues.values())])
        await self._memory.store_rest(is_last_chance=True)

    async def _store(self) -> None:
        """Store what the memory could not, in a task of its own: it may hang for seconds."""
        while not self._ports.stop.is_set():
            await sleep_until(self._ports.clock, self._ports.stop, _STORE_EVERY_S)
            await self._memory.store_rest()

    def _make_room(self) -> None:
        """Give up the alerts that most records wait behind, where these are too many."""
        partitions = [each for each in self.loop.partitions.values() if each.pending]
        while sum(len(each.pending) for each in partitions) > MOST_WAITING:
            longest = max(partitions, key=lambda each: len(each.pending))
            oldest = longest.pending[0]
            for queue in self._queues.values():
                queue.abandon_alerts_of(oldest)
            if longest.pending and longest.pending[0] is oldest:
                return  # it is being handled
