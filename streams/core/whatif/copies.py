"""Chains without what they copied of other sessions, where nothing reports that they are forks.

As in the views of SQL (`repeated_readings`, `copied_history`): a response that several sessions
have is of the one that began first; where they began alike, of the one with the oldest response of
its own, or with none. A chain begins after the copies at its beginning.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from streams.core.whatif.turns import ChainLog, ChainTurn

_Response: TypeAlias = tuple[str | None, int | None, int, str | None]


def without_copies(logs: Sequence[ChainLog]) -> list[ChainLog]:
    """Return the chains with what is their own, in the same order; what has nothing is left out."""
    shared = _shared(logs)
    if not shared:
        return list(logs)
    ranks = _ranks(logs, shared)
    origins = {response: min(own, key=ranks.__getitem__) for response, own in shared.items()}
    boundaries: defaultdict[tuple[str, int | None, int | None], set[str]] = defaultdict(set)
    for log in logs:
        for each in log.compactions:
            boundaries[log.chain, each.time_ms, each.pre_tokens].add(log.session_id)
    return [each for each in (_own(log, origins, boundaries) for log in logs) if each.turns]


def _response(turn: ChainTurn) -> _Response:
    return turn.response_id, turn.time_ms, turn.used, turn.model


def _shared(logs: Iterable[ChainLog]) -> dict[_Response, set[str]]:
    """Return the responses that several sessions have, with these."""
    first: dict[str, str] = {}
    ids: set[str] = set()
    for log in logs:
        for own_id in (turn.response_id for turn in log.turns if turn.response_id is not None):
            if first.setdefault(own_id, log.session_id) != log.session_id:
                ids.add(own_id)
    sessions: defaultdict[_Response, set[str]] = defaultdict(set)
    for log in logs if ids else ():
        for turn in log.turns:
            if turn.response_id in ids:
                sessions[_response(turn)].add(log.session_id)
    return {response: own for response, own in sessions.items() if len(own) > 1}


def _ranks(
    logs: Iterable[ChainLog], shared: dict[_Response, set[str]]
) -> dict[str, tuple[float, float, str]]:
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
    log: ChainLog,
    origins: dict[_Response, str],
    boundaries: dict[tuple[str, int | None, int | None], set[str]],
) -> ChainLog:
    """Return a chain from its first response on that is its own."""
    begin = 0
    for turn in log.turns:
        if origins.get(_response(turn), log.session_id) == log.session_id:
            break
        begin += 1
    if not begin:
        return log
    first = log.between[begin]
    compactions = tuple(
        each
        for each in first.compactions
        if each.time_ms is None or len(boundaries[log.chain, each.time_ms, each.pre_tokens]) == 1
    )
    between = (first._replace(compactions=compactions), *log.between[begin + 1 :])
    return replace(log, turns=log.turns[begin:], between=between)
