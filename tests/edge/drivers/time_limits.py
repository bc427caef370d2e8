"""Time limits of the drivers under test: short, and longer where the machine is slow."""

from typing import Final

from tests.patience import PATIENCE

SOON_S: Final = 1.0 * PATIENCE
"""For a compaction that takes too long."""

ANSWER_S: Final = 0.5 * PATIENCE
STOP_S: Final = 0.3 * PATIENCE
