"""Running several coroutines as one."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(running: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all until they end; the first error ends the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in running:
                group.create_task(each)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
