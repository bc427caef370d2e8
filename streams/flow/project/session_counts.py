"""Counts of the sessions at work, for alarms and dashboards: no names, only how many.

Only sessions at work are counted: one that was left yesterday at 95 % does not matter, and its
attempt that never ended does not hang now. What a session looks like is decided in
`streams/core/session_status.py`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from contextgauge.errors import RetryError, VersionError
from schemas.views import SessionView
from streams.codec import view_codec
from streams.core.session_status import (
    AT_WORK_MS,
    BANDS,
    Band,
    band_of,
    leading_chain,
    status_of,
)
from streams.ports import Clock, Telemetry, ViewReader

EVERY_S: Final = 15.0
"""As often as Prometheus asks, as a rule."""

_MOST_SESSIONS: Final = 2_000
"""Of a partition, the latest: to read and decode them takes some tenths of a second of CPU."""

_PAGE: Final = 100
"""Sessions read at a time: the worker's event loop is held up by none for long."""


@dataclass(slots=True)
class SessionCounts:
    """The sessions at work. `bands` counts them by how full their leading chain is.

    `attempts` are open compaction attempts, `silent_ms` is for how long the quietest of them has
    given no sign; `thrashing` sessions are compacted again and again.
    """

    bands: dict[Band, int] = field(default_factory=lambda: dict.fromkeys(BANDS, 0))
    attempts: int = 0
    silent_ms: int = 0
    thrashing: int = 0

    def gauges(self) -> Iterator[tuple[str, float, dict[str, str]]]:
        """Yield each figure under its metric's name, with its labels."""
        for band, count in self.bands.items():
            yield "project_sessions", count, {"band": band}
        yield "project_open_attempts", self.attempts, {}
        yield "project_silent_attempt_seconds", self.silent_ms / 1_000, {}
        yield "project_thrashing_sessions", self.thrashing, {}


def session_counts(views: Iterable[SessionView], now_ms: int) -> SessionCounts:
    """Count the sessions that are at work."""
    counts = SessionCounts()
    for view in views:
        if view.last_ms is None or now_ms - view.last_ms > AT_WORK_MS:
            continue
        status = status_of(view)
        counts.bands[band_of(leading_chain(view))] += 1
        counts.attempts += view.attempt is not None
        counts.silent_ms = max(counts.silent_ms, status.silent_ms(now_ms) or 0)
        counts.thrashing += status.is_thrashing(now_ms)
    return counts


class SessionGauges:
    """Reports the counts of each partition until it is cancelled."""

    def __init__(self, reader: ViewReader, telemetry: Telemetry, clock: Clock) -> None:
        self._reader, self._telemetry, self._clock = reader, telemetry, clock
        self._reported: set[int] = set()

    async def run(
        self, partitions: Callable[[], Collection[int]], generation: Callable[[], int | None]
    ) -> None:
        """Report the counts of these partitions over and over, until cancelled."""
        try:
            while True:
                active, assigned = generation(), set(partitions())
                self._forget(self._reported if active is None else self._reported - assigned)
                for partition in sorted(assigned) if active is not None else ():
                    try:
                        await self._report(active or 0, partition)
                    except (RetryError, VersionError):
                        # The partition's task meets the same error and reports it. The former
                        # counts may no longer hold.
                        self._forget(set(self._reported))
                        break
                await self._clock.sleep(EVERY_S)
        finally:
            self._forget(set(self._reported))

    async def _report(self, generation: int, partition: int) -> None:
        now_ms = self._clock.now_ms()
        ranked = await self._reader.ranked(generation, partition, "recent", _MOST_SESSIONS)
        names = [name for name, last_ms in ranked if last_ms >= now_ms - AT_WORK_MS]
        views = []
        for first in range(0, len(names), _PAGE):
            page = names[first : first + _PAGE]
            documents = await self._reader.views(generation, partition, page)
            views += [
                view_codec.decode(SessionView, document)
                for document in documents
                if document is not None
            ]
        for name, value, labels in session_counts(views, now_ms).gauges():
            self._telemetry.gauge(name, value, partition=str(partition), **labels)
        self._reported.add(partition)

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            for name, _, labels in SessionCounts().gauges():
                self._telemetry.forget(name, partition=str(partition), **labels)
        self._reported -= partitions
