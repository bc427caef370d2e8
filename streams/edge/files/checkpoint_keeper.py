"""A follower whose checkpoint is kept: positions reach the disk some time after they are known."""

import threading
from collections.abc import Callable, Iterator, Mapping

from streams.edge.files.checkpoint import Checkpoint
from streams.edge.files.follower import Follower
from streams.edge.files.pieces import Piece, grouped
from streams.ports import Clock

_SAVE_S = 1.0
"""How often it is written while lines are sent: what a crash sends again."""

_SAVE_SHARE = 20
"""Writing takes a twentieth of the time at the most: with 100 000 files it takes a second."""


class Keeper:
    """Pieces whose settling makes the checkpoint due; `offsets` is what the topic was told to."""

    def __init__(
        self,
        follower: Follower,
        checkpoint: Checkpoint,
        clock: Clock,
        offsets: Callable[[], Mapping[int, int]],
    ) -> None:
        self._follower = follower
        self._checkpoint = checkpoint
        self._clock = clock
        self._offsets = offsets
        self._is_due = False
        self._next_s = 0.0
        self._turn = 0
        # Held by whoever moves the follower on: a thread that was left reading, and who rewinds.
        self._moving = threading.Lock()
        self._saving = threading.Lock()

    def pieces(self) -> Iterator[Piece]:
        """Yield the follower's pieces until the next `rewind`; saves between them.

        Blocks: run it in a thread.
        """
        return self._pieces(self._turn)

    def _pieces(self, turn: int) -> Iterator[Piece]:
        reading = grouped(self._follower.pieces())
        while True:
            with self._moving:
                piece = next(reading, None) if turn == self._turn else None
            if piece is None:
                return
            yield piece._replace(settle=self._settling(piece.settle)) if piece.lines else piece
            if self._is_due and self._clock.monotonic_s() >= self._next_s:
                self.save()

    def rewind(self) -> None:
        """Read again what was not acknowledged; blocks until no other thread reads any more."""
        with self._moving:
            self._turn += 1
            self._follower.rewind()

    def save(self) -> None:
        """Write the checkpoint. Raises ConfigError."""
        with self._saving:
            self._is_due = False
            begin_s = self._clock.monotonic_s()
            self._checkpoint.save(self._follower.positions(), self._offsets())
            end_s = self._clock.monotonic_s()
            self._next_s = end_s + max(_SAVE_S, (end_s - begin_s) * _SAVE_SHARE)

    def _settling(self, settle: Callable[[], None]) -> Callable[[], None]:
        def settled() -> None:
            settle()
            self._is_due = True

        return settled
