"""What a batch says of itself that cannot be read."""

from struct import Struct
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import CorruptRecordException

from streams.edge.kafka.unpacking import CODECS
from streams.ports.log import UnreadableBatch, UnreadableReason

_HEADER: Final = Struct(">qiibIhiqqqhii")
"""A batch's header, format 2: base offset, length, leader's epoch, format, checksum, attributes,
the last record's offset from the first's, first and greatest timestamp, the producer's id, epoch
and sequence, the number of records."""

_FORMER: Final = Struct(">qiibbq")
"""A message's of the formats before: offset, length, checksum, format, attributes, timestamp."""

_FORMAT_AT: Final = 16
_FORMAT: Final = 2
_CODEC: Final = 7
"""In all formats the number is at the same place, the codec in the lowest bits of attributes."""


class UnreadableError(CorruptRecordException):  # type: ignore[misc]  # aiokafka is not typed
    """A batch cannot be read; `is_final`: nor can it be if it is fetched once more."""

    def __init__(self, batch: UnreadableBatch, *, is_final: bool) -> None:
        super().__init__(batch.detail)
        self.batch = batch
        self.is_final = is_final


def count_of(content: memoryview) -> int:
    """Return how many records a batch claims to have; 0 for formats before, which do not say."""
    count: int = _HEADER.unpack_from(content)[-1] if content[_FORMAT_AT] >= _FORMAT else 0
    return count


def unreadable(
    at: TopicPartition,
    content: memoryview,
    reason: UnreadableReason,
    why: str,
    *,
    is_intact: bool = True,
) -> UnreadableError:
    """Return the error for a batch; `is_intact`: its checksum is right, so it was written so."""
    if content[_FORMAT_AT] >= _FORMAT:
        first, _, _, _, _, attributes, last, _, time_ms, _, _, _, records = _HEADER.unpack_from(
            content
        )
        # Of damaged numbers, two that agree are most likely those that were written.
        is_known = last >= 0 and (is_intact or last + 1 == records)
        end = first + last + 1 if is_known else None
    else:
        # Of what is compressed, the offset is that of the last message in it.
        last, _, _, _, attributes, time_ms = _FORMER.unpack_from(content)
        first, end, records = 0, last + 1, 0
    codec = attributes & _CODEC
    named = CODECS[codec] if codec < len(CODECS) else f"codec {codec}"
    many = f"{records:,} record{'' if records == 1 else 's'}"
    detail = f"a batch of {many} in {len(content):,} bytes ({named}): {why}"
    batch = UnreadableBatch(
        at.topic, at.partition, first, end, records, time_ms, bytes(content), reason, detail
    )
    return UnreadableError(batch, is_final=is_intact)
