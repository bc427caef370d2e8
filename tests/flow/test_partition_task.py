"""A partition's task, on the log in memory: what joins a batch, is reported, is released."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from contextgauge.errors import PositionError, RetryError
from contextgauge.partitioner import partition_of
from streams.core.derivation.rules_config import Rules
from streams.edge.memory.readers import MemoryGroupReader
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.group_offsets import GroupOffsets
from streams.flow.derive.partition_state import InputPartition, PartitionState, Work
from streams.flow.derive.partition_task import PartitionTask, ReaderLostError, ReleasedState
from streams.flow.derive.state_store import StateStore
from streams.ports import (
    Batch,
    GroupReader,
    TransactionalProducer,
    UnreadableBatch,
    ValueStore,
)
from streams.ports.health import StepTimer
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, expected, samples, until

MESSAGES = samples()


@pytest.mark.parametrize(("batch_messages", "batch_bytes"), [(50, 1 << 20), (5_000, 20_000)])
async def test_messages_received_during_a_commit_join_the_next_batch(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch, batch_messages: int, batch_bytes: int
) -> None:
    monkeypatch.setattr("streams.flow.derive.batch_sizes.BATCH_BYTES", batch_bytes)
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
    committed = await kit.log.committed(config.group, config.messages_topic)
    assert sum(committed.values()) == len(MESSAGES)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[PartitionState]]]:
    """Give all partitions' states; no garbage collector comes by itself."""
    made: list[weakref.ref[PartitionState]] = []

    class Watched(PartitionState):
        def __init__(
            self, rules: Rules, config: DeriveConfig, place: InputPartition, values: ValueStore
        ) -> None:
            super().__init__(rules, config, place, values)
            made.append(weakref.ref(self))

    monkeypatch.setattr("streams.flow.derive.partition_task.PartitionState", Watched)
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


def alive(states: list[weakref.ref[PartitionState]]) -> int:
    return len([state for state in states if state() is not None])


async def test_a_state_is_released_at_once_after_a_failed_commit(
    kit: DeriveKit, log: FaultyLog, states: list[weakref.ref[PartitionState]]
) -> None:
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        log.cut_commits = 3
        await kit.publish(MESSAGES)
        await kit.caught_up(worker)
        assert len(states) == 4 + 3
        assert alive(states) == 4


async def test_a_state_is_released_at_once_when_its_partition_goes_to_another_worker(
    kit: DeriveKit, states: list[weakref.ref[PartitionState]]
) -> None:
    async with kit.running() as one:
        await kit.publish(MESSAGES)
        await kit.caught_up(one)
        async with kit.running() as two:
            await until(lambda: len(states) == 6 and two.figures.total("derive_restores") == 2)
            await until(lambda: alive(states) == 4)


@pytest.fixture
def lost_membership(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Give the event that has the first member leave its group, and come back."""
    watch, lose, lost = MemoryGroupReader.watch, asyncio.Event(), ["lost"]

    async def watched(reader: MemoryGroupReader) -> None:
        if lost:
            lost.pop()
            await lose.wait()
            raise RetryError("the coordinator moved")
        await watch(reader)

    monkeypatch.setattr(MemoryGroupReader, "watch", watched)
    return lose


async def test_an_outdated_state_is_let_go_of_before_the_partition_is_restored(
    kit: DeriveKit,
    states: list[weakref.ref[PartitionState]],
    lost_membership: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = StateStore.end

    async def further(store: StateStore, partition: int) -> int:
        return await end(store, partition) + lost_membership.is_set()

    monkeypatch.setattr(StateStore, "end", further)
    async with kit.running() as worker:
        await kit.publish(MESSAGES)
        await kit.caught_up(worker)
        lost_membership.set()
        await until(lambda: worker.figures.total("derive_restores") == 8)
        assert len(states) == 8
        assert alive(states) == 4


async def test_messages_that_were_lost_while_a_state_was_kept_end_the_worker(
    kit: DeriveKit,
    log: FaultyLog,
    lost_membership: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The partition lost its end and took more than that: the position is among its messages."""
    take_over = PartitionTask._take_over  # noqa: SLF001 -- to hold it up
    began, go_on = asyncio.Event(), asyncio.Event()

    async def hold(
        task: PartitionTask, released: ReleasedState | None, step: StepTimer
    ) -> PartitionState:
        if released is not None:
            began.set()
            await go_on.wait()
        return await take_over(task, released, step)

    monkeypatch.setattr(PartitionTask, "_take_over", hold)
    ours = [each for each in MESSAGES if partition_of(each.session_id, 4) == 1]
    worker = kit.start_worker()
    await kit.publish(ours)
    await kit.caught_up(worker)
    lost_membership.set()
    await began.wait()
    log.truncate(kit.config.messages_topic, 1, len(ours) - 10)
    await kit.publish(ours[:30])
    go_on.set()
    with pytest.raises(PositionError, match="is not the one that was derived"):
        await worker.task


async def test_the_state_that_failed_a_membership_is_released_before_the_next(
    kit: DeriveKit, states: list[weakref.ref[PartitionState]], monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, lost = PartitionTask._poll, ["lost"]  # noqa: SLF001 -- to fail in its place

    async def lose(task: PartitionTask, messages: int) -> Batch | UnreadableBatch:
        if task.committed and lost:
            raise ReaderLostError(lost.pop())
        return await poll(task, messages)

    monkeypatch.setattr(PartitionTask, "_poll", lose)
    async with kit.running(replace(kit.config, batch_messages=20)) as worker:
        await kit.publish(MESSAGES)
        await until(lambda: len(states) == 5)
        await kit.caught_up(worker)
        assert alive(states) == 4
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
    seen: list[dict[int, int]] = []

    class Slow:
        async def commit_offsets(self, positions: dict[int, int]) -> None:
            seen.append(dict(positions))
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
    assert seen == [{0: 7}, {0: 7}]
