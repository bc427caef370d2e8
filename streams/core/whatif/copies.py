"""Chains without what they copied of others, where nothing reports that they are forks.

As in the views of SQL (`repeated_readings`, `copied_history`): a response that several sessions
have is of the one that began first; where they began alike, of the one with the oldest response of
its own, or with none. A chain begins after the copies at its beginning. One that has no response of
its own is left out, also if it was compacted.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from streams.core.whatif.turns import ChainLog, ChainTurn, RecordedCompaction

_Response: TypeAlias = tuple[str | None, int | None, int, str | None]

_Owners: TypeAlias = Mapping[_Response, Sequence[int]]
"""The chains, by their places in the list, that have a response which another one has too."""


def without_copies(logs: Sequence[ChainLog]) -> list[ChainLog]:
    """Return the chains with what is their own, in the same order."""
    shared = _shared(logs)
    if not shared:
        return list(logs)
    ranks = _ranks(logs, shared)
    origins = {
        response: min(owners, key=lambda place: (ranks[logs[place].session_id], place))
        for response, owners in shared.items()
    }
    relatives: defaultdict[int, set[int]] = defaultdict(set)
    for owners in shared.values():
        for place in owners:
            relatives[place].update(each for each in owners if each != place)
    own = (
        _own(log, place, origins, [logs[each] for each in relatives[place]])
        for place, log in enumerate(logs)
    )
    return [each for each in own if each.turns]


def _response(turn: ChainTurn) -> _Response:
    return turn.response_id, turn.time_ms, turn.used, turn.model


def _shared(logs: Sequence[ChainLog]) -> _Owners:
    """Return the responses that several chains have, with these."""
    first: dict[str, int] = {}
    ids: set[str] = set()
    for place, log in enumerate(logs):
        for own_id in (turn.response_id for turn in log.turns if turn.response_id is not None):
            if first.setdefault(own_id, place) != place:
                ids.add(own_id)
    owners: defaultdict[_Response, list[int]] = defaultdict(list)
    for place, log in enumerate(logs if ids else ()):
        for response in {_response(turn) for turn in log.turns if turn.response_id in ids}:
            owners[response].append(place)
    return {response: places for response, places in owners.items() if len(places) > 1}


def _ranks(logs: Iterable[ChainLog], shared: _Owners) -> dict[str, tuple[float, float, str]]:
    """Return what orders sessions: the origin of what some have is the least of them."""
    began: defaultdict[str, float] = defaultdict(lambda: float("inf"))
    own_began: defaultdict[str, float] = defaultdict(lambda: float("inf"))
    for log in logs:
        for turn in log.turns:
            if turn.time_ms is not None:
                began[log.session_id] = min(began[log.session_id], turn.time_ms)
                if _response(turn) not in shared:
                    own_began[log.session_id] = min(own_began[log.session_id], turn.time_ms)
    return {
        log.session_id: (began[log.session_id], own_began.get(log.session_id, -1), log.session_id)
        for log in logs
    }


def _own(
    log: ChainLog, place: int, origins: Mapping[_Response, int], relatives: Iterable[ChainLog]
) -> ChainLog:
    """Return a chain from its first response on that is its own."""
    begin = 0
    for turn in log.turns:
        if origins.get(_response(turn), place) == place:
            break
        begin += 1
    if not begin:
        return log
    boundaries = {_boundary(each) for other in relatives for each in other.compactions}
    first = log.between[begin]
    compactions = tuple(
        each
        for each in first.compactions
        if each.time_ms is None or _boundary(each) not in boundaries
    )
    between = (first._replace(compactions=compactions), *log.between[begin + 1 :])
    return replace(log, turns=log.turns[begin:], between=between)


def _boundary(compaction: RecordedCompaction) -> tuple[int | None, int | None]:
    return compaction.time_ms, compaction.pre_tokens
