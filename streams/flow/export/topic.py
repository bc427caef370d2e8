"""Exports a topic of records: from where the last commit ended, to the end, again and again.

Partitions are read `read_committed` and without a consumer group. The position of a partition is
committed with the files that reach it, and with what proves later that the log is still the same.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from contextgauge.errors import ConfigError
from streams import codec
from streams.codec.columns import RecordPlace
from streams.flow.common.log_place import evidence
from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import Passed
from streams.flow.export.checkpoint import ExportedPartition
from streams.flow.export.export import Export
from streams.ports import Clock, LogPlace, LogRecord, PartitionReader

_ROWS_PER_COMMIT: Final = 2_000_000
"""A crash costs no more than reading these again; small commits make small files."""


@dataclass(slots=True)
class TopicExport:
    """Exports the partitions of a topic. `topic_id` is the topic's, empty where it has none.

    `progress` gets the number of offsets read and in all. `lost` gets a partition and how many of
    its offsets were deleted before they were exported, `passed` each batch that cannot be read.
    Raises VersionError for a record that this build cannot read: it must not be left out.
    """

    reader: PartitionReader
    clock: Clock
    export: Export
    topic: str
    topic_id: str
    passed: Passed
    lost: Callable[[int, int], None]
    is_stopped: Callable[[], bool] = lambda: False
    """Whether to end early, with what was read."""
    progress: Callable[[int, int], None] = lambda _read, _of: None
    _reached: dict[int, ExportedPartition] = field(default_factory=dict)

    async def check(self, partitions: Sequence[int]) -> None:
        """Raise ConfigError where a partition is not the log that was exported before."""
        for partition in partitions:
            known = self.export.partitions.get(partition)
            if known is None:
                continue
            found = await evidence(self.reader, self.clock, partition, known.place, record_id)
            is_proven = found == "same" or (
                found in ("expired", "none") and known.place.is_of(self.topic_id)
            )
            if not is_proven:
                raise ConfigError(
                    f"{self.topic}-{partition} is not the log that this folder has an export of "
                    f"(offset {known.place.offset}: {found.replace('_', ' ')}): export into "
                    "another folder"
                )

    async def run(self, partitions: Sequence[int]) -> int:
        """Export what is there now; return how many rows. Raises RetryError."""
        before = self.export.rows
        ranges = [(partition, *await self._range(partition)) for partition in partitions]
        of = sum(end - begin for _, begin, end in ranges)
        read = 0
        for partition, begin, end in ranges:
            if self.is_stopped():
                break
            async with aclosing(self._batches(partition, begin, end)) as batches:
                async for offsets in batches:
                    read += offsets
                    self.progress(read, of)
                    if self.export.uncommitted >= _ROWS_PER_COMMIT:
                        self._commit()
                    if self.is_stopped():
                        break
        if self._reached:
            self._commit()
        return self.export.rows - before

    def _commit(self) -> None:
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
                self.lost(partition, first - begin)
            begin = first
        return begin, max(begin, end)

    async def _batches(self, partition: int, begin: int, end: int) -> AsyncGenerator[int, None]:
        """Take the records of a range; yield how many offsets each batch took."""
        position, last = begin, None
        batches = read_range(
            self.reader,
            self.clock,
            partition,
            begin,
            end,
            deleted=lambda: None,
            passed=self.passed,
        )
        async with aclosing(batches):
            async for records, after in batches:
                for message in records:
                    self._take(partition, message)
                    last = message
                taken, position = after - position, after
                self._reached[partition] = self._position(partition, position, last)
                yield taken

    def _take(self, partition: int, message: LogRecord) -> None:
        record = codec.from_binary(message.headers, message.value or b"")
        self.export.add([(record, RecordPlace(self.topic, partition, message.offset))])

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
