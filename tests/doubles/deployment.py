"""A store of whose keys those of a prefix are, without Redis."""

from contextgauge.errors import RetryError
from streams.ports.deployment import Deployment


class DeploymentNotes:
    """A store that is away for some calls first, and whose note a test may change."""

    def __init__(self, noted: Deployment | None = None, away: int = 0) -> None:
        self.deployment, self.away, self.claims = noted, away, 0

    async def claim(self, own: Deployment) -> Deployment:
        self.claims += 1
        if self.away:
            self.away -= 1
            raise RetryError("away")
        self.deployment = self.deployment or own
        return self.deployment

    async def replace(self, own: Deployment) -> None:
        self.deployment = own

    async def noted(self) -> Deployment | None:
        return self.deployment

    async def stop(self) -> None:
        """Hold nothing open."""
