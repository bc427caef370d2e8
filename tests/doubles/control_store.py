"""The twin in memory of the control plane's store."""

import time
from collections.abc import Mapping

from contextgauge.errors import RetryError
from schemas.commands import ControlView
from streams.ports.control import OWNED_MS


class MemoryControlStore:
    """Keeps the views of sessions, and how far and when each partition was reported."""

    def __init__(self, owned_ms: int = OWNED_MS) -> None:
        self._owned_s = owned_ms / 1_000
        self._views: dict[str, ControlView] = {}
        self._reports: dict[int, int] = {}
        self._offsets: dict[int, tuple[int, float]] = {}

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    async def control_view(self, session_id: str) -> ControlView | None:
        return self._views.get(session_id)

    async def control_seen_ms(self, partition: int) -> int | None:
        return self._reports.get(partition)

    async def put(
        self, partition: int, views: Mapping[str, ControlView], position: int, now_ms: int
    ) -> None:
        offset, until_s = self._offsets.get(partition, (-1, 0.0))
        if offset > position and time.monotonic() < until_s:
            raise RetryError(f"a later owner of partition {partition} has reported lately")
        self._offsets[partition] = (position, time.monotonic() + self._owned_s)
        self._reports[partition] = now_ms
        self._views.update(views)
