"""One event by two ways (R34): what a session writes itself, and its telemetry of the same.

Own messages are written in order and leave nothing out; telemetry comes seconds later, or where
nothing else is published. So telemetry that is not newer than the chain's own responses and
boundaries reports nothing new, and neither does that of the latest of them, which its request, its
counts or its place show. What counted from telemetry is remembered, for own messages that are
published later: a response by its request or message, or by its counts within a minute or two, a
boundary by its time.
"""

from enum import Enum, auto
from typing import Final, NamedTuple

from contextgauge.normalise.signals import Response, Usage
from schemas.records import MAIN_CHAIN
from streams.core.derivation import known_causes as known
from streams.core.derivation import one_for_one, responses
from streams.core.derivation.state import Chain, TwoWays
from streams.core.derivation.step import Step
from streams.core.times import later

_MINUTE_MS: Final = 60_000
"""The same response has the same minute in both, or the next one where it ended between them."""

_SAME_MS: Final = 2 * _MINUTE_MS
"""By which telemetry of a response may be later, where its request does not tell which it is."""

_WRITTEN_MS: Final = 1_000
"""By which telemetry may be the earlier one: no response takes so short a time."""

_NEIGHBOURS: Final = (0, -1, 1)
"""Minutes of the same event in the other way."""

_BOUNDARY_MS: Final = 5 * 60_000
"""Between the two reports of a boundary: hooks and files that are read again come between. No
runtime compacts twice in that time without a response, which would be newer than the first."""

_KEPT: Final = 64
"""Boundaries of telemetry that are remembered; a session with more was never published itself."""


class SecondReport(Enum):
    """Whether telemetry has reported an own response before, and whether nothing newer than it."""

    NONE = auto()
    EARLIER = auto()
    NEWEST = auto()


def is_reported(step: Step, chain: Chain, response: Response) -> bool:
    """Return whether a response of telemetry is one that the chain's own messages report.

    If not, it is remembered as counted.
    """
    ways = _ways(step, chain)
    counts, call = _counts(response.usage), _call(response.key, response.request_id)
    time_ms = step.normal.time_ms
    # Before the first telemetry, the latest response is the chain's own, known by its key.
    is_first = response.key is not None and chain.response == responses.key_hash(response.key, "")
    if is_first or any(name in {ways.own_key, ways.own_request} for name in call.names):
        is_latest = True
    else:  # two requests are two calls, however equal they are
        has_both = call.request is not None and ways.own_request is not None
        is_equal = counts is not None and counts == ways.own_counts
        is_latest = is_equal and not has_both and _is_near(time_ms, ways.own_ms)
    if is_latest:  # once: another call of the same size is another one
        chain.ways = ways._replace(own_counts=None)
        return True
    if _is_past(step, ways):
        chain.ways = ways
        return True
    names = [_telemetry(step, name) for name in call.names]
    if not any(known.is_known(step.known, name) for name in names):
        _remember(step, counts, call)
        ways = ways._replace(ahead=ways.ahead + 1)
    for name in names:
        step.known = known.add(step.known, name)
    if counts is not None and time_ms is not None and not _is_older(step, ways):
        ways = ways._replace(read_ms=time_ms, read_counts=counts, read_key=call.key)
    chain.ways = ways._replace(counted_ms=later(ways.counted_ms, time_ms))
    return False


def note_time(step: Step, chain: Chain) -> None:
    """Note when an own response had its latest line."""
    if chain.ways is not None and not step.normal.is_telemetry:
        chain.ways = chain.ways._replace(own_ms=later(chain.ways.own_ms, step.normal.time_ms))


def was_counted(step: Step, chain: Chain, usage: Usage | None, *ids: str | None) -> SecondReport:
    """Return whether telemetry has counted an own response, and note that it is there.

    `ids` are its key and its request; without them, it is the end of the latest one.
    """
    ways = chain.ways
    if ways is None or step.normal.is_telemetry:
        return SecondReport.NONE
    counts = _counts(usage)
    call = _call(*ids) if ids else _Call(ways.own_key, ways.own_request)
    ways = ways._replace(own_counts=counts, own_key=call.key, own_request=call.request)
    if usage is not None:
        ways = ways._replace(own_used=usage.used)
    report = SecondReport.NONE
    if ways.counted_ms is not None and _answers(step, counts, call):
        is_newest = ways.read_key in call.names or (counts or "") == ways.read_counts
        report = SecondReport.NEWEST if is_newest else SecondReport.EARLIER
        ways = ways._replace(own_counts=None, ahead=max(0, ways.ahead - 1))
    if report is SecondReport.NEWEST or (report is SecondReport.NONE and not _is_older(step, ways)):
        # The own messages are the newest again.
        ways = ways._replace(read_ms=None, read_key=None, read_counts=None, ahead=0)
    chain.ways = ways
    return report


