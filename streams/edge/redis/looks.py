"""Looks at generations in Redis that move on, for comparing them: each at one moment."""

import hashlib
from collections.abc import AsyncGenerator, Sequence
from importlib import resources
from typing import Any

from redis.exceptions import NoScriptError

from streams.edge.redis.generations import Ask
from streams.edge.redis.keys import DOCUMENT, PartitionKeys, entry_offset
from streams.ports import Entry, PartitionLook, SessionLook, SessionSet, SessionsLook

PARTS = ("compactions", "events", "readings", "recent", "pressure", "idle", "left")
"""What `look.lua` tells of a session after its view, in this order."""

_PAGE = 1_000
"""Sessions of a page, about: names of some 40 bytes each."""


class RedisLooks:
    """Reads that change nothing. `ask` waits for replies."""

    def __init__(self, redis: Any, ask: Ask) -> None:  # noqa: ANN401 -- untyped replies
        self._redis, self._ask = redis, ask
        self._script = resources.files(__package__).joinpath("look.lua").read_text()
        # The name by which Redis knows a script, not a secret.
        self._script_sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()

    async def sessions(self, keys: PartitionKeys, sessions: Sequence[bytes]) -> SessionsLook:
        """Return how these sessions are."""
        sets = (keys.ranking("recent"), keys.ranking("pressure"), keys.idle, keys.left)
        names = [keys.position, *sets]
        for session in sessions:
            names += keys.of_session(session)
        answer = self._run((len(names), *names, *sessions))
        offset, *found = await self._ask("looking at sessions", answer)
        return SessionsLook(
            _offset(offset),
            [SessionLook(view, dict(zip(PARTS, parts, strict=True))) for view, *parts in found],
        )

    async def _run(self, call: tuple[Any, ...]) -> Any:  # noqa: ANN401 -- of Redis
        try:
            return await self._redis.evalsha(self._script_sha, *call)
        except NoScriptError:
            return await self._redis.eval(self._script, *call)

    async def partition(self, keys: PartitionKeys) -> PartitionLook:
        """Return how the partition is."""
        sets = {
            "recent": keys.ranking("recent"),
            "pressure": keys.ranking("pressure"),
            "idle": keys.idle,
            "left": keys.left,
        }
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hget(keys.position, "offset")
            pipeline.hgetall(keys.stats)
            pipeline.xrange(keys.live)
            for key in sets.values():
                pipeline.zcard(key)
            found = await self._ask("looking at a partition", pipeline.execute())
        offset, stats, live, *counts = found
        entries = [Entry(entry_offset(name), fields[DOCUMENT]) for name, fields in live]
        return PartitionLook(_offset(offset), stats, entries, dict(zip(sets, counts, strict=True)))

    async def pages(self, keys: PartitionKeys, of: SessionSet) -> AsyncGenerator[list[bytes], None]:
        """Yield the sessions of a set in pages."""
        key, cursor = keys.left if of == "left" else keys.ranking("recent"), 0
        while True:
            answer = self._redis.zscan(key, cursor, count=_PAGE)
            cursor, found = await self._ask("listing sessions", answer)
            yield [session for session, _ in found]
            if not cursor:
                return


def _offset(stored: bytes | None) -> int | None:
    """Return an offset; none where there is no partition, or one that is being dropped."""
    return int(stored) if stored is not None and int(stored) >= 0 else None
