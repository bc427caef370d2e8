"""A `RecordStream` without Faust: one member that has all partitions, over any log's readers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from streams.ports import ArrivalHandler, Log, LogRecord, PartitionReader

_TAKEN: Final = 500
_WAIT_S: Final = 0.02


class _Arrival:
    def __init__(self, acknowledged: dict[int, int], partition: int, record: LogRecord) -> None:
        self._acknowledged = acknowledged
        self.partition, self.record = partition, record

    def release(self) -> None:
        """Drop the bytes."""
        self.record = self.record._replace(key=None, value=None, headers=())

    def acknowledge(self) -> None:
        """Commit the position after it."""
        self._acknowledged[self.partition] = self.record.offset + 1


class MemoryRecordStream:
    """Reads all partitions of a topic. `acknowledged` are the group's positions: they outlive it.

    `since_ms` tells the time before which no record is of use.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        partitions: Sequence[int],
        acknowledged: dict[int, int],
        since_ms: Callable[[], int],
    ) -> None:
        self._log, self._topic, self._partitions = log, topic, partitions
        self._acknowledged, self._since_ms = acknowledged, since_ms
        self._behind: dict[int, int] = {}

    async def run(self, handler: ArrivalHandler, stop: asyncio.Event) -> None:
        """Hand records over until `stop` is set; see the port."""
        reader = self._log.reader(self._topic, self._partitions)
        await reader.start()
        try:
            positions = {}
            for partition in self._partitions:
                recent = await reader.offset_at(partition, self._since_ms())
                positions[partition] = max(self._acknowledged.get(partition, 0), recent)
                reader.seek(partition, positions[partition])
            handler.assigned(positions)
            while not stop.is_set():
                for partition in self._partitions:
                    await self._hand_over(reader, handler, partition)
        finally:
            handler.revoked()
            await reader.stop()

    async def _hand_over(
        self, reader: PartitionReader, handler: ArrivalHandler, partition: int
    ) -> None:
        batch = await reader.poll(partition, _TAKEN, _WAIT_S)
        ends = reader.ends(partition)
        self._behind[partition] = max(0, ends.stable - batch.position) if ends else 0
        if batch.records:
            await handler.take(
                [_Arrival(self._acknowledged, partition, record) for record in batch.records]
            )

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet."""
        return self._behind.get(partition)
