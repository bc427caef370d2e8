"""Reading views from Redis: the connection, and what the API, status line and commands read.

Nothing is cached in this process, so any number of readers may work on one Redis.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from contextgauge.errors import FormerViewsError, VersionError
from schemas.views import FORMAT_VERSION, LIVE_ENTRIES, EntryStream
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.edge.redis.keys import DOCUMENT, RedisKeys, entry_id, entry_offset
from streams.ports import (
    Entry,
    Generations,
    LiveBounds,
    LogPlace,
    ProjectorHeartbeat,
    Ranking,
    ViewPosition,
)

LONGEST_WAIT_S: Final = 2.0
"""Of a blocking read, well below the time after which a reply counts as lost."""

_RIVALS_MS: Final = 60_000
"""For how long a heartbeat counts in which there were rivals."""

CLOSED_OFFSET: Final = -1
"""The offset of a partition that is being dropped: no batch can follow it."""


class RedisViewReader:
    """The reading half of the view store. `url` as redis-py takes it; `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        self._keys = RedisKeys(prefix)
        self._url, self._access = url, access
        self._redis = access.client(url, TIMEOUT_S)

    async def _ask(self, doing: str, answer: Awaitable[Any]) -> Any:  # noqa: ANN401 -- of Redis
        return await replied(doing, answer)

    async def start(self) -> None:
        """Connect. Raises RetryError while Redis is away, ConfigError where it refuses us."""
        await self._access.connect(self._redis, self._url)

    async def stop(self) -> None:
        await self._redis.aclose()

    async def generations(self) -> Generations:
        answer = self._redis.mget(self._keys.active, self._keys.next)
        active, following = await self._ask("reading the generations", answer)
        number, _, build = (following or b"").decode("utf-8", "replace").partition(":")
        return Generations(
            self._number(self._keys.active, active), self._number(self._keys.next, number), build
        )

    def _number(self, key: str, stored: bytes | str | None) -> int | None:
        """Return the number of a generation. Raises VersionError where it is none."""
        try:
            return int(stored) if stored else None
        except ValueError:
            raise VersionError(
                f"the key {key} in Redis has a form that this build does not know: run the build "
                "that wrote it, or delete the key, and project workers of this build rebuild what "
                "is missing"
            ) from None

    async def position(self, generation: int, partition: int) -> ViewPosition | None:
        """Return a partition's position, None where it is closed.

        Raises FormerViewsError where its format is a former one, VersionError for a later one.
        """
        key = self._keys.of(generation, partition).position
        fields = await self._ask("reading a position", self._redis.hgetall(key))
        if not fields or int(fields[b"offset"]) == CLOSED_OFFSET:
            return None
        _check_format(int(fields[b"format"]))
        mark = fields.get(b"mark", b"   ").decode()
        writer, offset, topic_id, record_id = mark.split(" ", 3)
        return ViewPosition(
            offset=int(fields[b"offset"]),
            begin=int(fields[b"begin"]),
            partitions=int(fields[b"partitions"]),
            caught_up=b"caught_up" in fields,
            build=fields.get(b"build", b"").decode(),
            heartbeat=_heartbeat(fields),
            writer=writer,
            log=LogPlace(topic_id, int(offset), record_id) if offset else LogPlace(topic_id),
        )

    async def views(
        self, generation: int, partition: int, sessions: Sequence[bytes]
    ) -> list[bytes | None]:
        if not sessions:
            return []
        keys = self._keys.of(generation, partition)
        answer = self._redis.mget([keys.view(session) for session in sessions])
        return list(await self._ask("reading views", answer))

    async def ranked(
        self, generation: int, partition: int, ranking: Ranking, limit: int
    ) -> list[tuple[bytes, float]]:
        return await self._highest(self._keys.of(generation, partition).ranking(ranking), limit)

    async def scores(
        self, generation: int, partition: int, sessions: Sequence[bytes], ranking: Ranking
    ) -> list[float | None]:
        if not sessions:
            return []
        key = self._keys.of(generation, partition).ranking(ranking)
        answer = self._redis.zmscore(key, list(sessions))
        return list(await self._ask("reading scores", answer))

    async def agent_sessions(
        self, generation: int, partition: int, agent: bytes, limit: int
    ) -> list[tuple[bytes, float]]:
        return await self._highest(self._keys.of(generation, partition).agent(agent), limit)

    async def _highest(self, key: bytes, limit: int) -> list[tuple[bytes, float]]:
        answer = self._redis.zrevrange(key, 0, limit - 1, withscores=True)
        return [(name, score) for name, score in await self._ask("reading a ranking", answer)]

    async def session_count(self, generation: int, partition: int) -> int:
        key = self._keys.of(generation, partition).ranking("recent")
        return int(await self._ask("counting sessions", self._redis.zcard(key)))

    async def compactions(
        self, generation: int, partition: int, session: bytes
    ) -> dict[bytes, bytes]:
        key = self._keys.of(generation, partition).compactions(session)
        return dict(await self._ask("reading compactions", self._redis.hgetall(key)))

    async def entries(
        self, generation: int, partition: int, stream: EntryStream, session: bytes, after: int
    ) -> list[Entry]:
        key = self._keys.of(generation, partition).entries(stream, session)
        answer = self._redis.xrange(key, min=_first_id(after))
        return entries_of(await self._ask("reading a stream", answer))

    async def stats(
        self, generation: int, partition: int, fields: Sequence[bytes] | None = None
    ) -> dict[bytes, bytes]:
        key, doing = self._keys.of(generation, partition).stats, "reading aggregates"
        if fields is None:
            return dict(await self._ask(doing, self._redis.hgetall(key)))
        async with self._redis.pipeline(transaction=False) as pipeline:
            for field in fields:
                pipeline.hget(key, field)
            stored = zip(fields, await self._ask(doing, pipeline.execute()), strict=True)
        return {field: value for field, value in stored if value is not None}

    async def live(
        self, generation: int, partition: int, after: int, limit: int, wait_s: float = 0.0
    ) -> list[Entry]:
        key, doing = self._keys.of(generation, partition).live, "reading the live feed"
        if wait_s <= 0:
            answer = self._redis.xrange(key, min=_first_id(after), count=limit)
            return entries_of(await self._ask(doing, answer))
        block_ms = max(int(min(wait_s, LONGEST_WAIT_S) * 1_000), 1)
        last = entry_id(after) if after >= 0 else b"0-0"
        streams = await self._ask(doing, self._redis.xread({key: last}, limit, block_ms))
        if not streams:
            return []
        # A list of pairs or an object, by protocol and version of the driver; of one stream here.
        entries = next(iter(streams.values())) if isinstance(streams, Mapping) else streams[0][1]
        return entries_of(entries[0] if isinstance(entries[0], list) else entries)

    async def live_bounds(self, generation: int, partition: int) -> LiveBounds:
        key = self._keys.of(generation, partition).live
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.xrange(key, count=1)
            pipeline.xlen(key)
            first, length = await self._ask("reading the live feed", pipeline.execute())
        return LiveBounds(entry_offset(first[0][0]) if first else None, length < LIVE_ENTRIES)


def entries_of(reply: Any) -> list[Entry]:  # noqa: ANN401 -- of Redis
    """Return a stream's entries from Redis's reply."""
    return [Entry(entry_offset(name), fields[DOCUMENT]) for name, fields in reply]


def _check_format(stored: int) -> None:
    what = f"the views in Redis are of format {stored}, this build knows {FORMAT_VERSION}"
    if stored < FORMAT_VERSION:
        raise FormerViewsError(
            f"{what}: a project worker of this build rebuilds them from the log. Check that one "
            "is running, then try again"
        )
    if stored > FORMAT_VERSION:
        raise VersionError(
            f"{what}: run the build that wrote them, or give this one a CONTEXTGAUGE_KEY_PREFIX "
            "of its own, and it rebuilds them there from the log"
        )


def _first_id(after: int) -> bytes:
    return entry_id(after + 1) if after >= 0 else b"-"


def _heartbeat(fields: Mapping[bytes, bytes]) -> ProjectorHeartbeat | None:
    """Return the projector's last heartbeat from the fields of a position."""
    if b"reported_ms" not in fields:
        return None
    end = fields.get(b"reported_end") or None
    lag_ms, at_ms = int(fields.get(b"reported_lag_ms", b"0")), int(fields[b"reported_ms"])
    is_recent = at_ms - int(fields.get(b"rivals_ms", b"0")) < _RIVALS_MS
    return ProjectorHeartbeat(
        at_ms,
        None if end is None else int(end),
        lag_ms,
        int(fields.get(b"rivals", b"0")) if is_recent else 0,
    )


def mark_of(position: ViewPosition) -> str:
    """Return who wrote a position and what proves its log, as one field."""
    topic_id, offset, record_id = position.log
    last = " " if offset is None else f"{offset} "
    return f"{position.writer} {last}{topic_id} {record_id or ''}"
