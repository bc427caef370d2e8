"""Which agents ask for their context, in Redis: written by the API, read by the control worker.

A key for each session, without any text: ids, and a count. It expires, and how much of its time is
left says how long ago the agent asked: no clock but Redis's is needed.
"""

from typing import Final

from contextgauge.partitioner import key_bytes
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.ports.conversations import ASKED_MS, Asked

_NOTE: Final = """
local given = redis.call('HGET', KEYS[1], 'given')
if given == ARGV[1] then
  redis.call('HINCRBY', KEYS[1], 'times', 1)
else
  redis.call('HSET', KEYS[1], 'given', ARGV[1], 'last', ARGV[2], 'times', 1)
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
"""


class RedisAskedContexts:
    """An `AskedContexts`. `url` as redis-py takes it; `prefix` begins every key."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        self._prefix = f"{prefix}:asked:".encode()
        self._redis = access.client(url, TIMEOUT_S)

    async def stop(self) -> None:
        """Close the connection."""
        await self._redis.aclose()

    async def note(self, session_id: str, last_id: str, compactions: int) -> None:
        """Note what an agent was given; see the port."""
        given = f"{compactions} {last_id}"
        answer = self._redis.eval(_NOTE, 1, self._key(session_id), given, last_id, ASKED_MS)
        await replied("noting that a context was asked for", answer)

    async def asked(self, session_id: str) -> Asked | None:
        """Return the last request; see the port."""
        key = self._key(session_id)
        async with self._redis.pipeline(transaction=True) as pipeline:
            pipeline.hmget(key, "last", "times")
            pipeline.pttl(key)
            answer = await replied("reading what was asked for", pipeline.execute())
        (last, times), left_ms = answer
        if last is None or times is None:
            return None
        return Asked(last.decode(), int(times), max(ASKED_MS - left_ms, 0))

    def _key(self, session_id: str) -> bytes:
        return self._prefix + key_bytes(session_id)
