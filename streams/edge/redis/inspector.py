"""Looks into Redis for `contextgauge doctor`: read only, over one connection of its own.

What a command may do is asked without doing it: inside MULTI, Redis checks a command's rights,
and whether it would take a write at all, when the command is queued; DISCARD drops the queue.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from contextgauge.errors import VersionError
from contextgauge.tls import refusal
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.deployment import deployment_key, read_deployment
from streams.edge.redis.errors import arguments_hidden
from streams.edge.redis.keys import RedisKeys
from streams.ports.deployment import Deployment
from streams.ports.inspection import ClockReading, Configs, Failure, StoreFacts

_T = TypeVar("_T")

PATIENCE_S = 4.0
"""With one reply, above what a slow script may take on a busy server."""

_PINGS = 5
"""Round trips measured: the least shows the network's delay, the greatest the server's load."""

_CONFIGS = ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "save")

_SECTIONS = ("server", "memory", "persistence", "replication", "stats", "cluster")

_VARIABLES = "CONTEXTGAUGE_REDIS_"
"""How the settings begin that TLS is mended with."""


class RedisInspector:
    """One Redis. `url` as redis-py takes it, `prefix` the first part of every key."""

    def __init__(self, url: str, prefix: str = "cg", access: RedisAccess = NO_ACCESS) -> None:
        self._keys = RedisKeys(prefix)
        self._deployment_key = deployment_key(prefix)
        self._redis = access.client(url, PATIENCE_S, retries=0)

    async def look(self) -> StoreFacts | Failure:
        first = await _answer(self._redis.ping())
        if isinstance(first, Failure):
            return first
        info = await self._info()
        return StoreFacts(
            info=info,
            configs=await self._configs(),
            pings_ms=await self._pings(),
            clock=await self._clock(),
            deployment=await self._deployment(),
            denied=await self._denied(),
        )

    async def stop(self) -> None:
        await self._redis.aclose()

    async def _info(self) -> Mapping[str, str] | Failure:
        info: dict[str, str] = {}
        for section in _SECTIONS:
            fields = await _answer(self._redis.info(section))
            if isinstance(fields, Failure):
                return fields
            info |= {name: str(value) for name, value in fields.items()}
        return info

    async def _configs(self) -> Configs | Failure:
        configs: dict[str, str] = {}
        for name in _CONFIGS:
            # One by one: versions before 7 take one name only.
            values = await _answer(self._redis.config_get(name))
            if isinstance(values, Failure):
                return values
            configs |= values
        return configs

    async def _pings(self) -> Sequence[float]:
        round_trips_ms: list[float] = []
        for _ in range(_PINGS):
            began = time.perf_counter()
            if not isinstance(await _answer(self._redis.ping()), Failure):
                round_trips_ms.append((time.perf_counter() - began) * 1_000)
        return round_trips_ms

    async def _clock(self) -> ClockReading | Failure:
        """Read its clock between two readings of ours, as often as a ping, and keep the best."""
        best: ClockReading | None = None
        for _ in range(_PINGS):
            before = time.time_ns()
            reply = await _answer(self._redis.time())
            after = time.time_ns()
            if isinstance(reply, Failure):
                return reply
            theirs_us = reply[0] * 1_000_000 + reply[1]
            reading = ClockReading(
                ahead_ms=round((theirs_us - (before + after) // 2_000) / 1_000),
                uncertainty_ms=(after - before) // 2_000_000 + 1,
            )
            if best is None or reading.uncertainty_ms < best.uncertainty_ms:
                best = reading
        return best or Failure("away", "its clock is unknown")

    async def _deployment(self) -> Deployment | Failure | None:
        document = await _answer(self._redis.get(self._deployment_key))
        if document is None or isinstance(document, Failure):
            return document
        try:
            return read_deployment(document)
        except VersionError as error:
            return Failure("unsupported", str(error))

    async def _denied(self) -> Mapping[str, str] | Failure:
        """Return the commands that it would not run for us now, with its error for each."""
        async with self._redis.client() as alone:
            alone.response_callbacks.clear()  # each reply is QUEUED, and no command's own
            queued = await _answer(alone.execute_command("MULTI"))
            if isinstance(queued, Failure):
                return queued
            denied: dict[str, str] = {}
            try:
                for command in self._commands():
                    reply = await _answer(alone.execute_command(*command))
                    if isinstance(reply, Failure):
                        if reply.kind == "away":  # the next would run, on a new connection
                            return reply
                        denied[command[0]] = reply.text
            finally:
                await _answer(alone.execute_command("DISCARD"))
        return denied

    def _commands(self) -> Sequence[tuple[str, ...]]:
        """Return one of each command that readers and the projector use, on a key of ours."""
        key = self._keys.of(0, 0).base.decode() + "doctor"
        return (
            ("GET", self._keys.active),
            ("SET", self._keys.next, "0", "NX"),
            ("MGET", key),
            ("DEL", key),
            ("UNLINK", key),
            ("EXISTS", key),
            ("TYPE", key),
            ("SCAN", "0"),
            ("HGET", key, "field"),
            ("HMGET", key, "field"),
            ("HGETALL", key),
            ("HSET", key, "field", "value"),
            ("HDEL", key, "field"),
            ("HLEN", key),
            ("HSCAN", key, "0"),
            ("ZADD", key, "0", "member"),
            ("ZREM", key, "member"),
            ("ZCARD", key),
            ("ZSCAN", key, "0"),
            ("ZSCORE", key, "member"),
            ("ZMSCORE", key, "member"),
            ("ZRANGE", key, "0", "-1"),
            ("ZREVRANGE", key, "0", "-1"),
            ("ZRANGEBYSCORE", key, "-inf", "+inf"),
            ("ZREMRANGEBYSCORE", key, "-inf", "+inf"),
            ("XADD", key, "*", "field", "value"),
            ("XRANGE", key, "-", "+"),
            ("XLEN", key),
            ("EVAL", "return 0", "1", key),
            ("EVALSHA", "0" * 40, "1", key),
        )


async def _answer(request: Awaitable[_T]) -> _T | Failure:
    """Wait for a reply, within a time limit."""
    try:
        with arguments_hidden():
            async with asyncio.timeout(PATIENCE_S):
                return await request
    except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
        return Failure("refused", str(error))
    except ResponseError as error:
        text = str(error)
        return Failure("unsupported" if "unknown command" in text else "refused", text)
    except (RedisError, OSError) as error:
        untrusted = refusal(error, _VARIABLES, "the address that was connected to")
        if untrusted is not None:
            return Failure("refused", untrusted)
        return Failure("away", str(error) or f"no answer within {PATIENCE_S:.0f} s")
