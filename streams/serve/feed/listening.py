"""One listener to the live feed: from its place to the ring, along the ring, and out of it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from schemas.views import LIVE_ENTRIES
from streams import codec
from streams.ports import Clock, Entry, Telemetry, ViewReader
from streams.serve.api.snapshot import Moments, feed_id
from streams.serve.feed import feed as feeds
from streams.serve.feed.feed import Event, Feed, Place, because, parse_place, written

_CHUNK: Final = 250
"""Events given out at once: some 100 kB, the most that waits in a listener's connection."""

_LOOK_S: Final = 0.25
"""How often a listener looks whether Redis has come as far as the ring."""

_PLACE_S: Final = 15.0
"""How often a listener to one session is told a new place while others have news: without it, it
would come back with one that the feed no longer reaches."""

_FAR: Final = LIVE_ENTRIES
"""A place may be beyond what the views have by what Redis lost in its last second, or by what a
generation that was swapped in lacks: by less than the feed keeps."""

_BEYOND: Final = "this place is beyond what the views have"

_RETRY: Final = b"retry: 2000\n"
"""How long a browser waits before it comes back, in milliseconds."""


class Listener:
    """A listener. `since` is its place, None: now; `session` the only one it hears of, None: all.

    `_beyond` are the partitions of which it has more already than the ring's places tell, with
    the next offset that it lacks.
    """

    def __init__(  # noqa: PLR0917 -- what it reads and is told
        self,
        feed: Feed,
        reader: ViewReader,
        moments: Moments,
        clock: Clock,
        telemetry: Telemetry,
        since: Place | None,
        session: str | None,
    ) -> None:
        self._feed, self._reader, self._moments = feed, reader, moments
        self._clock, self._telemetry = clock, telemetry
        self._since, self._session = since, session
        self._next = 0
        self._beyond: dict[int, int] = {}
        self._ahead_until_s: float | None = None
        self._told_s = clock.monotonic_s()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield events as they go out, a place first.

        It ends where it is too slow, with the reason, or when the feed is closed.
        """
        if self._since is None:
            self._next = self._feed.end
            yield _RETRY + b"id: %s\n\n" % self._feed.place.encode()
        else:
            yield _RETRY + b"\n"
            async for chunk in self._catch_up(self._since):
                yield chunk
        while not self._feed.is_closed:
            news = self._feed.news
            if self._next < self._feed.first:
                self._telemetry.count("serve_stream_cut_off", reason="slow")
                reason = because("this reader was too slow: come back with the last id")
                yield b"event: cut_off\ndata: %s\n\n" % reason
                return
            if self._next < self._feed.end:
                chunk = self._take()
                if chunk:
                    yield chunk
            elif self._ahead_until_s is None:
                await news.wait()
            else:
                reset = await self._wait_ahead(news, self._ahead_until_s)
                if reset:
                    yield reset

    async def _catch_up(self, since: Place) -> AsyncGenerator[bytes, None]:
        """Yield what lies between a place and the ring's end as it is now; else a reset."""
        is_far_beyond = await self._is_far_beyond(since)
        # Both at one moment: what comes to the ring from now on is told from there.
        target, self._next = self._feed.offsets, self._feed.end
        if len(since.offsets) != len(target):
            yield self._reset("this place is one of other views")
            return
        if is_far_beyond:
            yield self._reset(_BEYOND)
            return
        have = list(since.offsets)
        until_s: float | None = None
        for partition, until in enumerate(target):
            while have[partition] < until:
                part, is_there, reaches = await self._read(partition, have[partition], until)
                if not reaches:
                    yield self._reset("this place is older than what the feed keeps")
                    return
                blocks = b"".join([self._entry(have, partition, entry) for entry in part])
                if blocks:
                    yield blocks
                if len(part) == _CHUNK:
                    continue
                if is_there:
                    have[partition] = until
                    continue
                # Redis lost its end, or a generation that was swapped in is behind the ring.
                now_s = self._clock.monotonic_s()
                until_s = now_s + feeds.AHEAD_S if until_s is None else until_s
                if now_s >= until_s or self._feed.is_closed:
                    yield self._reset("the views went back and have not come forward again")
                    return
                await self._clock.sleep(_LOOK_S)
        self._beyond = _beyond(have, target)
        await self._expect()

    async def _is_far_beyond(self, since: Place) -> bool:
        """Tell whether a place is so far beyond the log that no loss and no swap explains it.

        Then it is one of a log that was made anew, and waiting would be for nothing.
        """
        moment = await self._moments.now()
        if moment is None or moment.partitions != len(since.offsets):
            return False
        return any(
            offset > max(position.offset, position.told.end or 0 if position.told else 0) + _FAR
            for offset, position in zip(since.offsets, moment.positions, strict=True)
        )

    async def _expect(self) -> None:
        """Where the views lack what this listener has, give them time to come to it."""
        moment = await self._moments.now() if self._beyond else None
        if moment is not None and any(
            until > moment.positions[partition].offset for partition, until in self._beyond.items()
        ):
            self._ahead_until_s = self._clock.monotonic_s() + feeds.AHEAD_S

    async def _read(self, partition: int, start: int, until: int) -> tuple[list[Entry], bool, bool]:
        """Return entries of a partition from `start` on, and not of `until` or later.

        And whether its views have come to `until`, and whether the feed reaches back to `start`.
        """
        async with self._feed.catching_up:
            generation = self._feed.generation
            # The position first: what is read after it has all that lies before it.
            position = await self._reader.position(generation, partition)
            found = await self._reader.live(generation, partition, start - 1, _CHUNK)
            bounds = await self._reader.live_bounds(generation, partition)
        part = [entry for entry in found if entry.offset < until]
        is_there = position is not None and position.offset >= until
        return part, is_there, bounds.reaches(start)

    def _entry(self, have: list[int], partition: int, entry: Entry) -> bytes:
        have[partition] = entry.offset + 1
        if self._session is not None and _session(entry) != self._session:
            return b""
        return written(b"record", feed_id(self._feed.generation, have), entry.document)

    def _take(self) -> bytes:
        """Return the next events of the ring, as far as they are for this listener."""
        start, end = self._next, min(self._next + _CHUNK, self._feed.end)
        self._next = end
        if self._session is None and not self._beyond:
            return self._feed.chunk(start, end)
        events = self._feed.events(start, end)
        told = b"".join([self._event(event) for event in events])
        now_s = self._clock.monotonic_s()
        if told:
            self._told_s = now_s
        elif now_s - self._told_s >= _PLACE_S:
            self._told_s = now_s
            return b"id: %s\n\n" % self._place(events[-1]).encode()
        return told

    def _event(self, event: Event) -> bytes:
        if event.partition is None:
            # What it has more may be of another log: from here on it is told all.
            self._beyond, self._ahead_until_s = {}, None
        else:
            if event.offset < self._beyond.get(event.partition, 0):
                return b""
            self._beyond.pop(event.partition, None)
            if not self._beyond:
                self._ahead_until_s = None
            if self._session is not None and event.session != self._session:
                return b""
        return event.written(self._place(event))

    def _place(self, event: Event) -> str:
        """Return the place after an event: this listener may have more than the ring knows."""
        place = parse_place(event.place) if self._beyond else None
        if place is None:
            return event.place
        offsets = [
            max(offset, self._beyond.get(number, 0)) for number, offset in enumerate(place.offsets)
        ]
        return feed_id(place.generation, offsets)

    async def _wait_ahead(self, news: asyncio.Event, until_s: float) -> bytes:
        """Wait for news, or for the views to come to this listener's place; else reset it."""
        try:
            async with asyncio.timeout(max(until_s - self._clock.monotonic_s(), 0.0)):
                await news.wait()
        except TimeoutError:
            self._ahead_until_s = None
            moment = await self._moments.now()
            if moment is None or any(
                partition >= moment.partitions or until > moment.positions[partition].offset
                for partition, until in self._beyond.items()
            ):
                self._beyond = {}
                return self._reset(_BEYOND)
        return b""

    def _reset(self, reason: str) -> bytes:
        self._telemetry.count("serve_stream_resets")
        return written(b"reset", self._feed.place, because(reason))


def _beyond(have: list[int], ring: tuple[int, ...]) -> dict[int, int]:
    pairs = enumerate(zip(have, ring, strict=True))
    return {partition: mine for partition, (mine, theirs) in pairs if mine > theirs}


def _session(entry: Entry) -> str:
    found: str = codec.loads(entry.document)["session_id"]
    return found
