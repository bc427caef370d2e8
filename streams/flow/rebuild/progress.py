"""The progress of a rebuild, its result, and how long the workers have been idle."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from streams.flow.rebuild.compare import Compared
from streams.ports import Clock

_CHECK_S = 0.5
"""Positions are checked this often: a comparison pauses far more often."""

_IDLE_S = 15.0
"""A worker that has written nothing for so long is probably down: it is replaced by then."""

Phase: TypeAlias = Literal["building", "comparing", "swapping"]


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a partition is built. `position` and `begin` are None before it is started.

    `end` is the position of the active generation, None if that is lost.
    """

    partition: int
    begin: int | None
    position: int | None
    end: int | None
    caught_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a rebuild is. In the comparison, `compared` of `sessions` are compared."""

    phase: Phase
    generation: int
    former: int
    held: bool
    partitions: tuple[PartitionProgress, ...] = ()
    compared: int = 0
    sessions: int = 0


class Cut(NamedTuple):
    """A partition whose log no longer has records that the active generation contains."""

    partition: int
    former_begin: int
    begin: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild. `compared` is None if there was nothing to compare with."""

    generation: int
    former: int
    swapped: bool
    compared: Compared | None
    cut: list[Cut] = field(default_factory=list)


class IdleDetector:
    """Detects that positions have not changed for long while someone waits for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checked_s = self._since_s = clock.monotonic_s()
        self._positions: Sequence[int | None] = ()
        self._reported = False

    def is_due(self) -> bool:
        """Return whether it is time to check the positions."""
        return self._clock.monotonic_s() - self._checked_s >= _CHECK_S

    def is_idle(self, positions: Sequence[int | None]) -> bool:
        """Take the current positions; return True once, when they have not changed for long."""
        now_s = self._clock.monotonic_s()
        # If nothing waited since the last check, there may have been nothing to write.
        was_paused = now_s - self._checked_s > 2 * _CHECK_S
        self._checked_s = now_s
        if was_paused or positions != self._positions:
            self._positions, self._since_s = positions, now_s
        if self._reported or now_s - self._since_s < _IDLE_S:
            return False
        self._reported = True
        return True
