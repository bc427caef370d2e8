"""An agent's events in the shape of an agent chat's front end, which polls them each second.

Its fields are not nullable and its percentages whole, so what is not known (yet) is withheld: a
start without a reading before it, a completion until it is measured, whatever has no time. Only
the main conversation is told: a chat shows one, and a subagent's sizes are not its own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

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

T = TypeVar("T")

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


class Told(NamedTuple):
    """An event as it goes out, and its time in ms."""

    timestamp: int
    document: bytes


def written(events: Iterable[ChatEvent]) -> list[Told]:
    """Return events as they go out."""
    return [Told(event["timestamp"], codec.dumps(event)) for event in events]


def merged(sessions: Iterable[Sequence[Told]]) -> bytes:
    """Return the events of several sessions in the order of time, as JSON."""
    found = [event for events in sessions for event in events]
    found.sort(key=_timestamp)  # of one time, each session's stay in their order
    return b"[" + b",".join([event.document for event in found[-MOST_EVENTS:]]) + b"]"


def _timestamp(event: Told) -> int:
    return event.timestamp


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


class Kept(Generic[T]):
    """What was made, by entity tags, up to so many bytes; what is used least recently goes."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def get(self, tag: str) -> T | None:
        """Return what is kept."""
        found = self._kept.get(tag)
        if found is None:
            return None
        self._kept.move_to_end(tag)
        return found[0]

    def put(self, tag: str, made: T, size: int) -> None:
        """Keep what has so many bytes."""
        _, former = self._kept.pop(tag, (None, 0))
        self._bytes += size - former
        self._kept[tag] = (made, size)
        while self._bytes > self._most_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= gone

    async def made(self, tag: str, make: Callable[[], Awaitable[tuple[T, int]]]) -> T:
        """Return what is kept, else what `make` makes with its size: once for all that ask."""
        lock = self._making.get(tag)
        if lock is None:
            lock = self._making[tag] = asyncio.Lock()
        async with lock:
            found = self.get(tag)
            if found is None:
                found, size = await make()
                self.put(tag, found, size)
            return found
