"""Boundaries, resets and what follows them: summaries and completions (R19 to R23, R27)."""

from typing import Final

from contextgauge.frozen import copied
from contextgauge.normalise.signals import (
    Boundary,
    PinCheck,
    Reset,
    Timing,
    Twin,
    Usage,
    UserLine,
)
from contextgauge.reported_receipt import WrittenReceipt
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionSummary,
    CompactionTiming,
    ContextReset,
    DurationSource,
    PinsChecked,
    ReportedReceipt,
    TokenSource,
)
from streams.core.derivation import own_calls, two_ways
from streams.core.derivation.compaction_attempts import duration_ms, move
from streams.core.derivation.state import AwaitedSummary, Chain, Unmeasured
from streams.core.derivation.step import Step
from streams.core.derivation.transitions import AttemptEvent, Start

IDLE_MS: Final = 5 * 60 * 1000
"""What passes a threshold is a message, and its compaction begins within seconds. After so long a
silence, the time for which prompts stay cached, the runtime compacted a session that was idle."""

_TWINS: Final[dict[Twin | None, Twin]] = {"thread": "item", "item": "thread"}
"""The other form in which the app server reports the same compaction."""


def bound(step: Step, boundary: Boundary) -> None:
    """Apply a boundary of the message's chain: a new epoch, size unknown.

    The second form of one compaction is no boundary, but may tell its duration (R29).
    """
    name = step.subject
    if boundary.form is not None and step.chains[name].twin == boundary.form:
        step.edit(name).twin = None
        if boundary.duration_ms is not None:
            apply_timing(step, Timing(boundary.duration_ms))
        return
    if _is_second(step, step.edit(name), boundary):
        return
    start: Start | None = None
    if name == MAIN_CHAIN and not two_ways.is_before_start(step):
        start = move(step, AttemptEvent.BOUNDARY)
        step.hint = None
    if boundary.trigger is None and start is not None:
        boundary = boundary._replace(trigger=start.trigger)
    chain = step.edit(name)
    # The boundary before, if no reading has measured it, ends without a size after it (R22).
    complete(step, name, chain, None)
    call = own_calls.take(chain, step.normal.own_ms)
    boundary = own_calls.with_cost(boundary, call)
    pre_tokens, source = _pre_tokens(step, boundary, chain)
    after = two_ways.messages_after(step, chain)
    duration, duration_source = _duration(step, boundary, start)
    if duration is None:
        # Where nothing else gives the duration: from the prompt of the summary's call (R11).
        duration = own_calls.duration_ms(call, step.normal.own_ms)
        duration_source = None if duration is None else "derived"
    idle_ms = _idle_ms(step, boundary, duration, start)
    boundary_id = step.emit(
        CompactBoundary(
            **step.common(name, chain.model),
            attempt_id=None if start is None else start.attempt_id,
            trigger=boundary.trigger,
            pre_tokens=pre_tokens,
            pre_tokens_source=source,
            post_tokens=boundary.post_tokens,
            duration_ms=duration,
            duration_source=duration_source,
            number=chain.boundaries + 1,
            messages_since_last=chain.since_boundary - after,
            messages_total=chain.total - after,
            metadata=boundary.metadata,
            receipt=_of_record(boundary.receipt),
            idle_ms=idle_ms,
            **_written(boundary.receipt),
        )
    )
    awaited = AwaitedSummary(boundary_id, boundary.anchor)
    if boundary.summary is not None:
        _summarise(step, boundary_id, boundary.summary)
    chain = step.edit(name)
    chain.used = chain.percent = None
    chain.messages = chain.since_boundary = after
    chain.announced = ()
    chain.boundaries += 1
    chain.awaited = awaited if boundary.summary is None else None
    chain.unmeasured = Unmeasured(
        boundary_id, boundary.trigger, pre_tokens, duration, step.inherited is True
    )
    if boundary.during_call:  # the next answer reports the size before it: nothing measures it
        complete(step, name, chain, None)
        chain.unmeasured = None
    chain.twin = _TWINS.get(boundary.form)
    chain.untimed = boundary_id if duration is None else None
    chain.boundary_id = boundary_id
    two_ways.note_boundary(step, chain, boundary_id)


def _is_second(step: Step, chain: Chain, boundary: Boundary) -> bool:
    """Return whether a boundary was reported by the other way, and take what it adds (R34)."""
    if step.normal.is_telemetry:
        if not two_ways.is_reported_boundary(step, chain):
            return False
        if boundary.duration_ms is not None and chain.unmeasured is not None:
            apply_timing(step, Timing(boundary.duration_ms))
        return True
    first = two_ways.counted_boundary(step, chain)
    if first is None:
        return False
    if boundary.summary is None:
        chain.awaited = AwaitedSummary(first, boundary.anchor)
    else:
        _summarise(step, first, boundary.summary)
    return True


def check_pins(step: Step, check: PinCheck) -> None:
    """Report which rules are still there after the chain's latest boundary (R31)."""
    name = step.subject
    chain = step.chains[name]
    if check.boundary_id != chain.boundary_id:
        return
    step.emit(
        PinsChecked(
            **step.common(name, chain.model),
            boundary_id=check.boundary_id,
            number=chain.boundaries,
            pins_kept=check.kept,
            pins_lost=check.lost,
            lost_pins=check.texts,
        )
    )


