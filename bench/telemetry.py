"""Telemetry that keeps nothing, for what a benchmark measures without it."""


class NoTelemetry:
    """Keeps nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Keep nothing."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Keep nothing."""

    def forget(self, name: str, **labels: str) -> None:
        """Keep nothing."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Keep nothing."""
