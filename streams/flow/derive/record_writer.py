"""The records of an input partition's messages, as they are written: with where they come from."""

from typing import Final

from schemas.messages import DeadLetter
from schemas.records import Record
from streams.codec import cloudevents
from streams.flow.dead_letters.letters import LAST_OFFSET_HEADER, dead_record
from streams.flow.derive.config import DeriveConfig
from streams.ports import Headers, LogRecord, NewRecord, UnreadableBatch


def source_headers(origin: Headers, offset: int, timestamp_ms: int) -> Headers:
    """Return the provenance headers of a message's records; `origin` names its partition.

    `src_timestamp` is the message's Kafka time, from which later consumers compute its age. Of a
    dead letter it is the event time too, where the publisher marked it live (R28).
    """
    return (*origin, ("src_offset", b"%d" % offset), ("src_timestamp", b"%d" % timestamp_ms))


def origin_headers(topic: str, partition: int) -> Headers:
    """Return the headers that name an input partition."""
    return (("src_topic", topic.encode()), ("src_partition", str(partition).encode()))


class RecordWriter:
    """Makes what is written of one input partition: to the same partition of the events' topic."""

    def __init__(self, config: DeriveConfig, partition: int, dead_partition: int) -> None:
        self._config = config
        self._dead_partition = dead_partition
        self._origin = origin_headers(config.messages_topic, partition)
        topic, origin = config.events_topic, self._origin

        def write(record: Record, key: bytes, offset: int, timestamp_ms: int, /) -> NewRecord:
            headers, value = cloudevents.to_binary(record)
            headers += source_headers(origin, offset, timestamp_ms)
            return NewRecord(topic, partition, key, value, headers)

        self.event: Final = cloudevents.event_writer(write, topic, partition, origin)
        """Returns a derived record; the message's offset and Kafka time are where it comes from."""

    def dead_letter(self, message: LogRecord, dead: DeadLetter) -> NewRecord:
        """Return a message that cannot be derived, unchanged, with the reason."""
        source = source_headers(self._origin, message.offset, message.timestamp_ms)
        return dead_record(message, dead, source, self._config.dead_topic, self._dead_partition)

    def dead_batch(self, batch: UnreadableBatch) -> NewRecord:
        """Return a batch of which no message can be read, as the broker has it."""
        first, time_ms = batch.first_offset, batch.timestamp_ms
        source = source_headers(self._origin, first, time_ms)
        if batch.next_offset is not None:
            source += ((LAST_OFFSET_HEADER, b"%d" % (batch.next_offset - 1)),)
        message = LogRecord(first, time_ms, None, batch.content, ())
        dead = DeadLetter(batch.reason, batch.detail)
        return dead_record(message, dead, source, self._config.dead_topic, self._dead_partition)
