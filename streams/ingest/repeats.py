"""Requests that are sent again with the same `Idempotency-Key` get the first one's answer.

What is not in memory any more, or was answered by another server, is published again: the deriver
recognises a message that it has had (R4), so that counts nothing twice either.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from contextgauge.ports import Clock
from streams.serve.api.problems import Problem

_Answer = TypeVar("_Answer")

REMEMBERED_S: Final = 600.0
"""Longer than clients retry."""

_MOST: Final = 10_000
"""Keys in memory: beyond them the oldest is forgotten."""

Key: TypeAlias = tuple[str, str]
"""The publisher's name, empty without tokens, and its key."""


class _First(NamedTuple, Generic[_Answer]):
    digest: bytes
    answer: asyncio.Task[_Answer]
    until_s: float


class Repeats(Generic[_Answer]):
    """The answers of the last minutes, by key; those that failed are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._firsts: OrderedDict[Key, _First[_Answer]] = OrderedDict()

    async def once(
        self, key: Key, digest: bytes, work: Callable[[], Awaitable[_Answer]]
    ) -> tuple[_Answer, bool]:
        """Return the answer to a request, and whether it was there already.

        Raises what the work raises, and Problem for a key that another body was sent with.
        """
        now_s = self._clock.monotonic_s()
        while self._firsts and next(iter(self._firsts.values())).until_s <= now_s:
            self._firsts.popitem(last=False)
        first = self._firsts.get(key)
        if first is not None:
            if first.digest != digest:
                raise Problem(
                    HTTPStatus.UNPROCESSABLE_ENTITY,
                    "This Idempotency-Key was sent with another body: give each request its own.",
                    "key-reused",
                )
            return await asyncio.shield(first.answer), True
        answer = asyncio.ensure_future(_awaited(work))
        self._firsts[key] = _First(digest, answer, now_s + REMEMBERED_S)
        if len(self._firsts) > _MOST:
            self._firsts.popitem(last=False)
        answer.add_done_callback(lambda done: self._forget_failed(key, done))
        return await asyncio.shield(answer), False

    def _forget_failed(self, key: Key, done: asyncio.Task[_Answer]) -> None:
        if done.cancelled() or done.exception() is not None:
            first = self._firsts.get(key)
            if first is not None and first.answer is done:
                del self._firsts[key]


async def _awaited(work: Callable[[], Awaitable[_Answer]]) -> _Answer:
    return await work()
