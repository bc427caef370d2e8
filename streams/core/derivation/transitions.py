"""The compaction attempt machine as a table (R14 to R18).

One main chain has at most one attempt. `TABLE` has every pair of phase and event, and nothing
else moves an attempt; `docs/attempts.md` is drawn from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, TypeAlias


class Phase(StrEnum):
    """Where an attempt stands."""

    IDLE = "idle"
    OPEN = "open"
    SUCCEEDED = "succeeded"
    ENDED = "ended"


class Event(StrEnum):
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

TABLE: Final[Mapping[Phase, Mapping[Event, Move]]] = {
    Phase.IDLE: {
        Event.COMPACTING: Move(Phase.OPEN, (Effect.START,)),
        Event.SUCCESS: Move(Phase.IDLE),
        Event.CLEARED: Move(Phase.IDLE),
        Event.FAILED: _FAIL,
        Event.BOUNDARY: _CLOSE,
        Event.RESULT: Move(Phase.IDLE),
        Event.RESET: Move(Phase.IDLE),
        Event.RESPONSE: Move(Phase.IDLE),
        Event.GAP: Move(Phase.IDLE),
    },
    Phase.OPEN: {
        Event.COMPACTING: Move(Phase.OPEN, (Effect.HEARTBEAT,)),
        Event.SUCCESS: Move(Phase.SUCCEEDED),
        Event.CLEARED: Move(Phase.ENDED),
        Event.FAILED: _FAIL,
        Event.BOUNDARY: _CLOSE,
        Event.RESULT: _LOSE,
        Event.RESET: _LOSE,
        Event.RESPONSE: _LOSE,
        Event.GAP: _LOSE,
    },
    Phase.SUCCEEDED: {
        Event.COMPACTING: _RESTART,
        Event.SUCCESS: Move(Phase.SUCCEEDED),
        Event.CLEARED: Move(Phase.SUCCEEDED),
        Event.FAILED: _FAIL,
        Event.BOUNDARY: _CLOSE,
        Event.RESULT: Move(Phase.SUCCEEDED),
        Event.RESET: _LOSE,
        Event.RESPONSE: Move(Phase.SUCCEEDED),
        Event.GAP: _LOSE,
    },
    Phase.ENDED: {
        Event.COMPACTING: _RESTART,
        Event.SUCCESS: Move(Phase.SUCCEEDED),
        Event.CLEARED: Move(Phase.ENDED),
        Event.FAILED: _FAIL,
        Event.BOUNDARY: _CLOSE,
        Event.RESULT: _LOSE,
        Event.RESET: _LOSE,
        Event.RESPONSE: _LOSE,
        Event.GAP: _LOSE,
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
    """The phase ended without a word on how."""

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
