"""What holds of every driver: whatever the runtime does, nothing is left open."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest


def _tasks() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def _children() -> set[str]:
    """Return the processes that this one started: a fork server of other tests is one."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {child for each in lists for child in each.read_text().split()}


@pytest.fixture(autouse=True)
async def nothing_is_left() -> AsyncIterator[None]:
    """Check at the end that there is no task and no process more than before."""
    before, children = _tasks(), _children()
    yield
    for _ in range(20):  # the test's own server may need some turns of the loop to end
        if _tasks() <= before:
            break
        await asyncio.sleep(0.05)
    assert _tasks() <= before
    assert _children() <= children
