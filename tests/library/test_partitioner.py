"""The partitioner agrees with the Java client's."""

import pytest
from aiokafka.partitioner import murmur2 as aiokafkas_murmur2
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.partitioner import murmur2, partition_of

# murmur2 as signed 32-bit integers, from the tests of Apache Kafka's `Utils.murmur2`.
JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize(("session_id", "signed"), JAVA.items())
@pytest.mark.parametrize("partitions", [1, 4, 13])
def test_it_is_kafkas_murmur2(session_id: str, signed: int, partitions: int) -> None:
    assert partition_of(session_id, partitions) == (signed & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=70))
def test_keys_of_any_length_hash_as_in_aiokafka(key: bytes) -> None:
    assert murmur2(key) == aiokafkas_murmur2(key)


def test_any_session_id_has_a_partition() -> None:
    for session_id in ("", "\ud800", "\x00", "x" * 10_000, "ä"):
        assert 0 <= partition_of(session_id, 4) < 4
