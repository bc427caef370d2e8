"""A server's feed under test, and its listeners as they hear it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import NamedTuple, Self

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from schemas.records import Record
from streams import codec
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.serve.feed.feed import Feed, FeedPosition, parse_position
from streams.serve.feed.listener import Listener
from streams.serve.views.snapshot import Snapshots
from tests.patience import PATIENCE_S
from tests.serve.kit import GrowingViews


class Heard(NamedTuple):
    """An event as a client reads it."""

    kind: str
    place: str | None
    document: dict[str, object]


class Server:
    """A server's feed over views of some records, and listeners to it; it stops with its block."""

    def __init__(self, records: Sequence[Record] = (), views: GrowingViews | None = None) -> None:
        self.views = views = views or GrowingViews()
        if records:
            views.add(*records)
        self.telemetry = PrometheusTelemetry("serve", "worker")
        self.reported: list[BaseException] = []
        self.feed = Feed(
            views,
            Snapshots(views, SystemClock()),
            SystemClock(),
            self.telemetry,
            lambda _doing, error: self.reported.append(error),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.feed.stop()

    def since(
        self, *offsets: int, session: str | None = None
    ) -> AbstractAsyncContextManager[AsyncGenerator[Heard, None]]:
        """Listen from the offsets on, of the first generation."""
        return aclosing(self.listen(FeedPosition(1, offsets), session))

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[AsyncGenerator[Heard, None]]:
        """Listen to what comes next: the first event, the position, is read."""
        async with aclosing(self.listen()) as events:
            await take(events, bool)
            yield events

    def by_partition(self, records: Sequence[Record]) -> list[list[object]]:
        """Return the records' ids in the order of each partition: between these there is none."""
        return _parted(((each.data.session_id, each.id) for each in records), self.views.count)

    def reported_by_partition(self, events: Sequence[Heard]) -> list[list[object]]:
        """Return the ids that listeners were sent, likewise."""
        sent = (event.document for event in events if event.kind == "record")
        return _parted(
            ((str(each["session_id"]), each["record_id"]) for each in sent), self.views.count
        )

    async def listen(
        self, since: FeedPosition | None = None, session: str | None = None
    ) -> AsyncGenerator[Heard, None]:
        """Yield events as a client reads them."""
        await self.feed.start()
        async with aclosing(Listener(self.feed, since, session).chunks()) as chunks:
            async for chunk in chunks:
                for event in parsed(chunk):
                    yield event

    def count(self, name: str, **labels: str) -> float:
        """Return a counter's value."""
        sample = self.telemetry.registry.get_sample_value(f"contextgauge_{name}_total", labels)
        return sample or 0.0


def parsed(chunk: bytes) -> list[Heard]:
    """Read a chunk as a browser does."""
    events = []
    for block in chunk.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in fields:
            document = codec.loads(fields["data"])
            events.append(Heard(fields["event"], fields.get("id"), document))
        elif "id" in fields:
            events.append(Heard("", fields["id"], {}))
    return events


async def take(events: AsyncIterator[Heard], enough: Callable[[list[Heard]], bool]) -> list[Heard]:
    """Read events until they are enough."""
    heard: list[Heard] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            heard.append(event)
            if enough(heard):
                break
    return heard


def ids(events: list[Heard]) -> list[object]:
    return [event.document["record_id"] for event in events if event.kind == "record"]


def _parted(ids_: Iterable[tuple[str, object]], count: int) -> list[list[object]]:
    parts: list[list[object]] = [[] for _ in range(count)]
    for session, record_id in ids_:
        parts[partition_of(session, count)].append(record_id)
    return parts


def enough(count: int) -> Callable[[list[Heard]], bool]:
    return lambda found: len(ids(found)) >= count


def place_of(events: list[Heard]) -> FeedPosition:
    place = parse_position(next(event.place for event in reversed(events) if event.place))
    assert place is not None
    return place


async def reset_of(events: AsyncIterator[Heard], reason: str) -> list[Heard]:
    """Read events up to a reset, whose reason has these words."""
    heard = await take(events, lambda heard: heard[-1].kind == "reset")
    assert reason in str(heard[-1].document["reason"])
    return heard
