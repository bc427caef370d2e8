"""What a fetch brought of a partition, taken as records.

aiokafka makes objects of each record. Where the product is compiled, fetched batches are read in
place instead (`streams/compiled/`); fetching, positions and aborted transactions are aiokafka's.
Elsewhere, and for batches of formats before 2, it reads them too.

Both ways bound what a batch may unpack to, and what is taken at once. A batch that cannot be read
raises UnreadableError, once what comes before it is taken.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch

from streams import compiled
from streams.edge.kafka.checksum import crc32c
from streams.edge.kafka.fetched_bytes import (
    NOWHERE,
    FetchedBytes,
    check_count,
    parts,
    unreadable_where_it_fails,
    wrong_checksum,
)
from streams.edge.kafka.unpacking import LIMIT_BYTES, unpack
from streams.edge.kafka.unreadable import UnreadableError
from streams.ports import LogRecord, UnreadableBatchError

if TYPE_CHECKING:
    from streams.compiled.record_batches import BatchHeader, FetchedRecords

_batches: Final = compiled.batches()

_CREATE_TIME: Final = 0
"""Kafka's timestamp type of a record that carries the producer's clock."""

_TAKEN_BYTES: Final = 10 << 20
"""Where no other limit is given: with so many bytes no further batch is taken at once."""


class Fetched(OrderedDict[TopicPartition, FetchResult | FetchError]):
    """What was fetched and not yet taken, by partition.

    No batch is unpacked to more than `limit` bytes, and once `taken` bytes are taken at once, no
    more is. The records come as `LogRecord`, or as aiokafka's own.
    """

    def __init__(
        self,
        former: Mapping[TopicPartition, FetchResult | FetchError] = MappingProxyType({}),
        limit: int = LIMIT_BYTES,
        taken: int = _TAKEN_BYTES,
        *,
        as_log_records: bool = True,
    ) -> None:
        self._limit, self._taken, self._as_log_records = limit, taken, as_log_records
        super().__init__(former)

    def __setitem__(self, at: TopicPartition, fetched: FetchResult | FetchError) -> None:
        """Keep what came of a partition."""
        if isinstance(fetched, FetchResult):
            partition = fetched._partition_records  # noqa: SLF001 -- no other way
            source = partition._records  # noqa: SLF001 -- as above
            if isinstance(source, FetchedBytes):
                source.at, source.limit = at, self._limit
            fetched.getall = self._taker_of(fetched, source)
        super().__setitem__(at, fetched)

    def _taker_of(self, fetched: FetchResult, source: object) -> "_BatchTaker | _RecordTaker":
        """Return what takes the records: in place, or by aiokafka where it has to."""
        partition = fetched._partition_records  # noqa: SLF001 -- no other way
        if self._as_log_records and isinstance(source, FetchedBytes):
            headers = _batches.headers_of(source.content)
            if headers is not None:
                # A generator that never runs, of what holds it: both would stay, with all that
                # was fetched.
                partition._records_iterator = None  # noqa: SLF001 -- as above
                return _BatchTaker(fetched, source, iter(headers), self._taken)
        if self._as_log_records:
            partition._consumer_record = _log_record  # noqa: SLF001 -- as above
        return _RecordTaker(fetched, self._taken)


class _RecordTaker:
    """Takes a partition's records in the place of `FetchResult.getall`, one by one."""

    def __init__(self, fetched: FetchResult, taken: int) -> None:
        # It belongs to what it refers to: with a strong reference both would stay.
        self._fetched, self._taken = ref(fetched), taken

    def __call__(self, max_records: int | None = None) -> Sequence[Any]:
        """Return the next records, at most so many. Raises UnreadableError."""
        fetched = _still_there(self._fetched)
        if not fetched.check_assignment(fetched._topic_partition) or not fetched.has_more():  # noqa: SLF001 -- as getall
            return []
        records: list[Any] = []
        size, is_exhausted = 0, False
        while size < self._taken and (max_records is None or len(records) < max_records):
            try:
                record = next(fetched._partition_records, None)  # noqa: SLF001 -- as above
            except UnreadableError:
                if not records:
                    raise
                record = None  # it is fetched again, for what comes before it
            if record is None:
                is_exhausted = True
                break
            records.append(record)
            size += len(record.value or b"") + len(record.key or b"")
        fetched._update_position()  # noqa: SLF001 -- as above
        if is_exhausted:
            fetched._partition_records = None  # noqa: SLF001 -- as above
        return records


def _still_there(fetched: "ref[FetchResult]") -> FetchResult:
    result = fetched()
    if result is None:
        raise RuntimeError("what was fetched is no longer in use")
    return result


