"""An agent's events in the shape of an agent chat's front end, which polls them each second.

A start ends in a `compaction_complete`: at the boundary, whose event gets its sizes once the next
reading measures them, or where the attempt failed. `outcome` is of both, `attemptId` is the id of
the start. Percentages are whole numbers, null for a start before the first reading; what has no
time is left out. Only the main chain has events: a chat shows one conversation, and a
subagent's sizes are others.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextWarning,
    event_type,
)
from streams import codec
from streams.core.session_status import whole_percents

EncodedEvent: TypeAlias = tuple[int, bytes]
"""The time of an event in ms, and the event as JSON: `id`, `type`, `timestamp` (ms), `taskId`, and
`data` by type, in camel case."""

MOST_EVENTS: Final = 2_000
"""Events in an answer, the newest: as many as the views hold of one session."""

MOST_SESSIONS: Final = 50
"""Sessions of an agent in an answer, the last active."""

_WARNING: Final = event_type(ContextWarning.kind)
_START: Final = event_type(CompactionStart.kind)
_BOUNDARY: Final = event_type(CompactBoundary.kind)
_FAILED: Final = event_type(CompactionFailed.kind)
_COMPLETE: Final = event_type(CompactionComplete.kind)
_SUMMARY: Final = event_type(CompactionSummary.kind)

_KINDS: Final = {
    _WARNING: ContextWarning.kind,
    _START: CompactionStart.kind,
    _BOUNDARY: CompactionComplete.kind,
    _FAILED: CompactionComplete.kind,
}
"""The record types that are events, with the front end's names."""

_REASONS: Final = {"manual": "manual", "auto": "threshold_exceeded"}

_Record: TypeAlias = dict[str, Any]


class _Related(NamedTuple):
    """Records of a session by what they belong to: an attempt's or a boundary's id."""

    starts: dict[str | None, _Record]
    ends: dict[str | None, _Record]
    summaries: dict[str, _Record]
    completions: dict[str, _Record]


def of_session(records: Iterable[bytes]) -> list[EncodedEvent]:
    """Return the events of a session, from its records as they are stored, oldest first."""
    own = [record for record in map(codec.loads, records) if record["subject"] == MAIN_CHAIN]
    related = _Related(
        starts={each["data"]["attempt_id"]: each for each in own if each["type"] == _START},
        ends={
            each["data"]["attempt_id"]: each for each in own if each["type"] in {_BOUNDARY, _FAILED}
        },
        summaries={each["data"]["boundary_id"]: each for each in own if each["type"] == _SUMMARY},
        completions={
            each["data"]["boundary_id"]: each for each in own if each["type"] == _COMPLETE
        },
    )
    events = []
    for record in own:
        data = _data(record, related)
        # A boundary without a time is as old as what measured it.
        timed = record if "time" in record else related.completions.get(record["id"], record)
        if data is not None and "time" in timed:
            event = {
                "id": record["id"],
                "type": _KINDS[record["type"]],
                "timestamp": codec.parse_rfc3339(timed["time"]),
                "taskId": record["data"]["task_id"],
                "data": data,
            }
            events.append((event["timestamp"], codec.dumps(event)))
    return events


def merged(sessions: Iterable[Sequence[EncodedEvent]]) -> bytes:
    """Return the events of several sessions in the order of time, as JSON."""
    # Sorting is stable: a session's events of one time stay in order.
    events = sorted(chain.from_iterable(sessions), key=itemgetter(0))
    return b"[" + b",".join([document for _, document in events[-MOST_EVENTS:]]) + b"]"


def _data(record: _Record, related: _Related) -> _Record | None:
    """Return an event's data; None for a record that is no event, or lacks a required field."""
    source, type_name = record["data"], record["type"]
    if type_name == _WARNING:
        used, remaining = whole_percents(source["context_used_percent"])
        return {
            "contextUsedPercent": used,
            "contextRemainingPercent": remaining,
            "inputTokens": source["input_tokens"] or 0,
            "cacheTokens": source["cache_tokens"],
            "contextWindow": source["context_window"],
        }
    if type_name == _START:
        used = source["context_used_percent"]
        end = related.ends.get(source["attempt_id"])
        trigger = "" if end is None else end["data"].get("trigger") or ""
        return {
            "triggerReason": _REASONS.get(trigger)
            or source["trigger_reason"]
            or "threshold_exceeded",
            "contextUsedPercent": None if used is None else whole_percents(used)[0],
            "outcome": None if end is None else _outcome(end),
        }
    if type_name == _BOUNDARY:
        completion = related.completions.get(record["id"], _NOTHING)["data"]
        return {
            "summary": related.summaries.get(record["id"], _NOTHING)["data"].get("summary", ""),
            "tokensBefore": source["pre_tokens"],
            "tokensAfter": completion.get("tokens_after"),
            "tokensSaved": completion.get("tokens_saved"),
            "outcome": _outcome(record),
            "error": None,
            "attemptId": source["attempt_id"],
        }
    if type_name == _FAILED:
        start = related.starts.get(source["attempt_id"], _NOTHING)["data"]
        return {
            "summary": "",
            "tokensBefore": start.get("used_tokens"),
            "tokensAfter": None,
            "tokensSaved": None,
            "outcome": _outcome(record),
            "error": source["error"],
            "attemptId": source["attempt_id"],
        }
    return None


_NOTHING: Final[_Record] = {"data": {}}


def _outcome(end: _Record) -> str:
    """Return how an attempt ended: a boundary succeeded, a failure reports its outcome."""
    outcome: str = end["data"].get("outcome", "succeeded")
    return outcome
