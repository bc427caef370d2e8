"""The contract of the control worker's stream: Faust over Kafka, and its twin over any log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from contextgauge.clock import SystemClock
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.faust.stream import FaustStream
from streams.edge.kafka.log import KafkaLog
from streams.edge.memory.log import MemoryLog
from streams.ports import Log, NewRecord, ReceivedRecord, RecordStream
from tests.contract.logs import unreadable
from tests.doubles.record_stream import MemoryRecordStream
from tests.hostile_batches import bomb, put
from tests.patience import PATIENCE_S

HOUR_MS = 3_600_000


class Taking:
    """A handler: it keeps what comes, and acknowledges when it is asked to."""

    def __init__(self) -> None:
        self.positions: dict[int, int] = {}
        self.arrivals: list[ReceivedRecord] = []
        self.fails = False
        self.gate: asyncio.Event | None = None
        self.gated_from = 1
        """So many arrivals wait at the gate: records that belong together may come one by one."""
        self.assignments = 0

    def assigned(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)
        self.assignments += 1

    def revoked(self) -> None:
        self.positions = {}

    async def handle(self, arrivals: Sequence[ReceivedRecord]) -> None:
        if self.fails:
            raise ArithmeticError("the handler fails")
        self.arrivals += arrivals
        if self.gate is not None and len(self.arrivals) >= self.gated_from:
            await self.gate.wait()

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [arrival.record.value for arrival in self.arrivals if arrival.partition == partition]


class Kit:
    """A topic of two partitions, and streams of one group over it."""

    def __init__(self, log: Log, make: Callable[[str], RecordStream], topic: str) -> None:
        self.log, self._make, self.topic = log, make, topic
        self.topic_id = ""
        self.first_ms = HOUR_MS
        """How far back a group begins that has acknowledged nothing."""

    def stream(self) -> RecordStream:
        """Return a stream of the group, not running yet."""
        return self._make(self.topic)

    async def rebalance(self, stream: RecordStream, handler: "Taking") -> None:
        """Have a running stream lose its partitions, and get them again."""
        if isinstance(stream, MemoryRecordStream):
            await stream.rebalance()
            return
        before = handler.assignments
        stop = asyncio.Event()
        other = asyncio.create_task(self.stream().run(Taking(), stop))
        await until(lambda: handler.assignments > before)
        stop.set()
        await asyncio.wait_for(other, PATIENCE_S)
        await until(lambda: len(handler.positions) == 2)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Taking]:
        """Run a stream meanwhile, and end it in good order."""
        handler, stop = Taking(), asyncio.Event()
        task = asyncio.create_task(self.stream().run(handler, stop))
        try:
            await until(lambda: len(handler.positions) == 2 or task.done())
            if task.done():
                task.result()
            yield handler
            stop.set()
            await asyncio.wait_for(task, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def commit(self, *values: bytes, partition: int = 0) -> None:
        """Append records in one transaction, which leaves a marker behind."""
        producer = self.log.transactional_producer(f"{self.topic}-writer")
        await producer.start()
        await producer.commit(
            [
                NewRecord(self.topic, partition, b"key", value, (("name", b"header"),))
                for value in values
            ]
        )
        await producer.stop()

    async def write_bomb(self, records: int) -> None:
        """Append a batch that unpacks to more than readers of this log take."""
        if isinstance(self.log, KafkaLog):
            batch = bomb("zstd", records, self.log.options.batch_limit_bytes)
            await put(self.log.options.bootstrap_servers, self.topic, 0, batch)
        elif isinstance(self.log, MemoryLog):
            self.log.partition(self.topic, 0).append_unreadable(unreadable(records, self.topic))


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not check():  # noqa: ASYNC110 -- what it looks at is another's
            await asyncio.sleep(0.01)


@pytest.fixture(params=["memory", pytest.param("faust", marks=pytest.mark.service)])
async def kit(request: pytest.FixtureRequest, prefix: str) -> AsyncIterator[Kit]:
    log: Log
    acknowledged: dict[int, int] = {}
    clock = SystemClock()
    if request.param == "memory":
        log = MemoryLog(clock)
    else:
        options = KafkaOptions(
            request.getfixturevalue("kafka"), session_timeout_ms=6_000, batch_limit_bytes=MIB
        )
        log = KafkaLog(options)

    def since_ms() -> int:
        return clock.now_ms() - given.first_ms

    def pending_ms() -> int:
        return clock.now_ms() - 2 * HOUR_MS

    def make(topic: str) -> RecordStream:
        if request.param == "memory":
            return MemoryRecordStream(log, topic, (0, 1), acknowledged, since_ms, pending_ms)
        return FaustStream(
            options, topic, prefix + "control", None, since_ms, pending_ms, topic_id=given.topic_id
        )

    topic = Topic(prefix + "records", "any", "delete", -1, 9 * MIB)
    await log.start()
    await log.create_topics([topic], 2)
    given = Kit(log, make, topic.name)
    yield given
    await log.stop()


async def test_records_arrive_in_order_with_all_their_fields(kit: Kit) -> None:
    await kit.commit(b"1", b"2")
    await kit.commit(b"3")
    await kit.commit(b"other", partition=1)
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 4)
    assert taking.values() == [b"1", b"2", b"3"]
    assert taking.values(1) == [b"other"]
    first = taking.arrivals[0].record
    assert (first.offset, first.key, first.headers) == (0, b"key", (("name", b"header"),))
    assert abs(first.timestamp_ms - SystemClock().now_ms()) < HOUR_MS


@pytest.mark.extended
async def test_a_batch_that_cannot_be_read_is_passed_over(kit: Kit) -> None:
    await kit.commit(b"1")
    await kit.write_bomb(3)
    await kit.commit(b"2")
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 2)
        assert taking.values() == [b"1", b"2"]
        taking.arrivals[-1].acknowledge()
    await kit.write_bomb(2)
    await kit.commit(b"3")
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 1)
    assert taking.values() == [b"3"]


@pytest.mark.extended
async def test_acknowledged_records_are_not_redelivered(kit: Kit) -> None:
    await kit.commit(b"1", b"2", b"3", b"4")
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 4)
        for arrival in taking.arrivals[:2]:
            arrival.release()
            arrival.acknowledge()
    await kit.commit(b"5")
    async with kit.reading() as taking:
        assert taking.positions == {0: 2, 1: 0}
        await until(lambda: len(taking.arrivals) == 3)
        for arrival in taking.arrivals:
            arrival.acknowledge()
    assert taking.values() == [b"3", b"4", b"5"]
    await kit.commit(b"6")
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 1)
    assert taking.values() == [b"6"]


@pytest.mark.extended
async def test_what_came_since_the_first_start_is_not_left_out_by_the_next(kit: Kit) -> None:
    kit.first_ms = 0
    await kit.commit(b"before")
    clock = SystemClock()
    written_ms = clock.now_ms()
    await until(lambda: clock.now_ms() > written_ms)  # what is of one millisecond is read
    async with kit.reading() as taking:
        await kit.commit(b"1")
        await until(lambda: taking.values() == [b"1"])
    async with kit.reading() as taking:
        await until(lambda: taking.values() == [b"1"])


@pytest.mark.extended
async def test_positions_of_a_former_topic_are_not_continued(kit: Kit) -> None:
    if isinstance(kit.stream(), MemoryRecordStream):
        pytest.skip("the twin's positions are its test's")
    await kit.commit(b"1", b"2")
    kit.topic_id = "a"
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 2)
        for arrival in taking.arrivals:
            arrival.acknowledge()
    # Also where a broker does not report it, as one from before topic ids.
    for topic_id in ("a", ""):
        kit.topic_id = topic_id
        async with kit.reading() as taking:
            assert taking.positions[0] == 2
    kit.topic_id = "b"
    async with kit.reading() as taking:
        assert taking.positions == {0: 0, 1: 0}


@pytest.mark.extended
async def test_markers_between_records_are_not_a_gap(kit: Kit) -> None:
    for number in range(5):
        await kit.commit(b"%d" % number)
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 5)
        for arrival in taking.arrivals:
            arrival.acknowledge()
    async with kit.reading() as taking:
        await kit.commit(b"last")
        await until(lambda: len(taking.arrivals) == 1)
    assert taking.values() == [b"last"]


async def test_the_lag_is_reported(kit: Kit) -> None:
    await kit.commit(b"1")
    handler, stop = Taking(), asyncio.Event()
    stream = kit.stream()
    task = asyncio.create_task(stream.run(handler, stop))
    await until(lambda: len(handler.arrivals) == 1)
    await until(lambda: stream.behind(0) == 0)
    stop.set()
    await asyncio.wait_for(task, PATIENCE_S)


@pytest.mark.extended
async def test_unhandled_records_count_as_lag(kit: Kit) -> None:
    handler, stop, stream = Taking(), asyncio.Event(), kit.stream()
    handler.gate = gate = asyncio.Event()
    task = asyncio.create_task(stream.run(handler, stop))
    await kit.commit(b"1")
    await until(lambda: len(handler.arrivals) == 1)
    for _ in range(10):
        await asyncio.sleep(0.1)
        assert stream.behind(0) != 0
    gate.set()
    await until(lambda: stream.behind(0) == 0)
    stop.set()
    await asyncio.wait_for(task, PATIENCE_S)


@pytest.mark.extended
async def test_a_handler_that_raises_ends_the_stream_and_nothing_is_acknowledged(
    kit: Kit,
) -> None:
    await kit.commit(b"1", b"2")
    handler = Taking()
    handler.fails = True
    with pytest.raises(ArithmeticError):
        await asyncio.wait_for(kit.stream().run(handler, asyncio.Event()), PATIENCE_S)
    async with kit.reading() as taking:
        await until(lambda: len(taking.arrivals) == 2)
    assert taking.values() == [b"1", b"2"]


@pytest.mark.extended
async def test_records_from_before_a_rebalance_are_stale_and_redelivered(kit: Kit) -> None:
    handler, stop, stream = Taking(), asyncio.Event(), kit.stream()
    handler.gate = gate = asyncio.Event()
    handler.gated_from = 2
    task = asyncio.create_task(stream.run(handler, stop))
    await kit.commit(b"1", b"2")
    await until(lambda: len(handler.arrivals) == 2)
    former = list(handler.arrivals)
    assert all(arrival.is_current() for arrival in former)
    await kit.commit(b"3")
    await asyncio.sleep(0.5)  # it waits in the stream's own buffer, behind the two
    await kit.rebalance(stream, handler)
    assert not any(arrival.is_current() for arrival in former)
    for arrival in former:
        arrival.acknowledge()
    gate.set()

    def current() -> list[bytes | None]:
        return [found.record.value for found in handler.arrivals if found.is_current()]

    await until(lambda: current() == [b"1", b"2", b"3"])
    stop.set()
    await asyncio.wait_for(task, PATIENCE_S)
    async with kit.reading() as taking:
        assert taking.positions == {0: 0, 1: 0}
