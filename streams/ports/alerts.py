"""The control plane: records that are acknowledged one by one, webhooks, and what was sent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from streams.ports.log import LogRecord


class WebhookResult(NamedTuple):
    """What came of one call of a webhook.

    `again`: it may work later, after `retry_after_s` where the receiver asked for a pause;
    `refused`: the same call would be refused for ever. `said` is for the log: never a part of the
    address, and nothing that the receiver wrote.
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
    """Which alerts were dealt with, kept for longer than any of them is news.

    Keys are texts of at most 200 characters. What is remembered is there after a crash.
    """

    async def start(self) -> None: ...

    async def knows(self, key: str) -> bool:
        """Tell whether a key was remembered. Raises RetryError while the store is away."""

    async def remember(self, key: str) -> None:
        """Remember a key. Raises RetryError while the store is away."""

    async def stop(self) -> None: ...


class ReceivedRecord(Protocol):
    """A record that came, and has to be acknowledged: in the order of its partition."""

    @property
    def partition(self) -> int: ...

    @property
    def record(self) -> LogRecord: ...

    def is_current(self) -> bool:
        """Tell whether it is of the present assignment: else whoever has the partition reads it."""

    def release(self) -> None:
        """Let go of the record's bytes: only `acknowledge` is called from now on."""

    def acknowledge(self) -> None:
        """Have it not come again, nor those before it.

        Nothing, where the partition was given away since.
        """


class RecordHandler(Protocol):
    """What is done with the records of a stream, all in one task."""

    def assigned(self, positions: Mapping[int, int]) -> None:
        """Take over partitions, these and no others, each to be read from its position."""

    def revoked(self) -> None:
        """Let go of all partitions."""

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        """Handle records, in order within a partition; what it raises ends the stream."""


class RecordStream(Protocol):
    """Reads a topic as a member of a group, `read_committed`.

    A partition begins at what was acknowledged last, where that is no longer ago than alerts are
    tried for; where nothing was acknowledged, at the first record that may alert somebody.
    """

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        """Hand over what comes until `stop` is set.

        What was acknowledged by then is committed at the end. Raises what the handler raised:
        nothing is acknowledged because of it; and RetryError or a StopError where the broker fails.
        """

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet; None while that is not known."""
