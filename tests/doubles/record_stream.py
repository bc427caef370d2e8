"""A `RecordStream` without Faust: one member that has all partitions, over any log's readers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from contextgauge.errors import PositionError
from streams.flow.common.unreadable import poll_past
from streams.ports import Log, LogRecord, PartitionReader, RecordHandler

_TAKEN: Final = 500
_WAIT_S: Final = 0.02


class _Arrival:
    def __init__(self, stream: "MemoryRecordStream", partition: int, record: LogRecord) -> None:
        self._stream, self._assignment = stream, stream.assignment
        self.partition, self.record = partition, record

    def is_current(self) -> bool:
        """Tell whether the partitions were not given anew since."""
        return self._assignment == self._stream.assignment

    def release(self) -> None:
        """Drop the bytes."""
        self.record = self.record._replace(key=None, value=None, headers=())

    def acknowledge(self) -> None:
        """Commit the position after it."""
        if self.is_current():
            self._stream.acknowledged[self.partition] = self.record.offset + 1


class MemoryRecordStream:
    """Reads all partitions of a topic. `acknowledged` are the group's positions: they outlive it.

    `since_ms` tells the time before which no record is of use where nothing was acknowledged yet,
    `pending_ms` that before which none is that was not acknowledged.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        partitions: Sequence[int],
        acknowledged: dict[int, int],
        since_ms: Callable[[], int],
        pending_ms: Callable[[], int],
    ) -> None:
        self._log, self._topic, self._partitions = log, topic, partitions
        self.acknowledged = acknowledged
        self._since_ms, self._pending_ms = since_ms, pending_ms
        self.assignment = 0
        """Counts them: who handles what came before the last one is late."""
        self._behind: dict[int, int] = {}
        self._reader: PartitionReader | None = None
        self._handler: RecordHandler | None = None

    async def run(self, handler: RecordHandler, stop: asyncio.Event) -> None:
        """Hand records over until `stop` is set; see the port."""
        reader = self._reader = self._log.reader(self._topic, self._partitions)
        self._handler = handler
        await reader.start()
        try:
            await self._assign(reader, handler)
            while not stop.is_set():
                for partition in self._partitions:
                    await self._hand_over(reader, handler, partition)
        finally:
            self._revoke(handler)
            self._reader = self._handler = None
            await reader.stop()

    async def rebalance(self) -> None:
        """Lose the partitions and be given them again, as when a member comes and goes."""
        reader, handler = self._reader, self._handler
        if reader is None or handler is None:
            raise RuntimeError("the stream does not run")
        self._revoke(handler)
        await self._assign(reader, handler)

    def _revoke(self, handler: RecordHandler) -> None:
        self.assignment += 1
        handler.revoked()

    async def _assign(self, reader: PartitionReader, handler: RecordHandler) -> None:
        positions = {}
        for partition in self._partitions:
            known = self.acknowledged.get(partition)
            since_ms = self._since_ms() if known is None else self._pending_ms()
            positions[partition] = max(known or 0, await reader.offset_at(partition, since_ms))
            self.acknowledged.setdefault(partition, positions[partition])
        for partition, position in positions.items():
            reader.seek(partition, position)
        handler.assigned(positions)

    async def _hand_over(
        self, reader: PartitionReader, handler: RecordHandler, partition: int
    ) -> None:
        try:
            batch = await poll_past(reader, partition, _TAKEN, _WAIT_S)
        except PositionError:  # Faust's consumer goes on at the first record
            first, _ = await reader.bounds(partition)
            reader.seek(partition, first)
            return
        ends = reader.ends(partition)
        if batch.records:
            self._behind[partition] = len(batch.records)
            await handler.handle([_Arrival(self, partition, record) for record in batch.records])
        self._behind[partition] = max(0, ends.stable - batch.position) if ends else 0

    def behind(self, partition: int) -> int | None:
        """Return how many offsets are not handed over yet."""
        return self._behind.get(partition)
