"""Responses: sizes, warnings, edits, exhaustion and what they count (R6 to R10, R26)."""

from bisect import bisect_right
from operator import truediv
from typing import Final, NamedTuple

from contextgauge.normalise.signals import MicroCompaction, Response, ResponseEnd, Usage
from contextgauge.windows import base_name
from schemas.records import (
    MAIN_CHAIN,
    ContextEdit,
    ContextExhausted,
    ContextReading,
    ContextWarning,
    ExhaustedReason,
    Json,
    WindowSource,
)
from streams.core.derivation import limits, responses, two_ways
from streams.core.derivation.compact_boundaries import bound, complete
from streams.core.derivation.compaction_attempts import agent_went_on
from streams.core.derivation.state import Announced, Chain
from streams.core.derivation.step import Step
from streams.core.derivation.transitions import Attempt, AttemptEvent
from streams.core.derivation.two_ways import SecondReport
from streams.core.json_size import json_bytes

ANNOUNCED_WINDOWS: Final = 8
"""Windows of an epoch whose warnings are remembered; real sessions have one or two."""

_EXACT_IN_FLOATS: Final = 2**53
"""Integers below it are exact as floats."""

_EDITS_BYTES: Final = 64 * 1024
"""Of a record's edits; real responses have one or two of some 100 bytes."""


def respond(step: Step, response: Response) -> None:
    """Apply one line or frame of a response to its chain.

    One that comes while an item of the app server is compacted is the compacting call's (R11).
    """
    name = step.subject
    is_telemetry = step.normal.is_telemetry
    key = responses.key_hash(response.key, step.normal.cause, is_telemetry=is_telemetry)
    chain = step.edit(name)
    if is_telemetry and two_ways.is_reported(step, chain, response):
        return
    if name == MAIN_CHAIN and _is_of_item(step.attempt):
        counts = (
            responses.NOT_COUNTED
            if response.usage is None
            else responses.counts_hash(response.usage)
        )
        _remember(chain, key, (counts, None, responses.READ_MARK))
        return
    _apply(step, chain, key, response)


def _apply(step: Step, chain: Chain, key: bytes, response: Response) -> None:
    remembered = responses.find(chain.memory, key)
    counts, previous_output, marks = remembered or (responses.NOT_COUNTED, None, 0)
    usage = response.usage
    counted = counts if usage is None else responses.counts_hash(usage)
    two_ways.note_time(step, chain)
    report = SecondReport.NONE
    if remembered is None or counted != counts:
        ids = (response.key, response.request_id)
        report, marks = _second(step, chain, remembered, marks, usage, *ids)
    is_second = bool(marks & responses.SECOND_MARK)
    late = two_ways.is_late(step, chain)
    # First the model, whose window the reading has; then the boundary, which comes before the
    # reading of the same response and is measured by it (R29).
    model = None if response.model is None else base_name(response.model)[0]
    if model is not None and not late:
        limits.set_model(step, step.subject, model)
    if response.boundary is not None and not marks & responses.BOUNDARY_MARK:
        marks |= responses.BOUNDARY_MARK
        bound(step, response.boundary)
    if remembered is None:
        previous_output = _begin(step, chain, key, is_second=is_second, late=late)
    if not step.inherited and not late:  # a copy's output is the origin's (R30)
        _take_output(step, chain, key, response.output)
    if response.edits or response.exhausted:
        marks |= _once(step, marks, edits=response.edits, exhausted=response.exhausted)
    # Where all counts are zero it is a response, but not a reading (R10).
    if (
        usage is not None
        and usage.used > 0
        and (not marks & responses.READ_MARK or counted != counts)
    ):
        counts, marks = counted, marks | responses.READ_MARK
        output = response.output if response.is_whole else None
        size = _Reported(response.response_id, usage, previous_output, output, model, late)
        _read_or_repeat(step, chain, size, report, is_second=is_second)
    known = (counts, previous_output, marks)
    if known != remembered:  # most lines repeat their response: they change no state to be stored
        _remember(chain, key, known)


