"""Compactions' own calls (R11): the call that writes a summary, before its boundary.

Older versions of Claude Code write it as a side chain of its own, `acompact-…`. Nothing else tells
how long the compaction took and what it cost.
"""

from typing import Final

from contextgauge.normalise.signals import Boundary, OwnCall
from contextgauge.receipts import ReportedReceipt
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
    state = calls.pop(line.call, None) or CallState(line.call)
    if line.usage is None:
        state = state._replace(began_ms=own_ms)
    else:
        state = state._replace(
            ended_ms=later(state.ended_ms, own_ms),
            input=line.usage.used,
            read=line.usage.read,
            output=state.output if line.output is None else line.output,
        )
    chain.calls = (*calls.values(), state)[-KEPT:]


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
    return boundary._replace(receipt=cost)


def duration_ms(call: CallState | None, own_ms: int | None) -> int | None:
    """Return the time from a call's prompt to its boundary; a negative one is none."""
    if call is None or call.began_ms is None or own_ms is None or own_ms < call.began_ms:
        return None
    return own_ms - call.began_ms