def is_late(step: Step, chain: Chain) -> bool:
    """Return whether a message is older than what the chain's size is known from.

    Own messages that are published after their telemetry are, and telemetry that was sent again.
    """
    return chain.ways is not None and (_is_older(step, chain.ways) or is_behind(step, chain))


def is_behind(step: Step, chain: Chain) -> bool:
    """Return whether a response is from before a boundary that only telemetry reported."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is None or time_ms is None:
        return False
    return any(moment > time_ms for _, moment in ways.boundaries)


def measures(step: Step, chain: Chain, *, late: bool) -> bool:
    """Return whether a response may be the first one after the chain's unmeasured boundary.

    Of a boundary that came late, only those that come late themselves are.
    """
    ways, boundary = chain.ways, chain.unmeasured
    if ways is None or boundary is None:
        return not late
    if boundary.boundary_id == ways.late_boundary:
        return not step.normal.is_telemetry and not is_behind(step, chain)
    return not late


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


def messages_after(step: Step, chain: Chain) -> int:
    """Return how many of the chain's messages came after a boundary of its own.

    Where it is late these are the responses that only telemetry has reported.
    """
    ways = chain.ways
    if ways is None or step.normal.is_telemetry or not is_late(step, chain):
        return 0
    return min(ways.ahead, chain.since_boundary)


def size_before(step: Step, chain: Chain) -> int | None:
    """Return the last size before a boundary: where it is late, that of the own response before."""
    if not is_late(step, chain):
        return chain.used
    return None if chain.ways is None or step.normal.is_telemetry else chain.ways.own_used


def note_boundary(step: Step, chain: Chain, boundary_id: str) -> None:
    """Remember which boundary came late, and that one of telemetry counted."""
    ways, time_ms = chain.ways, step.normal.time_ms
    if ways is None:
        return
    if is_late(step, chain):
        chain.ways = ways = ways._replace(late_boundary=boundary_id)
    if step.normal.is_telemetry and time_ms is not None:
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
    after = one_for_one.take(step.known, [f"{other} failure {minute + by}" for by in _NEIGHBOURS])
    step.known = after or one_for_one.put(step.known, f"{own} failure {minute}")
    return after is not None


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


class _Call(NamedTuple):
    """How a response names its call: hashes of its key and of its request, in hexadecimal."""

    key: str | None
    request: str | None

    @property
    def names(self) -> list[str]:
        """The names that it has, each once."""
        return [name for name in dict.fromkeys(self) if name is not None]


def _call(key: str | None, request: str | None) -> _Call:
    return _Call(
        *(None if name is None else known.cause_hash(name).hex() for name in (key, request))
    )


def _counts(usage: Usage | None) -> str | None:
    return None if usage is None else responses.counts_hash(usage).hex()


def _is_near(one_ms: int | None, other_ms: int | None) -> bool:
    """Return whether two times may be of one event, as far as both are known."""
    return one_ms is None or other_ms is None or -_WRITTEN_MS < one_ms - other_ms <= _SAME_MS


def _is_past(step: Step, ways: TwoWays) -> bool:
    time_ms = step.normal.time_ms
    return time_ms is not None and ways.own_ms is not None and time_ms <= ways.own_ms


def _is_older(step: Step, ways: TwoWays) -> bool:
    time_ms = step.normal.time_ms
    return time_ms is not None and ways.read_ms is not None and time_ms < ways.read_ms


def _remember(step: Step, counts: str | None, call: _Call) -> None:
    """Remember a response of telemetry by its counts and minute, for an own one to come."""
    time_ms = step.normal.time_ms
    if counts is not None and time_ms is not None:
        name = _name(step, time_ms // _MINUTE_MS, counts, has_request=call.request is not None)
        step.known = one_for_one.put(step.known, name)


def _answers(step: Step, counts: str | None, call: _Call) -> bool:
    """Return whether a response of telemetry is an own one, for which it is used up.

    Where both name a request, that decides; else it has the same counts at about the same time.
    """
    time_ms = step.normal.time_ms
    by_name = any(known.is_known(step.known, _telemetry(step, name)) for name in call.names)
    names: list[str] = []
    if counts is not None and time_ms is not None:
        minutes = [time_ms // _MINUTE_MS + by for by in _NEIGHBOURS]
        unnamed, named = (
            [_name(step, minute, counts, has_request=has_request) for minute in minutes]
            for has_request in (False, True)
        )
        if by_name:
            names = [*named, *unnamed]
        else:
            names = unnamed if call.request is not None else [*unnamed, *named]
    after = one_for_one.take(step.known, names)
    step.known = after or step.known
    return by_name or after is not None


def _telemetry(step: Step, name: str) -> bytes:
    # A space: no message's own cause begins so.
    return known.cause_hash(f" telemetry {step.subject} {name}")


def _name(step: Step, minute: int, counts: str, *, has_request: bool) -> str:
    return f"{'request' if has_request else 'response'} {step.subject} {minute} {counts}"
