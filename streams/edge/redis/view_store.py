"""The view store in Redis: what projectors write with, on top of what readers read.

Documents are written by one script, `apply.lua`; `check.lua` compares what is there with what was
written.

The next generation's key holds its number, a colon and the name of its build: all in one key, so
that it changes in one write.
"""

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from redis.exceptions import NoScriptError

from schemas.views import FORMAT_VERSION
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.keys import operations
from streams.edge.redis.reader import CLOSED_OFFSET, RedisViewReader, entries_of, mark_of
from streams.ports import (
    ApplyResult,
    HeldCheck,
    PartitionDocuments,
    ProjectorHeartbeat,
    SessionDocuments,
    ViewChanges,
    ViewPosition,
)

_SCAN_KEYS: Final = 1_000
"""Keys deleted at a time: Redis serves others in between."""

_CHECKED_KEYS: Final = 300
"""Keys that are checked at a time: Redis serves no one else meanwhile, less than 1 ms."""

_ACTIVATE: Final = """
local following = redis.call('GET', KEYS[2])
if following ~= ARGV[2] then return 0 end
for i = 3, #KEYS do
  local at = redis.call('HMGET', KEYS[i], 'offset', 'build', 'caught_up')
  if not at[3] or not at[1] or tonumber(at[1]) < 0 or at[2] ~= ARGV[3] then return 0 end
end
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if now < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('DEL', KEYS[2])
"""
"""Set a generation, unless it is a later one already, another build is under way, or any of the
partitions named has not caught up in it."""

_CLOSE: Final = """
if redis.call('GET', KEYS[2]) == ARGV[1] then return 0 end
local following = redis.call('GET', KEYS[3]) or ''
if ARGV[2] ~= '' then
  if following ~= ARGV[2] then return 0 end
elseif string.match(following, '^%d+') == ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'offset', ARGV[3], 'begin', ARGV[3], 'format', ARGV[4],
  'partitions', 0)
return 1
"""
"""Close a partition that no reader is in, unless another build of its generation is under way."""

_UNLINK_CLOSED: Final = """
if redis.call('HGET', KEYS[1], 'offset') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', unpack(KEYS, tonumber(ARGV[2])))
"""
"""Delete keys of a partition that is closed still: a request may arrive late."""

_MARK_CAUGHT_UP: Final = """
local build = redis.call('HGET', KEYS[1], 'build')
if build == ARGV[1] then redis.call('HSET', KEYS[1], 'caught_up', 1) end
return 0
"""
"""Mark a position of this build: never another build's, nor one that does not exist."""

_HEARTBEAT: Final = """
local found = redis.call('HMGET', KEYS[1], 'offset', 'build')
if not found[1] or tonumber(found[1]) < 0 or (found[2] or '') ~= ARGV[1] then return 0 end
if ARGV[5] ~= '0' then redis.call('HSET', KEYS[1], 'rivals', ARGV[5], 'rivals_ms', ARGV[2]) end
return redis.call('HSET', KEYS[1],
    'reported_ms', ARGV[2], 'reported_end', ARGV[3], 'reported_lag_ms', ARGV[4])
"""
"""Store a heartbeat with a position of this build: a heartbeat alone never makes a position.

That there are rivals stays for a minute: of two projectors, only the one that loses notices.
"""


class RedisScript:
    """A script of this folder, which Redis knows by its hash once it has run it."""

    def __init__(self, name: str) -> None:
        self._text = resources.files(__package__).joinpath(name).read_text()
        # The name by which Redis knows a script, not a secret.
        self._sha = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, redis: Any, keys: Sequence[Any], arguments: Sequence[Any]) -> Any:  # noqa: ANN401 -- of Redis
        call = (len(keys), *keys, *arguments)
        try:
            return await redis.evalsha(self._sha, *call)
        except NoScriptError:
            # Redis restarted or dropped its scripts: the text is sent once.
            return await redis.eval(self._text, *call)


