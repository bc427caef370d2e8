"""The live feed: one reader of Redis per partition, fanned out in memory to all who listen.

    Redis, partition 0 ── tail ──┐
    Redis, partition 1 ── tail ──┼─▶ ring ──▶ listener, listener, …
                                 ┘

An event's id is the next offset of every partition after it. Offsets are those of the records'
log, so a place in the feed is good for any server and any generation of views. Who comes with a
place gets from Redis what lies between it and the ring, and then goes on with the ring; what Redis
no longer has cannot be told, and is told so by a `reset`.

The ring is all that is buffered, whoever listens: a listener that falls out of it is cut off.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from contextgauge.errors import RetryError, StopError
from streams import codec
from streams.ports import Clock, Entry, Telemetry, ViewReader
from streams.serve.api.guard import Report
from streams.serve.api.sessions import ViewsGoneError
from streams.serve.api.snapshot import Moment, Moments, feed_id

RING_EVENTS: Final = 10_000
"""As many as Redis keeps of a partition: some MB, once for all listeners."""

_BATCH: Final = 1_000
"""Entries read at once."""

_WAIT_S: Final = 1.0
"""How long a tail waits for news before it looks whether its generation is still the active one."""

_BREATH_S: Final = 1.0
"""Between attempts while Redis is away."""

AHEAD_S: Final = 10.0
"""For so long a place may be beyond what the views have: a generation that was swapped in may be
a little behind, and Redis may have lost its last second."""

_EACH_S: Final = 0.00005
"""For so long news are gathered for each listener before all are woken: a thousand hear twenty
times a second, which takes this process half of that time; one hears at once."""


_AT_ONCE: Final = 16
"""Listeners that read Redis at a time; each read takes a millisecond."""

_TAIL: Final = "tail"
"""Name of the tasks that read a partition."""


class Event(NamedTuple):
    """One event in the ring: whose, where in the log, and the place in the feed after it.

    A reset has no partition: it is for everybody.
    """

    partition: int | None
    offset: int
    session: str
    document: bytes
    place: str

    def written(self, place: str | None = None) -> bytes:
        """Return it as it goes out, with another place if one is given."""
        kind = b"reset" if self.partition is None else b"record"
        return written(kind, self.place if place is None else place, self.document)


def written(kind: bytes, place: str, document: bytes) -> bytes:
    """Return an event as it goes out; a document has no line ends."""
    return b"event: %s\nid: %s\ndata: %s\n\n" % (kind, place.encode(), document)


def because(reason: str) -> bytes:
    """Return the document of an event that is no record: why it came."""
    return codec.dumps({"reason": reason})


class Place(NamedTuple):
    """A place in the feed: a generation, and the next offset of each partition."""

    generation: int
    offsets: tuple[int, ...]


_MOST_PARTITIONS: Final = 10_000
_MOST_DIGITS: Final = 19


def parse_place(text: str) -> Place | None:
    """Return the place that an event id tells; None where it is none."""
    head, _, tail = text.strip().partition(":")
    parts = tail.split(",")
    wrong = len(parts) > _MOST_PARTITIONS or not all(
        part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in (head, *parts)
    )
    return None if wrong else Place(int(head), tuple(map(int, parts)))


class Feed:
    """The feed of one process. `start` it in the event loop that listeners are in."""

    def __init__(
        self,
        reader: ViewReader,
        moments: Moments,
        clock: Clock,
        telemetry: Telemetry,
        report: Report,
    ) -> None:
        self._reader, self._moments = reader, moments
        self._clock, self._telemetry, self._report = clock, telemetry, report
        self._generation = 0
        self._offsets: list[int] = []
        self._beyond_s: dict[int, float] = {}
        self._ring: deque[Event] = deque(maxlen=RING_EVENTS)
        self._end = 0
        self._news = asyncio.Event()
        self._pending = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._chunk: tuple[int, int, bytes] = (0, 0, b"")
        self._closed = False
        self.listeners = 0
        self.catching_up = asyncio.Semaphore(_AT_ONCE)
        """Taken by listeners while they read Redis: after a break all come back at once."""

    async def start(self) -> None:
        """Begin to follow, at the first listener. Raises RetryError, ViewsGoneError."""
        async with self._starting:
            if self._tasks or self._closed:
                return
            moment = await self._moments.now()
            if moment is None:
                raise ViewsGoneError("there are no views yet")
            self._generation = moment.generation
            self._begin(moment)
            self._tasks.append(asyncio.create_task(self._unending(self._watch)))
            self._tasks.append(asyncio.create_task(self._unending(self._tell)))

    def _begin(self, moment: Moment) -> None:
        self._offsets = [position.offset for position in moment.positions]
        self._beyond_s = {}
        self._tasks += [
            asyncio.create_task(self._follow(partition), name=_TAIL)
            for partition in range(moment.partitions)
        ]

    async def stop(self) -> None:
        """End, and send every listener away."""
        self._closed = True
        self._wake()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def place(self) -> str:
        """Where the ring ends."""
        return feed_id(self._generation, self._offsets)

    async def _watch(self) -> None:
        """Follow the active generation; a place in one is good in the next."""
        while True:
            await self._clock.sleep(_WAIT_S)
            try:
                moment = await self._moments.now()
            except (RetryError, StopError, ViewsGoneError):
                continue  # who asks whether the server is ready hears of it
            if moment is None:
                continue
            self._generation = moment.generation
            if moment.partitions != len(self._offsets):
                # Of another topic, under the same prefix: nothing goes on from before.
                self._begin_anew(moment, "the views have another number of partitions")
            elif self._is_beyond(moment):
                self._begin_anew(moment, "the views went back and have not come forward again")

    def _is_beyond(self, moment: Moment) -> bool:
        """Tell whether the views of a partition have been behind this feed for too long.

        Redis may lose its last second, which is projected again; where the log itself was made
        anew, nothing that happens would ever reach the offsets from which the tails read.
        """
        now_s = self._clock.monotonic_s()
        pairs = enumerate(zip(moment.positions, self._offsets, strict=True))
        self._beyond_s = {
            partition: self._beyond_s.get(partition, now_s)
            for partition, (position, offset) in pairs
            if position.offset < offset
        }
        return any(now_s - since_s >= AHEAD_S for since_s in self._beyond_s.values())

    def _begin_anew(self, moment: Moment, reason: str) -> None:
        tails = [task for task in self._tasks if task.get_name() == _TAIL]
        for task in tails:
            task.cancel()
        self._tasks = [task for task in self._tasks if task not in tails]
        self._begin(moment)
        self._interrupt(reason)

    async def _unending(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run what has no end; what nobody foresaw is reported, and it begins again."""
        while True:
            try:
                await run()
            except Exception as error:  # noqa: BLE001 -- nobody else would hear of it
                self._report("following the live feed", error)
            await self._clock.sleep(_BREATH_S)

    async def _follow(self, partition: int) -> None:
        """Tail a partition; after what nobody foresaw, from where its views are now."""
        while True:
            try:
                await self._tail(partition)
            except Exception as error:  # noqa: BLE001 -- listeners would hear nothing, for ever
                self._report("reading the live feed", error)
            await self._clock.sleep(_BREATH_S)
            try:
                moment = await self._moments.now()
            except (RetryError, StopError, ViewsGoneError):
                moment = None  # from where it was; once Redis is back it gets on
            if moment is not None and moment.partitions == len(self._offsets):
                self._offsets[partition] = moment.positions[partition].offset
            self._interrupt("an event could not be read")

    async def _tail(self, partition: int) -> None:
        """Read one partition's feed, from where its views were, into the ring."""
        generation, is_sure = self._generation, True
        while True:
            after = self._offsets[partition] - 1
            if generation != self._generation:
                generation, is_sure = self._generation, False
            try:
                found = await self._reader.live(generation, partition, after, _BATCH, _WAIT_S)
                if found and (not is_sure or len(found) == _BATCH):
                    bounds = await self._reader.live_bounds(generation, partition)
                    if not bounds.reaches(after + 1):
                        self._interrupt("more happened than the feed keeps")
                is_sure = is_sure or bool(found)
            except (RetryError, StopError) as error:
                if isinstance(error, StopError):
                    self._report("reading the live feed", error)
                is_sure = False
                await self._clock.sleep(_BREATH_S)
                continue
            self._add(partition, found)

    def _add(self, partition: int, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._offsets[partition] = entry.offset + 1
            session = codec.loads(entry.document)["session_id"]
            self._append(Event(partition, entry.offset, session, entry.document, self.place))
        if entries:
            self._telemetry.count("serve_stream_events", len(entries))

    def _interrupt(self, reason: str) -> None:
        self._append(Event(None, 0, "", because(reason), self.place))

    def _append(self, event: Event) -> None:
        self._ring.append(event)
        self._end += 1
        self._pending.set()

    async def _tell(self) -> None:
        """Wake all listeners, not more often than they can be served."""
        while True:
            await self._pending.wait()
            if self.listeners > 1:
                await self._clock.sleep(self.listeners * _EACH_S)
            self._pending.clear()
            self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    @property
    def end(self) -> int:
        """How many events there ever were in the ring."""
        return self._end

    @property
    def first(self) -> int:
        """How many of them are no longer there."""
        return self._end - len(self._ring)

    @property
    def generation(self) -> int:
        """The generation that is followed."""
        return self._generation

    @property
    def offsets(self) -> tuple[int, ...]:
        """The next offset of each partition at the ring's end."""
        return tuple(self._offsets)

    @property
    def news(self) -> asyncio.Event:
        """What is set at the next news, or when the feed is closed. Take it before looking."""
        return self._news

    @property
    def is_closed(self) -> bool:
        """Whether listeners are to go."""
        return self._closed

    def events(self, start: int, end: int) -> list[Event]:
        """Return events of the ring."""
        return list(islice(self._ring, start - self.first, end - self.first))

    def chunk(self, start: int, end: int) -> bytes:
        """Return events as they go out; who is at the same place gets the same bytes."""
        if self._chunk[:2] != (start, end):
            told = b"".join(event.written() for event in self.events(start, end))
            self._chunk = (start, end, told)
        return self._chunk[2]
