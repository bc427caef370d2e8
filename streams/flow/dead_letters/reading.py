"""Reads dead letters, selected by reason, time, position or session.

To list them, newest first: backwards from the end, in growing ranges, so that fifty out of a
million cost no more than fifty out of a hundred. To send them again, in the order of the original
messages: the letters of one session may be on several partitions.
"""

import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from contextgauge.normalise import session_of
from streams import codec
from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import Passed, report_passed
from streams.flow.dead_letters.letters import Letter, letter_of
from streams.flow.derive.deriver import text_of
from streams.ports import Clock, PartitionReader

CLOCKS_MS = 10 * 60 * 1000
"""Letters have timestamps of the workers' clocks, which may differ by this much without `until`
missing any: the end of the range is looked up by time, and each letter's own timestamp decides."""

_FIRST_RANGE = 64
_LONGEST_RANGE = 16_384
"""Offsets read at a time when reading backwards: doubled as long as more are needed."""

T = TypeVar("T")


class Span(NamedTuple):
    """Offsets of one partition, from `begin` to before `end`; None: to the last."""

    partition: int
    begin: int
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which letters: all conditions must hold, with any of the `spans` and any of the `reasons`.

    Times are those at which messages became dead letters, in milliseconds since 1970: from
    `since_ms` to before `until_ms`.
    """

    spans: tuple[Span, ...] = ()
    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    session_id: str | None = None

    def matches(self, letter: Letter) -> bool:
        """Return whether a letter in the spans meets the other conditions."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (self.since_ms is None or letter.died_ms >= self.since_ms)
            and (self.until_ms is None or letter.died_ms < self.until_ms)
            and (self.session_id is None or session_of_letter(letter) == self.session_id)
        )


def session_of_letter(letter: Letter) -> str | None:
    """Return the session that the message names, else its key (R1), if it is readable."""
    hint = text_of(letter.key)
    body = codec.decode(letter.value)
    return session_of(body, hint) if isinstance(body, dict) else hint


@dataclass(slots=True)
class DeadReading(Generic[T]):
    """Reads the dead letters that exist at its `begin`.

    `take` extracts what the caller needs of each letter, so that a list holds no messages.
    `progress` gets the number of offsets read and in all, `passed` each batch that cannot be read.
    Raises RetryError if the broker is down.
    """

    reader: PartitionReader
    clock: Clock
    selection: Selection
    take: Callable[[Letter], T]
    progress: Callable[[int, int], None] = lambda _read, _of: None
    passed: Passed = report_passed
    _spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _offsets: int = 0
    _read: int = 0

    async def begin(self, partitions: Iterable[int]) -> None:
        """Look up the ranges to read in these partitions; later letters are not read."""
        for partition in partitions:
            first, end = await self._bounds(partition)
            ranges = [
                (max(span.begin, first), end if span.end is None else min(span.end, end))
                for span in self.selection.spans or (Span(partition, 0, None),)
                if span.partition == partition
            ]
            self._spans[partition] = _merged(ranges)
            self.reader.seek(partition, end)  # so that nothing is fetched before it is needed
        self._offsets = sum(end - begin for spans in self._spans.values() for begin, end in spans)

    async def _bounds(self, partition: int) -> tuple[int, int]:
        first, end = await self.reader.bounds(partition)
        selection = self.selection
        if selection.since_ms is not None:
            first = max(first, await self.reader.offset_at(partition, selection.since_ms))
        if selection.until_ms is not None:
            late_ms = selection.until_ms + CLOCKS_MS
            end = min(end, await self.reader.offset_at(partition, late_ms))
        return first, end

    def as_sent(self) -> AsyncIterator[T]:
        """Yield letters by the original Kafka timestamps; each partition's order is kept."""
        self._read = 0
        return _merge({partition: self._forwards(partition) for partition in self._spans})

    def newest_first(self) -> AsyncIterator[T]:
        """Yield the letters, those that became dead letters last first."""
        self._read = 0
        return _merge({partition: self._backwards(partition) for partition in self._spans})

    async def _forwards(self, partition: int) -> AsyncIterator[tuple[int, T]]:
        for begin, end in self._spans[partition]:
            async for letters in self._letters(partition, begin, end):
                for letter in letters:
                    origin = letter.origin
                    sent_ms = letter.died_ms if origin is None else origin.timestamp_ms
                    yield sent_ms, self.take(letter)

    async def _backwards(self, partition: int) -> AsyncIterator[tuple[int, T]]:
        length = _FIRST_RANGE
        for begin, end in reversed(self._spans[partition]):
            upper = end
            while upper > begin:
                lower = max(begin, upper - length)
                items: list[tuple[int, T]] = []
                async for letters in self._letters(partition, lower, upper):
                    items += [(-letter.died_ms, self.take(letter)) for letter in letters]
                for item in reversed(items):
                    yield item
                upper, length = lower, min(2 * length, _LONGEST_RANGE)

    async def _letters(
        self, partition: int, begin: int, end: int
    ) -> AsyncIterator[Sequence[Letter]]:
        """Yield the selected letters of a range, batch by batch."""
        position = begin
        batches = read_range(self.reader, self.clock, partition, begin, end, passed=self.passed)
        async for records, after in batches:
            self._read += after - position
            position = after
            self.progress(self._read, self._offsets)
            letters = [letter_of(partition, record) for record in records]
            yield [letter for letter in letters if self.selection.matches(letter)]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges in order, without empty ones; overlapping ranges become one."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if begin < end and merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif begin < end:
            merged.append((begin, end))
    return merged


async def _merge(streams: Mapping[int, AsyncIterator[tuple[int, T]]]) -> AsyncIterator[T]:
    """Merge streams of numbered items by their numbers; each stream's order is kept."""
    # Each stream has one item here at most, so two items are never compared themselves.
    heads: list[tuple[int, int, T]] = []

    async def advance(partition: int) -> None:
        head = await anext(streams[partition], None)
        if head is not None:
            heapq.heappush(heads, (head[0], partition, head[1]))

    for partition in streams:
        await advance(partition)
    while heads:
        _, partition, item = heapq.heappop(heads)
        yield item
        await advance(partition)
