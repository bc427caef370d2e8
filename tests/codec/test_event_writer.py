"""The compiled writer of records writes what `to_binary` writes, or leaves it to it.

It is there only where it was compiled: `make check-compiled` runs these tests.
"""

from dataclasses import fields, replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextgauge.ports import NewRecord
from schemas.records import Record
from streams import codec
from streams.codec import cloudevents
from streams.flow.derive.deriver import Deriver, input_message
from streams.flow.derive.record_writer import origin_headers, source_headers
from streams.flow.simulator import SimulationOptions, simulate
from streams.ports import LogRecord
from tests.codec.test_records import records_of_every_kind
from tests.core.given import RULES

pytestmark = pytest.mark.compiled

TOPIC, PARTITION, KEY = "context.events", 3, b"session"
ORIGIN = origin_headers("agent.messages", PARTITION)
DAY_MS = 86_400_000
LAST_MS = 253_402_300_799_999
"""The end of the year 9999."""

RECORDS = records_of_every_kind()
PLAIN = next(record for record in RECORDS if record.time_ms is not None)
PLACES = [
    (record, one.name)
    for record in RECORDS
    for one in fields(record.data)
    if one.name != "session_id"
]


def in_general(record: Record, offset: int, timestamp_ms: int) -> NewRecord:
    """Return what the pure product writes."""
    headers, value = codec.to_binary(record)
    headers += source_headers(ORIGIN, offset, timestamp_ms)
    return NewRecord(TOPIC, PARTITION, KEY, value, headers)


def with_field(record: Record, name: str, value: Any) -> Record:
    data: Any = record.data
    return replace(record, data=replace(data, **{name: value}))


def _leave(*_: object) -> Any:
    return None


_write = cloudevents.event_writer(_leave, TOPIC, PARTITION, ORIGIN)


def writes(record: Record, offset: int = 7, timestamp_ms: int = 1_790_000_000_000) -> bool:
    """Check that a record is written as in general; return whether it is written at all."""
    written = _write(record, KEY, offset, timestamp_ms)
    if written is None:
        return False
    assert type(written) is NewRecord
    assert written == in_general(record, offset, timestamp_ms)
    assert [type(part) for part in written[3:]] == [bytes, tuple, type(None)]
    return True


def test_simulated_records_are_written_as_in_general_and_nearly_all_in_short() -> None:
    deriver, in_short = Deriver(RULES), []
    for offset, one in enumerate(islice(simulate(SimulationOptions(seed=5, sessions=40)), 9_000)):
        message = LogRecord(offset, 1_790_000_000_000 + offset, None, one.value, ())
        derived = deriver.derive(input_message(message))
        in_short += [writes(each, offset, message.timestamp_ms) for each in derived.records]
    assert len(in_short) > 1_500
    assert sum(in_short) > 0.97 * len(in_short)


def test_each_kind_is_written_as_in_general_with_each_optional_field_null_or_not() -> None:
    assert any(map(writes, RECORDS))
    for record in RECORDS:
        for name in cloudevents.OPTIONAL_FIELDS[type(record.data)]:
            for value in (None, 5):
                writes(with_field(record, name, value))


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**65),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10, 99, 100]),
    st.floats(),
    st.floats(1e-6, 1e-2),
    st.floats(1e14, 1e17),
    st.floats(-2000, 2000).map(lambda number: round(number, 2)),
    st.sampled_from([0.0, -0.0, 0.001, 0.000999, 5e-5, 1e15, 999_999_999_999_999.9, 1e16, 5e-324]),
    st.text(max_size=30),
    st.text(st.characters(max_codepoint=127), max_size=30),
)
names = st.one_of(st.text(max_size=3), st.integers(0, 9))
values: st.SearchStrategy[object] = st.recursive(
    st.one_of(plain, plain, st.sampled_from([record.data for record in RECORDS])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
        st.dictionaries(names, inner, max_size=1),
    ),
    max_leaves=5,
)


@settings(max_examples=1_500)
@given(st.sampled_from(PLACES), values)
def test_any_value_of_any_field_is_written_as_in_general_or_declined(
    place: tuple[Record, str], value: object
) -> None:
    record, name = place
    writes(with_field(record, name, value))


@given(
    st.one_of(
        st.integers(-9, LAST_MS + 9), st.integers(0, 80).map(lambda years: years * 365 * DAY_MS)
    ),
    st.integers(0, 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-9, 2**63 - 1),
)
def test_any_time_and_place_is_written_as_in_general(
    time_ms: int, offset: int, timestamp_ms: int, sequence: int
) -> None:
    if time_ms > LAST_MS:
        record = replace(PLAIN, time_ms=time_ms)  # which has no general form
        assert _write(record, KEY, 0, 0) is None
        return
    is_written = writes(replace(PLAIN, time_ms=time_ms, sequence=sequence), offset, timestamp_ms)
    assert is_written == (time_ms >= 0)


def test_the_days_of_four_centuries_are_written_as_in_general() -> None:
    for day in range(0, 400 * 366, 3):
        assert writes(replace(PLAIN, time_ms=day * DAY_MS + day))


@pytest.mark.parametrize("size", range(15_800, 16_500, 7))
def test_a_record_that_is_too_long_for_it_is_declined(size: int) -> None:
    record = replace(PLAIN, data=replace(PLAIN.data, chain="c" * size))
    fits = len(codec.to_binary(record)[1]) <= 16_384
    assert writes(record) == fits


@pytest.mark.parametrize(
    "text", ["", "main", "ü", "half \ud800", "a" * 99, "\x7f", '"', "\n", "\0"]
)
def test_a_subject_and_a_session_are_written_as_in_general(text: str) -> None:
    for record in RECORDS:
        writes(replace(record, subject=text))
        writes(replace(record, data=replace(record.data, session_id=text)))
    for number in range(99):
        assert writes(replace(PLAIN, subject=f"a{number}"))
