"""The live feed in Redis, and what projectors tell of themselves beside their positions."""

from collections.abc import Mapping
from typing import Any, Final

from streams.edge.redis.generations import Ask
from streams.edge.redis.keys import DOCUMENT, PartitionKeys, entry_id, entry_offset
from streams.ports import Entry, LiveBounds, Told

LONGEST_WAIT_S: Final = 2.0
"""Well below the time after which a reply counts as lost."""

_TELL = """
local found = redis.call('HMGET', KEYS[1], 'offset', 'build')
if not found[1] or tonumber(found[1]) < 0 or (found[2] or '') ~= ARGV[1] then return 0 end
return redis.call('HSET', KEYS[1], 'told_ms', ARGV[2], 'told_end', ARGV[3], 'told_lag_ms', ARGV[4])
"""
"""Tell of a position of this build: one is never made of what is told alone."""


class RedisFeed:
    """Reads the feed, and writes what projectors tell. `ask` waits for replies."""

    def __init__(self, redis: Any, ask: Ask, live_entries: int) -> None:  # noqa: ANN401 -- untyped replies
        self._redis, self._ask, self._live_entries = redis, ask, live_entries

    async def entries(
        self, keys: PartitionKeys, after: int, limit: int, wait_s: float
    ) -> list[Entry]:
        """Return the first entries of offsets above `after`, waiting for some if there are none."""
        doing = "reading the live feed"
        if wait_s <= 0:
            first = entry_id(after + 1) if after >= 0 else b"-"
            found = await self._ask(doing, self._redis.xrange(keys.live, min=first, count=limit))
            return _entries(found)
        block_ms = max(int(min(wait_s, LONGEST_WAIT_S) * 1_000), 1)
        last = entry_id(after) if after >= 0 else b"0-0"
        found = await self._ask(doing, self._redis.xread({keys.live: last}, limit, block_ms))
        if not found:
            return []
        # A list of pairs or an object, by protocol and version of the driver; of one stream here.
        entries = next(iter(found.values())) if isinstance(found, Mapping) else found[0][1]
        return _entries(entries[0] if isinstance(entries[0], list) else entries)

    async def bounds(self, keys: PartitionKeys) -> LiveBounds:
        """Return what the feed has."""
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.xrange(keys.live, count=1)
            pipeline.xlen(keys.live)
            first, length = await self._ask("reading the live feed", pipeline.execute())
        offset = entry_offset(first[0][0]) if first else None
        return LiveBounds(offset, length < self._live_entries)

    async def tell(self, keys: PartitionKeys, build: str, told: Told) -> None:
        """Keep what a projector tells, if its build is the stored one."""
        end = "" if told.end is None else told.end
        answer = self._redis.eval(_TELL, 1, keys.position, build, told.at_ms, end, told.lag_ms)
        await self._ask("telling of a partition", answer)


def told(position: Mapping[bytes, bytes]) -> Told | None:
    """Return what was told beside a position."""
    if b"told_ms" not in position:
        return None
    end = position.get(b"told_end") or None
    lag_ms = int(position.get(b"told_lag_ms", b"0"))
    return Told(int(position[b"told_ms"]), None if end is None else int(end), lag_ms)


def _entries(found: Any) -> list[Entry]:  # noqa: ANN401 -- of Redis
    return [Entry(entry_offset(name), fields[DOCUMENT]) for name, fields in found]
