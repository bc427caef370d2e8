"""One listener to the live feed: from its position to the ring, and along the ring."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from schemas.views import LIVE_ENTRIES
from streams import codec
from streams.ports import Entry
from streams.serve.feed import feed as feeds
from streams.serve.feed.feed import (
    Feed,
    FeedEvent,
    FeedPosition,
    cut_off,
    encoded,
    parse_position,
    reason_document,
)
from streams.serve.views.snapshot import feed_id

_CHUNK: Final = 250
"""Events sent at once: about 100 kB, the most that waits in a listener's connection."""

_POLL_S: Final = 0.25
"""How often a listener checks whether Redis has reached the ring's end."""

_POSITION_S: Final = 15.0
"""How often a listener to one session gets a new position while only others have events: without
it, the listener would reconnect with a position that the feed no longer reaches."""

_FAR: Final = LIVE_ENTRIES
"""A position may be ahead of the views by what Redis lost in its last second, or by what a
swapped-in generation lacks: by less than the feed holds."""

_BEYOND: Final = "this position is ahead of the views"

_RETRY: Final = b"retry: 2000\n"
"""How long a browser waits before it reconnects, in milliseconds."""


class Listener:
    """A listener. `since` is its position, None: now; `session` filters events, None: all.

    `_ahead` has the partitions of which it has more than the ring's positions say, with the next
    offset that it lacks.
    """

    def __init__(self, feed: Feed, since: FeedPosition | None, session: str | None) -> None:
        self._feed, self._since, self._session = feed, since, session
        self._next = 0
        self._ahead: dict[int, int] = {}
        self._ahead_until_s: float | None = None
        self._sent_s = feed.clock.monotonic_s()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield encoded events, a position first.

        It ends with a reason where the listener is too slow, or when the feed is closed.
        """
        if self._since is None:
            self._next = self._feed.end
            yield _RETRY + b"id: %s\n\n" % self._feed.position.encode()
        else:
            yield _RETRY + b"\n"
            async for chunk in self._catch_up(self._since):
                yield chunk
        while not self._feed.is_closed:
            news = self._feed.news
            if self._next < self._feed.first:
                self._feed.telemetry.count("serve_stream_cut_off", reason="slow")
                yield cut_off("this reader was too slow: reconnect with the last id")
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

    async def _catch_up(self, since: FeedPosition) -> AsyncGenerator[bytes, None]:
        """Yield the events from a position to the ring's current end; else a reset."""
        is_far_ahead = await self._is_far_ahead(since)
        # Together: what enters the ring from now on is sent from there.
        target, self._next = self._feed.offsets, self._feed.end
        is_of_others = len(since.offsets) != len(target)
        if is_of_others or is_far_ahead:
            yield self._reset("this position is of other views" if is_of_others else _BEYOND)
            return
        have = list(since.offsets)
        until_s: float | None = None
        for partition, until in enumerate(target):
            while have[partition] < until:
                part, is_there, reaches = await self._read(partition, have[partition], until)
                if not reaches:
                    yield self._reset("this position is older than the feed")
                    return
                blocks = b"".join([self._entry(have, partition, entry) for entry in part])
                if blocks:
                    yield blocks
                if len(part) == _CHUNK:
                    continue
                if is_there:
                    have[partition] = until
                    continue
                # Redis lost its last writes, or a swapped-in generation is behind the ring.
                now_s = self._feed.clock.monotonic_s()
                until_s = now_s + feeds.AHEAD_S if until_s is None else until_s
                if now_s >= until_s or self._feed.is_closed:
                    yield self._reset("the views went back and did not recover")
                    return
                await self._feed.clock.sleep(_POLL_S)
        pairs = enumerate(zip(have, target, strict=True))
        self._ahead = {partition: mine for partition, (mine, ring) in pairs if mine > ring}
        if self._ahead and await self._is_ahead():
            # The views lack what this listener has: they get time to reach it.
            self._ahead_until_s = self._feed.clock.monotonic_s() + feeds.AHEAD_S

    async def _is_far_ahead(self, since: FeedPosition) -> bool:
        """Return whether a position is too far ahead of the log for a loss or a swap to explain it.

        Then the log was recreated, and there is nothing to wait for.
        """
        snapshot = await self._feed.snapshots.now()
        if snapshot is None or snapshot.partitions != len(since.offsets):
            return False
        return any(
            offset
            > max(position.offset, position.heartbeat.end or 0 if position.heartbeat else 0) + _FAR
            for offset, position in zip(since.offsets, snapshot.positions, strict=True)
        )

    async def _is_ahead(self) -> bool:
        """Return whether this listener has more than the views."""
        snapshot = await self._feed.snapshots.now()
        return snapshot is None or any(
            partition >= snapshot.partitions or until > snapshot.positions[partition].offset
            for partition, until in self._ahead.items()
        )

    async def _read(self, partition: int, start: int, until: int) -> tuple[list[Entry], bool, bool]:
        """Return a partition's entries from `start` on, up to and without `until`.

        And whether its views have reached `until`, and whether the feed reaches back to `start`.
        """
        async with self._feed.catching_up:
            generation = self._feed.generation
            # The position first: entries that are read after it include all before it.
            position = await self._feed.reader.position(generation, partition)
            entries = await self._feed.reader.live(generation, partition, start - 1, _CHUNK)
            bounds = await self._feed.reader.live_bounds(generation, partition)
        part = [entry for entry in entries if entry.offset < until]
        is_there = position is not None and position.offset >= until
        return part, is_there, bounds.reaches(start)

    def _entry(self, have: list[int], partition: int, entry: Entry) -> bytes:
        have[partition] = entry.offset + 1
        name = self._session
        if name is not None and codec.loads(entry.document)["session_id"] != name:
            return b""
        return encoded(b"record", feed_id(self._feed.generation, have), entry.document)

    def _take(self) -> bytes:
        """Return the ring's next events that are for this listener."""
        start, end = self._next, min(self._next + _CHUNK, self._feed.end)
        self._next = end
        if self._session is None and not self._ahead:
            return self._feed.chunk(start, end)
        events = self._feed.events(start, end)
        chunk = b"".join([self._event(event) for event in events])
        now_s = self._feed.clock.monotonic_s()
        if chunk:
            self._sent_s = now_s
        elif now_s - self._sent_s >= _POSITION_S:
            self._sent_s = now_s
            return b"id: %s\n\n" % self._position(events[-1]).encode()
        return chunk

    def _event(self, event: FeedEvent) -> bytes:
        if event.partition is None:
            # What it is ahead by may be of another log: from here on it gets everything.
            self._ahead, self._ahead_until_s = {}, None
        else:
            if event.offset < self._ahead.get(event.partition, 0):
                return b""
            self._ahead.pop(event.partition, None)
            if not self._ahead:
                self._ahead_until_s = None
            if self._session is not None and event.session != self._session:
                return b""
        return event.encoded(self._position(event))

    def _position(self, event: FeedEvent) -> str:
        """Return the position after an event: this listener may be ahead of the ring."""
        position = parse_position(event.position) if self._ahead else None
        if position is None:
            return event.position
        offsets = [
            max(offset, self._ahead.get(number, 0))
            for number, offset in enumerate(position.offsets)
        ]
        return feed_id(position.generation, offsets)

    async def _wait_ahead(self, news: asyncio.Event, until_s: float) -> bytes:
        """Wait for events, or for the views to reach this listener's position; else reset it."""
        try:
            async with asyncio.timeout(max(until_s - self._feed.clock.monotonic_s(), 0.0)):
                await news.wait()
        except TimeoutError:
            self._ahead_until_s = None
            if await self._is_ahead():
                self._ahead = {}
                return self._reset(_BEYOND)
        return b""

    def _reset(self, reason: str) -> bytes:
        self._feed.telemetry.count("serve_stream_resets")
        return encoded(b"reset", self._feed.position, reason_document(reason))