class _BatchTaker:
    """Takes a partition's records in the place of `FetchResult.getall`.

    They are those that aiokafka would give (`PartitionRecords._unpack_records`), with the same
    position after them.
    """

    def __init__(
        self,
        fetched: FetchResult,
        source: FetchedBytes,
        headers: "Iterator[BatchHeader]",
        taken: int,
    ) -> None:
        self._fetched = ref(fetched)  # as above
        self._content, self._at, self._limit = source.content, source.at, source.limit
        self._headers = headers
        self._taken = taken
        self._rest: FetchedRecords | None = None
        self._rest_ends = 0

    def __call__(self, max_records: int | None = None) -> Sequence[LogRecord]:
        """Return the next records, at most so many. Raises UnreadableError."""
        fetched = _still_there(self._fetched)
        if not fetched.check_assignment(fetched._topic_partition) or not fetched.has_more():  # noqa: SLF001 -- as getall
            return []
        partition = fetched._partition_records  # noqa: SLF001 -- as above
        records, self._rest = self._rest, None
        if records is None:
            records = _batches.FetchedRecords()
        else:
            partition.next_fetch_offset = self._rest_ends
        try:
            is_exhausted = self._fill(records, partition, max_records)
        except BaseException as error:
            # Nothing behind it is read: it is fetched again from the position before it.
            self._headers = iter(())
            if not records or not isinstance(error, UnreadableError):
                raise
            is_exhausted = True
        if max_records is not None and len(records) > max_records:
            self._rest, self._rest_ends = records.cut_off(max_records), partition.next_fetch_offset
            partition.next_fetch_offset = self._rest[0].offset
        elif is_exhausted:
            fetched._partition_records = None  # noqa: SLF001 -- as above
        state = fetched._assignment.state_value(fetched._topic_partition)  # noqa: SLF001 -- as above
        state.consumed_to(partition.next_fetch_offset)
        return records

    def _fill(
        self, records: "FetchedRecords", partition: PartitionRecords, max_records: int | None
    ) -> bool:
        """Add batches until there is as much; return whether no batch is left."""
        size = 0
        while (max_records is None or len(records) < max_records) and size < self._taken:
            header = next(self._headers, None)
            if header is None:
                return True
            if self._counts(partition, header):
                size += self._split(records, header, partition.next_fetch_offset)
            partition.next_fetch_offset = header.next_offset
        return False

    def _counts(self, partition: PartitionRecords, header: "BatchHeader") -> bool:
        """Return whether a batch's records are to be read: no markers, nothing aborted."""
        if crc32c(header.checked(self._content)) != header.checksum:
            raise wrong_checksum(self._at, self._bytes_of(header))
        if header.producer_id >= 0:
            partition._consume_aborted_up_to(header.base_offset)  # noqa: SLF001 -- its own method
            aborted = partition._aborted_producers  # noqa: SLF001 -- as above
            if header.is_control:
                marker = DefaultRecordBatch(self._content[header.begin : header.end])
                with unreadable_where_it_fails(self._at, self._bytes_of(header)):
                    is_abort = partition._contains_abort_marker(marker)  # noqa: SLF001 -- as above
                if is_abort:
                    aborted.discard(header.producer_id)
            if header.is_transactional and header.producer_id in aborted:
                return False
        return not header.is_control

    def _split(self, records: "FetchedRecords", header: "BatchHeader", first_offset: int) -> int:
        """Add a batch's records; return how many bytes it was unpacked to."""
        with unreadable_where_it_fails(self._at, self._bytes_of(header)):
            check_count(header.count, self._limit)
            # A copy where nothing is decompressed: reading in place needs bytes that are its own.
            content = unpack(header.codec, header.body(self._content), self._limit)
            size = len(content)
            records.split(content, header, first_offset)
        return size

    def _bytes_of(self, header: "BatchHeader") -> memoryview:
        return memoryview(self._content)[header.begin : header.end]


def _log_record(
    at: TopicPartition,  # noqa: ARG001 -- aiokafka gives it
    record: DefaultRecord,
) -> LogRecord:
    return LogRecord(
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        tuple(record.headers),
        record.timestamp_type == _CREATE_TIME,
    )


def records_of(content: bytes, limit: int) -> Iterator[LogRecord]:
    """Yield the records of a batch, as a broker has it. Raises UnreadableBatchError."""
    source = FetchedBytes(content)
    source.limit = limit
    try:
        with parts.lent():
            while source.has_next():
                batch = source.next_batch()
                batch.validate_crc()
                for record in batch:
                    yield _log_record(NOWHERE, record)
    except UnreadableError as error:
        raise UnreadableBatchError(error.batch) from error