def end_response(step: Step, end: ResponseEnd) -> None:
    """Apply the end of the chain's latest response; without one there is nothing to end.

    It measures a response that reported no size before (R9).
    """
    chain = step.edit(step.subject)
    remembered = responses.find(chain.memory, chain.response) if chain.response else None
    if remembered is None:
        return
    late = two_ways.is_late(step, chain)
    if not late:
        _take_output(step, chain, chain.response, end.output)
    counts, previous_output, before = remembered
    marks = before | _once(step, before, edits=end.edits, exhausted=end.exhausted)
    if end.usage is not None and not marks & responses.READ_MARK:
        marks |= responses.READ_MARK
        counts = responses.counts_hash(end.usage)
        report, marks = _second(step, chain, remembered, marks, end.usage)
        late = two_ways.is_late(step, chain)
        size = _Reported(None, end.usage, previous_output, end.output, None, late)
        is_second = bool(marks & responses.SECOND_MARK)
        _read_or_repeat(step, chain, size, report, is_second=is_second)
    if marks != before:
        _remember(chain, chain.response, (counts, previous_output, marks))


class _Reported(NamedTuple):
    """What a response says of its chain's size; `late`: a newer one is known."""

    response_id: str | None
    usage: Usage
    previous_output: int | None
    output: int | None
    model: str | None
    late: bool


def _second(
    step: Step,
    chain: Chain,
    remembered: responses.Remembered | None,
    marks: int,
    usage: Usage | None,
    *ids: str | None,
) -> tuple[SecondReport, int]:
    """Return whether telemetry has reported a response, and the response's marks with that."""
    if marks & responses.SECOND_MARK:
        return SecondReport.EARLIER, marks
    report = two_ways.was_counted(step, chain, usage, *ids)
    if report is SecondReport.NONE:
        return report, marks
    if remembered is not None:  # its first line did not show it
        step.count_once(chain)
    return report, marks | responses.SECOND_MARK


def _read_or_repeat(
    step: Step, chain: Chain, size: _Reported, report: SecondReport, *, is_second: bool
) -> None:
    """Emit a reading; of a response that telemetry reported only the size that differs (R34).

    That is in no total. Such a response measures the boundary before it nevertheless.
    """
    is_newer = report is SecondReport.NEWEST and not size.late and size.usage.used != chain.used
    if is_newer:
        step.inherited = True
    if is_newer or not is_second:
        _read(step, size)
    elif two_ways.measures(step, chain, late=size.late):
        _measure(step, chain, size.usage)


def _is_of_item(attempt: Attempt) -> bool:
    return attempt.start is not None and attempt.start.is_item


def _remember(chain: Chain, key: bytes, response: responses.Remembered) -> None:
    chain.memory, chain.remembered = responses.remember(
        chain.memory, chain.remembered, key, response
    )


def micro_compact(step: Step, micro: MicroCompaction) -> None:
    """Emit the edit that a micro-compaction is."""
    _edit(step, () if micro.metadata is None else (micro.metadata,), micro.saved)


def exhaust(step: Step, name: str, reason: ExhaustedReason, tokens_over: int | None = None) -> None:
    """Emit that a turn ended for lack of room."""
    common = step.common(name, step.chains[name].model)
    step.emit(ContextExhausted(**common, reason=reason, tokens_over=tokens_over))


def _begin(step: Step, chain: Chain, key: bytes, *, is_second: bool, late: bool) -> int | None:
    """Count a response that was not seen before, and return the output of the one before it.

    A new response of the main chain moves the attempt; one that telemetry reported is not new, nor
    one that comes late, of which the one before is not known.
    """
    if step.subject == MAIN_CHAIN and not is_second and not late:
        agent_went_on(step, AttemptEvent.RESPONSE)
    before = None if late else chain.output
    if not step.normal.is_telemetry:  # whose frames do not follow
        chain.response = key
    chain.output = None
    if not is_second:
        step.count_message(chain)
    return before


def _take_output(step: Step, chain: Chain, key: bytes, output: int | None) -> None:
    # A line of an earlier response may come late: its output is not the latest.
    if output is not None and (chain.response == key or step.normal.is_telemetry):
        chain.output = output


def _once(step: Step, marks: int, *, edits: tuple[dict[str, Json], ...], exhausted: bool) -> int:
    """Emit what a response reports once, and return the marks that this adds."""
    added = 0
    if edits and not marks & responses.EDITS_MARK:
        added |= responses.EDITS_MARK
        cleared = [edit.get("cleared_input_tokens") for edit in edits]
        counts = [value for value in cleared if type(value) is int and value >= 0]
        _edit(step, edits, sum(counts) if counts else None)
    if exhausted and not marks & responses.EXHAUSTED_MARK:
        added |= responses.EXHAUSTED_MARK
        exhaust(step, step.subject, "model_context_window_exceeded")
    return added


