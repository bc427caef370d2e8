"""A partition's batches as a broker keeps them, fetched and read as a reader does."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.record.memory_records import MemoryRecords

from streams.edge.kafka.fetched_bytes import FetchedBytes
from streams.edge.kafka.fetching import Fetched
from streams.edge.kafka.unpacking import LIMIT_BYTES
from streams.ports import LogRecord

AT = TopicPartition("topic", 3)
START_MS = 1_790_000_000_000
NEVER = 1 << 40

Aborted: TypeAlias = list[tuple[int, int]]


class Piece(NamedTuple):
    """One batch of a log: its bytes, its first offset, the position behind it."""

    content: bytes
    begin: int
    end: int


@dataclass
class Log:
    """A partition's batches as a broker keeps them, and the transactions that were aborted.

    Of these the producer, the first offset, and the marker's.
    """

    pieces: list[Piece] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.pieces[-1].end if self.pieces else 0

    def append(self, content: bytes, begin: int, end: int) -> None:
        self.pieces.append(Piece(content, begin, end))

    def fetch(self, position: int, most: int = NEVER) -> tuple[bytes, Aborted]:
        """Return what a broker answers: whole batches, from the one with the position on."""
        contents = [piece.content for piece in self.pieces if piece.end > position]
        # The last one may be cut off.
        content = b"".join(contents[:most]) + b"".join(contents[most:])[:17]
        return content, [(who, first) for who, first, marker in self.aborted if marker >= position]


@dataclass
class State:
    """A partition's state in aiokafka's subscription."""

    position: int
    paused: bool = False
    active: bool = True

    def state_value(self, at: TopicPartition) -> "State":
        assert at == AT
        return self

    def consumed_to(self, position: int) -> None:
        self.position = position


def fetch_result(state: State, source: MemoryRecords, aborted: Aborted) -> FetchResult:
    records = PartitionRecords(
        tp=AT,
        records=source,
        aborted_transactions=aborted,
        fetch_offset=state.position,
        key_deserializer=None,
        value_deserializer=None,
        check_crcs=True,
        isolation_level=READ_COMMITTED,
    )
    return FetchResult(AT, assignment=state, partition_records=records, backoff=0.0)


def ours(
    state: State,
    content: bytes,
    aborted: Aborted,
    *,
    limit: int = LIMIT_BYTES,
    taken: int = NEVER,
) -> FetchResult:
    """Return a result as a reader has it; `limit` and `taken` as of `Fetched`."""
    results = Fetched({}, limit, taken)
    results[AT] = fetch_result(state, FetchedBytes(content), aborted)
    return results[AT]


def expected_of(log: Log, position: int) -> tuple[list[LogRecord], int]:
    """Return the records from a position on, by aiokafka, and the position behind them."""
    state = State(position)
    content, aborted = log.fetch(position)
    taken = fetch_result(state, MemoryRecords(content), aborted).getall()
    return [as_log_record(one) for one in taken], state.position


def as_log_record(one: Any) -> LogRecord:
    created = one.timestamp_type == 0
    return LogRecord(one.offset, one.timestamp, one.key, one.value, one.headers, created)


def read(log: Log, position: int, most: int | None, batches: int = NEVER) -> list[LogRecord]:
    """Read a log to its end by many fetches, at most so many records at once."""
    state, records = State(position), list[LogRecord]()
    while state.position < log.end:
        before = state.position
        result = ours(state, *log.fetch(before, batches))
        while result.has_more():
            taken = result.getall(most)
            assert most is None or len(taken) <= most
            records += taken
            if taken:
                assert state.position > taken[-1].offset
        assert state.position > before
    return records
