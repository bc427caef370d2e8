"""Several questions at once, of which none goes on after the answer."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


async def all_of(asked: Iterable[Coroutine[Any, Any, _Answer]]) -> list[_Answer]:
    """Return all answers in order; the first error is raised once all have ended.

    `asyncio.gather` raises it at once: what still ran would change what the next one works on.
    """
    found = await asyncio.gather(*asked, return_exceptions=True)
    answers = []
    for answer in found:
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers
