"""The contract of the sink of commands: over Kafka, and over the log in memory."""

import asyncio

import pytest

from contextgauge.errors import ConfigError, RetryError
from contextgauge.partitioner import key_bytes, partition_of
from contextgauge.ports import NewRecord
from schemas.commands import CancelRequested, CommandEntry, CompactRequested, ThresholdsSet
from streams.codec.commands import read_entry
from streams.edge.commands import LogCommandSink
from streams.edge.memory.log import MemoryLog, MemoryProducer
from streams.ports import LogRecord
from tests.contract.logs import LogUnderTest
from tests.flow.control.control_kit import GivenClock

PARTITIONS = 3


def compact(session_id: str, number: int = 1) -> CommandEntry:
    data = CompactRequested(
        session_id=session_id, command_id=f"c-{number}", trigger="manual", requested_by="ada"
    )
    return CommandEntry(f"e-{number}", 1_700_000_000_000 + number, data)


def read(records: list[LogRecord]) -> list[CommandEntry]:
    return [read_entry(record.headers, record.value or b"") for record in records]


@pytest.mark.parametrize("session_id", ["s-1", "séance/2", "lone \ud800"])
async def test_an_entry_goes_to_its_sessions_partition(
    under_test: LogUnderTest, session_id: str
) -> None:
    topic = await under_test.create("commands", PARTITIONS)
    sink = LogCommandSink(under_test.log, topic)
    cancel = CancelRequested(session_id=session_id, command_id="c-1", requested_by="ada")
    entries = [compact(session_id), CommandEntry("e-9", 1_700_000_000_001, cancel)]
    await sink.start()
    await sink.send(entries)
    await sink.stop()
    partition = partition_of(session_id, PARTITIONS)
    for other in range(PARTITIONS):
        records = await under_test.committed_records(other, topic)
        assert [record.key for record in records] == [key_bytes(session_id)] * len(records)
        assert read(records) == (entries if other == partition else [])


async def test_thresholds_without_a_session_go_to_every_partition(
    under_test: LogUnderTest,
) -> None:
    topic = await under_test.create("commands", PARTITIONS)
    sink = LogCommandSink(under_test.log, topic)
    of_all = ThresholdsSet(scope="agent", name="reviewer", requested_by="ada", automatic=True)
    of_one = ThresholdsSet(scope="session", name="s-1", requested_by="ada", compact_at="80%")
    await sink.send([CommandEntry("e-1", 1, of_all), CommandEntry("e-2", 2, of_one)])
    await sink.stop()
    for partition in range(PARTITIONS):
        entries = read(await under_test.committed_records(partition, topic))
        own = [of_one] if partition == partition_of("s-1", PARTITIONS) else []
        assert [entry.data for entry in entries] == [of_all, *own]


async def test_what_is_sent_at_once_is_there_when_send_returns(under_test: LogUnderTest) -> None:
    topic = await under_test.create("commands", 1)
    sink = LogCommandSink(under_test.log, topic)
    await asyncio.gather(*(sink.send([compact("s-1", number)]) for number in range(20)))
    entries = read(await under_test.committed_records(0, topic))
    assert {entry.id for entry in entries} == {f"e-{number}" for number in range(20)}
    await sink.stop()


async def test_a_missing_topic_is_named_with_the_remedy(under_test: LogUnderTest) -> None:
    sink = LogCommandSink(under_test.log, under_test.prefix + "missing")
    with pytest.raises(ConfigError, match="contextgauge topics create"):
        await sink.start()
    await sink.stop()


class Hanging(MemoryLog):
    """A log whose producers acknowledge nothing for now."""

    hangs = True

    def producer(self) -> MemoryProducer:
        return HangingProducer(self)


class HangingProducer(MemoryProducer):
    """One of its producers."""

    def __init__(self, log: Hanging) -> None:
        super().__init__(log)
        self._hanging = log

    async def send(self, record: NewRecord) -> None:
        if self._hanging.hangs:
            await asyncio.Event().wait()
        await super().send(record)


async def test_a_broker_that_does_not_answer_is_given_up_and_tried_again() -> None:
    log = Hanging(GivenClock())
    under_test = LogUnderTest(log, "", lambda *_: asyncio.sleep(0))
    topic = await under_test.create("commands", 1)
    sink = LogCommandSink(log, topic, answer_s=0.01)
    with pytest.raises(RetryError, match="sending it again is harmless"):
        await sink.send([compact("s-1")])
    log.hangs = False
    await sink.send([compact("s-1")])
    assert len(await under_test.committed_records(0, topic)) == 1
