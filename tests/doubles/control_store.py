"""The twin in memory of the control plane's store."""

from collections.abc import Mapping

from schemas.commands import ControlView


class MemoryControlStore:
    """Keeps the views of sessions, and how far and when each partition was reported."""

    def __init__(self) -> None:
        self._views: dict[str, ControlView] = {}
        self._reports: dict[int, tuple[int, int]] = {}

    async def start(self) -> None:
        """Do nothing: there is no connection to open."""

    async def stop(self) -> None:
        """Do nothing: there is no connection to close."""

    async def control_view(self, session_id: str) -> ControlView | None:
        return self._views.get(session_id)

    async def control_seen_ms(self, partition: int) -> int | None:
        report = self._reports.get(partition)
        return None if report is None else report[1]

    async def put(
        self, partition: int, views: Mapping[str, ControlView], position: int, now_ms: int
    ) -> None:
        stored = self._reports.get(partition)
        if stored is not None and stored[0] > position:
            return
        self._reports[partition] = (position, now_ms)
        self._views.update(views)
