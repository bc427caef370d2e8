"""What a fetch brought of a partition, taken as records.

aiokafka makes objects of each record. Where the product is compiled, fetched batches are read in
place instead (`streams/codec/record_batches.pyx`); fetching, positions and aborted transactions are
aiokafka's. Elsewhere, and for batches of formats before 2, it reads them too.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, SupportsIndex
from weakref import ref

from aiokafka import TopicPartition
from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException, KafkaError, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch
from aiokafka.record.default_records import _DefaultRecordBatchPy as PythonBatch
from aiokafka.record.memory_records import MemoryRecords

from contextgauge.kafka import zstd
from streams.codec.compiled import record_batches
from streams.edge.kafka.checksum import crc32c
from streams.ports import LogRecord

if TYPE_CHECKING:
    from streams.codec.record_batches import BatchHeader, FetchedRecords

_CREATE_TIME: Final = 0
"""Kafka's timestamp type of a record that carries the producer's clock."""

_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_LENGTH_ENDS: Final = 12
"""Where a batch says how many bytes follow."""

_DECODERS: Final[dict[int, Callable[[memoryview], bytes]]] = {
    0: bytes,
    1: gzip_decode,
    2: lambda content: snappy_decode(bytes(content)),
    3: lambda content: lz4_decode(bytes(content)),
    4: zstd.decompress,
}
"""What gives a batch's records, by the codec in its attributes."""


