"""Which generation is active and how far each of its partitions is: the base of every answer.

A snapshot is read before the documents of an answer, so they are never older than it says. It is
cached for a tenth of a second, so many readers that poll cost Redis as much as one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from contextgauge.errors import RetryError
from schemas.records import Json
from streams.ports import Clock, ProjectorHeartbeat, ViewPosition, ViewReader

_Result = TypeVar("_Result")

_CACHED_S: Final = 0.1
"""Clients that look at once share one look at the store."""

STALE_MS: Final = 10_000
"""A projector reports on each partition about every second. When it has been silent or behind for
this long it is stalled, gone or overloaded, and its views are out of date."""

_REPORTED_GENERATIONS: Final = 4
"""Generations whose reports are remembered: more than are read at a time."""


class ViewsGoneError(LookupError):
    """The active generation's views are gone; the message says what to do."""


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run coroutines concurrently; wait for all, then raise the first error.

    `asyncio.gather` raises at once: the other coroutines would still run while the caller goes on.
    """
    results: list[_Result] = []
    for result in await asyncio.gather(*coroutines, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


class PartitionAge(NamedTuple):
    """How old a partition's views are by its projector's last report; None: unknown.

    `end` is the end of its log then. `lag_ms` is for how long it has been behind; it grows until
    the next report.
    """

    end: int | None = None
    silent_ms: int | None = None
    lag_records: int | None = None
    lag_ms: int | None = None

    @classmethod
    def of(cls, position: ViewPosition, at_ms: int) -> "PartitionAge":
        """Return the age of a partition at this time."""
        report = position.heartbeat
        if report is None:
            return cls()
        silent_ms = max(at_ms - report.at_ms, 0)
        lag_records = None if report.end is None else max(report.end - position.offset, 0)
        lag_ms = report.lag_ms + silent_ms if report.lag_ms or lag_records else 0
        return cls(report.end, silent_ms, lag_records, lag_ms)

    @property
    def is_stale(self) -> bool:
        """Whether the views are older than a working projector leaves them."""
        return any(ms is None or ms > STALE_MS for ms in (self.silent_ms, self.lag_ms))


class Snapshot(NamedTuple):
    """A generation and the positions of its partitions, read at `at_ms`."""

    generation: int
    positions: tuple[ViewPosition, ...]
    at_ms: int

    @property
    def partitions(self) -> int:
        """How many partitions sessions are spread over."""
        return len(self.positions)

    @property
    def feed(self) -> str:
        """The event id from which the live feed continues this snapshot."""
        return feed_id(self.generation, [position.offset for position in self.positions])

    def ages(self) -> list[PartitionAge]:
        """Return the age of each partition."""
        return [PartitionAge.of(position, self.at_ms) for position in self.positions]

    @property
    def is_stale(self) -> bool:
        """Whether any partition's views are stale."""
        return not self.positions or any(age.is_stale for age in self.ages())

    @property
    def build(self) -> str:
        """The build of the generation: numbers start at 1 again after Redis lost everything."""
        return self.positions[0].build if self.positions else ""

    @property
    def version(self) -> tuple[int, str, bool]:
        """What an answer about one session depends on, apart from its view."""
        return (self.generation, self.build, self.is_stale)

    @property
    def position(self) -> tuple[int, str, tuple[int, ...], bool]:
        """What an answer about all partitions depends on, apart from its parameters."""
        offsets = tuple(position.offset for position in self.positions)
        return (self.generation, self.build, offsets, self.is_stale)

    def as_of(self) -> dict[str, Json]:
        """Return the age of an answer; see docs/API.md."""
        ages = self.ages()
        return {
            "at_ms": self.at_ms or None,
            "stale": self.is_stale,
            "silent_ms": _of_all(max, [age.silent_ms for age in ages]),
            "lag_records": _of_all(sum, [age.lag_records for age in ages]),
            "lag_ms": _of_all(max, [age.lag_ms for age in ages]),
            "feed": self.feed if self.positions else None,
        }

    def of_partitions(self) -> list[Json]:
        """Return the same of each partition."""
        return [
            {"partition": number, "position": self.positions[number].offset, **age._asdict()}
            for number, age in enumerate(self.ages())
        ]


