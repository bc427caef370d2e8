"""The aggregates of several partitions are those of all their records together."""

from itertools import chain

from schemas.records import Record
from schemas.views import OVER, Aggregates, PartitionView
from streams.core.project_stats import counted
from streams.edge import view_codec
from streams.edge.memory_views import MemoryPartition, MemoryViews
from streams.edge.partitioner import partition_of
from streams.flow.fold_views import fold_records
from streams.ports import Generations, ViewPosition
from streams.serve.sessions import Sessions
from streams.serve.stats import add, add_up
from tests.core.history import History
from tests.flow.project_kit import sample_records


def store_of(records: list[Record], partitions: int) -> MemoryViews:
    store = MemoryViews()
    for partition, dump in enumerate(fold_records(records, partition_of, partitions)):
        position = ViewPosition(len(records), 0, partitions, caught_up=True)
        store.partitions[1, partition] = MemoryPartition(position, dump)
    store.kept = Generations(1, None)
    return store


async def test_partitions_add_up_to_what_one_would_have() -> None:
    records = list(chain(*sample_records()))
    many = await Sessions(store_of(records, 5), partition_of).stats()
    one = await Sessions(store_of(records, 1), partition_of).stats()
    assert many == one
    assert many.total.pre_tokens.count > 3
    assert len(many.by_model) > 1
    assert list(many.by_hour) == sorted(many.by_hour)


async def test_hours_and_models_each_add_up_to_the_total() -> None:
    stats = await Sessions(store_of(list(chain(*sample_records())), 3), partition_of).stats()
    for parts in (stats.by_hour.values(), stats.by_model.values()):
        total = Aggregates()
        for part in parts:
            total = add(total, part)
        assert total == stats.total


async def test_before_the_first_projection_nothing_is_counted() -> None:
    assert await Sessions(MemoryViews(), partition_of).stats() == (Aggregates(), {}, {})


def test_a_model_that_was_not_told_is_no_name() -> None:
    told = History()
    counted_once = counted(Aggregates(), told.boundary(model=None, pre=20_000_000), None)
    stats = {
        b"total": view_codec.encode(counted_once),
        b"model": view_codec.encode(counted_once),
        b"model:m": view_codec.encode(Aggregates()),
        b"hour:unknown": view_codec.encode(counted_once),
        b"partition": view_codec.encode(PartitionView()),
    }
    summed = add_up([stats, stats])
    assert summed.total.pre_tokens.buckets == {OVER: 2}
    assert set(summed.by_model) == {None, "m"}
    assert set(summed.by_hour) == {"unknown"}
    assert summed.by_model[None] == summed.total
