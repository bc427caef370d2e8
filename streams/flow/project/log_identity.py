"""Whether the log is the one that views were folded from.

A position says nothing of that: a topic that was deleted and created again, restored from a backup,
or that lost its tail has other records at the same offsets. So each position is stored with the
last record that is in the views, and with the identity that Kafka gave the topic.
"""

from collections.abc import Callable

from contextgauge.errors import PositionError, VersionError
from streams import codec
from streams.flow.common.unreadable import poll_past
from streams.flow.project.config import ProjectConfig
from streams.ports import Health, Log, PartitionReader, ViewPosition, started

_POLL_S = 0.25
_POLLS = 40
"""Polls for one record that is there, about ten seconds: a broker that is slow proves nothing."""


async def foreign_log(
    log: Log,
    health: Health,
    config: ProjectConfig,
    partition: int,
    position: ViewPosition,
    topic_id: str,
) -> str:
    """Return why the log is not the one that a position was reached in; empty if nothing says so.

    A record that has expired proves nothing, and neither does an identity that is not known.
    Raises RetryError while the broker is away.
    """
    if topic_id and position.topic_id and topic_id != position.topic_id:
        return "the topic was deleted and created again"
    if position.last is None:
        return ""
    with health.step("open", partition, config.open_timeout_s) as step:
        async with started(log.reader(config.events_topic, [partition])) as reader:
            first, end = await reader.bounds(partition)
            if position.last.offset < first:
                return ""
            if position.last.offset >= end:
                return f"the log ends at {end}, before the last record that is in the views"
            found = await _record_id(reader, partition, position.last.offset, step.restart)
    if found is None or found == position.last.record_id:
        return ""
    return f"record {position.last.offset} of the log is not the one that is in the views"


async def _record_id(
    reader: PartitionReader, partition: int, offset: int, on_progress: Callable[[], None]
) -> str | None:
    """Return the id of the record at an offset, empty if it is none of ours; None: not there."""
    reader.seek(partition, offset)
    for _ in range(_POLLS):
        try:
            batch = await poll_past(reader, partition, 1, _POLL_S)
        except PositionError:
            return None
        for record in batch.records:
            if record.offset != offset:
                return None
            try:
                return codec.from_binary(record.headers, record.value or b"").id
            except VersionError:
                return ""
        if batch.position > offset:
            return None
        on_progress()
    return None