NOTHING_YET: Final = Snapshot(0, (), 0)
"""What there is before the first projection: generations are numbered from 1."""


def feed_id(generation: int, offsets: Sequence[int]) -> str:
    """Return an event id of the feed: the generation, and the next offset of each partition."""
    return f"{generation}:{','.join(map(str, offsets))}"


class Snapshots:
    """Reads snapshots, at most one at a time. Its methods raise RetryError, VersionError."""

    def __init__(self, reader: ViewReader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._snapshot: Snapshot | None = None
        self._error: RetryError | None = None
        self._until_s = 0.0
        self._lock = asyncio.Lock()
        self._reports: dict[tuple[int, int], tuple[ProjectorHeartbeat, float]] = {}

    async def now(self) -> Snapshot | None:
        """Return the active generation's snapshot; None before the first projection.

        Raises ViewsGoneError where the store lost what the active generation had.
        """
        async with self._lock:
            if self._clock.monotonic_s() >= self._until_s:
                await self._refresh()
            if self._error is not None:
                # Waiting callers get the same error: a Redis that hangs, hangs for seconds.
                raise type(self._error)(str(self._error)) from self._error
            return self._snapshot

    async def _refresh(self) -> None:
        self._error = None
        try:
            active = (await self._reader.generations()).active
            self._snapshot = None if active is None else await self.of(active)
        except RetryError as error:
            self._error = error
        else:
            if active is not None and self._snapshot is None:
                # A swap between the two reads keeps the former generation for a minute.
                raise ViewsGoneError(
                    f"the views of generation {active} are gone from Redis: a project worker "
                    "rebuilds them from the log. Check that one is running, then try again"
                )
        self._until_s = self._clock.monotonic_s() + _CACHED_S

    async def of(self, generation: int) -> Snapshot | None:
        """Return a generation's snapshot; None where it is missing or being dropped."""
        at_ms = self._clock.now_ms()
        first = await self._reader.position(generation, 0)
        if first is None:
            return None
        others = await gather_all(
            self._reader.position(generation, number) for number in range(1, first.partitions)
        )
        positions = []
        for number, position in enumerate((first, *others)):
            if position is None:
                return None
            positions.append(self._by_this_clock(generation, number, position, at_ms))
        if len(self._reports) > _REPORTED_GENERATIONS * len(positions):
            self._reports = {
                key: report for key, report in self._reports.items() if key[0] == generation
            }
        return Snapshot(generation, tuple(positions), at_ms)

    def _by_this_clock(
        self, generation: int, partition: int, position: ViewPosition, at_ms: int
    ) -> ViewPosition:
        """Return a position with its report dated no later than this server first saw it.

        A projector's clock may be ahead of this one: by its own time alone, one that is gone would
        look alive until its last report lies in the past.
        """
        if position.heartbeat is None:
            return position
        now_s, key = self._clock.monotonic_s(), (generation, partition)
        report, since_s = self._reports.get(key, (None, now_s))
        if report != position.heartbeat:
            since_s = now_s
            self._reports[key] = (position.heartbeat, now_s)
        seen_ms = at_ms - int((now_s - since_s) * 1_000)
        if position.heartbeat.at_ms <= seen_ms:
            return position
        return position._replace(heartbeat=position.heartbeat._replace(at_ms=seen_ms))


def _of_all(together: Callable[[Iterable[int]], int], figures: Sequence[int | None]) -> int | None:
    """Return the largest or the sum; None where one is unknown, and of none."""
    known = [figure for figure in figures if figure is not None]
    return together(known) if known and len(known) == len(figures) else None
