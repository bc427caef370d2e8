"""How commands that do much use the machine: its cores, and when garbage is looked for."""

import gc
import os

_YOUNG_OBJECTS = 100_000
"""New objects until the garbage collector examines the youngest generation: some 5 ms of work. With
Python's default of 700 it would examine each batch's messages, all still in use, again and again,
for a sixth of a derive worker's time."""

_YOUNG_ROUNDS = 10
"""Collections of the youngest generation for one of the next, as by default."""

_NEVER = 2**31 - 1
"""The largest threshold that the collector takes: a command ends before it is needed."""


def collect_young_garbage() -> None:
    """Let the garbage collector examine young objects only, never all.

    Sessions, messages and records hold no cycles: reference counts free them. A full collection
    would free nothing and pause a worker of a million sessions for seconds. Errors hold their
    frames, so `membership` collects after one.
    """
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_ROUNDS, _NEVER)


def cores() -> int:
    """Return how many processes make sense: one where the system cannot fork."""
    if not hasattr(os, "fork"):
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
