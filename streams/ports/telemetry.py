"""What a running worker reports: metrics under names of a closed catalog."""

from typing import Protocol


class Telemetry(Protocol):
    """Figures of a running worker, under names of a closed catalog.

    `edge/telemetry/metric_catalog.py` defines each name's meaning and labels; a test compares the
    names in the code with it.
    """

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""

    def forget(self, name: str, **labels: str) -> None:
        """Drop a gauge that is no longer this worker's, as of a revoked partition."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""
