"""Pieces are settled once the broker has acknowledged them, and not before."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import RetryError
from schemas.messages import OBSERVED_HEADER, OBSERVED_LIVE
from streams.flow.publish.follow import in_thread, publish_pieces
from streams.flow.publish.publish import LinePublisher, PublishConfig
from streams.ports import LineBatch, NewRecord

CONFIG = PublishConfig(topic="t", partitions=1)


@dataclass
class Noted:
    """A producer that notes what is asked of it."""

    notes: list[str]
    records: list[NewRecord] = field(default_factory=list)
    is_away: bool = False

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, record: NewRecord) -> None:
        self.records.append(record)
        self.notes.append("sent")

    async def flush(self) -> None:
        if self.is_away:
            raise RetryError("away")
        self.notes.append("acknowledged")


def piece(notes: list[str], *, lines: int = 1, live: bool = False) -> LineBatch:
    value = b'{"type":"user","session_id":"s"}'
    read = [Line("f", n, value, len(value), None) for n in range(lines)]
    return LineBatch(read, live, lambda: notes.append("settled"))


async def of(pieces: Sequence[LineBatch]) -> AsyncIterator[LineBatch]:
    for each in pieces:
        yield each


async def run(
    producer: Noted, pieces: AsyncIterator[LineBatch], *, is_live: bool | None = None
) -> LinePublisher:
    sender = LinePublisher(producer, CONFIG, lambda *_: None)
    await publish_pieces(sender, pieces, SystemClock(), lambda _: None, is_live=is_live)
    return sender


async def test_pieces_are_settled_after_their_acknowledgement() -> None:
    notes: list[str] = []
    pieces = [piece(notes), piece(notes, lines=2), piece(notes, lines=0), piece(notes)]
    sender = await run(Noted(notes), of(pieces))
    assert notes == [
        *["sent", "sent", "sent", "acknowledged", "settled", "settled", "settled"],
        *["sent", "acknowledged", "settled"],
    ]
    assert sender.done.messages == 4


async def test_unacknowledged_pieces_are_not_settled() -> None:
    notes: list[str] = []
    with pytest.raises(RetryError):
        await run(Noted(notes, is_away=True), of([piece(notes), piece(notes, lines=0)]))
    assert "settled" not in notes


@pytest.mark.parametrize(
    ("chosen", "marks"), [(None, [False, True]), (True, [True, True]), (False, [False, False])]
)
async def test_live_pieces_are_marked_unless_overridden(
    chosen: bool | None, marks: list[bool]
) -> None:
    producer = Noted([])
    await run(producer, of([piece([]), piece([], live=True)]), is_live=chosen)
    marked = [(OBSERVED_HEADER, OBSERVED_LIVE) in record.headers for record in producer.records]
    assert marked == marks


async def test_reading_ends_at_once_though_the_next_item_never_comes() -> None:
    stop = asyncio.Event()
    never = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        never.wait()
        yield 2

    taken = []
    async for item in in_thread(items(), stop):
        taken.append(item)
        asyncio.get_running_loop().call_later(0.05, stop.set)
    assert taken == [1]
    never.set()


async def test_reading_ends_with_its_items() -> None:
    assert [item async for item in in_thread([1, 2], asyncio.Event())] == [1, 2]


async def test_an_exception_in_the_thread_is_raised_in_the_consumer() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    taken: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        await _collect(in_thread(items()), taken.append)
    assert taken == [1]


async def _collect(items: AsyncIterator[int], take: Callable[[int], None]) -> None:
    async for item in items:
        take(item)
