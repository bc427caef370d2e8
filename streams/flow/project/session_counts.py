"""The figures of the sessions at work, taken from the views of the partitions that a worker has."""

from collections.abc import Callable, Collection
from typing import Final

from contextgauge.errors import RetryError, VersionError
from schemas.views import SessionView
from streams.codec import views as view_codec
from streams.core.session_status import AT_WORK_MS, BANDS, session_figures
from streams.ports import Clock, GaugeName, Telemetry, ViewReader

EVERY_S: Final = 15.0
"""As often as Prometheus asks, as a rule."""

_MOST_SESSIONS: Final = 2_000
"""Of a partition, the latest: to read and decode them takes some tenths of a second of CPU."""

_PAGE: Final = 100
"""Sessions read at a time: the worker's event loop is held up by none for long."""

_GAUGES: Final[tuple[GaugeName, ...]] = (
    "project_open_attempts",
    "project_silent_attempt_seconds",
    "project_thrashing_sessions",
)


class SessionGauges:
    """Tells the figures of each partition, as long as it is asked to."""

    def __init__(self, reader: ViewReader, telemetry: Telemetry, clock: Clock) -> None:
        self._reader, self._telemetry, self._clock = reader, telemetry, clock
        self._told: set[int] = set()

    async def run(
        self, partitions: Callable[[], Collection[int]], generation: Callable[[], int | None]
    ) -> None:
        """Tell the figures of these partitions, again and again, until cancelled."""
        try:
            while True:
                active, wanted = generation(), set(partitions())
                self._forget(self._told if active is None else self._told - wanted)
                for partition in sorted(wanted) if active is not None else ():
                    try:
                        await self._tell(active or 0, partition)
                    except (RetryError, VersionError):
                        # Whoever writes to the store finds that too, and says so. What was so
                        # before may not be so any more.
                        self._forget(set(self._told))
                        break
                await self._clock.sleep(EVERY_S)
        finally:
            self._forget(set(self._told))

    async def _tell(self, generation: int, partition: int) -> None:
        now_ms = self._clock.now_ms()
        ranked = await self._reader.ranked(generation, partition, "recent", _MOST_SESSIONS)
        names = [name for name, last_ms in ranked if last_ms >= now_ms - AT_WORK_MS]
        views = []
        for first in range(0, len(names), _PAGE):
            page = names[first : first + _PAGE]
            documents = await self._reader.views(generation, partition, page)
            views += [view_codec.decode(SessionView, found) for found in documents if found]
        figures = session_figures(views, now_ms)
        label = str(partition)
        for band, count in figures.bands.items():
            self._telemetry.gauge("project_sessions", count, partition=label, band=band)
        gauge = self._telemetry.gauge
        gauge("project_open_attempts", figures.attempts, partition=label)
        gauge("project_silent_attempt_seconds", figures.silent_ms / 1_000, partition=label)
        gauge("project_thrashing_sessions", figures.thrashing, partition=label)
        self._told.add(partition)

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            label = str(partition)
            for band in BANDS:
                self._telemetry.forget("project_sessions", partition=label, band=band)
            for name in _GAUGES:
                self._telemetry.forget(name, partition=label)
        self._told -= partitions
