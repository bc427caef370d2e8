"""Time, passed in."""

from typing import Protocol


class Clock(Protocol):
    """Time, passed in: the flows' only source of it."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""

    def monotonic_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
