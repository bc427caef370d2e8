"""A derive worker's surroundings on the log in memory."""

import pytest

from contextgauge.clock import SystemClock
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, HastyClock


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog(SystemClock())


@pytest.fixture
async def kit(log: FaultyLog) -> DeriveKit:
    kit = DeriveKit(log, "", HastyClock())
    await kit.create_topics()
    return kit
