"""aiokafka's batches of a partition, bounded, and read whatever their headers' names are.

They and what unpacks them stand for its own as long as a consumer of ours runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from struct import error as StructError  # noqa: N812 -- an exception as any other
from threading import Lock
from traceback import clear_frames
from typing import Any, Final, SupportsIndex

import aiokafka
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException, KafkaError
from aiokafka.record.default_records import DefaultRecord
from aiokafka.record.default_records import _DefaultRecordBatchPy as PythonBatch
from aiokafka.record.memory_records import MemoryRecords

from contextgauge.errors import ConfigError
from streams.edge.kafka.unpacking import LIMIT_BYTES, UnpackedTooLargeError, at_most, decoders
from streams.edge.kafka.unreadable import UnreadableError, count_of, unreadable

_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_LENGTH_ENDS: Final = 12
"""Where a batch says how many bytes follow."""

_RECORD_BYTES: Final = 72
"""What a record takes in memory besides its own bytes, where it is read in place."""

NOWHERE: Final = TopicPartition("", -1)


class FetchedBytes(MemoryRecords):  # type: ignore[misc]  # aiokafka is not typed
    """aiokafka's batches of a partition, which keep their bytes to themselves; these do not.

    They read any name of a header: other producers write what is no UTF-8, and aiokafka raises.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = content
        self.at, self.limit = NOWHERE, LIMIT_BYTES
        self._end = 0

    def next_batch(self) -> "_Batch":
        """Return the next batch."""
        batch = super().next_batch()
        begin = self._end
        self._end += _LENGTH_ENDS + _LENGTH.unpack_from(self.content, begin + _LENGTH_AT)[0]
        return _Batch(batch, memoryview(self.content)[begin : self._end], self)


class _Batch:
    """A batch of aiokafka that is bounded, and read once more where a name is not UTF-8."""

    def __init__(self, batch: Any, content: memoryview, source: FetchedBytes) -> None:  # noqa: ANN401 -- of any format
        self._batch, self._content = batch, content
        self._at, self._limit = source.at, source.limit

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- aiokafka's
        return getattr(self._batch, name)

    def __next__(self) -> DefaultRecord:
        return next(self._batch)

    def validate_crc(self) -> bool:
        """Return that the checksum is right. Raises UnreadableError."""
        if not self._batch.validate_crc():
            raise wrong_checksum(self._at, self._content)
        return True

    def __iter__(self) -> Iterator[DefaultRecord]:
        with unreadable_where_it_fails(self._at, self._content):
            check_count(count_of(self._content), self._limit)
            try:
                yield from _bounded(self._batch, self._limit)
            except (UnicodeDecodeError, CorruptRecordException) as error:
                # aiokafka without its compiled parts makes it the cause of its own error.
                if not isinstance(error, UnicodeDecodeError) and not isinstance(
                    error.__cause__, UnicodeDecodeError
                ):
                    raise
                # Who reads passes over the records that it has.
                yield from _bounded(_LenientBatch(self._content), self._limit)


def _bounded(batch: Any, limit: int) -> Iterator[DefaultRecord]:  # noqa: ANN401 -- as above
    """Yield a batch's records: it is decompressed for the first one."""
    with at_most(limit):
        records = iter(batch)
        record = next(records, None)
    while record is not None:  # aiokafka's cannot be iterated over twice
        yield record
        record = next(records, None)


class _LenientBatch(PythonBatch):  # type: ignore[misc]  # as above
    """A batch whose names are read as the compiled product does, invalid UTF-8 as `\ufffd`."""

    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer = _LenientBytes(self._buffer)


class _LenientBytes(bytearray):
    def __getitem__(self, place: SupportsIndex | slice) -> Any:  # noqa: ANN401 -- as bytearray's
        part = super().__getitem__(place)
        return part if isinstance(part, int) else _LenientBytes(part)

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, errors)


def check_count(count: int, limit: int) -> None:
    """Raise UnpackedTooLargeError for more records than the limit has room for."""
    if count * _RECORD_BYTES > limit:
        raise UnpackedTooLargeError(f"more than {limit // _RECORD_BYTES:,} records are too many")


def wrong_checksum(at: TopicPartition, content: memoryview) -> UnreadableError:
    """Return the error of a batch whose checksum is wrong."""
    return unreadable(at, content, "batch_damaged", "its checksum is wrong", is_intact=False)


@contextmanager
def unreadable_where_it_fails(at: TopicPartition, content: memoryview) -> Iterator[None]:
    """Raise UnreadableError for a batch that is too large, or malformed."""
    try:
        yield
    except UnpackedTooLargeError as error:
        _let_go(error)
        raise unreadable(at, content, "batch_too_large", _words(error)) from error
    except (KafkaError, ValueError, IndexError, TypeError, StructError) as error:
        _let_go(error)
        raise unreadable(at, content, "batch_damaged", _words(error)) from error


def _let_go(error: BaseException | None) -> None:
    """Clear what an error's frames hold: what the batch was unpacked to, up to the limit."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__context__


def _words(error: Exception) -> str:
    # aiokafka's errors put their number and name in front.
    return " ".join(map(str, error.args)) or type(error).__name__


TESTED: Final = "0.14."
"""Versions of aiokafka whose inner parts are as they are used here."""


class _TakenParts:
    """The inner parts of aiokafka that ours stand for as long as a consumer of ours runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._theirs: list[tuple[Any, str, Any]] = []

    def take(self) -> None:
        """Put ours in. Raises ConfigError on a version of aiokafka that was not tested."""
        if not aiokafka.__version__.startswith(TESTED):
            raise ConfigError(
                f"aiokafka {aiokafka.__version__} was not tested, and its inner parts are used to "
                f"read from Kafka: install `aiokafka=={TESTED}*`"
            )
        with self._lock:
            self._holders += 1
            if self._theirs:
                return
            for module, name, part in ((fetcher, "MemoryRecords", FetchedBytes), *decoders()):
                self._theirs.append((module, name, getattr(module, name)))
                setattr(module, name, part)

    def leave(self) -> None:
        """Put theirs back with the last consumer."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            for module, name, part in self._theirs:
                setattr(module, name, part)
            self._theirs.clear()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Have ours in meanwhile."""
        self.take()
        try:
            yield
        finally:
            self.leave()


parts: Final = _TakenParts()
