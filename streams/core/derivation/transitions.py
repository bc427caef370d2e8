"""The compaction attempt machine as a table (R14 to R18).

One main chain has at most one attempt. `TABLE` has every pair of phase and event, and nothing
else moves an attempt; `docs/ATTEMPTS.md` is drawn from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, TypeAlias


class Phase(StrEnum):
    """The state of an attempt."""

    IDLE = "idle"
    OPEN = "open"
    SUCCEEDED = "succeeded"
    ENDED = "ended"


class AttemptEvent(StrEnum):
    """What can move an attempt: a message of the session itself, or a gap before it."""

    COMPACTING = "compacting"
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


class Move(NamedTuple):
    """The phase after, and what is emitted on the way, in order."""

    to: Phase
    effects: tuple[Effect, ...] = ()


_FAIL: Final = Move(Phase.IDLE, (Effect.FAILED,))
_LOSE: Final = Move(Phase.IDLE, (Effect.UNKNOWN,))
_RESTART: Final = Move(Phase.OPEN, (Effect.UNKNOWN, Effect.START))
_CLOSE: Final = Move(Phase.IDLE)

TABLE: Final[Mapping[Phase, Mapping[AttemptEvent, Move]]] = {
    Phase.IDLE: {
        AttemptEvent.COMPACTING: Move(Phase.OPEN, (Effect.START,)),
        AttemptEvent.SUCCESS: Move(Phase.IDLE),
        AttemptEvent.CLEARED: Move(Phase.IDLE),
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        AttemptEvent.RESULT: Move(Phase.IDLE),
        AttemptEvent.RESET: Move(Phase.IDLE),
        AttemptEvent.RESPONSE: Move(Phase.IDLE),
        AttemptEvent.GAP: Move(Phase.IDLE),
    },
    Phase.OPEN: {
        AttemptEvent.COMPACTING: Move(Phase.OPEN, (Effect.HEARTBEAT,)),
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
        AttemptEvent.SUCCESS: Move(Phase.SUCCEEDED),
        AttemptEvent.CLEARED: Move(Phase.SUCCEEDED),
        AttemptEvent.FAILED: _FAIL,
        AttemptEvent.BOUNDARY: _CLOSE,
        AttemptEvent.RESULT: Move(Phase.SUCCEEDED),
        AttemptEvent.RESET: _LOSE,
        AttemptEvent.RESPONSE: Move(Phase.SUCCEEDED),
        AttemptEvent.GAP: _LOSE,
    },
    Phase.ENDED: {
        AttemptEvent.COMPACTING: _RESTART,
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


@dataclass(frozen=True, slots=True)
class Start:
    """When an attempt opened, by the message's own timestamp and by when it was seen live."""

    attempt_id: str
    own_ms: int | None
    live_ms: int | None


@dataclass(frozen=True, slots=True)
class Idle:
    """No attempt."""

    phase: ClassVar = Phase.IDLE


@dataclass(frozen=True, slots=True)
class Open:
    """The runtime is compacting."""

    phase: ClassVar = Phase.OPEN
    start: Start


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The runtime noted success; the boundary is still to come."""

    phase: ClassVar = Phase.SUCCEEDED
    start: Start


@dataclass(frozen=True, slots=True)
class Ended:
    """The phase ended, outcome unknown."""

    phase: ClassVar = Phase.ENDED
    start: Start


Attempt: TypeAlias = Idle | Open | Succeeded | Ended

IDLE: Final = Idle()

_IN_PHASE: Final[Mapping[Phase, type[Open] | type[Succeeded] | type[Ended]]] = {
    Phase.OPEN: Open,
    Phase.SUCCEEDED: Succeeded,
    Phase.ENDED: Ended,
}


def attempt_in(phase: Phase, start: Start | None) -> Attempt:
    """Return the attempt in a phase; without a start there is none."""
    if start is None or phase is Phase.IDLE:
        return IDLE
    return _IN_PHASE[phase](start)


def start_of(attempt: Attempt) -> Start | None:
    """Return the attempt's start, None where there is no attempt."""
    return None if isinstance(attempt, Idle) else attempt.start
