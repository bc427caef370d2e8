"""Commands with trouble around them: each has its outcome, and the partition goes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.clock import SystemClock
from contextgauge.compaction.ports import SummaryAnswer, SummaryError, SummaryRequest
from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import FencedError
from contextgauge.partitioner import partition_of
from contextgauge.units import DAY_MS
from schemas.commands import CancelRequested, CommandFinished, CompactRequested
from streams.edge.memory.readers import MemoryPartitionReader
from streams.flow.control.commands.command_log import CommandLog
from streams.flow.control.commands.command_worker import CommandWorker
from streams.ports import SCATTERED, Approval, NewRecord
from tests.flow.control.command_kit import (
    COMMANDS,
    MESSAGES,
    PARTITIONS,
    SESSION,
    CommandKit,
    record_of,
)
from tests.patience import PATIENCE_S

NUMBER = partition_of(SESSION, PARTITIONS)


@pytest.fixture
async def kit() -> CommandKit:
    return await CommandKit.created(12)


class Ahead(SystemClock):
    """A clock by which everything is a day old."""

    def now_ms(self) -> int:
        return super().now_ms() + DAY_MS


class Log:
    """A worker's view of the log, whose readers and producers a test changes."""

    def __init__(self, kit: CommandKit) -> None:
        self._log = kit.log
        self.change_reader: Callable[[str, MemoryPartitionReader], None] = lambda _topic, _reader: (
            None
        )
        self.change_producer: Callable[[Any], None] = lambda _producer: None

    def reader(self, topic: str, partitions: Sequence[int]) -> MemoryPartitionReader:
        reader = self._log.reader(topic, partitions)
        if NUMBER in partitions:
            self.change_reader(topic, reader)
        return reader

    def transactional_producer(self, transactional_id: str) -> Any:
        producer = self._log.transactional_producer(transactional_id)
        self.change_producer(producer)
        return producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def run(
    kit: CommandKit, log: Log, command_id: str = "command", **ports: Any
) -> CommandFinished:
    """Run a worker with this view of the log until a command has its outcome."""
    async with running(kit, log, **ports):
        return await kit.outcome(command_id)


@asynccontextmanager
async def running(kit: CommandKit, log: Log, **ports: Any) -> AsyncIterator[None]:
    """Run a worker with this view of the log."""
    worker = CommandWorker(replace(kit.ports(asyncio.Event()), log=log, **ports))
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def _is_outcome(record: NewRecord) -> bool:
    kind = f"contextgauge.command.{CommandFinished.kind}".encode()
    return any(value and value.startswith(kind) for _, value in record.headers)


async def test_messages_that_expired_since_the_plan_fail_the_command_alone(kit: CommandKit) -> None:
    kit.summaries.open.clear()
    await kit.request()
    async with kit.worker():
        await kit.until(lambda: kit.has_called(1))
        await kit.say(2)
        kit.log.delete_before(MESSAGES, NUMBER, kit.log.partition(MESSAGES, NUMBER).next_offset)
        kit.summaries.open.set()
        outcome = await kit.outcome()
    assert outcome.outcome == "failed"
    assert "cannot be read" in (outcome.reason or "")


@pytest.mark.extended
@pytest.mark.parametrize("is_scattered", [False, True])
async def test_a_swap_that_cannot_be_checked_is_repeated_with_the_same_plan(
    kit: CommandKit, *, is_scattered: bool
) -> None:
    kit.change(check_s=0.05)
    log, late = Log(kit), [True, True]

    def slow(producer: Any) -> None:
        commit = producer.commit

        async def commit_late(records: Sequence[NewRecord], approve: Approval | None = None) -> Any:
            if approve is None or not any(_is_outcome(each) for each in records):
                return await commit(records, approve)

            async def approved(first: Mapping[tuple[str, int], int]) -> bool:
                if late:
                    late.pop()
                    # Others wrote before the boundary, or the log is not read so far.
                    far = {
                        topic_partition: offset + 1_000 for topic_partition, offset in first.items()
                    }
                    first = {**first, (MESSAGES, NUMBER): SCATTERED} if is_scattered else far
                return await approve(first)

            return await commit(records, approved)

        producer.commit = commit_late

    log.change_producer = slow
    await kit.request()
    outcome = await run(kit, log)
    assert (outcome.outcome, outcome.attempt, kit.summaries.calls) == ("completed", 1, 1)
    late.extend([True] * 10)
    await kit.say(12)
    await kit.request("again")
    outcome = await run(kit, log, "again")
    assert outcome.outcome == "failed"
    assert "could not be checked within 0.05 s, 3 times" in (outcome.reason or "")


async def test_many_commands_that_expired_are_finished_in_transactions_of_some_hundred(
    kit: CommandKit,
) -> None:
    log, sizes = Log(kit), list[int]()

    def sized(producer: Any) -> None:
        commit = producer.commit

        async def noted(records: Sequence[NewRecord], *approve: Approval) -> Any:
            sizes.append(len(records))
            return await commit(records, *approve)

        producer.commit = noted

    log.change_producer = sized
    sessions = [name for name in map(str, range(2_000)) if partition_of(name, PARTITIONS) == NUMBER]
    for name in sessions[:450]:
        await kit.request(name, session_id=name, trigger="auto")
    async with running(kit, log, clock=Ahead()):
        await kit.until(lambda: len(kit.of(CommandFinished)) == 450)
    assert max(sizes) == 200


