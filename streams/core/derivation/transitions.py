"""The compaction attempt machine as a table (R14 to R18).

One main chain has at most one attempt. `TABLE` has every pair of phase and event, and nothing
else moves an attempt; `docs/ATTEMPTS.md` is drawn from it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from schemas.records import Trigger


class Phase(StrEnum):
    """The state of an attempt."""

    IDLE = "idle"
    OPEN = "open"
    SUCCEEDED = "succeeded"
    ENDED = "ended"


class AttemptEvent(StrEnum):
    """What can move an attempt: a message of the session itself, or a gap before it."""

    COMPACTING = "compacting"
    LATE = "compacting after 5 min"
    SUCCESS = "success noted"
    CLEARED = "bare null"
    FAILED = "failed"
    BOUNDARY = "boundary"
    RESULT = "result"
    RESET = "reset"
    RESPONSE = "new main response"
    GAP = "own gap over 6 h"


class Effect(StrEnum):
    """What a move emits. A boundary's own record is emitted whatever the phase (R19)."""

    START = "compaction_start"
    HEARTBEAT = "compaction_progress"
    FAILED = "compaction_failed: failed"
    UNKNOWN = "compaction_failed: unknown"
    LOST = "compaction_failed: unknown, without a duration"


class Move(NamedTuple):
    """The phase after, and what is emitted on the way, in order."""

    to: Phase
    effects: tuple[Effect, ...] = ()


_FAIL: Final = Move(Phase.IDLE, (Effect.FAILED,))
_LOSE: Final = Move(Phase.IDLE, (Effect.UNKNOWN,))
_RESTART: Final = Move(Phase.OPEN, (Effect.UNKNOWN, Effect.START))
_CLOSE: Final = Move(Phase.IDLE)
_START: Final = Move(Phase.OPEN, (Effect.START,))

TABLE: Final[Mapping[Phase, Mapping[AttemptEvent, Move]]] = {
    Phase.IDLE: {
        AttemptEvent.COMPACTING: _START,
        AttemptEvent.LATE: _START,
        AttemptEvent.SUCCESS: Move(Phase.IDLE),
        AttemptEvent.CLEARED: Move(Phase.IDLE),
        # A failure without a start is reported too; its record names no attempt.
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        AttemptEvent.RESULT: Move(Phase.IDLE),
        AttemptEvent.RESET: Move(Phase.IDLE),
        AttemptEvent.RESPONSE: Move(Phase.IDLE),
        AttemptEvent.GAP: Move(Phase.IDLE),
    },
    Phase.OPEN: {
        AttemptEvent.COMPACTING: Move(Phase.OPEN, (Effect.HEARTBEAT,)),
        AttemptEvent.LATE: Move(Phase.OPEN, (Effect.LOST, Effect.START)),
        AttemptEvent.SUCCESS: Move(Phase.SUCCEEDED),
        AttemptEvent.CLEARED: Move(Phase.ENDED),
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        AttemptEvent.RESULT: _LOSE,
        AttemptEvent.RESET: _LOSE,
        AttemptEvent.RESPONSE: _LOSE,
        AttemptEvent.GAP: _LOSE,
    },
    Phase.SUCCEEDED: {
        AttemptEvent.COMPACTING: _RESTART,
        AttemptEvent.LATE: _RESTART,
        AttemptEvent.SUCCESS: Move(Phase.SUCCEEDED),
        AttemptEvent.CLEARED: Move(Phase.SUCCEEDED),
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        # Messages may come between a success and its boundary, even a result (R16).
        AttemptEvent.RESULT: Move(Phase.SUCCEEDED),
        AttemptEvent.RESET: _LOSE,
        AttemptEvent.RESPONSE: Move(Phase.SUCCEEDED),
        AttemptEvent.GAP: _LOSE,
    },
    Phase.ENDED: {
        AttemptEvent.COMPACTING: _RESTART,
        AttemptEvent.LATE: _RESTART,
        # Cleared without an outcome, as by older runtimes: a success may still be noted.
        AttemptEvent.SUCCESS: Move(Phase.SUCCEEDED),
        AttemptEvent.CLEARED: Move(Phase.ENDED),
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        AttemptEvent.RESULT: _LOSE,
        AttemptEvent.RESET: _LOSE,
        AttemptEvent.RESPONSE: _LOSE,
        AttemptEvent.GAP: _LOSE,
    },
}


class Start(NamedTuple):
    """When an attempt opened, by the message's own timestamp and by when it was seen live.

    `last_own_ms` and `last_live_ms` are the latest such times of its start and heartbeats (R15).
    `is_item`: Codex' app server reported it as an item, whose end it reports too. `is_background`:
    the agent goes on meanwhile, so its responses and results are no end of it. `trigger` is that of
    the hint before it (R24).
    """

    attempt_id: str
    own_ms: int | None
    live_ms: int | None
    last_own_ms: int | None
    last_live_ms: int | None
    is_item: bool = False
    is_background: bool = False
    trigger: Trigger | None = None


class Attempt(NamedTuple):
    """An attempt in its phase; one that is idle has no start, all others have."""

    phase: Phase
    start: Start | None


IDLE: Final = Attempt(Phase.IDLE, None)


def attempt_in(phase: Phase, start: Start | None) -> Attempt:
    """Return the attempt in a phase; without a start there is none."""
    return IDLE if start is None or phase is Phase.IDLE else Attempt(phase, start)
