"""All documents of a partition of views, read past the port: what a test compares."""

import copy
from collections.abc import Iterable
from typing import Any

from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.views import SESSION_IDLE_MS, EntryStream
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.edge.redis.reader import entries_of
from streams.edge.redis.view_store import RedisViews
from streams.flow.project.fold import LoggedRecord
from streams.flow.rebuild.audit import ViewFold
from streams.ports import Entry, PartitionDump, ViewReader


async def dump(store: ViewReader, generation: int, partition: int) -> PartitionDump:
    """Return everything that is stored of a partition, whatever names it."""
    if isinstance(store, MemoryViews):
        return copy.deepcopy(store._partition(generation, partition).held)  # noqa: SLF001 -- as it is stored
    if not isinstance(store, RedisViews):
        raise TypeError("documents can be dumped of a store, not of a reader in front of it")
    redis: Any = store._redis  # noqa: SLF001 -- as it is stored
    keys = store._keys.of(generation, partition)  # noqa: SLF001 -- as above
    streams: dict[EntryStream, dict[bytes, list[Entry]]] = {"events": {}, "readings": {}}
    views: dict[bytes, bytes] = {}
    compactions: dict[bytes, dict[bytes, bytes]] = {}
    agents: dict[bytes, dict[bytes, float]] = {}

    async def scores(key: bytes) -> dict[bytes, float]:
        return dict(await redis.zrange(key, 0, -1, withscores=True))

    async for key in redis.scan_iter(match=keys.base + b"*", count=1_000):
        letter, name = key[len(keys.base) :][:2], key[len(keys.base) + 2 :]
        if letter == b"s:":
            views[name] = await redis.get(key)
        elif letter == b"c:":
            compactions[name] = await redis.hgetall(key)
        elif letter == b"e:":
            streams["events"][name] = entries_of(await redis.xrange(key))
        elif letter == b"r:":
            streams["readings"][name] = entries_of(await redis.xrange(key))
        elif letter == b"a:":
            agents[name] = await scores(key)
    sets = {name: await scores(key) for name, key in keys.session_sets.items()}
    return PartitionDump(
        views=views,
        compactions=compactions,
        entries=streams,
        rankings={"recent": sets["recent"], "pressure": sets["pressure"]},
        idle=sets["idle"],
        left=sets["left"],
        stats=await redis.hgetall(keys.stats),
        live=entries_of(await redis.xrange(keys.live)),
        agents=agents,
    )


def view_fold(idle_ms: int = SESSION_IDLE_MS) -> ViewFold:
    """Return what folds one partition's records into documents."""
    return ViewFold(MemoryPartition(), idle_ms)


def fold_views(placed: Iterable[LoggedRecord], idle_ms: int = SESSION_IDLE_MS) -> PartitionDump:
    """Return the documents of one partition's records."""
    fold = view_fold(idle_ms)
    for item in placed:
        fold.add(item)
    return fold.documents.held


def fold_records(records: Iterable[Record], partitions: int) -> list[PartitionDump]:
    """Return the documents of records that are on no log yet: each partition's are numbered."""
    folds = [view_fold() for _ in range(partitions)]
    offsets = [0] * partitions
    for record in records:
        partition = partition_of(record.data.session_id, partitions)
        folds[partition].add(LoggedRecord(offsets[partition], None, record))
        offsets[partition] += 1
    return [fold.documents.held for fold in folds]
