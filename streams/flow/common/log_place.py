"""Whether a log is still the one that a stored position was reached in: the one check of it.

With each position a `LogPlace` is stored: the topic's id, and a digest of the last record that was
handled. A topic with another id may still be a copy that holds the same records. A record that
retention deleted proves nothing, and no contradiction; neither does an id that is not known.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Literal, TypeAlias

from streams.flow.common.ranges import read_range
from streams.flow.common.unreadable import Passed
from streams.ports import Clock, Log, LogPlace, LogRecord, PartitionReader, id_text

Evidence: TypeAlias = Literal["same", "other", "absent", "expired", "beyond_end", "none"]
"""What a partition holds at a place: the same record, another, none that is committed, none any
more, none yet; `none` where no record was stored with the place."""


async def evidence(
    reader: PartitionReader,
    clock: Clock,
    partition: int,
    place: LogPlace,
    digest: Callable[[LogRecord], str | None],
    passed: Passed | None = None,
) -> Evidence:
    """Return what the partition holds at a place. Raises RetryError if the broker is down."""
    if place.offset is None:
        return "none"
    first, end = await reader.bounds(partition)
    if place.offset < first:
        return "expired"
    if place.offset >= end:
        return "beyond_end"
    offset = place.offset
    record = await first_record(reader, clock, partition, offset, offset + 1, passed)
    if record is None:
        first, _ = await reader.bounds(partition)  # it may just have expired
        return "expired" if offset < first else "absent"
    return "same" if digest(record) == place.digest else "other"


async def first_record(
    reader: PartitionReader,
    clock: Clock,
    partition: int,
    begin: int,
    end: int,
    passed: Passed | None = None,
) -> LogRecord | None:
    """Return the first committed record of a range; None where there is none."""
    async with aclosing(read_range(reader, clock, partition, begin, end, passed=passed)) as batches:
        async for batch in batches:
            if batch.records:
                return batch.records[0]
    return None


async def is_of_topic(log: Log, topic: str, topic_id: str) -> bool:
    """Return whether an id is that of a topic now, as far as both are known. Raises RetryError."""
    return not topic_id or LogPlace(topic_id).is_of(id_text((await log.topic_ids([topic]))[topic]))
