"""The view store in Redis. Keys are those of `redis_keys.py`; documents are written by one script.

Nothing is kept in this process, so any number of stores may work on one Redis.
"""

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from schemas.views import FORMAT_VERSION, EntryStream
from streams.core.errors import ConfigError, VersionError
from streams.edge.redis_errors import translated
from streams.edge.redis_keys import (
    DOCUMENT,
    Keys,
    PartitionKeys,
    entry_id,
    entry_offset,
    operations,
)
from streams.ports import (
    ApplyResult,
    Entry,
    Generations,
    PartitionDump,
    Ranking,
    ViewChanges,
    ViewPosition,
)

TIMEOUT_S = 5.0
"""A reply later than this counts as lost: a script of the largest batch takes milliseconds."""

_SCAN_KEYS = 1_000
"""Keys looked at, and deleted, at a time: Redis serves others in between."""

CLOSED_OFFSET = -1
"""The offset of a partition that is being dropped: no batch can follow it."""

_MARK = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
"""
"""Set a field of a position that exists: a position is never made of a mark alone."""

_RAISE = """
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if now < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return now
"""
"""Set a generation unless it is a later one already."""

_FORGET = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
"""Delete a key that has this value still."""


class RedisViews:
    """The view store. `url` as redis-py takes it, `prefix` the first part of every key."""

    def __init__(self, url: str, prefix: str = "cg") -> None:
        self._keys = Keys(prefix)
        try:
            # Untyped for the replies: redis-py's own types are unions of both its clients'.
            self._redis: Any = Redis.from_url(
                url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                # The flows try again themselves, and say so.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise ConfigError(f"CONTEXTGAUGE_REDIS_URL: {error}") from error
        self._script = resources.files(__package__).joinpath("apply.lua").read_text()
        # The name by which Redis knows a script, not a secret.
        self._script_sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()

    async def start(self) -> None:
        """Connect. Raises RetryError while Redis is away, ConfigError where it refuses us."""
        with translated("connecting"):
            await self._redis.ping()

    async def stop(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def generations(self) -> Generations:
        """Return the active generation and the one being built."""
        with translated("reading the generations"):
            active, following = [
                await self._redis.get(key) for key in (self._keys.active, self._keys.next)
            ]
        return Generations(_number(active), _number(following))

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        """Return a partition's position; VersionError where its format is another."""
        with translated("reading a position"):
            found = await self._redis.hgetall(self._keys.of(generation, partition).position)
        if not found:
            return None
        if int(found[b"format"]) != FORMAT_VERSION:
            raise VersionError(
                f"the views in Redis are of format {int(found[b'format'])}, this build knows "
                f"{FORMAT_VERSION}: run the build that wrote them, or give this one a "
                "CONTEXTGAUGE_KEY_PREFIX of its own and it builds them anew"
            )
        return ViewPosition(
            offset=int(found[b"offset"]),
            begin=int(found[b"begin"]),
            partitions=int(found[b"partitions"]),
            caught_up=b"caught_up" in found,
        )

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        """Return the sessions' views."""
        if not sessions:
            return []
        keys = self._keys.of(generation, partition)
        with translated("reading views"):
            found = await self._redis.mget([keys.view(session) for session in sessions])
        return cast("list[bytes | None]", found)

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return the first sessions of a ranking, the highest first."""
        key = self._keys.of(generation, partition).ranking(ranking)
        with translated("reading a ranking"):
            found = await self._redis.zrevrange(key, 0, limit - 1, withscores=True)
        return [(session, score) for session, score in found]

    async def session_count(self, generation: int, partition: int) -> int:
        """Return the number of sessions."""
        with translated("counting sessions"):
            return int(await self._redis.zcard(self._keys.of(generation, partition).idle))

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        """Return a session's compactions by name."""
        key = self._keys.of(generation, partition).compactions(session)
        with translated("reading compactions"):
            return cast("dict[bytes, bytes]", await self._redis.hgetall(key))

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        """Return the entries of offsets above `after`."""
        key = self._keys.of(generation, partition).entries(stream, session)
        return await self._stream(key, after)

    async def _stream(self, key: bytes, after: int) -> list[Entry]:
        with translated("reading a stream"):
            found = await self._redis.xrange(key, min=entry_id(after + 1) if after >= 0 else "-")
        return [Entry(entry_offset(name), fields[DOCUMENT]) for name, fields in found]

    async def stats(self, generation: int, partition: int) -> dict[bytes, bytes]:
        """Return the fields of the aggregates."""
        with translated("reading aggregates"):
            found = await self._redis.hgetall(self._keys.of(generation, partition).stats)
        return cast("dict[bytes, bytes]", found)

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        """Write all changes and the position, or nothing; see the port."""
        found = operations(self._keys.of(generation, partition), changes)
        head = (
            "" if expected is None else expected,
            position.offset,
            position.begin,
            FORMAT_VERSION,
            position.partitions,
        )
        with translated("writing views"):
            reply = await self._run(found.keys, [*head, *found.arguments])
        return cast("ApplyResult", reply.decode())

    async def _run(self, keys: list[bytes], arguments: list[Any]) -> bytes:
        """Run the script by its hash; send it whole where Redis has forgotten it."""
        call = (len(keys), *keys, *arguments)
        try:
            return cast("bytes", await self._redis.evalsha(self._script_sha, *call))
        except NoScriptError:
            return cast("bytes", await self._redis.eval(self._script, *call))

    async def pick_compactions(
        self, generation: int, partition: int, names: Sequence[tuple[bytes, bytes]]
    ) -> list[bytes | None]:
        """Return single compactions by session and name."""
        keys = self._keys.of(generation, partition)
        with translated("reading compactions"):
            async with self._redis.pipeline(transaction=False) as pipeline:
                for session, name in names:
                    pipeline.hget(keys.compactions(session), name)
                return cast("list[bytes | None]", await pipeline.execute())

    async def idle(
        self, generation: int, partition: int, before_ms: int, limit: int
    ) -> list[bytes]:
        """Return the sessions that are idle longest."""
        key = self._keys.of(generation, partition).idle
        with translated("reading idle sessions"):
            found = await self._redis.zrangebyscore(
                key, "-inf", f"({before_ms}", start=0, num=limit
            )
        return cast("list[bytes]", found)

    async def left(self, generation: int, partition: int, sessions: Sequence[bytes]) -> list[bool]:
        """Tell of each session whether it left."""
        key = self._keys.of(generation, partition).left
        with translated("reading who left"):
            return [score is not None for score in await self._redis.zmscore(key, list(sessions))]

    async def begin_next(self, generation: int) -> int:
        """Set the generation to be built unless there is one."""
        with translated("beginning a generation"):
            await self._redis.set(self._keys.next, generation, nx=True)
            return int(await self._redis.get(self._keys.next) or generation)

    async def caught_up(self, generation: int, partition: int) -> None:
        """Mark a partition of the next generation."""
        key = self._keys.of(generation, partition).position
        with translated("marking a partition"):
            await self._redis.eval(_MARK, 1, key, "caught_up", 1)

    async def activate(self, generation: int) -> None:
        """Make readers use a generation: one write, unless a later one is active already."""
        with translated("activating a generation"):
            await self._redis.eval(_RAISE, 1, self._keys.active, generation)
            await self._redis.eval(_FORGET, 1, self._keys.next, generation)

    async def drop(self, generation: int, partition: int) -> None:
        """Delete a partition, whatever is in it. Until its position is gone no one can write."""
        keys = self._keys.of(generation, partition)
        with translated("dropping a partition"):
            await self._redis.hset(
                keys.position,
                mapping={
                    "offset": CLOSED_OFFSET,
                    "begin": CLOSED_OFFSET,
                    "format": FORMAT_VERSION,
                    "partitions": 0,
                },
            )
            gone: list[bytes] = []
            async for key in self._redis.scan_iter(match=keys.base + b"*", count=_SCAN_KEYS):
                if key != keys.position:
                    gone.append(key)
                if len(gone) >= _SCAN_KEYS:
                    await self._redis.unlink(*gone)
                    gone.clear()
            await self._redis.unlink(*gone, keys.position)

    async def dump(self, generation: int, partition: int) -> PartitionDump:
        """Return everything that is stored under the partition's keys, whatever names it."""
        keys = self._keys.of(generation, partition)
        found = PartitionDump({}, {}, {"events": {}, "readings": {}}, {}, {}, {}, {}, [])
        with translated("dumping a partition"):
            async for key in self._redis.scan_iter(match=keys.base + b"*", count=_SCAN_KEYS):
                await self._dump_key(keys, key, found)
            idle, left = [await self._scores(key) for key in (keys.idle, keys.left)]
            rankings: dict[Ranking, dict[bytes, float]] = {
                "recent": await self._scores(keys.ranking("recent")),
                "pressure": await self._scores(keys.ranking("pressure")),
            }
        return found._replace(
            rankings=rankings,
            idle=idle,
            left=left,
            stats=await self.stats(generation, partition),
            live=await self._stream(keys.live, -1),
        )

    async def _dump_key(self, keys: PartitionKeys, key: bytes, found: PartitionDump) -> None:
        letter, session = key[len(keys.base) :][:2], key[len(keys.base) + 2 :]
        if letter == b"s:":
            found.views[session] = await self._redis.get(key)
        elif letter == b"c:":
            found.compactions[session] = await self._redis.hgetall(key)
        elif letter == b"e:":
            found.entries["events"][session] = await self._stream(key, -1)
        elif letter == b"r:":
            found.entries["readings"][session] = await self._stream(key, -1)

    async def _scores(self, key: bytes) -> dict[bytes, float]:
        return dict(await self._redis.zrange(key, 0, -1, withscores=True))


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)
