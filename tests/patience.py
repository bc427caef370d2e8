"""How long a test waits for what must come: longer where the machine is slow or busy."""

import os
import time
from typing import Final

_NORMAL_S: Final = 0.04
"""What the steps below take on an idle core of the machine that the time-outs were chosen on."""


def _slowness() -> float:
    """Return how many times slower than normal this machine is now, by its clock; at least 1."""
    began_s = time.perf_counter()
    total = 0
    for number in range(1_000_000):
        total += number
    return max((time.perf_counter() - began_s) / _NORMAL_S, 1.0)


PATIENCE: Final = float(os.environ.get("TEST_PATIENCE") or _slowness())
"""The factor of all time-outs: `TEST_PATIENCE`, else measured when tests start."""

PATIENCE_S: Final = 90 * PATIENCE
"""A test that waits for longer has failed; no other waits so long, however slow the machine is."""


def pause_s(look_s: float, least_s: float = 0.01) -> float:
    """Return how long to wait after a look at what must come, which took `look_s` seconds.

    Four times as long, at most half a second: a look may be a process or a reader of Kafka, and
    what is waited for needs the processor more.
    """
    return min(max(least_s, 4 * look_s), 0.5)
