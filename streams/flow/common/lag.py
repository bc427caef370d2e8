"""How far behind a partition is, in offsets and in seconds."""

from streams.flow.common.ports import WorkerPorts


class Lag:
    """Reports one partition's lag under the metric names of its worker."""

    def __init__(self, ports: WorkerPorts, partition: int, offsets: str, seconds: str) -> None:
        self._telemetry, self._clock = ports.telemetry, ports.clock
        self._label = str(partition)
        self._offsets, self._seconds = offsets, seconds
        self._done_ms: int | None = None
        """All that was written before this time is processed."""

    def report(self, position: int, end: int | None, last_ms: int | None = None) -> int:
        """Report the lag of a position, where the end is known; return it in milliseconds.

        `last_ms` is the Kafka timestamp of the record processed last; None where there was none.
        """
        if last_ms is not None:
            self._done_ms = max(self._done_ms or 0, last_ms)
        if end is None:
            return 0
        behind = max(end - position, 0)
        self._telemetry.gauge(self._offsets, behind, partition=self._label)
        now_ms = self._clock.now_ms()
        if self._done_ms is None or not behind:
            # Caught up: what comes now is no older, even if the last record is of yesterday.
            # Where nothing was processed yet, the lag counts from the first look.
            self._done_ms = now_ms
        age_ms = max(now_ms - self._done_ms, 0) if behind else 0
        self._telemetry.gauge(self._seconds, age_ms / 1_000, partition=self._label)
        return age_ms

    def forget(self) -> None:
        """Stop reporting: the partition is another worker's."""
        for name in (self._offsets, self._seconds):
            self._telemetry.forget(name, partition=self._label)
