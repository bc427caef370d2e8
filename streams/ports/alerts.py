"""The control plane: records that are acknowledged one by one, webhooks, and what was sent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from streams.ports.log import LogRecord


class WebhookResult(NamedTuple):
    """The outcome of one call of a webhook.

    `retry`: it may work later, after `retry_after_s` where the receiver asked for a pause;
    `refused`: the same call would be refused for ever. `reason` is for the log: it contains
    no part of the address, and nothing that the receiver wrote.
    """

    outcome: Literal["delivered", "retry", "refused"]
    reason: str
    retry_after_s: float | None = None


class Webhook(Protocol):
    """One receiver of alerts."""

    async def call(self, alert_id: str, body: bytes) -> WebhookResult:
        """Send a body once, signed for this moment; never raises for what the receiver does."""

    async def stop(self) -> None: ...


class AlertMemory(Protocol):
    """Which alerts were handled, remembered for longer than they could be raised again.

    Keys are texts of at most 200 characters. What is remembered is there after a crash.
    """

    async def start(self) -> None: ...

    async def knows(self, key: str) -> bool:
        """Return whether a key was remembered. Raises RetryError while the store is away."""

    async def remember(self, key: str) -> None:
        """Remember a key. Raises RetryError while the store is away."""

    async def stop(self) -> None: ...


class ReceivedRecord(Protocol):
    """A record that has to be acknowledged, in the order of its partition."""

    @property
    def partition(self) -> int: ...

    @property
    def record(self) -> LogRecord: ...

    def is_current(self) -> bool:
        """Return whether its assignment is current; else the partition's next owner reads it."""

    def release(self) -> None:
        """Drop the record's bytes: only `acknowledge` is called from now on."""

    def acknowledge(self) -> None:
        """Mark it and all before it as handled; no effect after a revocation."""


class RecordHandler(Protocol):
    """Handles the records of a stream, all in one task."""

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Start on these partitions and no others, each read from its position."""

    def revoked(self) -> None:
        """Release all partitions."""

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Handle records, in order within a partition; what it raises ends the stream."""


class RecordStream(Protocol):
    """Reads a topic as a member of a group, `read_committed`.

    A partition begins at what was acknowledged last, where that is no longer ago than alerts are
    retried for; where nothing was acknowledged, at the first record that may raise an alert.
    """

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        """Hand records over until `stop` is set.

        What was acknowledged by then is committed at the end. Raises what the handler raised:
        nothing is acknowledged because of it; and RetryError or a StopError where the broker fails.
        """

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet; None while that is not known."""
