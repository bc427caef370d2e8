"""Applying the attempt machine: effects become records (R14 to R18, R24)."""

from typing import Final, assert_never

from contextgauge.normalise.signals import CompactionRefused, CompactionStatus, Normal
from schemas.records import (
    MAIN_CHAIN,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    Outcome,
    TriggerReason,
)
from streams.core.derivation import two_ways
from streams.core.derivation.step import Step
from streams.core.derivation.transitions import (
    TABLE,
    AttemptEvent,
    Effect,
    Start,
    attempt_in,
)
from streams.core.times import later

GAP_MS: Final = 6 * 60 * 60 * 1000
"""A silence that no compaction outlasts: an attempt open before it is lost (R18)."""

HEARTBEAT_MS: Final = 5 * 60 * 1000
"""Runtimes send a heartbeat every 30 s: one that comes later than this is another attempt (R15)."""


def compacting(step: Step, status: CompactionStatus) -> None:
    """Apply `status: compacting`: a start, a heartbeat, or another attempt after a lost one."""
    if two_ways.is_over(step, step.main):
        return
    start = step.attempt.start
    silence = None if start is None else _silence_ms(start, step.normal)
    is_late = silence is not None and silence > HEARTBEAT_MS
    move(step, AttemptEvent.LATE if is_late else AttemptEvent.COMPACTING)
    phase, start = step.attempt
    if start is None:
        raise AssertionError("the table opens an attempt in every phase")
    start = start._replace(is_item=status.is_item, is_background=status.is_background)
    step.attempt = attempt_in(phase, start)


def agent_went_on(step: Step, event: AttemptEvent) -> None:
    """Apply a response or a result: it ends what the agent would have waited for."""
    start = step.attempt.start
    is_waiting = start is None or not start.is_background
    if is_waiting and not two_ways.is_before_start(step):
        move(step, event)


def refused(step: Step, refusal: CompactionRefused) -> None:
    """Apply a failure; one that the other way has reported is nothing (R34)."""
    if two_ways.is_second_failure(step):
        return
    if two_ways.is_before_start(step):  # of an attempt before the one under way
        _fail(step, None, "blocked" if refusal.blocked else "failed", refusal.error)
    else:
        move(step, AttemptEvent.FAILED, refusal)


def move(step: Step, event: AttemptEvent, refused: CompactionRefused | None = None) -> Start | None:
    """Move the attempt and emit what the table demands; return the start of the attempt before."""
    phase, before = step.attempt
    transition = TABLE[phase][event]
    start = before
    if transition.to is phase and not transition.effects:
        return before
    for effect in transition.effects:
        match effect:
            case Effect.START:
                start = _start(step)
            case Effect.HEARTBEAT:
                start = _heartbeat(step, start)
            case Effect.FAILED:
                blocked = refused is not None and refused.blocked
                error = None if refused is None else refused.error
                _fail(step, start, "blocked" if blocked else "failed", error)
            case Effect.UNKNOWN:
                _fail(step, start, "unknown", None)
            case Effect.LOST:
                # The silence before the other attempt is not this one's duration (R15).
                _fail(step, start, "unknown", None, has_duration=False)
            case _:
                assert_never(effect)
    step.attempt = attempt_in(transition.to, start)
    return before


def duration_ms(start: Start, normal: Normal) -> int | None:
    """Return the time from a start to this message by R20; None where it cannot be computed.

    Nothing takes no time: two equal times are those of writing, or too coarse.
    """
    passed = _passed_ms(start.own_ms, start.live_ms, normal)
    return passed if passed is None or passed > 0 else None


def _silence_ms(start: Start, normal: Normal) -> int | None:
    """Return the time since an attempt's last start or heartbeat; None where there is no pair."""
    return _passed_ms(start.last_own_ms, start.last_live_ms, normal)


def _passed_ms(own_ms: int | None, live_ms: int | None, normal: Normal) -> int | None:
    """Return the time up to this message: by both own timestamps, else by both live times."""
    if own_ms is not None and normal.own_ms is not None:
        return normal.own_ms - own_ms
    if live_ms is not None and normal.live_ms is not None:
        return normal.live_ms - live_ms
    return None


def _start(step: Step) -> Start:
    main = step.main
    if main.twin is not None:
        # What follows belongs to the new attempt: it is no second form of the last boundary (R29).
        step.edit(MAIN_CHAIN).twin = None
    attempt_id = step.record_id(MAIN_CHAIN, "compaction_start")
    reason: TriggerReason | None = None
    trigger = step.hint
    if trigger is not None:
        reason = "manual" if trigger == "manual" else "threshold_exceeded"
        # Used up: a hint is for the next start only (R24).
        step.hint = None
    step.emit(
        CompactionStart(
            **step.common(MAIN_CHAIN, main.model),
            attempt_id=attempt_id,
            trigger_reason=reason,
            context_used_percent=main.percent,
            used_tokens=main.used,
        )
    )
    own_ms, live_ms = step.normal.own_ms, step.normal.live_ms
    # The start is the first sign of life, as heartbeats are later.
    return Start(attempt_id, own_ms, live_ms, own_ms, live_ms, trigger=trigger)


def _heartbeat(step: Step, start: Start | None) -> Start:
    if start is None:
        raise AssertionError("the table gives heartbeats to open attempts only")
    step.emit(
        CompactionProgress(
            **step.common(MAIN_CHAIN, step.main.model),
            attempt_id=start.attempt_id,
            elapsed_ms=duration_ms(start, step.normal),
        )
    )
    return start._replace(
        last_own_ms=later(start.last_own_ms, step.normal.own_ms),
        last_live_ms=later(start.last_live_ms, step.normal.live_ms),
    )


def _fail(
    step: Step,
    start: Start | None,
    outcome: Outcome,
    error: str | None,
    *,
    has_duration: bool = True,
) -> None:
    attempt_id = None if start is None else start.attempt_id
    step.emit(
        CompactionFailed(
            **step.common(MAIN_CHAIN, step.main.model),
            attempt_id=attempt_id,
            outcome=outcome,
            error=error,
            duration_ms=duration_ms(start, step.normal) if start and has_duration else None,
        ),
        # One message can fail two attempts: their ids keep the records' ids apart.
        (attempt_id,),
    )
