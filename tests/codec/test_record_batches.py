"""Record batches read and written in place, compared with aiokafka's, compiled and in Python.

They are there only where they were compiled: `make check-compiled` runs these tests.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record import default_records
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.ports import NewRecord
from streams import compiled
from streams.edge.kafka.checksum import crc32c
from streams.ports import LogRecord
from tests.codec.batches_kit import APPENDED, HEADER, changed, split
from tests.codec.fast_path_kit import RESPONSE, dump

if TYPE_CHECKING:
    from streams.compiled.record_batches import FetchedRecords

pytestmark = pytest.mark.compiled

record_batches: Any = compiled.batches()
read_record = compiled.messages().read_record

NOW_MS = 1_790_000_000_000
LIMIT = 1 << 20
WRITTEN: list[Any] = [
    default_records.DefaultRecordBatchBuilder,
    default_records._DefaultRecordBatchBuilderPy,  # noqa: SLF001 -- the Python form
]
READ: list[Any] = [
    default_records.DefaultRecordBatch,
    default_records._DefaultRecordBatchPy,  # noqa: SLF001 -- as above
]

contents = st.one_of(st.none(), st.binary(max_size=9), st.binary(min_size=60, max_size=200))
headers = st.lists(st.tuples(st.text(max_size=9), contents), max_size=3).map(tuple)
times = st.one_of(st.none(), st.integers(NOW_MS - 99, NOW_MS + 99), st.integers(0, 2**45))
new_records = st.builds(NewRecord, st.just("topic"), st.just(0), contents, contents, headers, times)


def built(
    builder: Callable[..., Any], records: Sequence[NewRecord], limit: int = LIMIT
) -> tuple[bytes, int]:
    """Return the batch that aiokafka makes of the first records, and how many it takes."""
    batch = builder(2, 0, 1, 7, 1, 5, limit)
    for number, record in enumerate(records):
        now_ms = NOW_MS if record.timestamp_ms is None else record.timestamp_ms
        if not batch.append(number, now_ms, record.key, record.value, list(record.headers)):
            return bytes(batch.build()), number
    return bytes(batch.build()), len(records)


def theirs(reader: Callable[..., Any], batch: bytes, first: int = 0) -> list[LogRecord]:
    """Return a batch's records as aiokafka's consumer takes them."""
    records, position = [], first
    for one in reader(batch):
        if one.offset >= position:
            position = one.offset + 1
            created = one.timestamp_type == 0
            headers = tuple(one.headers)
            records.append(
                LogRecord(one.offset, one.timestamp, one.key, one.value, headers, created)
            )
    return records


@given(st.lists(new_records, min_size=1, max_size=6), st.integers(61, 900))
def test_batches_are_encoded_as_aiokafka_does(records: list[NewRecord], limit: int) -> None:
    begin = 0
    while begin < len(records):
        encoded = record_batches.encode(records, begin, limit - HEADER, NOW_MS)
        content, end, first_ms, last_ms = encoded
        # The compiled one wants one byte of room more.
        assert end - begin == built(WRITTEN[1], records[begin:], limit)[1]
        for builder in WRITTEN:
            batch, _ = built(builder, records[begin:end])
            assert content == batch[HEADER:]
            assert (first_ms, last_ms) == struct.unpack_from(">qq", batch, 27)
        begin = end


def test_what_is_no_record_is_not_encoded() -> None:
    record = NewRecord("topic", 0, b"key", b"value")
    headers: list[Any] = [
        [("name", b"")],
        (("name",),),
        (None,),
        ((b"name", b""),),
        (("half \ud800", b""),),
    ]
    others: list[dict[str, Any]] = [
        {"key": "text"},
        {"value": bytearray(b"value")},
        {"timestamp_ms": "now"},
        *({"headers": one} for one in headers),
    ]
    wrong = [tuple(record), *(record._replace(**fields) for fields in others)]
    for one in wrong:
        with pytest.raises((TypeError, ValueError)):
            record_batches.encode([one], 0, LIMIT, NOW_MS)
    for place in (-1, 1):
        with pytest.raises(IndexError):
            record_batches.encode([record], place, LIMIT, NOW_MS)


@given(
    st.lists(new_records, min_size=1, max_size=6),
    st.integers(0, 2**40),
    st.sampled_from([0, APPENDED]),
    st.integers(-1, 7),
)
def test_batches_are_read_as_aiokafka_does(
    records: list[NewRecord], base: int, attributes: int, behind: int
) -> None:
    batch = changed(built(WRITTEN[0], records)[0], base=base, attributes=attributes)
    first = base + behind
    fetched = split(batch, first)
    for reader in READ:
        expected = theirs(reader, batch, first)
        assert fetched == expected
        assert [fetched[place] for place in range(-len(expected), len(expected))] == 2 * expected
    assert record_batches.value_bytes(fetched) == sum(len(one.value or b"") for one in expected)


def test_headers_of_several_batches_are_read_up_to_the_one_cut_off() -> None:
    one = built(WRITTEN[0], [NewRecord("topic", 0, b"key", b"value")] * 3)[0]
    fetched = changed(one, base=5, attributes=0x3C) + changed(one, base=2**40)
    first, second = record_batches.headers_of(fetched)
    assert (first.base_offset, first.next_offset, first.count, first.producer_id) == (5, 8, 3, 7)
    assert (first.codec, first.is_transactional, first.is_control) == (4, True, True)
    assert (second.base_offset, second.codec, second.is_control) == (2**40, 0, False)
    assert (first.begin, first.end, second.begin, second.end) == (
        0,
        len(one),
        len(one),
        2 * len(one),
    )
    assert {crc32c(each.checked(fetched)) - each.checksum for each in (first, second)} == {0}
    for end in range(len(fetched)):
        assert len(record_batches.headers_of(fetched[:end])) == end // len(one)


def test_headers_of_another_format_are_left_to_aiokafka() -> None:
    batch = built(WRITTEN[0], [NewRecord("topic", 0, b"key", b"value")])[0]
    for place, content in (
        (16, b"\x01"),
        (16, b"\x03"),
        (8, b"\xff" * 4),
        (8, struct.pack(">i", 48)),
    ):
        wrong = batch[:place] + content + batch[place + len(content) :]
        assert record_batches.headers_of(wrong) is None
        assert record_batches.headers_of(batch + wrong) is None


NULL: Any = None
"""A header's value may be null, whatever its type says."""

