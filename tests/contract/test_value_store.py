"""What holds the values of sessions that rest: in memory, and in a temporary file."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from contextgauge.errors import StopError
from schemas.topics import MIB
from streams.edge.sqlite.values import TemporaryValues
from streams.flow.derive.memory_values import MemoryValues
from streams.ports import ValueStore

COUNT = 60
"""So many mebibytes are twice what is in memory."""


@pytest.fixture(params=[MemoryValues, TemporaryValues])
def values(request: pytest.FixtureRequest) -> ValueStore:
    """Give each in turn."""
    store: ValueStore = request.param()
    return store


def large(number: int) -> bytes:
    return b"%09d" % number * (MIB // 9)


def test_values_are_given_in_the_order_that_is_asked_for(values: ValueStore) -> None:
    values.put([(3, b"three"), (1, b""), (2, b"\x00two")])
    values.put([(7, b"seven")])
    values.put([])
    assert values.get([7, 1, 3]) == [b"seven", b"", b"three"]
    assert values.get([2, 2]) == [b"\x00two", b"\x00two"]
    assert values.get([]) == []


def test_what_is_deleted_takes_nothing_else_along(values: ValueStore) -> None:
    values.put([(number, b"%d" % number) for number in range(5_000)])
    values.delete(range(0, 5_000, 2))
    values.put([(number, b"%d" % number) for number in range(5_000, 5_100)])
    numbers = [*range(1, 5_000, 2), *range(5_000, 5_100)]
    assert values.get(numbers) == [b"%d" % number for number in numbers]


def test_a_value_that_is_not_there_is_an_error(values: ValueStore) -> None:
    values.put([(1, b"one"), (2, b"two")])
    values.delete([1])
    for number in (1, 3):
        with pytest.raises(KeyError, match=str(number)):
            values.get([2, number])


def test_more_than_what_is_in_memory_is_held(values: ValueStore) -> None:
    for number in range(COUNT):
        values.put([(number, large(number))])
    assert all(values.get([number]) == [large(number)] for number in range(COUNT))


def test_what_is_replaced_again_and_again_takes_no_more_room() -> None:
    values = TemporaryValues()
    with files_of_at_most(2 * TemporaryValues.MEMORY_BYTES):
        for number in range(5 * COUNT):
            values.put([(number, large(number))])
            values.delete([number])
    assert values.get([]) == []


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_without_room_stops_the_worker_with_the_remedy() -> None:
    values = TemporaryValues()
    many = [(number, large(number)) for number in range(COUNT)]
    with files_of_at_most(MIB), pytest.raises(StopError, match="TMPDIR"):
        values.put(many)
