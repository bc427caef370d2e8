"""One loop with several handlers: a record is acknowledged when none of them holds it."""

import asyncio

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError
from streams.flow.common.ports import WorkerPorts
from streams.flow.control.control_loop import (
    AssignedPartition,
    ControlLoop,
    PartitionHandler,
    PendingRecord,
)
from streams.ports import LogRecord, RecordHandler
from tests.flow.control.control_kit import until_so
from tests.flow.derive_kit import worker_ports
from tests.patience import PATIENCE_S


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


class Holding(PartitionHandler):
    """Holds what it gets until a test says otherwise."""

    def __init__(self, partition: AssignedPartition) -> None:
        super().__init__(partition)
        self.records: list[PendingRecord] = []
        self.values: list[bytes | None] = []
        self.error: Exception | None = None

    async def handle(self, pending: PendingRecord) -> None:
        if self.error is not None:
            raise self.error
        pending.hold()
        self.records.append(pending)
        self.values.append(pending.arrival.record.value)


class Idle:
    """A stream of a test's own hands."""

    async def run(self, _: RecordHandler, stop: asyncio.Event) -> None:
        await stop.wait()

    def behind(self, _: int) -> int | None:
        return None


class Pair:
    """A loop with two handlers."""

    def __init__(self, ports: WorkerPorts) -> None:
        self.handlers: list[Holding] = []
        self.loop = ControlLoop("test", Idle(), [self.opened, self.opened], ports)

    def opened(self, partition: AssignedPartition) -> Holding:
        handler = Holding(partition)
        self.handlers.append(handler)
        return handler


@pytest.fixture
def ports() -> WorkerPorts:
    return worker_ports(SystemClock())


@pytest.fixture
def pair(ports: WorkerPorts) -> Pair:
    return Pair(ports)


async def test_a_record_is_acknowledged_when_both_are_done(pair: Pair) -> None:
    pair.loop.assigned({0: 5})
    arrivals = [Arrival(5), Arrival(7), Arrival(8)]
    await pair.loop.handle(arrivals)
    first, second = (each.records for each in pair.handlers)
    for pending in (first[0], first[1], second[1], second[2]):
        pending.done()
    assert [each.is_acknowledged for each in arrivals] == [False] * 3
    second[0].done()
    assert [each.is_acknowledged for each in arrivals] == [True, True, False]


async def test_bytes_are_dropped_once_both_have_seen_them(pair: Pair) -> None:
    pair.loop.assigned({0: 0})
    arrival = Arrival(0)
    await pair.loop.handle([arrival])
    assert [each.values for each in pair.handlers] == [[b"value"]] * 2
    assert arrival.record.value is None


async def test_what_was_handed_over_before_or_is_of_another_assignment_is_left_out(
    pair: Pair,
) -> None:
    old = Arrival(9)
    old.is_old = True
    pair.loop.assigned({0: 5})
    await pair.loop.handle([Arrival(4), Arrival(5), Arrival(5), old, Arrival(5, partition=1)])
    assert [len(each.records) for each in pair.handlers] == [1, 1]


async def test_after_a_revocation_nothing_is_acknowledged(pair: Pair) -> None:
    pair.loop.assigned({0: 0})
    arrival = Arrival(0)
    await pair.loop.handle([arrival])
    pair.loop.revoked()
    pair.loop.assigned({0: 0})
    for each in pair.handlers[:2]:
        each.records[0].done()
    assert not arrival.is_acknowledged


async def test_what_one_raises_is_raised_unless_the_worker_stops(
    pair: Pair, ports: WorkerPorts
) -> None:
    pair.loop.assigned({0: 0})
    pair.handlers[1].error = RetryError("it is away")
    with pytest.raises(RetryError, match="it is away"):
        await pair.loop.handle([Arrival(0)])
    ports.stop.set()
    arrival = Arrival(1)
    await pair.loop.handle([arrival])
    pair.handlers[0].records[-1].done()
    assert not arrival.is_acknowledged


async def test_what_a_task_of_a_partition_raises_ends_the_loop(pair: Pair) -> None:
    async def broken() -> None:
        raise ArithmeticError("it fails")

    running = asyncio.create_task(pair.loop.run())
    await asyncio.sleep(0)
    pair.loop.assigned({0: 0})
    pair.handlers[0].partition.spawn(broken())
    with pytest.raises(ArithmeticError, match="it fails"):
        await asyncio.wait_for(running, PATIENCE_S)


async def test_work_that_a_client_cuts_off_ends_the_worker() -> None:
    async def cut_off() -> None:
        raise asyncio.CancelledError

    failures: list[Exception] = []
    partition = AssignedPartition(3, 0, failures.append)
    partition.spawn(cut_off())
    await until_so(lambda: bool(failures))
    assert isinstance(failures[0], RetryError)
    assert "partition 3" in str(failures[0])


async def test_work_that_ends_with_its_partition_is_no_failure() -> None:
    async def _waits() -> None:
        await asyncio.Event().wait()

    failures: list[Exception] = []
    partition = AssignedPartition(3, 0, failures.append)
    partition.spawn(_waits())
    partition.revoke()
    await until_so(lambda: not partition.tasks)
    assert failures == []
