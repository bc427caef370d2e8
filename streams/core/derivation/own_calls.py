"""Compactions' own calls (R11): the call that writes a summary, before its boundary.

Older versions of Claude Code write it as a side chain of its own, `acompact-…`. Nothing else tells
how long the compaction took and what it cost.
"""

from typing import Final

from contextgauge.frozen import copied
from contextgauge.normalise.signals import Boundary, OwnCall
from contextgauge.reported_receipt import WrittenReceipt
from schemas.records import ReportedReceipt
from streams.core.derivation.state import CallState, Chain
from streams.core.times import later

KEPT: Final = 16
"""Calls without a boundary: those of compactions that failed, and of files that are read first."""

SETTLED_MS: Final = 60_000
"""A boundary is written with the summary, within half a second of the answer's end. A call that
ended so long before was another compaction's, which failed."""


def note(chain: Chain, line: OwnCall, own_ms: int | None) -> None:
    """Note a line of a call: the last prompt began it, the last answer ended it."""
    calls = {each.call: each for each in chain.calls}
    # It moves to the end: of too many, the call that was silent longest leaves.
    state = calls.pop(line.call, None) or CallState(line.call)
    if line.usage is None:
        state = state._replace(began_ms=own_ms)
    else:
        state = _answered(state, line)._replace(
            ended_ms=later(state.ended_ms, own_ms),
            input=line.usage.used,
            read=line.usage.read,
            creation=line.usage.creation,
            creation_1h=line.usage.creation_1h,
        )
    chain.calls = (*calls.values(), state)[-KEPT:]


def _answered(state: CallState, line: OwnCall) -> CallState:
    """Return a call with the output of its answer, where this line has the final count.

    The lines of an answer that is being streamed repeat the count with which it began. It is final
    with the reason why the answer stopped, which older versions do not write, or once it grew.
    """
    if line.answer is None or line.answer != state.answer:
        state = state._replace(answer=line.answer, begun=line.output, output=None)
    if line.output is None:
        return state
    has_grown = state.begun is not None and line.output > state.begun
    return state._replace(output=line.output) if line.is_final or has_grown else state


def take(chain: Chain, own_ms: int | None) -> CallState | None:
    """Return the call that a boundary ends, if it has one; earlier ones belong to none."""
    if not chain.calls or own_ms is None:
        return None
    ended = [each for each in chain.calls if each.ended_ms is not None and each.ended_ms <= own_ms]
    chain.calls = tuple(each for each in chain.calls if each not in ended)
    last = max(ended, key=lambda each: each.ended_ms or 0, default=None)
    return last if last and own_ms - (last.ended_ms or 0) <= SETTLED_MS else None


def with_cost(boundary: Boundary, call: CallState | None) -> Boundary:
    """Return a boundary with what its own call cost, where it does not say itself."""
    if call is None or boundary.receipt is not None:
        return boundary
    cost = ReportedReceipt(
        summary_input_tokens=call.input,
        summary_cache_read_tokens=call.read,
        summary_output_tokens=call.output,
    )
    if call.creation is not None:
        cost = copied(
            WrittenReceipt,
            cost,
            summary_cache_creation_tokens=call.creation,
            summary_cache_creation_1h_tokens=call.creation_1h,
        )
    return boundary._replace(receipt=cost)


def duration_ms(call: CallState | None, own_ms: int | None) -> int | None:
    """Return the time from a call's prompt to its boundary.

    None where the prompt has the answer's time or a later one: they were written at once.
    """
    if call is None or call.began_ms is None or call.ended_ms is None or own_ms is None:
        return None
    return own_ms - call.began_ms if call.began_ms < call.ended_ms else None