def apply_timing(step: Step, timing: Timing) -> None:
    """Give the chain's latest boundary this duration, if it has none (R29)."""
    name = step.subject
    boundary_id = step.chains[name].untimed
    if boundary_id is None:
        return
    chain = step.edit(name)
    chain.untimed = None
    if chain.unmeasured is not None and chain.unmeasured.boundary_id == boundary_id:
        chain.unmeasured = chain.unmeasured._replace(duration_ms=timing.duration_ms)
    step.emit(
        CompactionTiming(
            **step.common(name, chain.model),
            boundary_id=boundary_id,
            duration_ms=timing.duration_ms,
            duration_source="reported",
        ),
        (boundary_id,),
    )


def reset(step: Step, signal: Reset) -> None:
    """Apply a reset of the message's chain; the second form of one clear is nothing (R27)."""
    name = step.subject
    step.last_reset = name
    if step.was_reset == name:
        return
    if name == MAIN_CHAIN:
        move(step, AttemptEvent.RESET)
        step.hint = None
    chain = step.chains[name]
    step.emit(ContextReset(**step.common(name, chain.model), reason=signal.reason))
    complete(step, name, chain, None)
    chain = step.edit(name)
    chain.used = chain.percent = chain.unmeasured = None
    if not signal.keeps_messages:
        chain.messages = 0
    chain.announced = ()


def user_line(step: Step, line: UserLine) -> None:
    """Take a user line as the awaited summary, or count it (R23)."""
    chain = step.edit(step.subject)
    awaited = chain.awaited
    if line.mark is not None and awaited is not None:
        fits = line.mark == "compact_summary" or awaited.anchor in (None, line.uuid)
        if fits and line.text is not None:
            _summarise(step, awaited.boundary_id, line.text)
            chain.awaited = None
    elif line.counted:
        step.count_message(chain)


def complete(step: Step, name: str, chain: Chain, usage: Usage | None) -> None:
    """Emit the completion of the chain's unmeasured boundary, if there is one.

    `usage` is that of the reading which measures it; None: nothing will.
    """
    pending = chain.unmeasured
    if pending is None:
        return
    tokens_after = None if usage is None else usage.used
    saved: int | None = None
    if pending.tokens_before is not None and tokens_after is not None:
        saved = pending.tokens_before - tokens_after
    common = step.common(name, chain.model)
    common["inherited"] = pending.inherited or None
    step.emit(
        CompactionComplete(
            **common,
            boundary_id=pending.boundary_id,
            trigger=pending.trigger,
            tokens_before=pending.tokens_before,
            duration_ms=pending.duration_ms,
            tokens_after=tokens_after,
            tokens_saved=saved,
            cache_rewrite_tokens=None if usage is None else usage.creation,
        ),
        (pending.boundary_id,),
    )


def _pre_tokens(
    step: Step, boundary: Boundary, chain: Chain
) -> tuple[int | None, TokenSource | None]:
    if boundary.pre_tokens is not None:
        return boundary.pre_tokens, "reported"
    used = two_ways.size_before(step, chain)
    return used, None if used is None else "last_reading"


def _of_record(receipt: ReportedReceipt | None) -> ReportedReceipt | None:
    """Return a receipt as records have it."""
    return copied(ReportedReceipt, receipt) if isinstance(receipt, WrittenReceipt) else receipt


def _written(receipt: ReportedReceipt | None) -> dict[str, int | None]:
    """Return what a summary's calls wrote to the cache, as fields of the boundary's record."""
    if not isinstance(receipt, WrittenReceipt):
        return {}
    return {
        "summary_cache_creation_tokens": receipt.summary_cache_creation_tokens,
        "summary_cache_creation_1h_tokens": receipt.summary_cache_creation_1h_tokens,
    }


def _idle_ms(
    step: Step, boundary: Boundary, duration: int | None, start: Start | None
) -> int | None:
    """Return for how long the chain was silent before an automatic compaction (R33).

    None where that is not long, or not known; an attempt whose start was reported is not judged, as
    the messages of its turn may have no times. The compaction's own time is no silence.
    """
    if boundary.trigger not in ("auto", "idle") or start is not None or step.gap_ms is None:
        return None
    silence = step.gap_ms - (duration or 0)
    return silence if silence > IDLE_MS else None


def _duration(
    step: Step, boundary: Boundary, start: Start | None
) -> tuple[int | None, DurationSource | None]:
    if boundary.duration_ms is not None:
        return boundary.duration_ms, "precomputed" if boundary.precomputed else "reported"
    paired = None if start is None else duration_ms(start, step.normal)
    return paired, None if paired is None else "paired"


def _summarise(step: Step, boundary_id: str, summary: str) -> None:
    common = step.common(step.subject, step.chains[step.subject].model)
    step.emit(CompactionSummary(**common, boundary_id=boundary_id, summary=summary))
