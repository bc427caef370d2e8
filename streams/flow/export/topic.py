"""Exports a topic of records: from where the last commit ended to the end, once or repeatedly.

Partitions are read `read_committed` and without a consumer group. The position of a partition is
committed with the files that reach it, and with what proves later that the log is still the same.
Each time its partitions are counted again, and whether they are still of the same log is checked.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from contextgauge.backoff import Backoff, sleep_until
from contextgauge.errors import ConfigError, RetryError
from streams import codec
from streams.codec.columns import RecordPlace
from streams.flow.common.log_place import evidence, is_of_topic
from streams.flow.common.ranges import read_range
from streams.flow.common.topic_watch import known_topics
from streams.flow.common.unreadable import Passed
from streams.flow.export.checkpoint import ExportedPartition
from streams.flow.export.export import Export
from streams.ports import Clock, Log, LogPlace, LogRecord, PartitionReader, started

_ROWS_PER_COMMIT: Final = 2_000_000
"""A crash costs no more than reading these again; small commits make small files."""

SMALL_FILES: Final = 16
"""So many of a kind and day are not merged yet while a topic is followed."""

ShowProgress: TypeAlias = Callable[[], AbstractContextManager[Callable[[int, int], None]]]
"""Opens what gets the number of offsets read and in all."""


@dataclass(slots=True, kw_only=True)
class TopicSource:
    """A topic of records, and how its export is observed.

    `lost` gets a partition and how many of its offsets were deleted before they were exported,
    `passed` each batch that cannot be read. `stop` ends an export early, with what was read.
    """

    log: Log
    clock: Clock
    topic: str
    stop: asyncio.Event
    passed: Passed
    lost: Callable[[int, int], None]
    progress: ShowProgress = lambda: nullcontext(lambda _read, _of: None)


async def export_once(source: TopicSource, export: Export) -> int:
    """Export what is there now; return how many rows.

    Raises RetryError, ConfigError for a missing topic and for a log that is not the one that was
    exported before, and VersionError for a record that this build cannot read: it must not be left
    out.
    """
    known = (await known_topics(source.log, source.clock, [source.topic]))[source.topic]
    partitions = range(known.partitions)
    async with started(source.log.reader(source.topic, partitions)) as reader:
        exported = _TopicExport(source, export, reader, known.id)
        await exported.check(partitions)
        return await exported.run(partitions)


async def follow(
    source: TopicSource,
    opened: Callable[[], Export],
    every_s: float,
    done: Callable[[Export], None],
    failed: Callable[[RetryError, float], None],
    *,
    merge: bool = False,
) -> None:
    """Export what is new every so many seconds, until stopped.

    While Kafka or the folder is away it is tried again: `failed` gets the error and the pause
    before the next time. What was taken and not committed is then taken again by another export,
    which `opened` gives. `done` gets an export after its first time, and where there was something
    new. Raises as `export_once`, but RetryError.
    """
    backoff = Backoff(source.clock, source.stop)
    while not source.stop.is_set():
        try:
            await source.log.start()
            with opened() as export:
                is_first = True
                while is_first or not source.stop.is_set():
                    rows = await export_once(source, export)
                    if rows or is_first:
                        done(export)
                    if merge and (rows or is_first):
                        export.merge_small(more_than=SMALL_FILES)
                    backoff.reset()
                    is_first = False
                    await sleep_until(source.clock, source.stop, every_s)
                if merge:
                    export.merge_small()
        except RetryError as error:
            failed(error, backoff.next_s)
            await backoff.wait()


@dataclass(slots=True)
class _TopicExport:
    """Exports partitions once. `topic_id` is the topic's, empty where it has none."""

    source: TopicSource
    export: Export
    reader: PartitionReader
    topic_id: str
    _reached: dict[int, ExportedPartition] = field(default_factory=dict)

    async def check(self, partitions: Sequence[int]) -> None:
        """Raise ConfigError where a partition is not the log that was exported before."""
        for partition in partitions:
            known = self.export.partitions.get(partition)
            if known is None:
                continue
            clock, place = self.source.clock, known.place
            proof = await evidence(self.reader, clock, partition, place, record_id)
            is_proven = proof == "same" or (
                proof in ("expired", "none") and place.is_of(self.topic_id)
            )
            if not is_proven:
                words = proof.replace("_", " ")
                raise self._other_log(f"partition {partition}, offset {place.offset}: {words}")

    def _other_log(self, reason: str) -> ConfigError:
        return ConfigError(
            f"{self.source.topic} is not the log that this folder has an export of ({reason}): "
            "export into another folder"
        )

    async def run(self, partitions: Sequence[int]) -> int:
        """Export what is there now; return how many rows. Raises RetryError."""
        before = self.export.rows
        stop = self.source.stop
        ranges = [(partition, *await self._range(partition)) for partition in partitions]
        of = sum(end - begin for _, begin, end in ranges)
        read = 0
        with self.source.progress() as progress:
            for partition, begin, end in ranges:
                if stop.is_set():
                    break
                async with aclosing(self._batches(partition, begin, end)) as batches:
                    async for offsets in batches:
                        read += offsets
                        progress(read, of)
                        if self.export.uncommitted >= _ROWS_PER_COMMIT:
                            await self._commit()
                        if stop.is_set():
                            break
        if self._reached:
            await self._commit()
        return self.export.rows - before

    async def _commit(self) -> None:
        """Commit what was read. Raises ConfigError where the topic is another one by now."""
        if not await is_of_topic(self.source.log, self.source.topic, self.topic_id):
            raise self._other_log("it was created again")
        self.export.commit(self._reached)
        self._reached = {}

    async def _range(self, partition: int) -> tuple[int, int]:
        """Return what is to be exported of a partition: from where, to before where."""
        first, end = await self.reader.bounds(partition)
        self.reader.seek(partition, end)  # so that nothing is fetched before it is needed
        known = self.export.partitions.get(partition)
        begin = 0 if known is None else known.offset
        if begin < first:
            if known is not None:
                self.source.lost(partition, first - begin)
            begin = first
        return begin, max(begin, end)

    async def _batches(self, partition: int, begin: int, end: int) -> AsyncGenerator[int, None]:
        """Take the records of a range; yield how many offsets each batch took."""
        position, last = begin, None
        gaps: list[int] = []
        batches = read_range(
            self.reader,
            self.source.clock,
            partition,
            begin,
            end,
            deleted=lambda: gaps.append(position),
            passed=self.source.passed,
        )
        async with aclosing(batches):
            async for records, after in batches:
                if gaps:
                    self.source.lost(partition, after - gaps.pop())
                for message in records:
                    self._take(partition, message)
                    last = message
                taken, position = after - position, after
                self._reached[partition] = self._position(partition, position, last)
                yield taken

    def _take(self, partition: int, message: LogRecord) -> None:
        record = codec.from_binary(message.headers, message.value or b"")
        self.export.add([(record, RecordPlace(self.source.topic, partition, message.offset))])

    def _position(self, partition: int, offset: int, last: LogRecord | None) -> ExportedPartition:
        if last is not None:
            return ExportedPartition(
                offset=offset, place=LogPlace(self.topic_id, last.offset, record_id(last))
            )
        known = self.export.partitions.get(partition)
        place = LogPlace(self.topic_id) if known is None else known.place
        return ExportedPartition(offset=offset, place=place)


def record_id(record: LogRecord) -> str | None:
    """Return what identifies a record of `context.events`: its CloudEvents id."""
    return codec.header_texts(record.headers).get("ce_id")
