"""The view store in Redis. Keys are those of `redis_keys.py`; documents are written by one script.

Nothing is kept in this process, so any number of stores may work on one Redis.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError

from contextgauge.errors import ConfigError, RetryError, VersionError
from schemas.views import FORMAT_VERSION, LIVE_ENTRIES, EntryStream
from streams.edge.redis.access import NO_ACCESS, RedisAccess, pack_fast
from streams.edge.redis.errors import translated
from streams.edge.redis.feed import RedisFeed, told
from streams.edge.redis.generations import RedisGenerations
from streams.edge.redis.keys import (
    DOCUMENT,
    Keys,
    PartitionKeys,
    entry_id,
    entry_offset,
    operations,
)
from streams.edge.redis.looks import RedisLooks
from streams.ports import (
    ApplyResult,
    Entry,
    Generations,
    LiveBounds,
    PartitionDump,
    PartitionLook,
    Ranking,
    SessionSet,
    SessionsLook,
    Told,
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
local build = redis.call('HGET', KEYS[1], 'build')
if build == ARGV[1] then redis.call('HSET', KEYS[1], 'caught_up', 1) end
return 0
"""
"""Mark a position of this build: one is never made of a mark alone, and another's is not marked."""

_LIMIT = """
if redis.call('HGET', KEYS[1], 'build') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('HDEL', KEYS[1], 'limit') end
return redis.call('HSET', KEYS[1], 'limit', ARGV[2])
"""
"""Set how far a partition of this build may go, or that it may go as far as there is."""


