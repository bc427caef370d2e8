"""Reads dead letters: some of them, by reason, time, place or session.

The newest first, to look at: from the end backwards, in growing stretches, so that fifty out of a
million cost no more than fifty out of a hundred. Or in the order in which they were sent, to send
them again: the letters of one session may lie on several partitions.
"""

import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from contextgauge.errors import PositionError, RetryError
from contextgauge.normalise import session_of
from streams import codec
from streams.flow.dead_letters.letters import Letter, letter_of
from streams.flow.derive.intake import text_of
from streams.ports import Clock, PartitionReader

CLOCKS_MS = 10 * 60 * 1000
"""Letters are stamped by the workers' clocks. By so much these may differ without `until` missing
any: the end of what is read is looked up by time, and each letter's own time decides."""

_FIRST_STRETCH = 64
_LONGEST_STRETCH = 16_384
"""Offsets read at a time when reading backwards: doubled where they do not do."""

_BATCH_RECORDS = 500
_POLL_S = 1.0

_SILENCE_S = 30.0
"""A broker from which nothing has come for so long is away."""

T = TypeVar("T")


class Span(NamedTuple):
    """Offsets of one partition, from `begin` to before `end`; None: to the last."""

    partition: int
    begin: int
    end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which letters. All that is given must hold; `spans` and `reasons`: any of them.

    Times are those at which messages became dead letters, in milliseconds since 1970: from
    `since_ms` to before `until_ms`.
    """

    spans: tuple[Span, ...] = ()
    reasons: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    session_id: str | None = None

    def matches(self, letter: Letter) -> bool:
        """Tell whether a letter, of the spans, is one of them."""
        return (
            (not self.reasons or letter.reason in self.reasons)
            and (self.since_ms is None or letter.died_ms >= self.since_ms)
            and (self.until_ms is None or letter.died_ms < self.until_ms)
            and (self.session_id is None or session_of_letter(letter) == self.session_id)
        )


def session_of_letter(letter: Letter) -> str | None:
    """Return the session that the message names, else its key (R1), as far as it can be read."""
    hint = text_of(letter.key)
    body = codec.decode(letter.value)
    return session_of(body, hint) if isinstance(body, dict) else hint


@dataclass(slots=True)
class DeadReading(Generic[T]):
    """One look at the dead letters that are there when it begins.

    `take` makes of each letter what is kept of it, so that a list holds no messages. `progress`
    is told how many offsets were read, of how many. Raises RetryError where the broker is away.
    """

    reader: PartitionReader
    clock: Clock
    selection: Selection
    take: Callable[[Letter], T]
    progress: Callable[[int, int], None]
    _spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _offsets: int = 0
    _read: int = 0

    async def begin(self, partitions: Iterable[int]) -> None:
        """Look up what is to be read of these partitions; letters that come later are not."""
        for partition in partitions:
            first, end = await self._bounds(partition)
            wanted = [
                (max(span.begin, first), end if span.end is None else min(span.end, end))
                for span in self.selection.spans or (Span(partition, 0, None),)
                if span.partition == partition
            ]
            self._spans[partition] = list(_merged(wanted))
            self.reader.seek(partition, end)  # so that nothing is fetched before it is asked for
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

    async def as_sent(self) -> AsyncIterator[T]:
        """Yield the letters by the Kafka time of the messages, each partition's in its order."""
        self._read = 0
        async for item in _merge({p: self._forwards(p) for p in self._spans}):
            yield item

    async def newest_first(self) -> AsyncIterator[T]:
        """Yield the letters, those that died last first."""
        self._read = 0
        async for item in _merge({p: self._backwards(p) for p in self._spans}):
            yield item

    async def _forwards(self, partition: int) -> AsyncIterator[tuple[int, T]]:
        for begin, end in self._spans[partition]:
            async for letters in self._letters(partition, begin, end):
                for letter in letters:
                    origin = letter.origin
                    sent_ms = letter.died_ms if origin is None else origin.timestamp_ms
                    yield sent_ms, self.take(letter)

    async def _backwards(self, partition: int) -> AsyncIterator[tuple[int, T]]:
        length = _FIRST_STRETCH
        for begin, end in reversed(self._spans[partition]):
            upper = end
            while upper > begin:
                lower = max(begin, upper - length)
                found: list[tuple[int, T]] = []
                async for letters in self._letters(partition, lower, upper):
                    found += [(-letter.died_ms, self.take(letter)) for letter in letters]
                for pair in reversed(found):
                    yield pair
                upper, length = lower, min(2 * length, _LONGEST_STRETCH)

    async def _letters(
        self, partition: int, begin: int, end: int
    ) -> AsyncIterator[Sequence[Letter]]:
        """Yield the letters of a stretch that are selected, as they come."""
        reader, position = self.reader, begin
        reader.seek(partition, position)
        heard_s = self.clock.monotonic_s()
        while position < end:
            try:
                batch = await reader.poll(partition, _BATCH_RECORDS, _POLL_S)
            except PositionError:
                # Retention took the oldest letters while they were being read.
                first, _ = await reader.bounds(partition)
                if first <= position:
                    raise
                self._told(min(first, end) - position)
                position = first
                reader.seek(partition, position)
                continue
            if batch.position > position:
                self._told(min(batch.position, end) - position)
                position, heard_s = batch.position, self.clock.monotonic_s()
            elif self.clock.monotonic_s() - heard_s > _SILENCE_S:
                raise RetryError(f"reading dead letters: nothing came for {_SILENCE_S:.0f} s")
            letters = [letter_of(partition, each) for each in batch.records if each.offset < end]
            yield [letter for letter in letters if self.selection.matches(letter)]

    def _told(self, offsets: int) -> None:
        self._read += offsets
        self.progress(self._read, self._offsets)


def _merged(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in order, without those that are empty; what overlaps is one."""
    before: tuple[int, int] | None = None
    for begin, end in sorted(spans):
        if begin >= end:
            continue
        if before is not None and begin <= before[1]:
            before = (before[0], max(before[1], end))
            continue
        if before is not None:
            yield before
        before = (begin, end)
    if before is not None:
        yield before


async def _merge(streams: Mapping[int, AsyncIterator[tuple[int, T]]]) -> AsyncIterator[T]:
    """Yield the items of several streams, always the one with the least number among the next."""
    tie = count()
    heads: list[tuple[int, int, int, T]] = []

    async def advance(partition: int) -> None:
        found = await anext(streams[partition], None)
        if found is not None:
            heapq.heappush(heads, (found[0], partition, next(tie), found[1]))

    for partition in streams:
        await advance(partition)
    while heads:
        _, partition, _, item = heapq.heappop(heads)
        yield item
        await advance(partition)
