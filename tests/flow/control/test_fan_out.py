"""Several handlers of one stream: what one of them does not acknowledge is not acknowledged."""

from collections.abc import Mapping, Sequence

import pytest

from streams.flow.control.fan_out import FanOut
from streams.ports import LogRecord, ReceivedRecord


class Arrival:
    """A record of a stream."""

    def __init__(self, offset: int, partition: int = 0) -> None:
        self.partition = partition
        self.record = LogRecord(offset, 0, b"key", b"value", (), True)  # noqa: FBT003 -- of a tuple
        self.is_acknowledged = self.is_old = False

    def is_current(self) -> bool:
        return not self.is_old

    def release(self) -> None:
        self.record = self.record._replace(value=None)

    def acknowledge(self) -> None:
        self.is_acknowledged = True


class Keeping:
    """A handler that acknowledges what a test says."""

    def __init__(self) -> None:
        self.arrivals: list[ReceivedRecord] = []
        self.positions: dict[int, int] = {}
        self.fails = False

    def assigned(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)

    def revoked(self) -> None:
        self.positions = {}

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        if self.fails:
            raise ArithmeticError("it fails")
        self.arrivals += arrivals


@pytest.fixture
def both() -> tuple[Keeping, Keeping]:
    return Keeping(), Keeping()


async def test_a_record_is_acknowledged_when_both_have(both: tuple[Keeping, Keeping]) -> None:
    fan_out = FanOut(both)
    fan_out.assigned({0: 5, 1: 0})
    assert [each.positions for each in both] == [{0: 5, 1: 0}] * 2
    arrivals = [Arrival(5), Arrival(7), Arrival(8), Arrival(2, partition=1)]
    await fan_out.handle(arrivals)
    first, second = (each.arrivals for each in both)
    first[1].acknowledge()  # and all before it
    assert [each.is_acknowledged for each in arrivals] == [False] * 4
    second[0].acknowledge()
    second[3].acknowledge()
    second[2].acknowledge()
    # The last of what both have acknowledged stands for what came before it.
    assert [each.is_acknowledged for each in arrivals] == [True, True, False, False]


async def test_bytes_are_dropped_once_no_one_needs_them(both: tuple[Keeping, Keeping]) -> None:
    fan_out = FanOut(both)
    fan_out.assigned({0: 0})
    await fan_out.handle([Arrival(0)])
    first, second = (each.arrivals[0] for each in both)
    first.release()
    first.release()
    assert second.record.value == b"value"
    second.acknowledge()
    assert second.record.value is None


async def test_after_a_revocation_nothing_is_acknowledged(both: tuple[Keeping, Keeping]) -> None:
    fan_out = FanOut(both)
    fan_out.assigned({0: 0})
    arrival = Arrival(0)
    await fan_out.handle([arrival])
    fan_out.revoked()
    fan_out.assigned({0: 0})
    for each in both:
        each.arrivals[0].acknowledge()
    assert not arrival.is_acknowledged


async def test_what_one_raises_is_raised(both: tuple[Keeping, Keeping]) -> None:
    both[1].fails = True
    fan_out = FanOut(both)
    fan_out.assigned({0: 0})
    with pytest.raises(ArithmeticError, match="it fails"):
        await fan_out.handle([Arrival(0)])
