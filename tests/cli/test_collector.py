"""How a worker's process looks for garbage."""

import gc
import weakref

from streams.cli.machine import collect_young_garbage


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_young_cycles_are_found_and_old_objects_left_alone() -> None:
    before = gc.get_threshold()
    collect_young_garbage()
    try:
        dropped = weakref.ref(_Cycle())
        young, _, rounds_until_all = gc.get_threshold()
        # Some more than one look through young objects waits for.
        objects = [[number] for number in range(young + 10_000)]
        assert dropped() is None
        assert rounds_until_all > 1_000_000
    finally:
        gc.set_threshold(*before)
        del objects
