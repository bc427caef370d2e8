"""What becomes of messages that someone waits for: acknowledged by the broker, or refused."""

import asyncio

from contextgauge.messages import DeadLetter


class Acknowledgement:
    """Of `count` messages, at least one: `wait` ends once the fate of each is known."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._settled = asyncio.Event()
        self.refused: list[DeadLetter] = []
        """Why the broker did not take some of them."""

    def settle(self, refused: DeadLetter | None = None) -> None:
        """Note the fate of one message: acknowledged, unless it was refused."""
        if refused is not None:
            self.refused.append(refused)
        self._left -= 1
        if self._left <= 0:
            self._settled.set()

    async def wait(self) -> None:
        """Wait until each message is acknowledged or refused."""
        await self._settled.wait()