def _edit(step: Step, edits: tuple[dict[str, Json], ...], cleared: int | None) -> None:
    name, count, left_bytes = step.subject, 0, _EDITS_BYTES
    for edit in edits:
        left_bytes -= json_bytes(edit)
        if left_bytes < 0:
            break
        count += 1
    step.emit(
        ContextEdit(
            **step.common(name, step.chains[name].model),
            edits=edits[:count],
            cleared_input_tokens=cleared,
            edits_left_out=len(edits) - count or None,
        )
    )


def _read(step: Step, size: _Reported) -> None:
    """Emit a reading, the completion that it measures and the warning that it causes."""
    name, usage, late = step.subject, size.usage, size.late
    chain = step.edit(name)
    used = usage.used
    if name == MAIN_CHAIN and step.facts.turn_window is not None:
        limits.apply_turn_window(step)
    if chain.reported_limits is None:
        step.limits_touched = True
        step.first_read = name
    model = size.model if late and size.model is not None else chain.model
    window, source = limits.disprove(step, model, used)
    percent = None if window is None else used_percent(used, window)
    step.emit(
        ContextReading(
            # Written out: most records are readings, and putting dictionaries together takes time.
            session_id=step.session_id,
            chain=name,
            model=model,
            task_id=step.normal.task_id,
            subagent_type=chain.subagent_type,
            inherited=step.inherited,
            response_id=size.response_id,
            used_tokens=used,
            input_tokens=usage.input,
            cache_creation_tokens=usage.creation,
            cache_read_tokens=usage.read,
            previous_output_tokens=size.previous_output,
            window=window,
            window_source=source,
            used_percent=percent,
            messages=chain.messages,
            messages_total=chain.total,
            cache_creation_1h_tokens=usage.creation_1h,
            output_tokens=size.output,
            late=late or None,
            service_tier=usage.tier,
        )
    )
    if two_ways.measures(step, chain, late=late):
        _measure(step, chain, usage)
    if late:
        return
    if window is not None and percent is not None and not step.inherited:
        chain.announced = _warn(step, chain, usage, window, source, percent)
    chain.used, chain.percent = used, percent


def _measure(step: Step, chain: Chain, usage: Usage) -> None:
    """End the wait for a measurement, a summary and a second form of a boundary (R22, R23, R29)."""
    complete(step, step.subject, chain, usage)
    chain.awaited = chain.unmeasured = chain.twin = None


def _warn(
    step: Step, chain: Chain, usage: Usage, window: int, source: WindowSource, percent: float
) -> Announced:
    """Emit a warning for thresholds newly crossed, and return all that are announced."""
    used, thresholds = usage.used, step.rules.thresholds
    reached = thresholds[: bisect_right(thresholds, used * 100 // window)]  # they ascend
    if not reached:
        return chain.announced
    announced: tuple[int, ...] = ()
    for warned in chain.announced:
        if warned[0] == window:
            announced = warned[1]
    crossed = tuple([threshold for threshold in reached if threshold not in announced])
    if not crossed and chain.announced[-1][0] == window:
        return chain.announced
    others = [warned for warned in chain.announced if warned[0] != window]
    if not crossed:
        return (*others, (window, announced))
    name = step.subject
    step.emit(
        ContextWarning(
            **step.common(name, chain.model),
            threshold_percent=crossed[-1],
            thresholds_crossed=crossed,
            context_used_percent=percent,
            context_remaining_percent=used_percent(window - used, window),
            used_tokens=used,
            input_tokens=usage.input,
            cache_tokens=(usage.creation or 0) + (usage.read or 0),
            context_window=window,
            window_source=source,
        ),
        (crossed[-1],),
    )
    return (*others, (window, (*announced, *crossed)))[-ANNOUNCED_WINDOWS:]


def used_percent(tokens: int, window: int) -> float:
    """Return tokens as a percentage of the window, floored to two decimals in integers."""
    hundredths = tokens * 10_000 // window
    if -_EXACT_IN_FLOATS < hundredths < _EXACT_IN_FLOATS:
        return hundredths / 100
    # Compiled, a division of larger numbers would round them first.
    exact: float = truediv(hundredths, 100)
    return exact
