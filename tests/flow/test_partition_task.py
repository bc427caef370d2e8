"""A partition's task, on the log in memory: what joins a batch, what is told, what is let go of."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from streams.edge.memory.readers import MemoryGroupReader
from streams.flow.common.topic_watch import TopicLooks
from streams.flow.derive.group_offsets import GroupOffsets
from streams.flow.derive.partition_state import InputPartition, Work
from streams.flow.derive.partition_task import DerivePorts, PartitionTask, ReaderLostError
from streams.ports import Batch, GroupReader, TransactionalProducer
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, expected, samples, until

MESSAGES = samples()


@pytest.mark.parametrize(("batch_messages", "batch_bytes"), [(50, 1 << 20), (5_000, 20_000)])
async def test_messages_received_during_a_commit_join_the_next_batch(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch, batch_messages: int, batch_bytes: int
) -> None:
    monkeypatch.setattr("streams.flow.derive.partition_task._BATCH_BYTES", batch_bytes)
    held, commit = asyncio.Event(), PartitionTask._commit  # noqa: SLF001 -- to hold it up

    async def hold(task: PartitionTask, producer: TransactionalProducer, work: Work) -> None:
        if not task.committed:
            await held.wait()
        await commit(task, producer, work)

    monkeypatch.setattr(PartitionTask, "_commit", hold)
    ours = [sent for sent in MESSAGES if partition_of(sent.session_id, 4) == 1][:400]
    async with kit.running(replace(kit.config, batch_messages=batch_messages)) as worker:
        await until(worker.has_partitions)
        for sent in ours:
            await kit.publish([sent])
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        held.set()
        await kit.caught_up(worker)
    batches = [int(size) for size in worker.figures.observed["derive_batch_messages"] if size]
    assert sum(batches) == len(ours)
    assert max(batches) <= batch_messages
    joined = ours[batches[0] : batches[0] + batches[1]]
    size = sum(len(sent.value) for sent in joined)
    assert len(joined) == batch_messages or size >= batch_bytes
    assert await kit.events() == expected(ours)


async def test_failed_offset_commits_to_the_group_do_not_disturb_derivation(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, failures = MemoryGroupReader.commit_offsets, ["away", "no member", "away"]

    async def fail(reader: MemoryGroupReader, positions: dict[int, int]) -> None:
        if failures:
            raise RetryError(failures.pop())
        await tell(reader, positions)

    monkeypatch.setattr(MemoryGroupReader, "commit_offsets", fail)
    await kit.publish(MESSAGES)
    figures = await kit.run_until_caught_up()
    assert failures == []
    assert figures.total("worker_retries") == 0
    assert await kit.events() == expected(MESSAGES)


async def test_the_last_position_is_committed_to_the_group_on_stop(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.flow.derive.group_offsets.COMMIT_EVERY_S", 1_000.0)
    await kit.publish(MESSAGES)
    async with kit.running() as worker:
        await until(lambda: worker.has_derived(len(MESSAGES) - 1))
        config = kit.config
        assert await kit.log.committed(config.group, config.messages_topic) == {}
    told = await kit.log.committed(config.group, config.messages_topic)
    assert sum(told.values()) == len(MESSAGES)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[PartitionTask]]]:
    """Give all partitions' tasks, which hold their states; no garbage collector comes by itself."""
    made: list[weakref.ref[PartitionTask]] = []

    class Watched(PartitionTask):
        def __init__(
            self,
            ports: DerivePorts,
            place: InputPartition,
            reader: GroupReader,
            offsets: GroupOffsets,
            looks: TopicLooks,
        ) -> None:
            super().__init__(ports, place, reader, offsets, looks)
            made.append(weakref.ref(self))

    monkeypatch.setattr("streams.flow.derive.worker.PartitionTask", Watched)
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


async def test_a_task_is_released_at_once_after_a_failed_commit(
    kit: DeriveKit, log: FaultyLog, tasks: list[weakref.ref[PartitionTask]]
) -> None:
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        log.cut_commits = 3
        await kit.publish(MESSAGES)
        await kit.caught_up(worker)
        assert len(tasks) == 4 + 3
        assert len([task for task in tasks if task() is not None]) == 4


async def test_tasks_of_a_failed_membership_are_released_before_the_next(
    kit: DeriveKit, tasks: list[weakref.ref[PartitionTask]], monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, lost = PartitionTask._poll, ["lost"]  # noqa: SLF001 -- to fail in its place

    async def lose(task: PartitionTask, messages: int) -> Batch:
        if task.committed and lost:
            raise ReaderLostError(lost.pop())
        return await poll(task, messages)

    monkeypatch.setattr(PartitionTask, "_poll", lose)
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        await kit.publish(MESSAGES)
        await until(lambda: len(tasks) == 8)
        await kit.caught_up(worker)
        assert not [task for task in tasks[:4] if task() is not None]
    assert await kit.events() == expected(MESSAGES)


async def test_a_stop_within_a_rebalance_waits_for_the_running_batch(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    committing, revoking, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    commit = PartitionTask._commit  # noqa: SLF001 -- to hold it up
    revoke, stop = MemoryGroupReader.revoke, MemoryGroupReader.stop
    order: list[str] = []

    async def hold(task: PartitionTask, producer: TransactionalProducer, work: Work) -> None:
        committing.set()
        await go_on.wait()
        await commit(task, producer, work)
        order.append("committed")

    async def note_revoke(reader: MemoryGroupReader) -> None:
        revoking.set()
        await revoke(reader)

    async def note_stop(reader: MemoryGroupReader) -> None:
        order.append("stopped")
        await stop(reader)

    monkeypatch.setattr(PartitionTask, "_commit", hold)
    monkeypatch.setattr(MemoryGroupReader, "revoke", note_revoke)
    monkeypatch.setattr(MemoryGroupReader, "stop", note_stop)
    async with kit.running() as one:
        await kit.publish(MESSAGES[:100])
        await committing.wait()
        async with kit.running():
            await revoking.wait()
            ending = asyncio.create_task(one.stop())
            await asyncio.sleep(0.05)
            go_on.set()
            await ending
            assert order[0] == "committed"
            assert "committed" not in order[order.index("stopped") :]


async def test_offsets_of_a_previous_assignment_do_not_count_for_the_next() -> None:
    began, go_on = asyncio.Event(), asyncio.Event()
    told: list[dict[int, int]] = []

    class Slow:
        async def commit_offsets(self, positions: dict[int, int]) -> None:
            told.append(dict(positions))
            began.set()
            await go_on.wait()

    offsets = GroupOffsets(cast("GroupReader", Slow()))
    offsets.note(0, 7)
    telling = asyncio.create_task(offsets.end())
    await began.wait()
    offsets.begin()
    offsets.note(0, 7)
    go_on.set()
    await telling
    await offsets.end()
    await offsets.end()
    assert told == [{0: 7}, {0: 7}]
