"""The publisher of a run: the product's own, over a file that grows, with a position that is kept.

It settles lines once they are acknowledged; started again it goes on from there, so some lines are
published twice (R4) and none is left out.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from contextgauge.containers import Line
from schemas.messages import DeadLetter
from schemas.topics import AGENT_MESSAGES
from streams.flow.publish.follow import publish_pieces
from streams.flow.publish.publish import LinePublisher, PublishConfig, PublishCounts
from streams.ports import LineBatch
from tests.simulation.inputs import Message

_PIECE_LINES = 3
_LOOK_S = 0.3
"""How often it looks whether the file has grown."""


class PublishedFile:
    """Messages as lines of a file: so many are written, and so many are settled."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._lines = [
            Line(
                "file",
                number,
                message.record.value or b"",
                len(message.record.value or b""),
                (message.record.key or b"").decode(),
            )
            for number, message in enumerate(messages)
        ]
        self.written = self.settled = 0

    async def pieces(self) -> AsyncIterator[LineBatch]:
        """Yield what is written, from the settled position on, as it comes."""
        position = self.settled
        while True:
            lines = self._lines[position : min(position + _PIECE_LINES, self.written)]
            if lines:
                position += len(lines)
                yield LineBatch(lines, live=False, settle=partial(self._settle, position))
            else:
                yield LineBatch((), live=False)
                await asyncio.sleep(_LOOK_S)

    def _settle(self, position: int) -> None:
        self.settled = position


async def run_publisher(
    file: PublishedFile, log: Any, clock: Any, partitions: int, refuse: Callable[[str], None]
) -> None:
    """Publish a file for ever. Raises RetryError where the broker is away for long."""
    producer = log.producer()
    await producer.start()
    config = PublishConfig(topic=AGENT_MESSAGES.name, partitions=partitions)

    def refused(line: Line, dead: DeadLetter) -> None:
        refuse(f"line {line.number} is refused: {dead.reason}")

    sender = LinePublisher(producer, config, refused)
    await publish_pieces(sender, file.pieces(), clock, _show_nothing)


def _show_nothing(_counts: PublishCounts) -> None:
    """Show no progress."""
