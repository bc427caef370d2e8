"""Conversations in Redis: what the worker writes, and what the API and the control worker read.

For each partition of `agent.messages` there are a position, a hash of the sessions' entries, and a
list of lines for each session. They are written by one script, `conversations.lua`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from contextgauge.compaction.reading.session_conversation import SessionConversation
from contextgauge.errors import ConfigError
from contextgauge.partitioner import key_bytes, partition_of_key
from streams.codec.conversations import FORMAT_VERSION, KeptPosition, conversation_of
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.edge.redis.keys import RedisKeys
from streams.edge.redis.view_store import RedisScript
from streams.ports import ApplyResult
from streams.ports.conversations import (
    LinesChange,
    Mark,
    StoredConversations,
)

_SCAN_KEYS: Final = 1_000
"""A hint for one SCAN: Redis answers others within a millisecond meanwhile."""
_MARK: Final = ("offset", "stamp", "topic")


class RedisConversations:
    """The store of conversations. `url` as redis-py takes it; `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        RedisKeys(prefix)  # raises for a bad prefix
        self._prefix = f"{prefix}:conv:".encode()
        self._url, self._access = url, access
        self._redis = access.client(url, TIMEOUT_S)
        self._apply = RedisScript("conversations.lua")
        self._partitions: int | None = None

    async def start(self) -> None:
        await self._access.connect(self._redis, self._url)

    async def stop(self) -> None:
        await self._redis.aclose()

    def _base(self, partition: int) -> bytes:
        return self._prefix + b"{%d}:" % partition

    def _keys(self, partition: int) -> tuple[bytes, bytes]:
        base = self._base(partition)
        return base + b"pos", base + b"sessions"

    def _report(self, partition: int) -> bytes:
        return self._base(partition) + b"seen"

    def _list(self, partition: int, session: bytes) -> bytes:
        return self._base(partition) + b"l:" + session

    async def conversation(self, session_id: str) -> SessionConversation | None:
        partitions = await self._count()
        if partitions is None:
            return None
        session = key_bytes(session_id)
        partition = partition_of_key(session, partitions)
        position_key, sessions_key = self._keys(partition)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hmget(position_key, "offset", "format", "topic")
            pipeline.hget(sessions_key, session)
            pipeline.lrange(self._list(partition, session), 0, -1)
            pipeline.hmget(self._report(partition), "end", "seen_ms")
            answer = await replied("reading a conversation", pipeline.execute())
        (offset, version, topic_id), entry, lines, report = answer
        if offset is None or entry is None or int(version) != FORMAT_VERSION:
            return None
        end, reported_ms = (None if each is None else int(each) for each in report)
        position = KeptPosition(int(offset), (topic_id or b"").decode(), end, reported_ms)
        # Megabytes may have to be read: in a thread, for the event loop serves others.
        return await asyncio.to_thread(conversation_of, entry, lines, position)

    async def _count(self) -> int | None:
        if self._partitions is None:
            answer = self._redis.get(self._prefix + b"partitions")
            count = await replied("reading the number of partitions", answer)
            self._partitions = None if count is None else int(count)
        return self._partitions

    async def open(self, partition: int, partitions: int) -> StoredConversations | None:
        key, doing = self._prefix + b"partitions", "opening a partition"
        await replied(doing, self._redis.set(key, partitions, nx=True))
        stored = int(await replied(doing, self._redis.get(key)) or partitions)
        if stored != partitions:
            raise ConfigError(
                f"conversations are kept for {stored} partitions, and agent.messages has "
                f"{partitions}: set another CONTEXTGAUGE_KEY_PREFIX"
            )
        position_key, sessions_key = self._keys(partition)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hmget(position_key, "plan", "since", "format", "sessions", *_MARK)
            pipeline.hgetall(sessions_key)
            answer = await replied(doing, pipeline.execute())
        (plan, since, version, count, *fields), entries = answer
        mark, topic_id = _mark(fields), (fields[-1] or b"").decode()
        since_ms = None if since is None else int(since)
        if mark is None and since_ms is None and not topic_id:
            return None
        if mark and (int(version) != FORMAT_VERSION or int(count) != len(entries)):
            mark = None
        return StoredConversations(mark, (plan or b"").decode(), since_ms, entries, topic_id)

    async def lines(self, partition: int, session: bytes) -> Sequence[bytes]:
        answer = self._redis.lrange(self._list(partition, session), 0, -1)
        return list(await replied("reading a conversation", answer))

    async def apply(
        self,
        partition: int,
        *,
        expected: str | None,
        mark: Mark,
        plan: str,
        since_ms: int | None,
        keep_ms: int,
        changes: Mapping[bytes, LinesChange],
    ) -> ApplyResult:
        keys = [*self._keys(partition), *(self._list(partition, each) for each in changes)]
        arguments: list[Any] = [
            "" if expected is None else expected,
            mark.stamp,
            mark.position,
            mark.topic_id,
            "" if since_ms is None else since_ms,
            FORMAT_VERSION,
            plan,
            keep_ms,
        ]
        for session, change in changes.items():
            head = (session, change.entry or b"", change.expected, int(change.replaces))
            arguments += (*head, len(change.lines), *change.lines)
        answer = self._apply.run(self._redis, keys, arguments)
        result: ApplyResult = (await replied("writing conversations", answer)).decode()
        return result

    async def mark(self, partition: int) -> Mark | None:
        key, _ = self._keys(partition)
        return _mark(await replied("reading a position", self._redis.hmget(key, *_MARK)))

    async def report(self, partition: int, end: int, now_ms: int) -> None:
        values: dict[str | bytes, int] = {"end": end, "seen_ms": now_ms}
        answer = self._redis.hset(self._report(partition), mapping=values)
        await replied("reporting the end of the log", answer)

    async def drop(self, partition: int, since_ms: int | None = None, topic_id: str = "") -> None:
        base, doing, cursor = self._base(partition), "dropping conversations", 0
        position_key, _ = self._keys(partition)
        noted = {"topic": topic_id} if topic_id else {}
        if since_ms is not None:
            noted["since"] = str(since_ms)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.unlink(position_key)  # first: no one reads the rest then
            if noted:
                pipeline.hset(position_key, mapping=noted)
            await replied(doing, pipeline.execute())
        while True:
            answer = self._redis.scan(cursor, match=base + b"*", count=_SCAN_KEYS)
            cursor, names = await replied(doing, answer)
            names = [name for name in names if name != position_key]
            if names:
                await replied(doing, self._redis.unlink(*names))
            if not cursor:
                return


def _mark(fields: Sequence[bytes | None]) -> Mark | None:
    """Return a mark; None where nothing is stored. A broker may not report the topic's id."""
    offset, stamp, topic_id = fields
    if offset is None or stamp is None:
        return None
    return Mark(int(offset), stamp.decode(), (topic_id or b"").decode())
