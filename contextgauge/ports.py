"""What the library needs of the outside world: a clock, and a Kafka cluster to publish to."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""Names and values. A value may be null: contextgauge writes none, other producers do."""


class Clock(Protocol):
    """Time, passed in: the only source of it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""

    def monotonic_s(self) -> float:
        """Seconds that never go back, from any start."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class NewRecord(NamedTuple):
    """One record to append. A `value` of None is a tombstone.

    `timestamp_ms` is its CreateTime; None, as for all that is new: the producer's clock.
    """

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Producer(Protocol):
    """An idempotent producer for publishing, in order within a partition."""

    async def start(self) -> None:
        """Connect. Raises RetryError or ConfigError."""

    async def send(self, record: NewRecord) -> None:
        """Queue a record; waits while the buffer is full (back-pressure)."""

    async def flush(self) -> None:
        """Wait until all queued records are acknowledged; raises what failed.

        RecordError: the broker does not take one of the records; the producer is spent then.
        """

    async def stop(self) -> None:
        """Close. What was not flushed is dropped."""


class Cluster(Protocol):
    """A broker to publish to."""

    async def start(self) -> None:
        """Connect. Raises RetryError where no broker answers."""

    async def stop(self) -> None:
        """Close the connection."""

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        """Return each topic's number of partitions, None where the topic is missing."""

    def producer(self) -> Producer:
        """Make a producer, not connected yet."""
