"""Queues the messages of requests for the broker, and waits until it has acknowledged them."""

import asyncio
from collections.abc import Sequence
from typing import Final

from contextgauge.delivery.acknowledgement import Acknowledgement
from contextgauge.delivery.outgoing import OutgoingMessage
from contextgauge.delivery.queue import SendQueue
from contextgauge.delivery.sender import DeliveryConfig, QueueSender, Report
from contextgauge.errors import RecordError, RetryError
from contextgauge.ports import Clock, Cluster

ANSWER_S: Final = 10.0
"""A broker acknowledges in milliseconds; one that restarts is back within some seconds."""

_CLOSE_S: Final = 5.0
"""For what still waits at the end. What is not sent by then was not answered with 202."""


class NoRoomError(Exception):
    """Too much waits for the broker."""


class Intake:
    """Sends messages in the order in which they come, and says when the broker has them."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        config: DeliveryConfig,
        report: Report,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._cluster, self._answer_s = cluster, answer_s
        self._queue = SendQueue(config.when_full, config.max_messages, config.max_bytes)
        self._sender = QueueSender(cluster, clock, self._queue, config, report)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect and to send, in the background."""
        self._task = asyncio.create_task(self._sender.run(), name="intake")

    async def stop(self) -> None:
        """Send what waits, for some seconds at most, and close the connection."""
        if self._task is None:
            return
        self._queue.close()
        self._sender.hurry()
        await asyncio.wait([self._task], timeout=_CLOSE_S)
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._cluster.stop()

    @property
    def is_connected(self) -> bool:
        """Whether the broker answers."""
        return self._sender.sent.connected.is_set()

    @property
    def waiting_bytes(self) -> int:
        """How much waits for the broker, and what it has not acknowledged yet."""
        return self._queue.bytes + sum(len(item.value) for item in self._sender.held)

    async def publish(self, messages: Sequence[OutgoingMessage]) -> None:
        """Publish messages that are ready; returns once the broker has acknowledged each.

        Raises NoRoomError and takes none; RetryError where the broker does not answer, after which
        those that were taken may still be sent; RecordError where it refuses some of them.
        """
        if not messages:
            return
        if not self.is_connected:
            raise RetryError("no connection to Kafka")
        acknowledgement = Acknowledgement(len(messages))
        if not self._queue.put_all(
            [item._replace(acknowledgement=acknowledgement) for item in messages]
        ):
            raise NoRoomError
        try:
            async with asyncio.timeout(self._answer_s):
                await acknowledgement.wait()
        except TimeoutError:
            raise RetryError(
                f"Kafka did not acknowledge {len(messages):,} messages in {self._answer_s:g} s"
            ) from None
        if acknowledgement.refused:
            raise RecordError(acknowledgement.refused[0].detail)
