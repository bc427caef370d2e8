"""Reading past batches that cannot be read.

A derive worker keeps each as a dead letter; who reads for something else passes over it, and says
so. Where nothing may be missing, as in the state or among commands, reading ends with the error.
"""

from collections.abc import Callable
from typing import TypeAlias

import structlog

from streams.ports import Batch, PartitionReader, Telemetry, UnreadableBatch, UnreadableBatchError

Passed: TypeAlias = Callable[[UnreadableBatch], None]
"""Takes note of a batch that is passed over."""

logger = structlog.get_logger()


def report_passed(batch: UnreadableBatch) -> None:
    """Log that a batch is passed over."""
    logger.warning(
        "records are passed over",
        topic=batch.topic,
        partition=batch.partition,
        first_offset=batch.first_offset,
        next_offset=batch.next_offset,
        reason=batch.reason,
        detail=batch.detail,
    )


def counted_passed(telemetry: Telemetry) -> Passed:
    """Return what logs that a worker passes over a batch, and counts it."""

    def passed(batch: UnreadableBatch) -> None:
        telemetry.count("worker_unreadable_batches", topic=batch.topic)
        report_passed(batch)

    return passed


async def poll_past(
    reader: PartitionReader,
    partition: int,
    max_records: int,
    timeout_s: float,
    passed: Passed = report_passed,
) -> Batch:
    """Poll; for a batch that cannot be read, return nothing and the position after it.

    Raises UnreadableBatchError where it is not known where the batch ends.
    """
    try:
        return await reader.poll(partition, max_records, timeout_s)
    except UnreadableBatchError as error:
        after = error.batch.next_offset
        if after is None:
            raise
        passed(error.batch)
        reader.seek(partition, after)
        return Batch((), after)
