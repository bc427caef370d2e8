"""What holds of every driver: whatever the runtime does, nothing is left open."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S


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
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s and not _tasks() <= before:  # noqa: ASYNC110 -- of any kind
        await asyncio.sleep(0.05)  # the test's own server may need some turns of the loop to end
    assert _tasks() <= before
    assert _children() <= children
