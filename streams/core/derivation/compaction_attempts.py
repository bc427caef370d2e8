"""Applying the attempt machine: effects become records (R14 to R18, R24)."""

from typing import Final, assert_never

from contextgauge.normalise.signals import CompactionRefused, Normal
from schemas.records import (
    MAIN_CHAIN,
    CompactionFailed,
    CompactionProgress,
    CompactionStart,
    Outcome,
    TriggerReason,
)
from streams.core.derivation.step import Step
from streams.core.derivation.transitions import (
    TABLE,
    AttemptEvent,
    Effect,
    Start,
    attempt_in,
)

GAP_MS: Final = 6 * 60 * 60 * 1000
"""A silence that no compaction outlasts: an attempt open before it is lost (R18)."""


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
                _heartbeat(step, start)
            case Effect.FAILED:
                blocked = refused is not None and refused.blocked
                error = None if refused is None else refused.error
                _fail(step, start, "blocked" if blocked else "failed", error)
            case Effect.UNKNOWN:
                _fail(step, start, "unknown", None)
            case _:
                assert_never(effect)
    step.attempt = attempt_in(transition.to, start)
    return before


def duration_ms(start: Start, normal: Normal) -> int | None:
    """Return the time from a start to this message by R20; None where it cannot be computed."""
    if start.own_ms is not None and normal.own_ms is not None:
        passed = normal.own_ms - start.own_ms
    elif start.live_ms is not None and normal.live_ms is not None:
        passed = normal.live_ms - start.live_ms
    else:
        return None
    return passed if passed >= 0 else None


def _start(step: Step) -> Start:
    main = step.main
    attempt_id = step.record_id(MAIN_CHAIN, "compaction_start")
    reason: TriggerReason | None = None
    if step.hint is not None:
        reason = "manual" if step.hint == "manual" else "threshold_exceeded"
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
    return Start(attempt_id, step.normal.own_ms, step.normal.live_ms)


def _heartbeat(step: Step, start: Start | None) -> None:
    if start is None:
        raise AssertionError("the table gives heartbeats to open attempts only")
    step.emit(
        CompactionProgress(
            **step.common(MAIN_CHAIN, step.main.model),
            attempt_id=start.attempt_id,
            elapsed_ms=duration_ms(start, step.normal),
        )
    )


def _fail(step: Step, start: Start | None, outcome: Outcome, error: str | None) -> None:
    attempt_id = None if start is None else start.attempt_id
    step.emit(
        CompactionFailed(
            **step.common(MAIN_CHAIN, step.main.model),
            attempt_id=attempt_id,
            outcome=outcome,
            error=error,
            duration_ms=None if start is None else duration_ms(start, step.normal),
        ),
        attempt_id,
    )
