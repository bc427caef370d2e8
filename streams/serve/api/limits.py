"""Limits of what one reader may ask for: a token bucket each, refilled with time."""

from collections import OrderedDict
from typing import Final

from streams.ports import Clock

_BURST_S: Final = 10
"""Seconds' worth of requests at once: a page that opens asks for much, and then for little."""

_READERS: Final = 10_000
"""Buckets kept; the one used least recently is full again, or its owner one of very many."""


class Rates:
    """Requests of each reader, `per_s` on average; 0: any number."""

    def __init__(self, per_s: int, clock: Clock) -> None:
        self._per_s, self._clock = per_s, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, reader: str) -> float:
        """Take one request; return 0, or for how long the reader has to wait before it may."""
        if not self._per_s:
            return 0.0
        most, now_s = float(self._per_s * _BURST_S), self._clock.monotonic_s()
        left, at_s = self._buckets.pop(reader, (most, now_s))
        left = min(left + (now_s - at_s) * self._per_s, most)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._buckets[reader] = (left - 1 if left >= 1 else left, now_s)
        if len(self._buckets) > _READERS:
            self._buckets.popitem(last=False)
        return wait_s
