"""What holds of every driver: whatever the runtime does, nothing is left open."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest


def _tasks() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """Check at the end that there is no task and no process more than before."""
    before = _tasks()
    yield
    for _ in range(20):  # the test's own server may need some turns of the loop to end
        if _tasks() <= before:
            break
        await asyncio.sleep(0.05)
    assert _tasks() <= before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # noqa: ASYNC222 -- it does not wait