class RedisViews(RedisViewReader):
    """The view store."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        super().__init__(url, prefix, access)
        self._apply, self._check = RedisScript("apply.lua"), RedisScript("check.lua")

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        writes = operations(self._keys.of(generation, partition), changes)
        head = (
            "" if expected is None else expected,
            position.offset,
            position.begin,
            FORMAT_VERSION,
            position.partitions,
            position.build,
            mark_of(position),
        )
        answer = self._apply.run(self._redis, writes.keys, [*head, *writes.arguments])
        result: ApplyResult = (await self._ask("writing views", answer)).decode()
        return result

    async def check(self, generation: int, partition: int, cursor: int = 0) -> HeldCheck:
        key = self._keys.of(generation, partition).position
        answer = self._check.run(self._redis, [key], [cursor, _CHECKED_KEYS])
        difference, following = await self._ask("checking views", answer)
        return HeldCheck(difference.decode("utf-8", "backslashreplace"), int(following))

    async def pick_compactions(
        self, generation: int, partition: int, names: Sequence[tuple[bytes, bytes]]
    ) -> list[bytes | None]:
        keys = self._keys.of(generation, partition)
        async with self._redis.pipeline(transaction=False) as pipeline:
            for session, name in names:
                pipeline.hget(keys.compactions(session), name)
            return list(await self._ask("reading compactions", pipeline.execute()))

    async def idle(
        self, generation: int, partition: int, before_ms: int, limit: int
    ) -> list[bytes]:
        key = self._keys.of(generation, partition).idle
        # `(` leaves out those of exactly this time.
        answer = self._redis.zrangebyscore(key, "-inf", f"({before_ms}", start=0, num=limit)
        return list(await self._ask("reading idle sessions", answer))

    async def left(self, generation: int, partition: int, sessions: Sequence[bytes]) -> list[bool]:
        keys, names = self._keys.of(generation, partition), list(sessions)
        async with self._redis.pipeline(transaction=False) as pipeline:
            pipeline.zmscore(keys.left, names)
            pipeline.zmscore(keys.ranking("recent"), names)
            left, present = await self._ask("reading who left", pipeline.execute())
        pairs = zip(left, present, strict=True)
        # A session that left and has continued since is ranked again.
        return [left_ms is not None and recent is None for left_ms, recent in pairs]

    async def session_documents(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> tuple[int | None, list[SessionDocuments]]:
        keys = self._keys.of(generation, partition)
        sets = keys.session_sets
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hget(keys.position, "offset")
            for session in sessions:
                # In the same transaction as the position: the documents are of exactly this offset.
                pipeline.get(keys.view(session))
                pipeline.hgetall(keys.compactions(session))
                pipeline.xrange(keys.entries("events", session))
                pipeline.xrange(keys.entries("readings", session))
                for key in sets.values():
                    pipeline.zscore(key, session)
            offset, *replies = await self._ask("reading sessions", pipeline.execute())
        documents = []
        for _ in sessions:
            view, compactions, events, readings = replies[:4]
            scores = zip(sets, replies[4:], strict=False)
            present = {name: score for name, score in scores if score is not None}
            streams = entries_of(events), entries_of(readings)
            documents.append(SessionDocuments(view, compactions, *streams, present))
            del replies[: 4 + len(sets)]
        return _offset(offset), documents

    async def partition_documents(
        self, generation: int, partition: int
    ) -> tuple[int | None, PartitionDocuments]:
        keys = self._keys.of(generation, partition)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hget(keys.position, "offset")
            pipeline.hgetall(keys.stats)
            pipeline.xrange(keys.live)
            for key in keys.session_sets.values():
                pipeline.zcard(key)
            reply = await self._ask("reading a partition", pipeline.execute())
        offset, stats, live, *sizes = reply
        sizes = dict(zip(keys.session_sets, sizes, strict=True))
        return _offset(offset), PartitionDocuments(stats, entries_of(live), sizes)

    async def session_names(
        self, generation: int, partition: int, cursor: int = 0
    ) -> tuple[int, list[bytes]]:
        key = self._keys.of(generation, partition).ranking("recent")
        cursor, pairs = await self._ask("reading sessions", self._redis.zscan(key, cursor))
        return cursor, [name for name, _ in pairs]

    async def begin_next(self, generation: int, build: str) -> None:
        # NX: a build that another worker has begun goes on.
        answer = self._redis.set(self._keys.next, _next(generation, build), nx=True)
        await self._ask("beginning a generation", answer)

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        value, keys = _next(generation, build), self._keys
        positions = [keys.of(generation, number).position for number in range(partitions)]
        names = [keys.active, keys.next, *positions]
        answer = self._redis.eval(_ACTIVATE, len(names), *names, generation, value, build)
        await self._ask("activating a generation", answer)

    async def is_there(self, generation: int, partition: int) -> bool:
        key = self._keys.of(generation, partition).position
        return bool(await self._ask("looking for a partition", self._redis.exists(key)))

    async def caught_up(self, generation: int, partition: int, build: str) -> None:
        key = self._keys.of(generation, partition).position
        await self._ask("marking a partition", self._redis.eval(_MARK_CAUGHT_UP, 1, key, build))

    async def report_heartbeat(
        self, generation: int, partition: int, build: str, heartbeat: ProjectorHeartbeat
    ) -> None:
        key = self._keys.of(generation, partition).position
        end = "" if heartbeat.end is None else heartbeat.end
        figures = (heartbeat.at_ms, end, heartbeat.lag_ms, heartbeat.rivals)
        answer = self._redis.eval(_HEARTBEAT, 1, key, build, *figures)
        await self._ask("storing a heartbeat", answer)

    async def drop(self, generation: int, partition: int, build: str | None = None) -> bool:
        keys, doing, cursor = self._keys.of(generation, partition), "dropping a partition", 0
        closing = self._redis.eval(
            _CLOSE,
            3,
            keys.position,
            self._keys.active,
            self._keys.next,
            generation,
            "" if build is None else _next(generation, build),
            CLOSED_OFFSET,
            FORMAT_VERSION,
        )
        if not await self._ask(doing, closing):
            return False
        while True:
            answer = self._redis.scan(cursor, match=keys.base + b"*", count=_SCAN_KEYS)
            cursor, names = await self._ask(doing, answer)
            documents = [name for name in names if name != keys.position]
            if documents:
                await self._ask(doing, self._unlink([keys.position, *documents], 2))
            if not cursor:
                break
        await self._ask(doing, self._unlink([keys.position], 1))
        return True

    def _unlink(self, keys: Sequence[bytes], begin: int) -> Any:  # noqa: ANN401 -- of Redis
        """Delete keys from the one with this number on; the first is the partition's position."""
        return self._redis.eval(_UNLINK_CLOSED, len(keys), *keys, CLOSED_OFFSET, begin)


def _next(generation: int, build: str) -> str:
    """Return the value of the next generation's key; a number alone is of no named build."""
    return f"{generation}:{build}" if build else str(generation)


def _offset(stored: bytes | None) -> int | None:
    """Return an offset; None where there is no partition, or one that is being dropped."""
    return int(stored) if stored is not None and int(stored) >= 0 else None