class RedisViews:
    """The view store. `url` as redis-py takes it, `prefix` the first part of every key."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        self._keys = Keys(prefix)
        self._url, self._access = url, access
        try:
            pool = access.pool(
                url,
                # `_ask` has a time limit; redis-py's own may swallow a cancellation, as it waits
                # by asyncio.wait_for, which did so before Python 3.12.
                socket_timeout=None,
                socket_connect_timeout=TIMEOUT_S,
                # Once, and at once: a connection of the pool may have ended since its last use.
                # More is for the flows, which say so; every call here may be made twice.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError:
            # What it says of the URL may be a piece of the password.
            raise ConfigError(
                "CONTEXTGAUGE_REDIS_URL is no URL of Redis: redis://host:port/database, rediss:// "
                "for TLS, or unix://path"
            ) from None
        pack_fast(pool)
        # Untyped for the replies: redis-py's own types are unions of both its clients'.
        self._redis: Any = Redis.from_pool(pool)
        self._generations = RedisGenerations(self._redis, self._keys, self._ask)
        self._looks = RedisLooks(self._redis, self._ask)
        self._feed = RedisFeed(self._redis, self._ask, LIVE_ENTRIES)
        self._script = resources.files(__package__).joinpath("apply.lua").read_text()
        # The name by which Redis knows a script, not a secret.
        self._script_sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()

    async def _ask(self, doing: str, answer: Awaitable[Any]) -> Any:  # noqa: ANN401 -- of Redis
        """Wait for a reply, and not for ever. Raises the project's own errors."""
        with translated(doing):
            async with asyncio.timeout(TIMEOUT_S):
                return await answer

    async def start(self) -> None:
        """Connect. Raises RetryError while Redis is away, ConfigError where it refuses us."""
        try:
            await self._ask("connecting", self._redis.ping())
        except RetryError as error:
            wrong = await self._access.wrong(self._url)
            if wrong is not None:
                raise ConfigError(f"connecting to Redis: {wrong}") from error
            raise

    async def stop(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def generations(self) -> Generations:
        """Return the active generation and the one being built."""
        return await self._generations.read()

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        """Return a partition's position, None where it is closed.

        Raises VersionError where its format is another.
        """
        key = self._keys.of(generation, partition).position
        found = await self._ask("reading a position", self._redis.hgetall(key))
        if not found or int(found[b"offset"]) == CLOSED_OFFSET:
            return None
        if int(found[b"format"]) != FORMAT_VERSION:
            raise VersionError(
                f"the views in Redis are of format {int(found[b'format'])}, this build knows "
                f"{FORMAT_VERSION}: run the build that wrote them, or give this one a "
                "CONTEXTGAUGE_KEY_PREFIX of its own, and it rebuilds them from the log"
            )
        return ViewPosition(
            offset=int(found[b"offset"]),
            begin=int(found[b"begin"]),
            partitions=int(found[b"partitions"]),
            caught_up=b"caught_up" in found,
            build=found.get(b"build", b"").decode(),
            limit=int(found[b"limit"]) if b"limit" in found else None,
            told=told(found),
        )

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        """Return the sessions' views."""
        if not sessions:
            return []
        keys = self._keys.of(generation, partition)
        answer = self._redis.mget([keys.view(session) for session in sessions])
        return list(await self._ask("reading views", answer))

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return the first sessions of a ranking, the highest first."""
        return await self._highest(self._keys.of(generation, partition).ranking(ranking), limit)

    async def _highest(self, key: bytes, limit: int) -> list[tuple[bytes, float]]:
        answer = self._redis.zrevrange(key, 0, limit - 1, withscores=True)
        found = await self._ask("reading a ranking", answer)
        return [(session, score) for session, score in found]

    async def session_count(self, generation: int, partition: int) -> int:
        """Return the number of sessions."""
        key = self._keys.of(generation, partition).ranking("recent")
        return int(await self._ask("counting sessions", self._redis.zcard(key)))

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        """Return an agent's first sessions by last activity."""
        return await self._highest(self._keys.of(generation, partition).agent(agent), limit)

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        """Return a session's compactions by name."""
        key = self._keys.of(generation, partition).compactions(session)
        return dict(await self._ask("reading compactions", self._redis.hgetall(key)))

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        """Return the entries of offsets above `after`."""
        key = self._keys.of(generation, partition).entries(stream, session)
        return await self._stream(key, after)

    async def _stream(self, key: bytes, after: int) -> list[Entry]:
        first = entry_id(after + 1) if after >= 0 else b"-"
        found = await self._ask("reading a stream", self._redis.xrange(key, min=first))
        return [Entry(entry_offset(name), fields[DOCUMENT]) for name, fields in found]

    async def stats(self, generation: int, partition: int) -> dict[bytes, bytes]:
        """Return the fields of the aggregates."""
        key = self._keys.of(generation, partition).stats
        return dict(await self._ask("reading aggregates", self._redis.hgetall(key)))

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        """Return the live feed's first entries of offsets above `after`; see the port."""
        return await self._feed.entries(self._keys.of(generation, partition), after, limit, wait_s)

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        """Return what the live feed has."""
        return await self._feed.bounds(self._keys.of(generation, partition))

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
            position.build,
        )
        reply = await self._ask("writing views", self._run(found.keys, [*head, *found.arguments]))
        result: ApplyResult = reply.decode()
        return result

    async def _run(self, keys: list[bytes], arguments: list[Any]) -> Any:  # noqa: ANN401 -- of Redis
        """Run the script by its hash; send it whole where Redis has forgotten it."""
        call = (len(keys), *keys, *arguments)
        try:
            return await self._redis.evalsha(self._script_sha, *call)
        except NoScriptError:
            return await self._redis.eval(self._script, *call)

    async def pick_compactions(
        self, generation: int, partition: int, names: Sequence[tuple[bytes, bytes]]
    ) -> list[bytes | None]:
        """Return single compactions by session and name."""
        keys = self._keys.of(generation, partition)
        async with self._redis.pipeline(transaction=False) as pipeline:
            for session, name in names:
                pipeline.hget(keys.compactions(session), name)
            return list(await self._ask("reading compactions", pipeline.execute()))

    async def idle(
        self, generation: int, partition: int, before_ms: int, limit: int
    ) -> list[bytes]:
        """Return the sessions that are idle longest."""
        key = self._keys.of(generation, partition).idle
        answer = self._redis.zrangebyscore(key, "-inf", f"({before_ms}", start=0, num=limit)
        return list(await self._ask("reading idle sessions", answer))

    async def left(self, generation: int, partition: int, sessions: Sequence[bytes]) -> list[bool]:
        """Tell of each session whether it left."""
        key = self._keys.of(generation, partition).left
        scores = await self._ask("reading who left", self._redis.zmscore(key, list(sessions)))
        return [score is not None for score in scores]

    async def look(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> SessionsLook:
        """Return how sessions are at one moment."""
        return await self._looks.sessions(self._keys.of(generation, partition), sessions)

    async def look_at_partition(self, generation: int, partition: int) -> PartitionLook:
        """Return how the partition is at one moment, but for its sessions."""
        return await self._looks.partition(self._keys.of(generation, partition))

    def pages(
        self, generation: int, partition: int, of: SessionSet
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield the sessions of a set in pages, one perhaps twice."""
        return self._looks.pages(self._keys.of(generation, partition), of)

    async def begin_next(self, generation: int, build: str, *, held: bool = False) -> None:
        """Set the generation to be built unless there is one."""
        await self._generations.begin(generation, build, held=held)

    async def release(self, generation: int, build: str) -> None:
        """Let a held build become active without a comparison."""
        await self._generations.release(generation, build)

    async def abandon(self, generation: int, build: str) -> None:
        """Build this generation no longer, if it is held."""
        await self._generations.abandon(generation, build)

    async def limit(self, generation: int, partition: int, build: str, offset: int | None) -> None:
        """Let a partition of this build go up to an offset; None: as far as there is."""
        key = self._keys.of(generation, partition).position
        up_to = "" if offset is None else offset
        await self._ask("limiting a build", self._redis.eval(_LIMIT, 1, key, build, up_to))

    async def is_there(self, generation: int, partition: int) -> bool:
        """Tell whether a position is stored, closed or not."""
        key = self._keys.of(generation, partition).position
        return bool(await self._ask("looking for a partition", self._redis.exists(key)))

    async def caught_up(self, generation: int, partition: int, build: str) -> None:
        """Mark a partition of the next generation."""
        key = self._keys.of(generation, partition).position
        await self._ask("marking a partition", self._redis.eval(_MARK, 1, key, build))

    async def tell(self, generation: int, partition: int, build: str, told: Told) -> None:
        """Keep what the projector tells, if its build is the stored one."""
        await self._feed.tell(self._keys.of(generation, partition), build, told)

    async def activate(self, generation: int, build: str) -> None:
        """Make readers use a generation, if it is being built and no later one is active."""
        await self._generations.activate(generation, build)

    async def drop(self, generation: int, partition: int) -> None:
        """Delete a partition, whatever is in it. Until its position is gone no one can write."""
        keys = self._keys.of(generation, partition)
        doing = "dropping a partition"
        closed = {
            "offset": CLOSED_OFFSET,
            "begin": CLOSED_OFFSET,
            "format": FORMAT_VERSION,
            "partitions": 0,
        }
        await self._ask(doing, self._redis.hset(keys.position, mapping=closed))
        async for found in self._scan(keys):
            gone = [key for key in found if key != keys.position]
            if gone:
                await self._ask(doing, self._redis.unlink(*gone))
        await self._ask(doing, self._redis.unlink(keys.position))

    async def _scan(self, keys: PartitionKeys) -> AsyncIterator[list[bytes]]:
        """Yield all keys of a partition, a key perhaps twice."""
        cursor = 0
        while True:
            answer = self._redis.scan(cursor, match=keys.base + b"*", count=_SCAN_KEYS)
            cursor, found = await self._ask("looking for keys", answer)
            yield found
            if not cursor:
                return

    async def dump(self, generation: int, partition: int) -> PartitionDump:
        """Return everything that is stored under the partition's keys, whatever names it."""
        keys = self._keys.of(generation, partition)
        streams: dict[EntryStream, dict[bytes, list[Entry]]] = {"events": {}, "readings": {}}
        views: dict[bytes, bytes] = {}
        compactions: dict[bytes, dict[bytes, bytes]] = {}
        agents: dict[bytes, dict[bytes, float]] = {}
        async for found in self._scan(keys):
            for key in found:
                letter, session = key[len(keys.base) :][:2], key[len(keys.base) + 2 :]
                if letter == b"s:":
                    views[session] = await self._ask("dumping", self._redis.get(key))
                elif letter == b"c:":
                    compactions[session] = await self.compactions(generation, partition, session)
                elif letter == b"e:":
                    streams["events"][session] = await self._stream(key, -1)
                elif letter == b"r:":
                    streams["readings"][session] = await self._stream(key, -1)
                elif letter == b"a:":
                    agents[session] = await self._scores(key)
        return PartitionDump(
            views=views,
            compactions=compactions,
            entries=streams,
            rankings={
                "recent": await self._scores(keys.ranking("recent")),
                "pressure": await self._scores(keys.ranking("pressure")),
            },
            idle=await self._scores(keys.idle),
            left=await self._scores(keys.left),
            stats=await self.stats(generation, partition),
            live=await self._stream(keys.live, -1),
            agents=agents,
        )

    async def _scores(self, key: bytes) -> dict[bytes, float]:
        return dict(await self._ask("dumping", self._redis.zrange(key, 0, -1, withscores=True)))