class FetchedBytes(MemoryRecords):  # type: ignore[misc]  # aiokafka is not typed
    """aiokafka's batches of a partition, which keep their bytes to themselves; these do not.

    They read any name of a header: other producers write what is no UTF-8, and aiokafka raises.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = content
        self._end = 0

    def next_batch(self) -> "_Batch | DefaultRecordBatch":
        """Return the next batch."""
        batch = super().next_batch()
        begin = self._end
        self._end += _LENGTH_ENDS + _LENGTH.unpack_from(self.content, begin + _LENGTH_AT)[0]
        if not isinstance(batch, DefaultRecordBatch) or batch.is_control_batch:
            return batch
        return _Batch(batch, memoryview(self.content)[begin : self._end])


class _Batch:
    """A batch of aiokafka that is read once more where a name is not UTF-8."""

    def __init__(self, batch: DefaultRecordBatch, content: memoryview) -> None:
        self._batch, self._content = batch, content

    def __getattr__(self, name: str) -> object:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[DefaultRecord]:
        try:
            yield from self._batch
        except (UnicodeDecodeError, CorruptRecordException) as error:
            # aiokafka without its compiled parts makes it the cause of its own error.
            if not isinstance(error, UnicodeDecodeError) and not isinstance(
                error.__cause__, UnicodeDecodeError
            ):
                raise
            # Who reads passes over the records that it has.
            yield from _LenientBatch(self._content)


class _LenientBatch(PythonBatch):  # type: ignore[misc]  # as above
    """A batch whose names are read as the compiled product does, `\ufffd` for what is none."""

    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer = _LenientBytes(self._buffer)


class _LenientBytes(bytearray):
    def __getitem__(self, place: SupportsIndex | slice) -> Any:  # noqa: ANN401 -- as bytearray's
        found = super().__getitem__(place)
        return found if isinstance(found, int) else _LenientBytes(found)

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, errors)


class Fetched(OrderedDict[TopicPartition, FetchResult | FetchError]):
    """What was fetched and not yet taken, by partition: its records come as `LogRecord`."""

    def __setitem__(self, at: TopicPartition, fetched: FetchResult | FetchError) -> None:
        """Keep what came of a partition."""
        if isinstance(fetched, FetchResult):
            taker = _taker_of(fetched)
            if taker is None:
                fetched._partition_records._consumer_record = _log_record  # noqa: SLF001 -- no other way
            else:
                fetched.getall = taker
        super().__setitem__(at, fetched)


def _taker_of(fetched: FetchResult) -> "_BatchTaker | None":
    """Return what takes the records; None where aiokafka has to."""
    partition = fetched._partition_records  # noqa: SLF001 -- no other way
    source = partition._records  # noqa: SLF001 -- as above
    if record_batches is None or not isinstance(source, FetchedBytes):
        return None
    headers = record_batches.headers_of(source.content)
    if headers is None:
        return None
    # A generator that never runs, of what holds it: both would stay, with all that was fetched.
    partition._records_iterator = None  # noqa: SLF001 -- as above
    return _BatchTaker(fetched, source.content, iter(headers))


class _BatchTaker:
    """Takes a partition's records in the place of `FetchResult.getall`.

    They are those that aiokafka would give (`PartitionRecords._unpack_records`), with the same
    position after them.
    """

    def __init__(
        self, fetched: FetchResult, content: bytes, headers: "Iterator[BatchHeader]"
    ) -> None:
        # It belongs to what it refers to: with a strong reference both would stay.
        self._fetched = ref(fetched)
        self._content = content
        self._headers = headers
        self._rest: FetchedRecords | None = None
        self._rest_ends = 0

    def __call__(self, max_records: int | None = None) -> Sequence[LogRecord]:
        """Return the next records, at most so many. Raises CorruptRecordException."""
        fetched = self._fetched()
        if fetched is None:
            raise RuntimeError("what was fetched is no longer in use")
        if not fetched.check_assignment(fetched._topic_partition) or not fetched.has_more():  # noqa: SLF001 -- as getall
            return []
        partition = fetched._partition_records  # noqa: SLF001 -- as above
        records, self._rest = self._rest, None
        if records is None:
            records = record_batches.FetchedRecords()
        else:
            partition.next_fetch_offset = self._rest_ends
        try:
            is_exhausted = self._fill(records, partition, max_records)
        except BaseException:
            # Nothing behind it is read: it is fetched again from the position, which is unchanged.
            self._headers = iter(())
            raise
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
        """Add batches until there are as many records; return whether no batch is left."""
        while max_records is None or len(records) < max_records:
            header = next(self._headers, None)
            if header is None:
                return True
            if self._counts(partition, header):
                self._split(records, header, partition.next_fetch_offset)
            partition.next_fetch_offset = header.next_offset
        return False

    def _counts(self, partition: PartitionRecords, header: "BatchHeader") -> bool:
        """Return whether a batch's records are to be read: no markers, nothing aborted."""
        if crc32c(header.checked(self._content)) != header.checksum:
            raise CorruptRecordException(f"wrong checksum of the batch at {header.base_offset}")
        if header.producer_id >= 0:
            partition._consume_aborted_up_to(header.base_offset)  # noqa: SLF001 -- its own method
            aborted = partition._aborted_producers  # noqa: SLF001 -- as above
            if header.is_control:
                marker = DefaultRecordBatch(self._content[header.begin : header.end])
                with _corrupt_where_unreadable(header):
                    is_abort = partition._contains_abort_marker(marker)  # noqa: SLF001 -- as above
                if is_abort:
                    aborted.discard(header.producer_id)
            if header.is_transactional and header.producer_id in aborted:
                return False
        return not header.is_control

    def _split(self, records: "FetchedRecords", header: "BatchHeader", first_offset: int) -> None:
        content = header.body(self._content)
        # A copy where nothing is decompressed: reading in place needs bytes that are its own.
        codec = header.codec
        if codec not in _DECODERS:
            raise UnsupportedCodecError(f"the batch at {header.base_offset} has codec {codec}")
        with _corrupt_where_unreadable(header):
            records.split(_DECODERS[codec](content), header, first_offset)


@contextmanager
def _corrupt_where_unreadable(header: "BatchHeader") -> Iterator[None]:
    """Raise CorruptRecordException where a batch is malformed: each codec has its own errors."""
    try:
        yield
    except (KafkaError, MemoryError):
        raise
    except Exception as error:
        reason = f"the batch at {header.base_offset}: {type(error).__name__}: {error}"
        raise CorruptRecordException(reason) from error


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


fetcher.MemoryRecords = FetchedBytes
