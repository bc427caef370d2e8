"""A derive worker's surroundings on the log in memory."""

import pytest

from contextgauge.clock import SystemClock
from streams.edge.memory.log import MemoryLog
from tests.flow.derive_kit import DeriveKit, HastyClock


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(SystemClock())


@pytest.fixture
async def kit(log: MemoryLog) -> DeriveKit:
    kit = DeriveKit(log, "", HastyClock())
    await kit.create_topics()
    return kit
