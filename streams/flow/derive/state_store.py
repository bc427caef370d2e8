"""The state of the input partitions: a changelog, a compacted topic with a partition for each.

Restoring reads it from its first kept record to its committed end, so a transaction that was
never committed is never seen.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import NamedTuple

from contextgauge.errors import RetryError
from streams.ports import Log, NewRecord, started

_READ_RECORDS = 5_000
"""Records taken at once while restoring: a few megabytes."""

_READ_WAIT_S = 0.1
"""Patience of one poll while restoring: only a stretch of nothing but markers makes it wait."""


class ChangelogChunk(NamedTuple):
    """A part of a changelog as it is read back: keys with their values.

    `done` of the changelog's `total` offsets lie behind it. There are fewer entries than offsets:
    markers take some, and compaction took what was replaced.
    """

    entries: Sequence[tuple[bytes, bytes | None]]
    done: int
    total: int


class StateStore:
    """The changelog of the sessions' state, on a topic of the log.

    Keys are opaque bytes; a value of None deletes. What is written goes through the partition's
    transaction, so the store itself only turns changes into records and reads them back.
    """

    def __init__(self, log: Log, topic: str) -> None:
        self._log = log
        self._topic = topic

    async def restore(self, partition: int) -> AsyncGenerator[ChangelogChunk, None]:
        """Yield the changelog from its begin to its committed end, in chunks, in order.

        Raises RetryError where the end is there no longer.
        """
        async with started(self._log.reader(self._topic, [partition])) as reader:
            first, end = await reader.bounds(partition)
            position = first
            reader.seek(partition, first)
            while position < end:
                batch = await reader.poll(partition, _READ_RECORDS, _READ_WAIT_S)
                if batch.position == position and (await reader.bounds(partition))[1] < end:
                    raise RetryError(
                        f"{self._topic}-{partition} lost its end, {end}, while it was read"
                    )
                position = batch.position
                if batch.records:
                    entries = [(record.key or b"", record.value) for record in batch.records]
                    yield ChangelogChunk(entries, position - first, end - first)

    async def end(self, partition: int) -> int:
        """Return the changelog's committed end offset."""
        async with started(self._log.reader(self._topic, [partition])) as reader:
            return (await reader.bounds(partition))[1]

    def to_records(self, partition: int, changes: Mapping[bytes, bytes | None]) -> list[NewRecord]:
        """Return the changelog records of these changes."""
        return [NewRecord(self._topic, partition, key, value) for key, value in changes.items()]
