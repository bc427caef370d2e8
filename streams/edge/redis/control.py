"""The control plane's views in Redis: written by control workers, read by the API and commands."""

from collections.abc import Mapping
from typing import Final

from contextgauge.errors import RetryError
from contextgauge.partitioner import key_bytes
from schemas.commands import ControlView
from streams.codec.control_views import read_view, write_view
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.ports.control import OWNED_MS

KEPT_MS: Final = 30 * 24 * 3_600 * 1_000
"""As long as the log of commands is kept by default: of an idle session there is then no more."""

_PUT: Final = """
local offset = tonumber(redis.call('GET', KEYS[1]) or '-1')
if offset > tonumber(ARGV[1]) then return 0 end
for i = 3, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 2], 'PX', ARGV[4]) end
redis.call('HSET', KEYS[2], 'seen_ms', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
"""
"""Replace views, unless a later position was reported lately; the report comes last."""


class RedisControlStore:
    """A `ControlStore`. `url` as redis-py takes it; `prefix` begins every key."""

    def __init__(
        self,
        url: str,
        prefix: str = "cg",
        access: RedisAccess = NO_ACCESS,
        owned_ms: int = OWNED_MS,
    ) -> None:
        self._owned_ms = owned_ms
        self._prefix = f"{prefix}:control:".encode()
        self._url, self._access = url, access
        self._redis = access.client(url, TIMEOUT_S)

    async def start(self) -> None:
        """Connect. Raises RetryError while Redis is away, ConfigError where it refuses us."""
        await self._access.connect(self._redis, self._url)

    async def stop(self) -> None:
        """Close the connection."""
        await self._redis.aclose()

    async def control_view(self, session_id: str) -> ControlView | None:
        """Return a session's view; None where there is nothing."""
        answer = self._redis.get(self._session(session_id))
        document = await replied("reading what the control plane knows", answer)
        return None if document is None else read_view(document)

    async def control_seen_ms(self, partition: int) -> int | None:
        """Return when the owner of a partition last reported; None: there is none."""
        answer = self._redis.hget(self._partition(partition), "seen_ms")
        seen_ms = await replied("reading a control worker's report", answer)
        return None if seen_ms is None else int(seen_ms)

    async def put(
        self, partition: int, views: Mapping[str, ControlView], position: int, now_ms: int
    ) -> None:
        """Replace the views of sessions, if no later position is stored; note the report."""
        report = self._partition(partition)
        keys = [report + b":offset", report, *map(self._session, views)]
        values = [
            position,
            now_ms,
            self._owned_ms,
            KEPT_MS,
            *(write_view(each) for each in views.values()),
        ]
        answer = self._redis.eval(_PUT, len(keys), *keys, *values)
        if not await replied("writing what the control plane knows", answer):
            raise RetryError(f"a later owner of partition {partition} has reported lately")

    def _partition(self, partition: int) -> bytes:
        return self._prefix + b"p:%d" % partition

    def _session(self, session_id: str) -> bytes:
        return self._prefix + b"s:" + key_bytes(session_id)
