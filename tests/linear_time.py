"""Whether work takes linear time, on a machine of any speed."""

import time
from collections.abc import Callable

_TIMES = 8
"""How much larger the larger input is: linear work takes 8 times as long, quadratic 64 times."""

_LIMIT = 3 * _TIMES
_LEAST_S = 0.001
"""Of less, the memory of a machine decides how much longer a larger input takes."""

_ATTEMPTS = 4
"""CPU time of a busy machine has outliers, all upwards: the least of some counts."""


def is_linear(work: Callable[[int], object], size: int) -> bool:
    """Return whether the CPU time of work on an input of a size grows in proportion to the size."""
    smaller_s = max(_LEAST_S, min(_cpu_s(work, size // _TIMES) for _ in range(_ATTEMPTS)))
    return any(_cpu_s(work, size) < _LIMIT * smaller_s for _ in range(_ATTEMPTS))


def _cpu_s(work: Callable[[int], object], size: int) -> float:
    began_s = time.thread_time()
    work(size)
    return time.thread_time() - began_s
