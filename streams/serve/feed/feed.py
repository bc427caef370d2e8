"""The live feed: one reader of Redis per partition, fanned out in memory to all listeners.

    Redis, partition 0 ── tail ──┐
    Redis, partition 1 ── tail ──┼─▶ ring ──▶ listener, listener, …
                                 ┘

An event's id is a feed position: the next offset of every partition after the event. Offsets are
those of the records' log, so a position is valid for any server and any generation of views. A
listener that returns with a position gets the events between it and the ring from Redis, and then
follows the ring; if Redis no longer has them, the listener gets a `reset`.

The ring is the only buffer: a listener that falls out of it is cut off.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from contextgauge.errors import RetryError, StopError
from streams import codec
from streams.ports import Clock, Entry, Telemetry, ViewReader
from streams.serve.api.serving import Report
from streams.serve.views.snapshot import Snapshot, Snapshots, ViewsGoneError, feed_id

RING_EVENTS: Final = 10_000
"""As many as Redis keeps of a partition: some MB, once for all listeners."""

_BATCH: Final = 1_000
"""Entries read at once."""

_WAIT_S: Final = 1.0
"""How long a tail waits for entries before it checks whether its generation is still active."""

_RETRY_S: Final = 1.0
"""Between attempts while Redis is unavailable."""

AHEAD_S: Final = 10.0
"""How long a position may be ahead of the views: a generation that was swapped in may be slightly
behind, and Redis may have lost its last second."""

_BATCH_S_PER_LISTENER: Final = 0.00005
"""How long events are collected, for each listener, before all are woken: a thousand listeners are
served twenty times a second, which takes half of this process; a single one at once."""

_CATCHING_UP: Final = 16
"""Listeners that read Redis concurrently; each read takes a millisecond."""


class FeedEvent(NamedTuple):
    """One event in the ring: its session, its offset, and the feed position after it.

    A reset has no partition: it is for all listeners.
    """

    partition: int | None
    offset: int
    session: str
    document: bytes
    position: str

    def encoded(self, position: str | None = None) -> bytes:
        """Return it as a server-sent event, with another position if one is given."""
        kind = b"reset" if self.partition is None else b"record"
        return encoded(kind, self.position if position is None else position, self.document)


def encoded(kind: bytes, position: str, document: bytes) -> bytes:
    """Return a server-sent event; a document has no line ends."""
    return b"event: %s\nid: %s\ndata: %s\n\n" % (kind, position.encode(), document)


def reason_document(reason: str) -> bytes:
    """Return the document of an event that is no record."""
    return codec.dumps({"reason": reason})


def cut_off(reason: str) -> bytes:
    """Return the last event of a listener that is disconnected."""
    return b"event: cut_off\ndata: %s\n\n" % reason_document(reason)


class FeedPosition(NamedTuple):
    """A position in the feed: a generation, and the next offset of each partition."""

    generation: int
    offsets: tuple[int, ...]


_MOST_PARTITIONS: Final = 10_000
_MOST_DIGITS: Final = 19
"""Of a number of 64 bits: a longer one is no position of ours."""


def parse_position(text: str) -> FeedPosition | None:
    """Return the position that an event id encodes; None for any other text."""
    head, _, tail = text.strip().partition(":")
    parts = tail.split(",")
    is_wrong = len(parts) > _MOST_PARTITIONS or not all(
        part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in (head, *parts)
    )
    return None if is_wrong else FeedPosition(int(head), tuple(map(int, parts)))


class Feed:
    """The feed of one process. `start` it in the event loop that listeners are in."""

    def __init__(
        self,
        reader: ViewReader,
        snapshots: Snapshots,
        clock: Clock,
        telemetry: Telemetry,
        report: Report,
    ) -> None:
        self.reader, self.snapshots = reader, snapshots
        self.clock, self.telemetry, self._report = clock, telemetry, report
        self.generation = 0
        """The generation that the tails read."""
        self._offsets: list[int] = []
        self._beyond_s: dict[int, float] = {}
        self._ring: deque[FeedEvent] = deque(maxlen=RING_EVENTS)
        self.end = 0
        """How many events were ever in the ring."""
        self.news = asyncio.Event()
        """Set at the next events, or when the feed is closed. Get it before reading `end`."""
        self._waking: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tails: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._chunk: tuple[int, int, bytes] = (0, 0, b"")
        self.is_closed = False
        self.listeners = 0
        self.catching_up = asyncio.Semaphore(_CATCHING_UP)
        """Held by listeners while they read Redis: after an outage all return at once."""

    async def start(self) -> None:
        """Start to follow, at the first listener. Raises RetryError, ViewsGoneError."""
        async with self._starting:
            if self._watching is not None or self.is_closed:
                return
            snapshot = await self.snapshots.now()
            if snapshot is None:
                raise ViewsGoneError("there are no views yet")
            self.generation = snapshot.generation
            self._start_tails(snapshot)
            self._watching = asyncio.create_task(self._watch())

    def _start_tails(self, snapshot: Snapshot) -> None:
        self._offsets = [position.offset for position in snapshot.positions]
        self._beyond_s = {}
        self._tails = [
            asyncio.create_task(self._tail(partition)) for partition in range(snapshot.partitions)
        ]

    async def stop(self) -> None:
        """Stop, and end every listener's stream."""
        self.is_closed = True
        self._wake()
        tasks = [task for task in (self._watching, *self._tails) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def position(self) -> str:
        """The position at the ring's end."""
        return feed_id(self.generation, self._offsets)

    async def _watch(self) -> None:
        """Follow the active generation; a position in one is valid in the next."""
        while True:
            await self.clock.sleep(_WAIT_S)
            snapshot = await self._current()
            if snapshot is None:
                continue
            self.generation = snapshot.generation
            if snapshot.partitions != len(self._offsets):
                # Views of another topic, under the same prefix: positions are void.
                self._restart(snapshot, "the views have another number of partitions")
            elif self._is_beyond(snapshot):
                self._restart(snapshot, "the views went back and did not recover")

    async def _current(self) -> Snapshot | None:
        """Return the snapshot now; None while there is none."""
        try:
            return await self.snapshots.now()
        except (RetryError, StopError, ViewsGoneError):
            return None  # the readiness check reports it
        except Exception as error:  # noqa: BLE001 -- reported, and the feed goes on
            self._report("following the live feed", error)
            return None

    def _is_beyond(self, snapshot: Snapshot) -> bool:
        """Return whether the views of a partition have been behind this feed for too long.

        Redis may lose its last second, which is projected again. If the log itself was recreated,
        its records would not reach the offsets from which the tails read.
        """
        now_s = self.clock.monotonic_s()
        pairs = enumerate(zip(snapshot.positions, self._offsets, strict=True))
        self._beyond_s = {
            partition: self._beyond_s.get(partition, now_s)
            for partition, (position, offset) in pairs
            if position.offset < offset
        }
        return any(now_s - since_s >= AHEAD_S for since_s in self._beyond_s.values())

    def _restart(self, snapshot: Snapshot, reason: str) -> None:
        for task in self._tails:
            task.cancel()
        self._start_tails(snapshot)
        self._interrupt(reason)

    async def _tail(self, partition: int) -> None:
        """Read one partition's feed into the ring, from the position of its views."""
        generation, is_sure = self.generation, True
        while True:
            after = self._offsets[partition] - 1
            if generation != self.generation:
                generation, is_sure = self.generation, False
            try:
                entries = await self.reader.live(generation, partition, after, _BATCH, _WAIT_S)
                if entries and (not is_sure or len(entries) == _BATCH):
                    bounds = await self.reader.live_bounds(generation, partition)
                    if not bounds.reaches(after + 1):
                        self._interrupt("the feed no longer has all events")
                is_sure = is_sure or bool(entries)
                self._add(partition, entries)
            except RetryError:
                is_sure = False
                await self.clock.sleep(_RETRY_S)
            except Exception as error:  # noqa: BLE001 -- reported, and the tail goes on
                is_sure = False
                self._report("reading the live feed", error)
                await self.clock.sleep(_RETRY_S)
                if not isinstance(error, StopError):
                    await self._skip(partition)

    async def _skip(self, partition: int) -> None:
        """Go on from the position of a partition's views, where an entry could not be read."""
        snapshot = await self._current()
        if snapshot is not None and snapshot.partitions == len(self._offsets):
            self._offsets[partition] = snapshot.positions[partition].offset
        self._interrupt("an event could not be read")

    def _add(self, partition: int, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._offsets[partition] = entry.offset + 1
            session = codec.loads(entry.document)["session_id"]
            self._append(FeedEvent(partition, entry.offset, session, entry.document, self.position))
        if entries:
            self.telemetry.count("serve_stream_events", len(entries))

    def _interrupt(self, reason: str) -> None:
        self._append(FeedEvent(None, 0, "", reason_document(reason), self.position))

    def _append(self, event: FeedEvent) -> None:
        self._ring.append(event)
        self.end += 1
        if self._waking is None:
            delay_s = self.listeners * _BATCH_S_PER_LISTENER if self.listeners > 1 else 0
            self._waking = asyncio.get_running_loop().call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._waking = None
        news, self.news = self.news, asyncio.Event()
        news.set()

    @property
    def first(self) -> int:
        """How many events have left the ring."""
        return self.end - len(self._ring)

    @property
    def offsets(self) -> tuple[int, ...]:
        """The next offset of each partition at the ring's end."""
        return tuple(self._offsets)

    def events(self, start: int, end: int) -> list[FeedEvent]:
        """Return events of the ring."""
        return list(islice(self._ring, start - self.first, end - self.first))

    def chunk(self, start: int, end: int) -> bytes:
        """Return encoded events; listeners at the same position share the bytes."""
        if self._chunk[:2] != (start, end):
            chunk = b"".join(event.encoded() for event in self.events(start, end))
            self._chunk = (start, end, chunk)
        return self._chunk[2]
