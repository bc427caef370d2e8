"""A server's feed under test, and its listeners as they hear it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import NamedTuple

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
    """A server's feed, and listeners to it."""

    def __init__(self, views: GrowingViews) -> None:
        self.views = views
        self.telemetry = PrometheusTelemetry("serve", "worker")
        self.reported: list[BaseException] = []
        self.feed = Feed(
            views,
            Snapshots(views, SystemClock()),
            SystemClock(),
            self.telemetry,
            lambda _doing, error: self.reported.append(error),
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
        found = self.telemetry.registry.get_sample_value(f"contextgauge_{name}_total", labels)
        return found or 0.0


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
    found: list[Heard] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            found.append(event)
            if enough(found):
                break
    return found


def ids(events: list[Heard]) -> list[object]:
    return [event.document["record_id"] for event in events if event.kind == "record"]


def by_partition(records: list[Record], count: int) -> list[list[object]]:
    """Return the records' ids in the order of each partition: between these there is none."""
    parts: list[list[object]] = [[] for _ in range(count)]
    for record in records:
        parts[partition_of(record.data.session_id, count)].append(record.id)
    return parts


def told_by_partition(events: list[Heard], count: int) -> list[list[object]]:
    parts: list[list[object]] = [[] for _ in range(count)]
    for event in events:
        if event.kind == "record":
            session = str(event.document["session_id"])
            parts[partition_of(session, count)].append(event.document["record_id"])
    return parts


def enough(count: int) -> Callable[[list[Heard]], bool]:
    return lambda found: len(ids(found)) >= count


def place_of(events: list[Heard]) -> FeedPosition:
    place = parse_position(next(event.place for event in reversed(events) if event.place))
    assert place is not None
    return place
