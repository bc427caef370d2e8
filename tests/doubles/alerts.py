"""The memory of sent alerts without a store."""

from contextgauge.errors import RetryError


class MemoryAlertMemory:
    """Remembers in this process; `is_away` makes every call fail as an unreachable store does.

    `error` is what it fails with.
    """

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.is_away = False
        self.error = RetryError("the memory of alerts is away")

    async def start(self) -> None:
        """Do nothing."""

    async def knows(self, key: str) -> bool:
        """Look the key up."""
        self._check()
        return key in self.keys

    async def remember(self, key: str) -> None:
        """Add the key."""
        self._check()
        self.keys.add(key)

    async def stop(self) -> None:
        """Do nothing."""

    def _check(self) -> None:
        if self.is_away:
            raise self.error
