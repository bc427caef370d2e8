"""A partition of the log in memory: records, transactions and their markers."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from contextgauge.errors import PositionError
from streams.ports import Batch, LogRecord, UnreadableBatch, UnreadableBatchError

Fate: TypeAlias = Literal["open", "committed", "aborted"]


@dataclass(slots=True)
class Transaction:
    """One transaction: its records are read once it is committed."""

    fate: Fate = "open"
    partitions: list["MemoryTopicPartition"] = field(default_factory=list)

    def end(self, fate: Fate) -> None:
        self.fate = fate
        for partition in self.partitions:
            # The marker takes an offset, as in Kafka.
            partition.append(None, None)


@dataclass(slots=True)
class _Entry:
    """What one offset holds: a record, or (None) a marker or a compacted record.

    Or (None) one of a batch that cannot be read.
    """

    record: LogRecord | None
    transaction: Transaction | None
    unreadable: UnreadableBatch | None = None


class MemoryTopicPartition:
    """One partition. An offset is an index; those before `first` are no longer kept."""

    def __init__(self, max_message_bytes: int) -> None:
        self.first = 0
        self.max_message_bytes = max_message_bytes
        self.entries: list[_Entry] = []
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._stable = 0

    def append(self, record: LogRecord | None, transaction: Transaction | None) -> None:
        """Append a record, or a marker, and wake who waits for it."""
        self.entries.append(_Entry(record, transaction))
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def append_unreadable(self, batch: UnreadableBatch) -> None:
        """Append a batch that cannot be read."""
        first, end = self.next_offset, self.next_offset + batch.records
        batch = batch._replace(first_offset=first, next_offset=end)
        self.entries += [_Entry(None, None, batch) for _ in range(batch.records - 1)]
        self.append(None, None)
        self.entries[-1].unreadable = batch

    @property
    def next_offset(self) -> int:
        """The offset that the next record will have."""
        return len(self.entries)

    def stable_end(self) -> int:
        """Return the committed end: the first record of an open transaction, else the end."""
        entries = self.entries
        # From where the last look ended: a transaction that has ended never opens again.
        while self._stable < len(entries):
            transaction = entries[self._stable].transaction
            if transaction is not None and transaction.fate == "open":
                break
            self._stable += 1
        return self._stable

    def read(self, offset: int, max_records: int) -> Batch:
        """Return committed records from an offset, and the position after them.

        Raises PositionError, and UnreadableBatchError where a batch cannot be read.
        """
        if not self.first <= offset <= len(self.entries):
            raise PositionError(
                f"the position {offset} is out of the log's range {self.first} to "
                f"{len(self.entries)}"
            )
        records: list[LogRecord] = []
        end = self.stable_end()
        while offset < end and len(records) < max_records:
            entry = self.entries[offset]
            if entry.unreadable is not None:
                # The records before it come first; the next call raises.
                if not records:
                    raise UnreadableBatchError(entry.unreadable._replace(first_offset=offset))
                break
            transaction = entry.transaction
            if entry.record is not None and (
                transaction is None or transaction.fate == "committed"
            ):
                records.append(entry.record)
            offset += 1
        return Batch(records, offset)

    def offset_at(self, timestamp_ms: int) -> int:
        """Return the offset of the first record of a time or later, else the committed end."""
        end = self.stable_end()
        for offset in range(self.first, end):
            record = self.entries[offset].record
            if record is not None and record.timestamp_ms >= timestamp_ms:
                return offset
        return end

    async def wait(self, timeout_s: float) -> None:
        """Wait for the next append, at most so long."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = None
        try:
            await asyncio.wait([waiting], timeout=timeout_s)
        finally:
            self._waiting.pop(waiting, None)
