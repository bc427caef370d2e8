"""How far behind a partition is, in offsets and in seconds."""

from streams.ports import Clock, GaugeName, Telemetry


class Lag:
    """Tells of one partition's lag, under the names that its worker has for it."""

    def __init__(
        self,
        telemetry: Telemetry,
        clock: Clock,
        partition: int,
        offsets: GaugeName,
        seconds: GaugeName,
    ) -> None:
        self._telemetry, self._clock = telemetry, clock
        self._label = str(partition)
        self._offsets, self._seconds = offsets, seconds
        self._done_ms: int | None = None
        """All that was written before is done."""

    def tell(self, position: int, end: int | None, last_ms: int | None = None) -> int:
        """Tell the lag of a position, where the end is known; return it in milliseconds.

        `last_ms` is the Kafka timestamp of what was just done; None where there was nothing.
        """
        if last_ms is not None:
            self._done_ms = max(self._done_ms or 0, last_ms)
        if end is None:
            return 0
        behind = max(end - position, 0)
        self._telemetry.gauge(self._offsets, behind, partition=self._label)
        now_ms = self._clock.now_ms()
        if self._done_ms is None or not behind:
            # Whatever comes from now on is no older, though the last message may be of yesterday.
            # Where nothing was done yet, it is behind for as long as it is seen to be, or longer.
            self._done_ms = now_ms
        age_ms = max(now_ms - self._done_ms, 0) if behind else 0
        self._telemetry.gauge(self._seconds, age_ms / 1_000, partition=self._label)
        return age_ms

    def forget(self) -> None:
        """Tell nothing of it any more: it is another worker's."""
        for name in (self._offsets, self._seconds):
            self._telemetry.forget(name, partition=self._label)
