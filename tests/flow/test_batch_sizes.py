"""Batches are small at first, larger while commits are fast, and smaller after each failure."""

import asyncio

import pytest

from contextgauge.errors import RetryError
from contextgauge.partitioner import partition_of
from schemas.topics import MIB
from streams.edge.memory.log import MemoryTransactionalProducer
from streams.flow.derive.batch_sizes import BatchSizes
from tests.flow.derive_kit import DeriveKit, expected, samples
from tests.patience import PATIENCE_S

TIMEOUT_S = 20.0


def _messages(sizes: BatchSizes, partition: int = 0) -> int:
    return sizes.next(partition).messages


def test_batches_grow_while_commits_are_fast_up_to_the_setting() -> None:
    sizes = BatchSizes(5_000, TIMEOUT_S)
    grown = []
    for _ in range(6):
        grown.append(_messages(sizes))
        sizes.committed(0, 0.1)
    assert grown == [500, 1_000, 2_000, 4_000, 5_000, 5_000]
    assert _messages(sizes, 1) == 500  # each partition for itself
    assert _messages(BatchSizes(100, TIMEOUT_S)) == 100


def test_batches_stay_while_commits_take_their_time_and_shrink_where_they_are_slow() -> None:
    sizes = BatchSizes(5_000, TIMEOUT_S)
    sizes.committed(0, 5.0)
    assert _messages(sizes) == 500
    sizes.committed(0, 11.0)
    assert _messages(sizes) == 250


def test_each_failure_halves_the_batches_and_a_few_messages_always_go() -> None:
    sizes = BatchSizes(5_000, TIMEOUT_S)
    halved = []
    for _ in range(7):
        sizes.failed(0)
        halved.append(_messages(sizes))
    assert halved == [250, 125, 62, 31, 25, 25, 25]
    assert _messages(sizes, 1) == 500


def test_a_size_that_failed_is_tried_again_after_many_commits_and_not_at_once() -> None:
    sizes = BatchSizes(5_000, TIMEOUT_S)
    sizes.committed(0, 0.1)
    sizes.failed(0)  # 1 000 messages
    tried = []
    for _ in range(101):
        sizes.committed(0, 0.1)
        tried.append(_messages(sizes))
    assert set(tried[:99]) == {500}
    assert tried[-2:] == [1_000, 2_000]


@pytest.mark.parametrize(("partitions", "messages"), [(1, 5_000), (4, 5_000), (16, 1_250)])
def test_what_is_in_flight_is_bounded_over_all_partitions(partitions: int, messages: int) -> None:
    sizes = BatchSizes(5_000, TIMEOUT_S)
    sizes.share(partitions)
    for _ in range(5):
        sizes.committed(0, 0.1)
    assert sizes.next(0).messages == messages
    assert sizes.next(0).size * partitions <= 40 * MIB


async def test_a_backlog_whose_commits_fail_is_derived_in_smaller_batches(
    kit: DeriveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with little CPU: a batch that is too large for its transaction would fail each time."""
    written: list[int] = []
    most, commit = 60, MemoryTransactionalProducer.commit
    sent = [each for each in samples() if partition_of(each.session_id, 4) == 1][:400]

    async def slow(producer: MemoryTransactionalProducer, records: list, approve=None):  # type: ignore[no-untyped-def, type-arg]  # noqa: ANN001, ANN202 -- wraps it as it is
        written.append(len(records))
        if len(records) > most:
            raise RetryError("the transaction timed out")
        return await commit(producer, records, approve)

    monkeypatch.setattr(MemoryTransactionalProducer, "commit", slow)
    await kit.publish(sent)
    figures = await asyncio.wait_for(kit.run_until_caught_up(kit.config), PATIENCE_S)
    batches = [int(size) for size in figures.observed["derive_batch_messages"] if size]
    assert sum(batches) == len(sent)
    assert max(written) > most >= written[-1]
    assert await kit.events() == expected(sent)
