"""All documents of a partition of views, read past the port: what a test compares."""

import copy
from typing import Any

from schemas.views import EntryStream
from streams.edge.memory.views import MemoryViews, PartitionDump
from streams.edge.redis.reader import entries_of
from streams.edge.redis.views import RedisViews
from streams.ports import Entry, ViewReader


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
