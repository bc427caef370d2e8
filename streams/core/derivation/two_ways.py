"""One event by two ways (R34): what a session writes itself, and its telemetry of the same.

Own messages are written in order and leave nothing out; telemetry comes seconds later, or where
nothing else is published. So telemetry that is not newer than the chain's own responses and
boundaries reports nothing new, and neither does that of the latest of them, which its request, its
counts or its place show. What counted from telemetry is remembered, for own messages that are
published later: a response by its request or message, or by its counts within a minute or two, a
boundary by its time.
"""

from collections.abc import Iterator
from typing import Final

from contextgauge.normalise.signals import Response
from schemas.records import MAIN_CHAIN
from streams.core.derivation import known_causes as known
from streams.core.derivation import responses
from streams.core.derivation.state import Chain, TwoWays
from streams.core.derivation.step import Step
from streams.core.times import later

_MINUTE_MS: Final = 60_000
"""The same response has the same minute in both, or the next one where it ended between them."""

_BOUNDARY_MS: Final = 5 * 60_000
"""Between the two reports of a boundary: hooks and files that are read again come between. No
runtime compacts twice in that time without a response, which would be newer than the first."""

_KEPT: Final = 64
"""Boundaries of telemetry that are remembered; a session with more was never published itself."""


def is_reported(step: Step, chain: Chain, response: Response) -> bool:
    """Return whether a response of telemetry is one that the chain's own messages report.

    If not, it is remembered as counted.
    """
    ways = _ways(step, chain)
    counts = None if response.usage is None else responses.counts_hash(response.usage).hex()
    request = None if response.key is None else _hash(response.key)
    if request is not None and request == ways.own_request:
        is_latest = True
    else:
        is_latest = counts is not None and counts == ways.own_counts
    if is_latest:  # once: another call of the same size is another one
        chain.ways = ways._replace(own_counts=None, own_request=None)
        return True
    if _is_past(step, ways):
        chain.ways = ways
        return True
    for name in _names(step, response, around=0):
        step.known = known.add(step.known, name)
    chain.ways = ways._replace(counted_ms=later(ways.counted_ms, step.normal.time_ms))
    return False


def was_counted(step: Step, chain: Chain, response: Response) -> bool:
    """Return whether telemetry has reported an own response before, and note that it is there."""
    ways = chain.ways
    if ways is None or step.normal.is_telemetry:
        return False
    chain.ways = ways._replace(
        own_ms=later(ways.own_ms, step.normal.time_ms),
        own_counts=None if response.usage is None else responses.counts_hash(response.usage).hex(),
        own_request=None if response.request_id is None else _hash(response.request_id),
    )
    if ways.counted_ms is None:
        return False
    return any(known.is_known(step.known, name) for name in _names(step, response, around=1))


def is_latest(step: Step, chain: Chain) -> bool:
    """Return whether an own response that telemetry reported is about the latest that it did."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is None or ways.counted_ms is None or is_behind(step, chain):
        return False
    return time_ms is None or time_ms > ways.counted_ms - _MINUTE_MS


def is_behind(step: Step, chain: Chain) -> bool:
    """Return whether an own response is from before a boundary that only telemetry reported."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is None or time_ms is None or step.normal.is_telemetry:
        return False
    return any(moment > time_ms for _, moment in ways.boundaries)


def is_reported_boundary(step: Step, chain: Chain) -> bool:
    """Return whether a boundary of telemetry is one that the chain's own messages report."""
    ways = chain.ways = _ways(step, chain)
    if _is_past(step, ways):
        return True
    last = chain.unmeasured
    if last is None or any(last.boundary_id == boundary_id for boundary_id, _ in ways.boundaries):
        return False
    moments = (step.normal.time_ms, ways.own_ms)
    return None in moments or abs((moments[0] or 0) - (moments[1] or 0)) <= _BOUNDARY_MS


