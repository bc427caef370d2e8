"""Replays a topic: messages are derived as a derive worker does it, records are read as they are.

One partition after the other, so that the sessions of only one are in memory. Nothing is
committed anywhere, and there is no consumer group.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NamedTuple

from contextgauge.partitioner import key_bytes
from streams.core.derivation.rules_config import Rules
from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import Passed, report_passed
from streams.flow.dead_letters.letters import Letter, letter_of
from streams.flow.dead_letters.reading import session_of_letter
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import text_of
from streams.flow.derive.partition_state import InputPartition, PartitionState
from streams.ports import Batch, Clock, Headers, LogRecord, NewRecord, PartitionReader


class Place(NamedTuple):
    """Where a range begins or ends: at the first record of a time or later, or at an offset.

    With a partition, the range is of that partition alone.
    """

    time_ms: int | None = None
    offset: int | None = None
    partition: int | None = None


class Replayed(NamedTuple):
    """What a part of a topic gave: records as binary-mode events, and dead letters."""

    records: Sequence[tuple[Headers, bytes]]
    dead: Sequence[Letter] = ()


@dataclass(slots=True)
class TopicReplay:
    """Reads what is in the partitions of a topic at `begin`, of one session or of all.

    `progress` gets the number of offsets read and in all, `passed` each batch that cannot be read;
    of messages that are derived, it is a dead letter. Raises RetryError if the broker is down.
    """

    reader: PartitionReader
    clock: Clock
    session_id: str | None = None
    progress: Callable[[int, int], None] = lambda _read, _of: None
    passed: Passed = report_passed
    offsets: int = 0
    """Offsets to read."""
    is_whole: bool = True
    """Whether every partition was read from its first record ever."""
    _ranges: list[tuple[int, int, int]] = field(default_factory=list)
    _read: int = 0

    async def begin(
        self, partitions: Sequence[int], begin: Place | None = None, end: Place | None = None
    ) -> None:
        """Look up what to read in these partitions: from `begin` to before `end`."""
        for partition in partitions:
            first, last = await self.reader.bounds(partition)
            lower, upper = first, last
            if begin is not None:
                lower = max(first, await self._offset(partition, begin))
            if end is not None:
                upper = min(last, await self._offset(partition, end))
            self.reader.seek(partition, last)  # so that nothing is fetched before it is needed
            self._ranges.append((partition, lower, upper))
            if lower < upper:
                self.offsets += upper - lower
                self.is_whole = self.is_whole and lower == 0

    async def _offset(self, partition: int, place: Place) -> int:
        if place.time_ms is not None:
            return await self.reader.offset_at(partition, place.time_ms)
        return place.offset or 0

    async def sessions_beginning(self, beginning: str) -> set[str]:
        """Return the sessions whose ids begin so, by their keys; only the one of this very id."""
        session_ids: set[str] = set()
        for place in self._ranges:
            async with aclosing(self._batches(*place)) as batches:
                async for records, _ in batches:
                    keys = {text_of(record.key) or "" for record in records}
                    session_ids |= {key for key in keys if key and key.startswith(beginning)}
                    if beginning in session_ids:
                        return {beginning}
        return session_ids

    async def records(self) -> AsyncGenerator[Replayed, None]:
        """Yield the records of a topic of records."""
        key = None if self.session_id is None else key_bytes(self.session_id)
        for place in self._ranges:
            async with aclosing(self._batches(*place)) as batches:
                async for messages, _ in batches:
                    yield Replayed(
                        [
                            (record.headers, record.value or b"")
                            for record in messages
                            if key is None or record.key == key
                        ]
                    )

    async def derived(
        self, rules: Rules, config: DeriveConfig, partitions: int
    ) -> AsyncGenerator[Replayed, None]:
        """Yield the records that the messages of a topic of so many partitions give."""
        for partition, lower, upper in self._ranges:
            place = InputPartition(partition, partitions, partitions)
            state = PartitionState(rules, config, place)
            batches = self._batches(partition, lower, upper, state.bury_batch)
            async with aclosing(batches):
                async for messages, position in batches:
                    state.apply(messages)
                    yield self._split(state.finish(position).records, config, partition)

    def _split(
        self, derived: Sequence[NewRecord], config: DeriveConfig, partition: int
    ) -> Replayed:
        session_id = self.session_id
        key = None if session_id is None else key_bytes(session_id)
        records: list[tuple[Headers, bytes]] = []
        dead: list[Letter] = []
        for record in derived:
            if record.topic == config.dead_topic:
                letter = letter_of(
                    partition, LogRecord(0, 0, record.key, record.value, record.headers)
                )
                # Of a batch it is not known whose messages it has.
                is_batch = letter.origin is not None and letter.origin.last_offset is not None
                if session_id is None or is_batch or session_of_letter(letter) == session_id:
                    dead.append(letter)
            elif key is None or record.key == key:
                records.append((record.headers, record.value or b""))
        return Replayed(records, dead)

    async def _batches(
        self, partition: int, lower: int, upper: int, passed: Passed | None = None
    ) -> AsyncGenerator[Batch, None]:
        """Yield the records of a range with the position after them, and show the progress."""

        def deleted() -> None:
            self.is_whole = False

        before = lower
        batches = read_range(
            self.reader,
            self.clock,
            partition,
            lower,
            upper,
            deleted=deleted,
            passed=passed or self.passed,
        )
        async with aclosing(batches):
            async for records, position in batches:
                self._read += position - before
                before = position
                self.progress(self._read, self.offsets)
                yield Batch(records, position)
