"""Reads a range of offsets of a partition, up to an end that is known before."""

from collections.abc import AsyncGenerator, Callable

from contextgauge.errors import PositionError, RetryError
from streams.flow.common.unreadable import Passed, poll_past, report_passed
from streams.ports import Batch, Clock, PartitionReader

_BATCH_RECORDS = 2_000
"""Records taken at a time: a call costs little next to so many, and progress is shown often."""

_POLL_S = 0.1
"""Patience of one poll: a range that ends with nothing but markers makes the last one wait."""

_SILENCE_S = 30.0
"""A broker that has sent nothing for so long is down."""


async def read_range(
    reader: PartitionReader,
    clock: Clock,
    partition: int,
    begin: int,
    end: int,
    *,
    deleted: Callable[[], None] = lambda: None,
    passed: Passed | None = None,
) -> AsyncGenerator[Batch, None]:
    """Yield the records from offset `begin` to before `end`, batch by batch.

    A batch's position is at most `end`. Offsets that retention deletes while they are being read
    are skipped, after a call of `deleted`; batches that cannot be read, after one of `passed`, if
    it is given. Raises RetryError if the broker is down, UnreadableBatchError.
    """
    position = begin
    reader.seek(partition, position)
    last_read_s = clock.monotonic_s()
    while position < end:
        try:
            if passed is None:
                batch = await reader.poll(partition, _BATCH_RECORDS, _POLL_S)
            else:
                batch = await poll_past(reader, partition, _BATCH_RECORDS, _POLL_S, passed)
            records, after = batch
        except PositionError:
            first, _ = await reader.bounds(partition)
            if first <= position:
                raise
            deleted()
            position = min(first, end)
            reader.seek(partition, first)
            yield Batch((), position)
            continue
        if after > position:
            position, last_read_s = min(after, end), clock.monotonic_s()
            if records and records[-1].offset >= end:
                records = [record for record in records if record.offset < end]
            yield Batch(records, position)
        elif clock.monotonic_s() - last_read_s > _SILENCE_S:
            raise RetryError(f"reading partition {partition}: no data for {_SILENCE_S:.0f} s")


async def read_back(
    reader: PartitionReader, clock: Clock, partition: int, since_ms: int, upto: int
) -> AsyncGenerator[Batch, None]:
    """Yield what is before offset `upto` and not older than a time: a former worker handled it.

    Raises RetryError if the broker is down.
    """
    first, end = await reader.bounds(partition)
    begin = max(first, await reader.offset_at(partition, since_ms))
    upto = min(upto, end)
    async for batch in read_range(reader, clock, partition, begin, upto, passed=report_passed):
        yield batch
