"""An agent's events in the shape of an agent chat's front end, which polls them each second.

Its fields are not nullable and its percentages whole, so events with unknown fields are left out:
a start without a reading before it, a completion until it is measured, anything without a time.
Only the main chain has events: a chat shows one conversation, and a subagent's sizes are others.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
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
_COMPLETE: Final = event_type(CompactionComplete.kind)
_BOUNDARY: Final = event_type(CompactBoundary.kind)
_SUMMARY: Final = event_type(CompactionSummary.kind)

_KINDS: Final = {
    _WARNING: ContextWarning.kind,
    _START: CompactionStart.kind,
    _COMPLETE: CompactionComplete.kind,
}
"""The record types that are events, with the front end's names."""

_REASONS: Final = {"manual": "manual", "auto": "threshold_exceeded"}


def of_session(records: Iterable[bytes]) -> list[EncodedEvent]:
    """Return the events of a session, from its records as they are stored, oldest first."""
    timed = [
        record
        for record in map(codec.loads, records)
        if record["subject"] == MAIN_CHAIN and "time" in record
    ]
    reasons = {
        record["data"]["attempt_id"]: _REASONS.get(record["data"]["trigger"])
        for record in timed
        if record["type"] == _BOUNDARY
    }
    summaries = {
        record["data"]["boundary_id"]: record["data"]["summary"]
        for record in timed
        if record["type"] == _SUMMARY
    }
    events = []
    for record in timed:
        data = _data(record["type"], record["data"], reasons, summaries)
        if data is not None:
            event = {
                "id": record["id"],
                "type": _KINDS[record["type"]],
                "timestamp": codec.parse_rfc3339(record["time"]),
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


def _data(
    type_name: str,
    source: dict[str, Any],
    reasons: dict[str | None, str | None],
    summaries: dict[str, str],
) -> dict[str, Any] | None:
    """Return an event's data; None for a record that is no event, or lacks a required field."""
    if type_name == _WARNING:
        used, remaining = whole_percents(source["context_used_percent"])
        return {
            "contextUsedPercent": used,
            "contextRemainingPercent": remaining,
            "inputTokens": source["input_tokens"] or 0,
            "cacheTokens": source["cache_tokens"],
            "contextWindow": source["context_window"],
        }
    if type_name == _START and source["context_used_percent"] is not None:
        known = reasons.get(source["attempt_id"]) or source["trigger_reason"]
        return {
            "triggerReason": known or "threshold_exceeded",
            "contextUsedPercent": whole_percents(source["context_used_percent"])[0],
        }
    if type_name == _COMPLETE and source["tokens_saved"] is not None:
        return {
            "summary": summaries.get(source["boundary_id"], ""),
            "tokensBefore": source["tokens_before"],
            "tokensAfter": source["tokens_after"],
            "tokensSaved": source["tokens_saved"],
        }
    return None
