"""What a fetch brought: the records that aiokafka gives, at the same positions, in either build."""

import gc
import struct
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple
from weakref import ref

import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode
from aiokafka.consumer.fetcher import FetchError
from aiokafka.errors import CorruptRecordException
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.errors import RetryError
from contextgauge.kafka.options import translated
from streams.edge.kafka import zstd
from streams.edge.kafka.fetched_bytes import FetchedBytes
from streams.edge.kafka.fetching import Fetched
from streams.edge.kafka.unpacking import LIMIT_BYTES
from streams.edge.kafka.unreadable import UnreadableError
from streams.ports import LogRecord
from tests.codec.batches_kit import CONTROL, HEADER, TRANSACTIONAL, batch_of, changed
from tests.edge.fetching_kit import (
    AT,
    NEVER,
    START_MS,
    Log,
    State,
    expected_of,
    fetch_result,
    ours,
    read,
)

pytestmark = pytest.mark.usefixtures("our_parts")

ABORT, COMMIT = 0, 1
PRODUCERS = (7, 8, 9)
ENOUGH = 3
"""Errors in a row, to see whether a corrupt batch is passed over."""


class Shape(NamedTuple):
    """What to put into a log next."""

    kind: str
    producer: int
    gaps: tuple[int, ...]
    tail: int
    codec: int


shapes = st.builds(
    Shape,
    st.sampled_from(["plain", "transactional", "transactional", "abort", "commit", "empty"]),
    st.sampled_from(PRODUCERS),
    st.lists(st.sampled_from([0, 0, 0, 1, 5]), min_size=1, max_size=5).map(tuple),
    st.sampled_from([0, 0, 2]),
    st.integers(0, 4),
)


def log_of(drawn: Sequence[Shape]) -> Log:
    """Return a log with transactions as they may be, gaps where records were compacted away."""
    log, begun = Log(), dict[int, int]()
    for shape in drawn:
        begin = log.end
        if shape.kind in ("abort", "commit"):
            first = begun.pop(shape.producer, None)
            if first is not None and shape.kind == "abort":
                log.aborted.append((shape.producer, first, begin))
            kind = ABORT if shape.kind == "abort" else COMMIT
            marker = LogRecord(begin, START_MS, struct.pack(">HH", 0, kind), b"\0" * 6, ())
            attributes = TRANSACTIONAL | CONTROL
            content = batch_of([marker], attributes=attributes, producer_id=shape.producer)
            log.append(content, begin, begin + 1)
            continue
        records = []
        for gap in shape.gaps:
            begin += gap
            value = None if gap == 1 else b"%d " % begin * 40
            headers = (("number", b"%d" % begin),) * gap
            records.append(LogRecord(begin, START_MS + begin % 3, b"key" * gap, value, headers))
            begin += 1
        end = begin + shape.tail
        is_transactional = shape.kind == "transactional"
        if is_transactional:
            begun.setdefault(shape.producer, log.end)
        content = batch_of(
            [one._replace(offset=one.offset - log.end) for one in records],
            codec=shape.codec,
            attributes=TRANSACTIONAL if is_transactional else 0,
            producer_id=shape.producer if is_transactional else -1,
        )
        (attributes,) = struct.unpack_from(">h", content, 21)
        empty: dict[str, Any] = {"count": 0, "body": b""} if shape.kind == "empty" else {}
        content = changed(
            content,
            base=log.end,
            attributes=attributes & ~7 if empty else attributes,
            last_offset=end - 1 - log.end,
            **empty,
        )
        log.append(content, log.end, end)
    return log


logs = st.lists(shapes, min_size=1, max_size=9).map(log_of)


@given(logs, st.data())
def test_fetched_records_are_those_of_aiokafka_whatever_is_taken_at_once(
    log: Log, data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, log.end - 1))
    expected, end = expected_of(log, position)
    assert end == log.end
    for most in (None, *range(1, len(expected) + 2)):
        state, taken = State(position), list[LogRecord]()
        result = ours(state, *log.fetch(position))
        while result.has_more():
            chunk = result.getall(most)
            assert len(chunk) == min(most or NEVER, len(expected) - len(taken))
            taken += chunk
            following = expected[len(taken)].offset if len(taken) < len(expected) else end
            assert state.position <= following
            assert not taken or state.position > taken[-1].offset
        assert taken == expected
        assert state.position == end


@given(logs, st.integers(1, 4))
def test_a_log_is_read_once_and_whole_by_many_fetches(log: Log, batches: int) -> None:
    expected, _ = expected_of(log, 0)
    for most in (None, 1, 2, 3, 5):
        assert read(log, 0, most, batches) == expected


@pytest.mark.parametrize("first", ["transactional", "abort", "commit"])
def test_all_orders_of_a_producers_transactions_are_read_as_by_aiokafka(first: str) -> None:
    for kinds in product(("transactional", "abort", "commit"), repeat=4):
        log = log_of([Shape(kind, PRODUCERS[0], (0, 0), 0, 0) for kind in (first, *kinds)])
        expected, _ = expected_of(log, 0)
        for most in (None, 1):
            assert read(log, 0, most) == expected