SAMPLE = [
    NewRecord("topic", 0, b"session-1", dump(RESPONSE), (("observed", b"live"), ("task_id", NULL))),
    NewRecord("topic", 0, None, None, (), NOW_MS - 5),
    NewRecord("topic", 0, b"", dump(RESPONSE)[:70], (("agent_id", b"a"),), NOW_MS + 700),
]


def damaged(body: bytes) -> Iterator[bytes]:
    """Yield what a batch's records may become: cut, with bits flipped, with great sizes."""
    for place in range(len(body)):
        yield body[:place]
        yield body[:place] + body[place + 1 :]
        for bit in range(8):
            yield body[:place] + bytes((body[place] ^ 1 << bit,)) + body[place + 1 :]
        for content in (
            b"\xff",
            b"\x00",
            b"\xff" * 9 + b"\x01",
            b"\xff" * 10,
            b"\x80" * 4 + b"\x10",
        ):
            yield body[:place] + content + body[place + 1 :]
    yield body + b"\x00"


def test_damaged_batches_are_refused_or_read_as_aiokafka_does() -> None:
    batch = built(WRITTEN[0], SAMPLE)[0]
    counts = {"refused": 0, "read": 0}
    for body in damaged(batch[HEADER:]):
        whole = changed(batch, body=body)
        try:
            fetched = split(whole, 0)
        except ValueError:
            counts["refused"] += 1
            with pytest.raises((CorruptRecordException, UnicodeDecodeError)):
                theirs(READ[0], whole)
            continue
        counts["read"] += 1
        in_place(fetched)
        try:
            assert fetched == theirs(READ[0], whole)
        except UnicodeDecodeError:
            continue  # a header's name that is not text, of which nothing is lost here
    assert min(counts.values()) > 1_000


def in_place(fetched: "FetchedRecords") -> None:
    """Read all records in place, which leaves their bytes as they were."""
    assert read_record is not None
    before = list(fetched)
    for index in range(len(fetched)):
        read_record(fetched, index, LIMIT)
    assert fetched == before


def test_a_count_of_records_that_is_wrong_is_refused() -> None:
    batch = built(WRITTEN[0], SAMPLE)[0]
    for count in (-1, 0, 1, 2, 4, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match=r"batch|malformed"):
            split(changed(batch, count=count))
    assert list(split(changed(batch, count=0, body=b""))) == []


def test_fetched_records_are_a_sequence_whose_parts_stay_when_it_is_cut() -> None:
    one = built(WRITTEN[0], SAMPLE)[0]
    fetched = changed(one) + changed(one, base=3)
    records: FetchedRecords = record_batches.FetchedRecords()
    assert (list(records), record_batches.value_bytes(records), not records) == ([], 0, True)
    for header in record_batches.headers_of(fetched):
        records.split(bytes(header.body(fetched)), header, 0)
    expected = [*theirs(READ[0], changed(one)), *theirs(READ[0], changed(one, base=3))]
    assert records == expected
    assert records != expected[1:]
    assert records != [*expected[1:], expected[0]]
    assert records != object()
    for begin in range(-7, 8):
        for end in range(-7, 8):
            assert records[begin:end] == expected[begin:end]
            assert records[begin:end][1:] == expected[begin:end][1:]
    assert records[::-2] == expected[::-2]
    for index in (6, -7):
        with pytest.raises(IndexError):
            records[index]
    with pytest.raises(ValueError, match="part"):
        records[:2].split(bytes(header.body(fetched)), header, 0)
    for count in (-1, 7):
        with pytest.raises(ValueError, match="cut"):
            records.cut_off(count)
    rest = records.cut_off(4)
    rest.split(bytes(header.body(fetched)), header, 0)
    assert records == expected[:4]
    assert rest == [*expected[4:], *expected[3:]]
    del records
    assert rest[1] == expected[5]


@given(st.binary(max_size=70))
def test_the_checksum_is_aiokafkas(content: bytes) -> None:
    if record_batches.crc32c is None:
        pytest.skip("this machine has no instruction for it")
    assert record_batches.crc32c(memoryview(content)) == default_records.calc_crc32c(content)