async def test_an_error_that_a_repetition_cannot_mend_is_not_repeated(kit: CommandKit) -> None:
    class Refusing:
        name = "refusing"
        calls = 0

        async def summarise(self, request: SummaryRequest) -> SummaryAnswer:  # noqa: ARG002 -- the port's
            self.calls += 1
            raise SummaryError("the key is wrong", final=True)

    refusing = Refusing()
    kit.change(summariser=refusing)
    outcome = await kit.carry_out()
    assert (outcome.outcome, outcome.attempt, refusing.calls) == ("failed", 1, 1)


async def test_an_entry_that_another_program_wrote_stops_no_command(kit: CommandKit) -> None:
    producer = kit.log.producer()
    for headers in ((("ce_type", None),), (("trace", None), ("ce_id", b"1")), ()):
        await producer.send(NewRecord(COMMANDS, 0, b"s", b"{}", headers))
    outcome = await kit.carry_out()
    assert outcome.outcome == "completed"


async def test_a_store_that_lost_the_conversation_between_two_looks_is_waited_for(
    kit: CommandKit,
) -> None:
    conversation = kit.conversations.conversation
    looks = list[int]()

    async def begun_anew(session_id: str) -> SessionConversation | None:
        looks.append(len(looks))
        stored = await conversation(session_id)
        return stored and stored._replace(position=3)

    kit.conversations.conversation = begun_anew  # type: ignore[method-assign]
    kit.summaries.open.set()
    outcome = await kit.carry_out()
    assert len(looks) > 1
    assert outcome.outcome == "failed"
    assert "conversations are kept up to offset 3" in (outcome.reason or "")


async def test_a_cancellation_just_before_the_outcome_is_no_rejected_plan(kit: CommandKit) -> None:
    kit.change(most_plans=1, heartbeat_s=60.0)
    other = next(name for name in map(str, range(99)) if partition_of(name, PARTITIONS) == NUMBER)
    expired = CompactRequested(
        session_id=other, command_id="other", trigger="auto", requested_by="test"
    )
    log = Log(kit)

    def cancelling(producer: Any) -> None:
        commit = producer.commit

        async def cancel_first(records: Sequence[NewRecord], *approve: Approval) -> Any:
            if kit.of(CancelRequested):
                await asyncio.sleep(0.05)  # as a broker takes
            elif any(_is_outcome(each) for each in records):
                # The partition's owner is about to finish another one, and waits for its turn.
                await kit.send(expired, time_ms=1)
                await asyncio.sleep(0.05)
                await kit.cancel()
            return await commit(records, *approve)

        producer.commit = cancel_first

    log.change_producer = cancelling
    await kit.request()
    outcome = await run(kit, log)
    assert (outcome.outcome, outcome.reason) == ("cancelled", "cancelled on request")


async def test_a_cancellation_during_the_announcement_ends_what_is_announced(
    kit: CommandKit,
) -> None:
    log, cancelled = Log(kit), list[bool]()

    def cancelling(producer: Any) -> None:
        commit = producer.commit

        async def commit_after(records: Sequence[NewRecord], *approve: Approval) -> Any:
            is_announcement = any(b"compacting" in (each.value or b"") for each in records)
            if is_announcement and not cancelled:
                cancelled.append(True)
                await kit.cancel()
                await _until_cancelling(kit)
                for _ in range(20):  # until the job knows
                    await asyncio.sleep(0)
            return await commit(records, *approve)

        producer.commit = commit_after

    log.change_producer = cancelling
    await kit.request()
    outcome = await run(kit, log)
    assert cancelled
    assert outcome.outcome == "cancelled"
    states = [
        line.get("compact_result") or line.get("status")
        for line in kit.lines()
        if line.get("subtype") == "status"
    ]
    assert states == ["compacting", "failed"]
    await kit.check()


async def _until_cancelling(kit: CommandKit) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            view = await kit.store.control_view(SESSION)
            if view is not None and any(each.is_cancelling for each in view.commands):
                return
            await asyncio.sleep(0.002)


async def test_a_partition_that_makes_no_progress_is_taken_over_again(kit: CommandKit) -> None:
    log, hung = Log(kit), list[bool]()

    def hanging(topic: str, reader: MemoryPartitionReader) -> None:
        if topic != COMMANDS or hung:
            return

        async def poll(*_given: Any) -> Any:
            hung.append(True)
            await asyncio.get_running_loop().create_future()

        reader.poll = poll  # type: ignore[method-assign,assignment]

    log.change_reader = hanging
    await kit.request()
    outcome = await run(kit, log, look_s=0.02, stalled_s=0.2)
    assert hung
    assert outcome.outcome == "completed"


async def test_an_older_owner_is_fenced_before_the_log_is_read(kit: CommandKit) -> None:
    log, tried = Log(kit), list[str]()
    older = kit.log.transactional_producer(f"control-{NUMBER}")
    await older.start()
    late = CommandFinished(
        session_id=SESSION, command_id="command", outcome="failed", attempt=1, reason="of before"
    )

    def reading(topic: str, reader: MemoryPartitionReader) -> None:
        bounds = reader.bounds

        async def bounds_after(partition: int) -> tuple[int, int]:
            offsets = await bounds(partition)
            if topic == COMMANDS and partition == NUMBER and not tried:
                try:
                    await older.commit([record_of(late)])
                    tried.append("written")
                except FencedError:
                    tried.append("fenced")
            return offsets

        reader.bounds = bounds_after  # type: ignore[method-assign]

    log.change_reader = reading
    ports = replace(kit.ports(asyncio.Event()), log=log)
    async with CommandLog(ports, NUMBER).owned():
        assert tried == ["fenced"]
