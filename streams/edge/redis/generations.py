"""Which generation is active and which is being built, as two keys in Redis.

The next generation's key holds its number, a colon and the name of its build, with `held:` in
front where the build waits for a comparison: all in one key, so that it changes in one write.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from streams.edge.redis.keys import Keys
from streams.ports import Generations

Ask: TypeAlias = Callable[[str, Awaitable[Any]], Awaitable[Any]]
"""Waits for a reply of Redis, told what for, and translates its errors."""

_HELD = "held:"

_ACTIVATE = """
local following = redis.call('GET', KEYS[2])
if following ~= ARGV[2] and following ~= ARGV[3] then return 0 end
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
if now < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('DEL', KEYS[2])
"""
"""Set a generation, unless it is a later one already or the build was given up meanwhile."""

_FORGET = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end"
"""Delete a key that has this value still."""

_REPLACE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end"
"""Give a key that has the first value still the second one."""


class RedisGenerations:
    """The two keys. `ask` waits for replies."""

    def __init__(self, redis: Any, keys: Keys, ask: Ask) -> None:  # noqa: ANN401 -- untyped replies
        self._redis, self._keys, self._ask = redis, keys, ask

    async def read(self) -> Generations:
        """Return both, as they were at one moment."""
        answer = self._redis.mget(self._keys.active, self._keys.next)
        active, following = await self._ask("reading the generations", answer)
        told = (following or b"").decode()
        number, _, build = told.removeprefix(_HELD).partition(":")
        return Generations(_number(active), _number(number), build, told.startswith(_HELD))

    async def begin(self, generation: int, build: str, *, held: bool) -> None:
        """Set the one to be built unless there is one."""
        value = _next(generation, build)
        answer = self._redis.set(self._keys.next, _HELD + value if held else value, nx=True)
        await self._ask("beginning a generation", answer)

    async def release(self, generation: int, build: str) -> None:
        """Hold it no longer."""
        value = _next(generation, build)
        answer = self._redis.eval(_REPLACE, 1, self._keys.next, _HELD + value, value)
        await self._ask("releasing a generation", answer)

    async def abandon(self, generation: int, build: str) -> None:
        """Build it no longer, if it is held."""
        value = _HELD + _next(generation, build)
        answer = self._redis.eval(_FORGET, 1, self._keys.next, value)
        await self._ask("ending a build", answer)

    async def activate(self, generation: int, build: str) -> None:
        """Make readers use it, if it is what is being built and no later one is active."""
        value, keys = _next(generation, build), self._keys
        answer = self._redis.eval(
            _ACTIVATE, 2, keys.active, keys.next, generation, value, _HELD + value
        )
        await self._ask("activating a generation", answer)


def _number(value: bytes | str | None) -> int | None:
    return int(value) if value else None


def _next(generation: int, build: str) -> str:
    """Return what the key of the next generation holds; a number alone is of no named build."""
    return f"{generation}:{build}" if build else str(generation)