def counted_boundary(step: Step, chain: Chain) -> str | None:
    """Return the id of the boundary as which telemetry has reported an own one; None: not yet."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is None:
        return None
    chain.ways = ways = ways._replace(own_ms=later(ways.own_ms, time_ms))
    near = [
        (abs(time_ms - moment), boundary_id, moment)
        for boundary_id, moment in ways.boundaries
        if time_ms is not None and abs(time_ms - moment) <= _BOUNDARY_MS
    ]
    if not near:
        return None
    _, boundary_id, moment = min(near)
    left = tuple(each for each in ways.boundaries if each != (boundary_id, moment))
    chain.ways = ways._replace(boundaries=left)
    return boundary_id


def note_boundary(step: Step, chain: Chain, boundary_id: str) -> None:
    """Remember that a boundary of telemetry counted."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is not None and time_ms is not None:
        boundaries = (*ways.boundaries, (boundary_id, time_ms))[-_KEPT:]
        chain.ways = ways._replace(
            counted_ms=later(ways.counted_ms, time_ms), boundaries=boundaries
        )


def is_over(step: Step, chain: Chain) -> bool:
    """Return whether an own start is older than telemetry that counted: its end is known."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if step.normal.is_telemetry or ways is None or time_ms is None:
        return False
    return ways.counted_ms is not None and time_ms <= ways.counted_ms


def is_before_start(step: Step) -> bool:
    """Return whether telemetry comes late: the compaction under way began after it."""
    start, time_ms = step.attempt.start, step.normal.time_ms
    if start is None or time_ms is None or not step.normal.is_telemetry:
        return False
    began_ms = start.live_ms if start.own_ms is None else start.own_ms
    return began_ms is not None and time_ms <= began_ms


def is_second_failure(step: Step) -> bool:
    """Return whether a failed attempt was reported by the other way; if not, it is remembered."""
    time_ms = step.normal.time_ms
    if time_ms is None:
        return False
    own, other = "own", "telemetry"
    if step.normal.is_telemetry:
        own, other = other, own
        main = step.edit(MAIN_CHAIN)
        ways = _ways(step, main)
        main.ways = ways._replace(counted_ms=later(ways.counted_ms, time_ms))
    minute = time_ms // _MINUTE_MS
    near = (_text_hash(f"{other} failure {minute + by}") for by in (0, -1, 1))
    if any(known.is_known(step.known, name) for name in near):
        return True
    step.known = known.add(step.known, _text_hash(f"{own} failure {minute}"))
    return False


def _ways(step: Step, chain: Chain) -> TwoWays:
    """Return what is known; before the first telemetry, all of the chain's messages are its own."""
    if chain.ways is not None:
        return chain.ways
    latest = responses.find(chain.memory, chain.response) if chain.response else None
    if latest is None:
        return TwoWays()
    time_ms, gap_ms = step.normal.time_ms, step.gap_ms
    own_ms = None if time_ms is None or gap_ms is None else time_ms - gap_ms
    return TwoWays(own_ms, latest[0].hex() if latest[2] & responses.READ_MARK else None)


def _is_past(step: Step, ways: TwoWays) -> bool:
    time_ms = step.normal.time_ms
    return time_ms is not None and ways.own_ms is not None and time_ms <= ways.own_ms


def _names(step: Step, response: Response, *, around: int) -> Iterator[bytes]:
    """Yield the hashes by which a response of telemetry is known: by its ids, and by its counts.

    The latter with its minute, and so many before and after it.
    """
    for name in {response.key, response.request_id} - {None}:
        yield _text_hash(f"telemetry {step.subject} {name}")
    time_ms = step.normal.time_ms
    if response.usage is not None and time_ms is not None:
        counts = responses.counts_hash(response.usage).hex()
        for by in range(-around, around + 1):
            minute = time_ms // _MINUTE_MS + by
            yield _text_hash(f"telemetry {step.subject} {minute} {counts}")


def _text_hash(text: str) -> bytes:
    # A space: no message's own cause begins so.
    return known.cause_hash(f" {text}")


def _hash(name: str) -> str:
    return known.cause_hash(name).hex()
