"""An agent's events in the shape of an agent chat's front end, which polls them each second.

Its fields are not nullable and its percentages whole, so what is not known (yet) is withheld: a
start without a reading before it, a completion until it is measured, whatever has no time. Only
the main conversation is told: a chat shows one, and a subagent's sizes are not its own.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
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
from streams.edge import codec

ChatEvent: TypeAlias = dict[str, Any]
"""One event: `id`, `type`, `timestamp` (ms), `taskId`, and `data` by type, in camelCase."""

MOST_EVENTS: Final = 2_000
"""Events of an answer, the newest: as many as are kept of one session."""

MOST_SESSIONS: Final = 50
"""Sessions of an agent that are told of, the last active."""

_WARNING: Final = event_type(ContextWarning.kind)
_START: Final = event_type(CompactionStart.kind)
_BOUNDARY: Final = event_type(CompactBoundary.kind)
_SUMMARY: Final = event_type(CompactionSummary.kind)
_COMPLETE: Final = event_type(CompactionComplete.kind)

_KINDS: Final = {
    _WARNING: ContextWarning.kind,
    _START: CompactionStart.kind,
    _COMPLETE: CompactionComplete.kind,
}
"""The types that are events, and what the front end calls them."""

_REASONS: Final = {"manual": "manual", "auto": "threshold_exceeded"}

_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Answers that are kept for who polls without naming what it has already."""


def of_session(records: Iterable[bytes]) -> list[ChatEvent]:
    """Return the events of a session, from its records as they are stored, oldest first."""
    kept = [
        record
        for record in map(codec.loads, records)
        if record["subject"] == MAIN_CHAIN and "time" in record
    ]
    reasons = {
        record["data"]["attempt_id"]: _REASONS.get(record["data"]["trigger"])
        for record in kept
        if record["type"] == _BOUNDARY
    }
    summaries = {
        record["data"]["boundary_id"]: record["data"]["summary"]
        for record in kept
        if record["type"] == _SUMMARY
    }
    events = []
    for record in kept:
        data = _data(record["type"], record["data"], reasons, summaries)
        if data is not None:
            events.append(
                {
                    "id": record["id"],
                    "type": _KINDS[record["type"]],
                    "timestamp": codec.parse_rfc3339(record["time"]),
                    "taskId": record["data"]["task_id"],
                    "data": data,
                }
            )
    return events


def merged(sessions: Iterable[Sequence[ChatEvent]]) -> bytes:
    """Return the events of several sessions in the order of time, as JSON."""
    found = [event for events in sessions for event in events]
    found.sort(key=_timestamp)  # of one time, each session's stay in their order
    return codec.dumps(found[-MOST_EVENTS:])


def _timestamp(event: ChatEvent) -> int:
    timestamp: int = event["timestamp"]
    return timestamp


def _data(
    type_name: str,
    told: dict[str, Any],
    reasons: dict[str | None, str | None],
    summaries: dict[str, str],
) -> dict[str, Any] | None:
    """Return an event's data; None for a record that is no event, or lacks what one must have."""
    if type_name == _WARNING:
        used = rounded(told["context_used_percent"])
        return {
            "contextUsedPercent": used,
            "contextRemainingPercent": 100 - used,
            "inputTokens": told["input_tokens"] or 0,
            "cacheTokens": told["cache_tokens"],
            "contextWindow": told["context_window"],
        }
    if type_name == _START and told["context_used_percent"] is not None:
        known = reasons.get(told["attempt_id"]) or told["trigger_reason"]
        return {
            "triggerReason": known or "threshold_exceeded",
            "contextUsedPercent": rounded(told["context_used_percent"]),
        }
    if type_name == _COMPLETE and told["tokens_saved"] is not None:
        return {
            "summary": summaries.get(told["boundary_id"], ""),
            "tokensBefore": told["tokens_before"],
            "tokensAfter": told["tokens_after"],
            "tokensSaved": told["tokens_saved"],
        }
    return None


def rounded(percent: float) -> int:
    """Round half up, as the front end's own figures are; records have two decimals."""
    return int(percent + 0.5)


class Kept:
    """Answers by their entity tags, up to so many bytes; the one used least recently goes."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._bodies: OrderedDict[str, bytes] = OrderedDict()

    def get(self, tag: str) -> bytes | None:
        """Return an answer that is kept."""
        body = self._bodies.get(tag)
        if body is not None:
            self._bodies.move_to_end(tag)
        return body

    def put(self, tag: str, body: bytes) -> None:
        """Keep an answer."""
        self._bytes += len(body) - len(self._bodies.pop(tag, b""))
        self._bodies[tag] = body
        while self._bytes > self._most_bytes:
            _, gone = self._bodies.popitem(last=False)
            self._bytes -= len(gone)
