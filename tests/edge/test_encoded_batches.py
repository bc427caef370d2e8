"""A transaction's batches, encoded at once, are byte for byte those that aiokafka builds.

They are encoded only where that is compiled: `make check-compiled` runs these tests.
"""

from typing import Any

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.kafka.client import append
from contextgauge.kafka.options import KafkaOptions
from contextgauge.ports import NewRecord
from streams.edge.kafka.batches import batches_of
from tests.codec.batches_kit import WRITER

pytestmark = pytest.mark.compiled

CODECS = {None: 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
START_MS = 1_790_000_000_000

records = st.builds(
    NewRecord,
    st.just("topic"),
    st.just(0),
    st.one_of(st.none(), st.binary(max_size=9)),
    st.one_of(st.none(), st.binary(max_size=9), st.integers(50, 300).map(lambda size: b"v" * size)),
    st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2).map(tuple),
    st.integers(START_MS - 9, START_MS + 9),
)


class Producer:
    """Makes batches as aiokafka's transactional producer does."""

    def __init__(self, limit: int, compression: str | None) -> None:
        self._limit, self._codec = limit, CODECS[compression]

    def create_batch(self) -> BatchBuilder:
        batch = BatchBuilder(self._limit, self._codec, is_transactional=1)
        # The compiled one takes what compression has made longer.
        batch._builder = WRITER(2, self._codec, 1, -1, -1, 0, self._limit)  # noqa: SLF001 -- no other way
        return batch


def without_time(batch: bytes) -> bytes:
    """Return a batch without gzip's time of its making, and the checksum that covers it."""
    if batch[22] & 7 != CODECS["gzip"]:
        return bytes(batch)
    return bytes(batch[:17]) + bytes(batch[21:65]) + bytes(batch[69:])


def theirs(producer: Producer, items: list[NewRecord]) -> list[BatchBuilder]:
    batches = [producer.create_batch()]
    for one in items:
        if not append(batches[-1], one):
            batches.append(producer.create_batch())
            append(batches[-1], one)
    return batches


@given(
    st.lists(records, min_size=1, max_size=7), st.integers(61, 700), st.sampled_from(list(CODECS))
)
def test_batches_are_those_of_aiokafka(
    items: list[NewRecord], limit: int, compression: str | None
) -> None:
    producer: Any = Producer(limit, compression)
    options = KafkaOptions("localhost:1", batch_bytes=limit, compression=compression)
    batches, sequence = list(batches_of(producer, options, items)), 0
    expected = theirs(producer, items)
    assert [one.record_count() for one in batches] == [one.record_count() for one in expected]
    for one, other in zip(batches, expected, strict=True):
        assert one.closed()
        # A size that is asked for before the producer's state is set must not keep the batch.
        assert one.size() > 0
        assert one.append(timestamp=None, key=None, value=b"late") is None
        one.close()
        one._set_producer_state(70_000, 12, sequence)  # noqa: SLF001 -- as aiokafka does
        other._builder.set_producer_state(70_000, 12, sequence)  # noqa: SLF001 -- as above
        assert without_time(one._build()) == without_time(other._build())  # noqa: SLF001 -- as above
        assert one._build() is one._build()  # noqa: SLF001 -- one that is sent again is the same
        assert one.size() == other.size()
        sequence += one.record_count()


def test_a_record_without_a_time_has_the_clocks() -> None:
    producer: Any = Producer(1 << 20, None)
    record = NewRecord("topic", 0, b"key", b"value")
    (batch,) = batches_of(producer, KafkaOptions("localhost:1"), [record, record])
    (other,) = theirs(producer, [record, record])
    content, expected = bytes(batch._build()), bytes(other._build())  # noqa: SLF001 -- as above
    first, then = (int.from_bytes(each[27:35], "big") for each in (content, expected))
    assert 0 <= then - first < 60_000
