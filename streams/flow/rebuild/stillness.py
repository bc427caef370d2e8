"""Noticing that the workers who are waited for do nothing."""

from collections.abc import Sequence

from streams.ports import Clock

_LOOK_S = 0.5
"""How often positions are worth a look: pauses are shorter, and there are many."""

_STILL_S = 15.0
"""Workers that write nothing for so long are probably none: one that died is replaced by then."""


class Stillness:
    """For how long positions have stood still while someone waits for them to move."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looked_s = self._since_s = clock.monotonic_s()
        self._positions: Sequence[int | None] = ()
        self._told = False

    def is_due(self) -> bool:
        """Tell whether it is time for a look."""
        return self._clock.monotonic_s() - self._looked_s >= _LOOK_S

    def is_long(self, positions: Sequence[int | None]) -> bool:
        """Take the positions as they are; say once that they have not moved for too long."""
        now_s = self._clock.monotonic_s()
        # If nothing waited in between, there may have been nothing to write.
        waits_again = now_s - self._looked_s > 2 * _LOOK_S
        self._looked_s = now_s
        if waits_again or positions != self._positions:
            self._positions, self._since_s = positions, now_s
        if self._told or now_s - self._since_s < _STILL_S:
            return False
        self._told = True
        return True
