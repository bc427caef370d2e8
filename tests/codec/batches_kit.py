"""Kafka's record batches as brokers send them, by aiokafka's writer."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiokafka.record import default_records

from streams import compiled
from streams.edge.kafka.checksum import crc32c
from streams.ports import LogRecord

if TYPE_CHECKING:
    from streams.compiled.record_batches import FetchedRecords

HEADER = 61
"""Bytes of a batch before its records."""

APPENDED, TRANSACTIONAL, CONTROL = 8, 16, 32
"""A batch's attributes, above its codec."""

WRITER: Any = default_records._DefaultRecordBatchBuilderPy  # noqa: SLF001 -- of all that may be first
"""The compiled one gives the records after a first without a time, -1, another."""


class ForeignName(str):
    """A header's name that is no UTF-8, for `WRITER`: other producers' names may be any bytes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002 -- str's
        """Return these bytes, whatever its text."""
        return b"\xff\xfename"


_FIELDS = struct.Struct(">qiibIhiqqqhii")
_CHECKED_AT = 21


def changed(
    batch: bytes,
    *,
    base: int = 0,
    attributes: int = 0,
    last_offset: int | None = None,
    producer_id: int | None = None,
    count: int | None = None,
    body: bytes | None = None,
) -> bytes:
    """Return a batch with other fields in its header, or another body; its checksum is right."""
    fields = list(_FIELDS.unpack_from(batch))
    body = batch[HEADER:] if body is None else body
    fields[0], fields[1], fields[5] = base, HEADER - 12 + len(body), attributes
    for place, value in ((6, last_offset), (9, producer_id), (12, count)):
        if value is not None:
            fields[place] = value
    head = _FIELDS.pack(*fields)
    fields[4] = crc32c(head[_CHECKED_AT:] + body)
    return _FIELDS.pack(*fields) + body


def batch_of(
    records: Sequence[LogRecord],
    *,
    codec: int = 0,
    attributes: int = 0,
    producer_id: int = -1,
    last_offset: int | None = None,
) -> bytes:
    """Return records as one batch; offsets between them were compacted away."""
    base = records[0].offset
    builder = WRITER(2, codec, 0, producer_id, 1, 5, 1 << 30)
    for one in records:
        builder.append(one.offset - base, one.timestamp_ms, one.key, one.value, list(one.headers))
    batch = bytes(builder.build())
    # Where it is no shorter that way, aiokafka does not compress.
    (written,) = struct.unpack_from(">h", batch, _CHECKED_AT)
    last = None if last_offset is None else last_offset - base
    return changed(batch, base=base, attributes=written & 7 | attributes, last_offset=last)


def split(batch: bytes, first_offset: int = 0) -> "FetchedRecords":
    """Return a batch's records as they are read in place; ValueError where it is malformed."""
    (header,) = compiled.batches().headers_of(batch) or []
    records: FetchedRecords = compiled.batches().FetchedRecords()
    records.split(bytes(header.body(batch)), header, first_offset)
    return records


def fetched(records: Sequence[LogRecord]) -> "FetchedRecords":
    """Return records as they are fetched, in batches of a few."""
    content: FetchedRecords = compiled.batches().FetchedRecords()
    begin = 0
    while begin < len(records):
        end = begin + 1
        # A batch with the broker's time has one for all.
        while (
            records[begin].created and end < min(begin + 7, len(records)) and records[end].created
        ):
            end += 1
        batch = batch_of(records[begin:end], attributes=0 if records[begin].created else APPENDED)
        (header,) = compiled.batches().headers_of(batch) or []
        content.split(bytes(header.body(batch)), header, 0)
        begin = end
    return content
