"""A control worker's surroundings on the log in memory."""

import pytest

from tests.flow.control.control_kit import ControlKit


@pytest.fixture
async def kit() -> ControlKit:
    kit = ControlKit()
    await kit.create()
    return kit
