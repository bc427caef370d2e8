"""Which generation is active and how far each of its partitions is: the base of every answer.

A moment is read before the documents of an answer, so they are never older than it says. It is
kept for a tenth of a second, so many readers that poll cost Redis as much as one.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from contextgauge.errors import RetryError
from schemas.records import Json
from streams.ports import Clock, Told, ViewPosition, ViewReader
from streams.serve.api.sessions import ViewsGoneError
from streams.serve.api.together import all_of

_KEPT_S: Final = 0.1

STALE_MS: Final = 10_000
"""A projector tells of each partition about every second: silent, or behind, for so long, it is
stalled, gone or overwhelmed, and what it wrote is no longer how things are."""


_MOST_SEEN: Final = 4
"""Generations that are read at a time, and some: of others nothing is kept."""


class Moment(NamedTuple):
    """A generation, and the position of each of its partitions; `at_ms` is when it was read."""

    generation: int
    positions: tuple[ViewPosition, ...]
    at_ms: int

    @property
    def partitions(self) -> int:
        """How many partitions sessions are spread over."""
        return len(self.positions)

    @property
    def feed(self) -> str:
        """The place in the live feed from which on it tells what this moment lacks."""
        return feed_id(self.generation, [position.offset for position in self.positions])

    def silent_ms(self, position: ViewPosition) -> int | None:
        """Return how long ago the projector last told of a partition; None: it never did."""
        return None if position.told is None else max(self.at_ms - position.told.at_ms, 0)

    def lag_records(self, position: ViewPosition) -> int | None:
        """Return how many offsets a partition lacked when its projector last told."""
        if position.told is None or position.told.end is None:
            return None
        return max(position.told.end - position.offset, 0)

    def lag_ms(self, position: ViewPosition) -> int | None:
        """Return for how long a partition has been behind; it goes on while nothing is told."""
        silent_ms, told = self.silent_ms(position), position.told
        if silent_ms is None or told is None:
            return None
        return told.lag_ms + silent_ms if told.lag_ms or self.lag_records(position) else 0

    @property
    def is_stale(self) -> bool:
        """Whether any partition's views are older than a projector at work leaves them."""
        return any(
            told is None or told > STALE_MS
            for position in self.positions
            for told in (self.silent_ms(position), self.lag_ms(position))
        )

    @property
    def kind(self) -> tuple[int, str, bool]:
        """What an answer about one session is a function of, beside its view.

        The build too: generations are counted anew where Redis lost everything.
        """
        return (self.generation, self.positions[0].build, self.is_stale)

    @property
    def told(self) -> tuple[int, str, tuple[int, ...], bool]:
        """What an answer about all partitions is a function of, beside what was asked."""
        offsets = tuple(position.offset for position in self.positions)
        return (self.generation, self.positions[0].build, offsets, self.is_stale)

    def as_of(self) -> dict[str, Json]:
        """Return what every answer tells of its own age; see docs/API.md."""
        return {
            "at_ms": self.at_ms,
            "stale": self.is_stale,
            "silent_ms": _worst([self.silent_ms(position) for position in self.positions]),
            "lag_records": _sum([self.lag_records(position) for position in self.positions]),
            "lag_ms": _worst([self.lag_ms(position) for position in self.positions]),
            "feed": self.feed,
        }

    def of_partitions(self) -> list[Json]:
        """Return the same of each partition."""
        return [
            {
                "partition": number,
                "position": position.offset,
                "end": None if position.told is None else position.told.end,
                "silent_ms": self.silent_ms(position),
                "lag_records": self.lag_records(position),
                "lag_ms": self.lag_ms(position),
            }
            for number, position in enumerate(self.positions)
        ]


NOTHING_YET: Final[dict[str, Json]] = {
    "at_ms": None,
    "stale": True,
    "silent_ms": None,
    "lag_records": None,
    "lag_ms": None,
    "feed": None,
}
"""What an answer tells of its age before the first projection."""


def feed_id(generation: int, offsets: Sequence[int]) -> str:
    """Return an event id of the feed: the generation, and the next offset of each partition."""
    return f"{generation}:{','.join(map(str, offsets))}"


class Moments:
    """Reads moments, at most one at a time. Its methods raise RetryError, VersionError."""

    def __init__(self, reader: ViewReader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._kept: Moment | None = None
        self._error: RetryError | None = None
        self._until_s = 0.0
        self._lock = asyncio.Lock()
        self._seen: dict[tuple[int, int], tuple[Told, float]] = {}

    async def now(self) -> Moment | None:
        """Return the active generation's; None before the first projection.

        Raises ViewsGoneError where the store lost what the active generation had.
        """
        if self._clock.monotonic_s() < self._until_s:
            return self._last()
        async with self._lock:
            if self._clock.monotonic_s() < self._until_s:
                return self._last()
            try:
                active = (await self._reader.generations()).active
                found = None if active is None else await self.of(active)
            except RetryError as error:
                # Who asked meanwhile is told the same: a Redis that hangs, hangs for seconds.
                self._error = error
                self._until_s = self._clock.monotonic_s() + _KEPT_S
                raise
            if active is not None and found is None:
                # A swap between the two reads leaves the former there for a minute.
                raise ViewsGoneError(f"the views of generation {active} are gone from Redis")
            self._kept, self._error = found, None
            self._until_s = self._clock.monotonic_s() + _KEPT_S
            return found

    def _last(self) -> Moment | None:
        if self._error is not None:
            raise RetryError(str(self._error))
        return self._kept

    async def of(self, generation: int) -> Moment | None:
        """Return a generation's; None where it is not there, or being dropped."""
        at_ms = self._clock.now_ms()
        first = await self._reader.position(generation, 0)
        if first is None:
            return None
        others = await all_of(
            self._reader.position(generation, number) for number in range(1, first.partitions)
        )
        positions = (first, *others)
        if None in positions:
            return None
        told = [found for found in positions if found is not None]
        told = [
            self._by_this_clock(generation, number, position, at_ms)
            for number, position in enumerate(told)
        ]
        if len(self._seen) > _MOST_SEEN * len(told):
            self._seen = {
                place: seen for place, seen in self._seen.items() if place[0] == generation
            }
        return Moment(generation, tuple(told), at_ms)

    def _by_this_clock(
        self, generation: int, partition: int, position: ViewPosition, at_ms: int
    ) -> ViewPosition:
        """Return a position told no later than this server first saw what its projector told.

        A projector's clock may be ahead of this one: by it alone, one that is gone would look
        alive until its last word lies in the past.
        """
        if position.told is None:
            return position
        now_s, place = self._clock.monotonic_s(), (generation, partition)
        told, since_s = self._seen.get(place, (None, now_s))
        if told != position.told:
            since_s = now_s
            self._seen[place] = (position.told, now_s)
        seen_ms = at_ms - int((now_s - since_s) * 1_000)
        if position.told.at_ms <= seen_ms:
            return position
        return position._replace(told=position.told._replace(at_ms=seen_ms))


def _worst(told: Sequence[int | None]) -> int | None:
    """Return the largest; None, not known, is worse than any."""
    known = [figure for figure in told if figure is not None]
    return max(known) if len(known) == len(told) else None


def _sum(told: Sequence[int | None]) -> int | None:
    known = [figure for figure in told if figure is not None]
    return sum(known) if len(known) == len(told) else None
