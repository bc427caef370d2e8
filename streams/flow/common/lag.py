"""How far behind a partition is, in offsets and in seconds, and whether it waits for a producer."""

from typing import Final

import structlog

from streams.flow.common.ports import WorkerPorts
from streams.ports import Ends

HELD_S: Final = 30.0
"""Our own transactions take milliseconds; one of a worker that died ends after its timeout, 10 s by
default, and Kafka looks for such every 10 s."""

logger = structlog.get_logger()


class Lag:
    """Reports one partition's lag under the metric names of its worker."""

    def __init__(self, ports: WorkerPorts, partition: int, offsets: str, seconds: str) -> None:
        self._telemetry, self._clock = ports.telemetry, ports.clock
        self._label = str(partition)
        self._offsets, self._seconds = offsets, seconds
        self._done_ms: int | None = None
        """All that was written before this time is processed."""
        self._partition = partition
        self._held_at = -1
        """The offset that all else waits behind, and since when it is that one."""
        self._held_since_s = 0.0
        self._is_held = False

    def report(self, position: int, ends: Ends | None, last_ms: int | None = None) -> int:
        """Report the lag of a position, where the end is known; return it in milliseconds.

        `last_ms` is the Kafka timestamp of the record processed last; None where there was none.
        """
        if last_ms is not None:
            self._done_ms = max(self._done_ms or 0, last_ms)
        if ends is None:
            return 0
        self._watch(position, ends)
        behind = max(ends.high - position, 0)
        self._telemetry.gauge(self._offsets, behind, partition=self._label)
        now_ms = self._clock.now_ms()
        if self._done_ms is None or not behind:
            # Caught up: what comes now is no older, even if the last record is of yesterday.
            # Where nothing was processed yet, the lag counts from the first look.
            self._done_ms = now_ms
        age_ms = max(now_ms - self._done_ms, 0) if behind else 0
        self._telemetry.gauge(self._seconds, age_ms / 1_000, partition=self._label)
        return age_ms

    def _watch(self, position: int, ends: Ends) -> None:
        """Log once that all that is left waits behind an open transaction, and once its end."""
        now_s = self._clock.monotonic_s()
        waits = position >= ends.stable and ends.high > ends.stable
        if not waits or ends.stable != self._held_at:
            if self._is_held:
                logger.info("the open transaction has ended", partition=self._partition)
            self._held_at, self._held_since_s = ends.stable if waits else -1, now_s
            self._is_held = False
        elif not self._is_held and now_s - self._held_since_s >= HELD_S:
            self._is_held = True
            logger.warning(
                "waiting behind an open transaction",
                see="`contextgauge doctor` names its producer",
                partition=self._partition,
                offset=ends.stable,
                waiting=ends.high - ends.stable,
            )

    def forget(self) -> None:
        """Stop reporting: the partition is another worker's."""
        for name in (self._offsets, self._seconds):
            self._telemetry.forget(name, partition=self._label)
