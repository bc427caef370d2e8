"""The system's clock, as the flows' only source of time."""

import time


class SystemClock:
    """The clock of the operating system."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go back, from any start."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio  # noqa: PLC0415 -- commands that read files do not wait

        await asyncio.sleep(seconds)