@given(logs, st.data())
def test_nothing_behind_a_corrupt_batch_is_taken_however_often_it_is_fetched(
    log: Log, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(log.pieces) - 1))
    broken = log.pieces[number]
    content = bytearray(broken.content)
    place = data.draw(st.integers(17, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    expected = [one for one in expected_of(log, 0)[0] if one.offset < broken.begin]
    log.pieces[number] = broken._replace(content=bytes(content))
    for most in (None, 1, 2, 3):
        state, taken, errors = State(0), list[LogRecord](), 0
        while errors < ENOUGH:
            assert state.position < log.end
            result = ours(state, *log.fetch(state.position))
            for _ in range(len(expected) + ENOUGH):
                if not result.has_more():
                    break
                try:
                    with translated("reading"):
                        taken += result.getall(most)
                except RetryError:
                    errors += 1
        assert state.position <= broken.begin
        assert taken == expected


ENCODERS = {1: gzip_encode, 2: snappy_encode, 3: lz4_encode, 4: zstd.compress}
GARBAGE = [b"", b"\0", b"no codec wrote this", b"\xff" * 40]


def unreadable() -> Iterator[bytes]:
    """Yield batches with a right checksum of which the records cannot be read."""
    batch = batch_of([LogRecord(0, START_MS, None, b"words " * 30, ())])
    body = batch[HEADER:]
    yield changed(batch, body=body[:-1])
    yield changed(batch, body=body + b"\0")
    for codec, encode in ENCODERS.items():
        content = encode(body)
        for garbage in (*GARBAGE, content[:-9], content[: len(content) // 2], encode(body[:-1])):
            yield changed(batch, attributes=codec, body=garbage)
    marker = LogRecord(0, START_MS, b"k", None, ())
    for wrong in (marker, marker._replace(key=None)):
        attributes = TRANSACTIONAL | CONTROL
        yield batch_of([wrong], attributes=attributes, producer_id=7)
    yield changed(batch, attributes=TRANSACTIONAL | CONTROL, producer_id=7, body=b"\xff" * 30)


@pytest.mark.compiled
@pytest.mark.parametrize("number", range(len(list(unreadable()))))
def test_an_unreadable_batch_is_a_corrupt_one_whatever_its_codec(number: int) -> None:
    state, content = State(0), list(unreadable())[number]
    result = ours(state, content, [])
    with pytest.raises(CorruptRecordException):
        result.getall()
    assert result.getall() == []
    assert (state.position, result.has_more()) == (0, False)


@pytest.mark.compiled
def test_an_unknown_codec_is_reported_as_such() -> None:
    batch = batch_of([LogRecord(0, START_MS, None, b"words", ())])
    for codec in (5, 6, 7):
        result = ours(State(0), changed(batch, attributes=codec), [])
        with pytest.raises(UnreadableError, match=rf"\(codec {codec}\): there is no codec {codec}"):
            result.getall()


TEXT = b"words that come again " * 200


def log_with(bad: bytes, records: int) -> Log:
    """Return a log with a batch that is like this between two others."""
    log = Log()
    for content, count in ((batch_of(few(2)), 2), (bad, records), (batch_of(few(3)), 3)):
        begin = log.end
        head = struct.unpack_from(">h", content, 21)[0]
        log.append(changed(content, base=begin, attributes=head), begin, begin + count)
    return log


def read_on(state: State, log: Log, most: int | None, limit: int = LIMIT_BYTES) -> list[LogRecord]:
    """Return what comes before the end or what cannot be read; raise where that is first."""
    taken: list[LogRecord] = []
    while state.position < log.end:
        result = ours(state, *log.fetch(state.position), limit=limit)
        while result.has_more():
            try:
                taken += result.getall(most)
            except UnreadableError:
                if not taken:
                    raise
                return taken
    return taken


def few(count: int, value: bytes = b"value") -> list[LogRecord]:
    return [LogRecord(offset, START_MS + offset, b"key", value, ()) for offset in range(count)]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("most", [None, 1, 4])
def test_a_batch_above_the_limit_is_not_unpacked_but_described(
    codec: int, most: int | None
) -> None:
    bad = batch_of(few(5, TEXT), codec=codec)
    log = log_with(bad, 5)
    state, taken = State(0), list[LogRecord]()
    taken += read_on(state, log, most, limit=len(TEXT))
    for _ in range(2):
        with pytest.raises(UnreadableError, match=f"more than {len(TEXT):,} bytes") as raised:
            read_on(state, log, most, limit=len(TEXT))
        assert [record.offset for record in taken] == [0, 1]
        assert state.position == 2
        batch = raised.value.batch
        assert raised.value.is_final
        assert batch.content == log.pieces[1].content
        assert (batch.topic, batch.partition) == AT
        assert (batch.first_offset, batch.next_offset, batch.records) == (2, 7, 5)
        assert (batch.timestamp_ms, batch.reason) == (START_MS + 4, "batch_too_large")
    state.position = 7  # who can do without it goes on behind it
    assert [one.offset for one in read_on(state, log, most)] == [7, 8, 9]
    for begin in range(7):
        whole = read_on(State(begin), log, most, limit=len(bad) + 5 * len(TEXT))
        assert [one.offset for one in whole] == list(range(begin, 10))


def test_more_records_than_there_is_memory_for_are_too_many() -> None:
    """They have seven bytes each as they are written, and ten times as many where they are read."""
    records = [LogRecord(offset, START_MS, None, None, ()) for offset in range(100)]
    log = Log()
    log.append(batch_of(records, codec=4), 0, 100)
    assert len(read_on(State(0), log, None, limit=7_200)) == 100
    with pytest.raises(UnreadableError, match="more than 99 records are too many"):
        read_on(State(0), log, None, limit=7_199)


def test_no_more_is_taken_at_once_than_was_asked_for_in_bytes() -> None:
    log = Log()
    for _ in range(6):
        content = batch_of(few(4, TEXT), codec=4)
        log.append(changed(content, base=log.end, attributes=4), log.end, log.end + 4)
    state, taken = State(0), list[int]()
    result = ours(state, *log.fetch(0), taken=len(TEXT) * 6)
    while result.has_more():
        records = result.getall(5_000)
        assert sum(len(record.value or b"") for record in records) < len(TEXT) * 11
        taken += [record.offset for record in records]
        assert state.position == len(taken)
    assert taken == list(range(24))


@pytest.mark.parametrize(("place", "is_known"), [(17, True), (26, False), (60, False), (70, True)])
def test_the_end_of_a_batch_with_a_wrong_checksum_is_known_if_its_header_agrees(
    place: int, is_known: bool
) -> None:
    content = bytearray(batch_of(few(5)))
    content[place] ^= 1
    log = Log()
    log.append(bytes(content), 0, 5)
    with pytest.raises(UnreadableError, match="its checksum is wrong") as raised:
        read_on(State(3), log, None)
    batch = raised.value.batch
    assert not raised.value.is_final
    assert (batch.reason, batch.next_offset) == ("batch_damaged", 5 if is_known else None)


def test_a_batch_of_the_format_before_is_bounded_too() -> None:
    builder = LegacyRecordBatchBuilder(1, 1, 1 << 20)
    for offset in range(3):
        builder.append(offset, START_MS, b"key", TEXT)
    # The broker gives it the offset of its last message.
    former, log, damaged = struct.pack(">q", 2) + bytes(builder.build())[8:], Log(), Log()
    log.append(former, 0, 3)
    assert len(read_on(State(0), log, None, limit=4 * len(TEXT))) == 3
    with pytest.raises(UnreadableError, match="gzip") as raised:
        read_on(State(0), log, None, limit=len(TEXT))
    assert (raised.value.batch.next_offset, raised.value.batch.records) == (3, 0)
    damaged.append(former[:-1] + bytes((former[-1] ^ 1,)), 0, 3)
    with pytest.raises(UnreadableError, match="checksum"):
        read_on(State(0), damaged, None)


def test_records_of_the_format_before_are_left_to_aiokafka() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    for offset in range(3):
        builder.append(offset, START_MS, b"key", b"value")
    former = bytes(builder.build())
    wanted = [LogRecord(offset, START_MS, b"key", b"value", ()) for offset in range(3)]
    state = State(1)
    result = ours(state, former, [])
    assert [*result.getall(1), *result.getall()] == wanted[1:]
    assert (state.position, result.has_more()) == (3, False)


@pytest.mark.parametrize("change", [{"position": 5}, {"paused": True}, {"active": False}])
def test_what_was_fetched_for_another_position_is_dropped(change: dict[str, Any]) -> None:
    records = [LogRecord(offset, START_MS, None, b"value", ()) for offset in range(4)]
    state = State(0)
    result = ours(state, batch_of(records), [])
    assert result.getall(1) == records[:1]
    vars(state).update(change)
    assert result.getall(1) == []
    assert not result.has_more()


def test_an_error_of_a_fetch_is_kept_as_it_is() -> None:
    results, error = Fetched(), FetchError(error=CorruptRecordException(), backoff=0.0)
    results[AT] = error
    assert results[AT] is error


@pytest.mark.compiled
@pytest.mark.parametrize("most", [0, 1, 2, None])
def test_what_was_fetched_is_freed_without_a_garbage_collection(most: int | None) -> None:
    """Workers never run a full one: what is in a cycle would stay."""
    records = [LogRecord(offset, START_MS, None, b"value", ()) for offset in range(2)]
    results = Fetched()
    gc.disable()
    try:
        content = batch_of(records) + changed(batch_of(records), base=2, attributes=5)
        source = FetchedBytes(content)
        results[AT] = fetch_result(State(0), source, [])
        left = ref(source), ref(results[AT])
        del source
        if most is None:
            assert results[AT].getall() == records
        elif most:
            assert results[AT].getall(most) == records[:most]
        del results[AT]
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()
