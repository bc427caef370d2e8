"""What the control plane knows, as a test says."""

from collections.abc import Mapping

from contextgauge.errors import RetryError
from schemas.commands import ControlView


class KeptControl:
    """A `ControlReader` of given views; every partition's owner reported at `seen_ms`."""

    def __init__(self, views: Mapping[str, ControlView] = {}, seen_ms: int | None = None) -> None:
        self.views, self.seen_ms = dict(views), seen_ms
        self.is_away = False

    async def start(self) -> None:
        """Nothing to connect to."""

    async def stop(self) -> None:
        """Nothing to close."""

    async def control_view(self, session_id: str) -> ControlView | None:
        """Return a session's view."""
        if self.is_away:
            raise RetryError("the store is away")
        return self.views.get(session_id)

    async def control_seen_ms(self, partition: int) -> int | None:  # noqa: ARG002 -- all alike
        """Return when the owner reported."""
        return self.seen_ms
