"""What leaves for a backend of OpenTelemetry: events, which wait to be accepted, and figures."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

Attribute: TypeAlias = str | bool | int | float

Severity: TypeAlias = Literal["info", "warn", "error"]


class OutgoingEvent(NamedTuple):
    """One event. `time_ms` is its own time where that is known, `observed_ms` that of Kafka."""

    name: str
    severity: Severity
    time_ms: int | None
    observed_ms: int
    attributes: Mapping[str, Attribute]


class Figure(NamedTuple):
    """One value for an instrument, by its name; attributes are of closed sets."""

    instrument: str
    value: float
    attributes: Mapping[str, Attribute]


class TelemetryBackend(Protocol):
    """Where events and figures go."""

    async def send(self, events: Sequence[OutgoingEvent]) -> int:
        """Send events once; return how many the backend says that it rejected for good.

        Raises RetryError where it has not accepted them, with the reason, which has no secret.
        """

    def record(self, figures: Sequence[Figure]) -> None:
        """Add figures to what is sent from time to time; never raises, never waits."""

    async def stop(self) -> None:
        """Send the figures a last time, and close the connections."""
