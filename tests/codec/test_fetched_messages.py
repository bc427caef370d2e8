"""A fetched record read in place derives what the record as an object does.

Both are there only where they were compiled: `make check-compiled` runs these tests.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from string import ascii_letters
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextgauge.normalise.usual import NOTHING
from schemas.topics import HOUR_MS
from streams import compiled
from streams.flow.dead_letters.letters import misrouted_check
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.deriver import LARGE_BYTES, Deriver, input_message
from streams.flow.derive.partition_state import InputPartition, PartitionState
from streams.flow.simulator import SimulationOptions, simulate
from streams.ports import LogRecord
from tests.codec.batches_kit import batch_of, fetched
from tests.codec.fast_path_kit import UNUSUAL, USUAL, dump
from tests.codec.test_fast_path_any import variations
from tests.core.given import RULES, SESSION, assistant, user

if TYPE_CHECKING:
    from streams.compiled.record_batches import FetchedRecords

pytestmark = pytest.mark.compiled

read_record = compiled.messages().read_record
batches = compiled.batches()

START_MS = 1_790_000_000_000
PARTITIONS = 3
OTHERS = ("a", "b", "c", "d")
"""Sessions of which some belong on other partitions."""

ONE = {**user("go on"), "uuid": None}
HINTED = {**assistant("msg_9", read=70_000), "session_id": None}
VALUES = [dump(message) for message in (*USUAL, *UNUSUAL, ONE, HINTED)]

texts = st.one_of(
    st.none(),
    st.sampled_from(
        [b"", b"a", SESSION.encode(), "ü漢".encode(), b"\xff", b"a\xed\xa0\x80", b"\0"]
    ),
    st.sampled_from(OTHERS).map(str.encode),
    st.integers(120, 1_100).map(lambda size: b"k" * size),
)
observed = st.sampled_from([b"live", b"replay", b"", None, b"live "])
headers = st.lists(
    st.one_of(
        st.tuples(st.just("observed"), observed),
        st.tuples(st.sampled_from(["task_id", "agent_id"]), texts),
        st.tuples(st.sampled_from(["traceparent", "", "observed\0", "täsk_id"]), texts),
    ),
    max_size=4,
).map(tuple)
values = st.one_of(st.none(), st.sampled_from(VALUES), variations())
times = st.integers(START_MS - 2 * HOUR_MS, START_MS + 2 * HOUR_MS) | st.sampled_from([-1, 0])
parts = st.tuples(times, texts, values, headers, st.booleans())


def deriver(partition: int) -> Deriver:
    return Deriver(RULES, misrouted_check(partition, PARTITIONS))


@pytest.mark.extended
@settings(max_examples=400)
@given(st.integers(0, PARTITIONS - 1), st.lists(parts, min_size=1, max_size=8))
def test_a_message_read_in_place_derives_what_its_record_does(
    partition: int,
    drawn: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...], bool]],
) -> None:
    compare(partition, [LogRecord(offset, *fields) for offset, fields in enumerate(drawn)])


def test_messages_without_a_uuid_are_known_by_their_bytes() -> None:
    bodies = [*map(user, ("one", "two")), assistant("m1", read=9), assistant("m1", read=8)]
    records = [
        LogRecord(offset, START_MS, None, dump({**body, "uuid": None}), ())
        for offset, body in enumerate([*bodies, *bodies])
    ]
    for partition in range(PARTITIONS):
        compare(partition, records)


def compare(partition: int, records: Sequence[LogRecord]) -> None:
    """Check that records read in place derive what they do as objects."""
    in_place, in_general = deriver(partition), deriver(partition)
    messages = fetched(records)
    for index, record in enumerate(records):
        expected = in_general.derive(input_message(record))
        usual = read_record(messages, index, LARGE_BYTES)
        if usual is None:
            in_place.derive(input_message(record))
        else:
            assert (usual.offset, usual.timestamp_ms) == (record.offset, record.timestamp_ms)
            if usual.message is NOTHING:
                assert (expected.records, expected.dead, expected.changed) == ((), None, False)
            else:
                assert in_place.derive_usual(usual) == expected
        assert messages[index] == record
    assert in_place.end_steps() == in_general.end_steps()
    assert in_place.sessions == in_general.sessions


def simulated() -> Iterator[LogRecord]:
    """Yield a topic: keys, headers and times of publishers that are ours, older or foreign."""
    options = SimulationOptions(seed=3, sessions=40)
    for offset, one in enumerate(islice(simulate(options), 6_000)):
        key = one.session_id.encode() if offset % 5 else None
        own = (("observed", b"live" if offset % 3 else b"replay"), ("agent_id", b"agent-1"))
        foreign = (("task_id", "tä".encode()), ("observed", b"live"))
        headers = own if offset % 7 else foreign
        value = one.named() if offset % 11 else one.value
        jump_ms = offset // 1_000 * HOUR_MS
        created = offset % 13 != 0
        yield LogRecord(2 * offset, one.at_ms + jump_ms, key, value, headers, created)


def applied(messages: Sequence[LogRecord], batch: int) -> Iterator[object]:
    """Yield what a partition's state makes of each batch."""
    state = PartitionState(RULES, DeriveConfig(cold_hours=0), InputPartition(0, 1, 1))
    for begin in range(0, len(messages), batch):
        part = messages[begin : begin + batch]
        state.apply(part)
        yield state.finish(part[-1].offset + 1), list(state.in_use), state.stored_sessions


@pytest.mark.parametrize("batch", [1_000, 77])
def test_a_partition_derives_from_fetched_records_what_it_does_from_objects(batch: int) -> None:
    records = list(simulated())
    messages = fetched(records)
    assert messages == records
    in_short = sum(read_record(messages, n, LARGE_BYTES) is not None for n in range(len(messages)))
    assert in_short > len(records) // 5
    assert list(applied(messages, batch)) == list(applied(records, batch))
    assert messages == records


def test_a_message_over_the_limit_is_not_read_in_place() -> None:
    value = dump(user("go on"))
    messages = fetched([LogRecord(0, START_MS, None, value, ())])
    assert read_record(messages, 0, len(value)) is not None
    assert read_record(messages, 0, len(value) - 1) is None
    for index in (-1, 1):
        with pytest.raises(IndexError):
            read_record(messages, index, LARGE_BYTES)


def test_what_is_read_in_place_stays_as_it_was() -> None:
    headers = (("observed", b"live"),)
    batch = batch_of([LogRecord(n, START_MS, b"k", one, headers) for n, one in enumerate(VALUES)])
    (header,) = batches.headers_of(batch) or []
    content = bytes(header.body(batch))
    messages: FetchedRecords = batches.FetchedRecords()
    messages.split(content, header, 0)
    read = [read_record(messages, index, LARGE_BYTES) for index in range(len(messages))]
    assert sum(usual is not None for usual in read) >= len(USUAL) - 1
    assert content == header.body(batch)


def test_names_that_share_a_place_in_the_cache_stay_apart() -> None:
    # Longer ones first: each is the beginning of the one before.
    sessions = [letter * size for letter in ascii_letters for size in range(130, 0, -1)]
    sessions += [f"{number:x}{'s' * (number % 9)}" for number in range(9_000)]
    records = [
        LogRecord(
            offset, START_MS, name.encode(), dump({**ONE, "uuid": "u", "session_id": name}), ()
        )
        for offset, name in enumerate(sessions)
    ]
    messages = fetched(records)
    for _ in range(2):
        for index, name in enumerate(sessions):
            usual = read_record(messages, index, LARGE_BYTES)
            assert usual is not None
            assert (usual.message.session_id, usual.key) == (name, name)
