"""Record `streams/serve/api/examples.json`, the examples of the OpenAPI document.

    python -m tools.record_examples

Each is the answer of the API itself, over the views of a simulated session, a moment after its
last record; `tests/serve/test_openapi.py` checks them against the schemas.
"""

import asyncio
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from contextgauge.clock import SystemClock
from schemas.records import (
    Common,
    CompactBoundary,
    CompactionComplete,
    CompactionSummary,
    PinsChecked,
    Record,
)
from streams.ports import ProjectorHeartbeat
from streams.serve.api.openapi import EXAMPLES
from streams.serve.feed.feed import encoded, feed_id
from tests.serve.kit import GrowingViews, api_over, sample_records
from tests.serve.text_kit import OneConversation, kept_conversation

_LATER_MS = 400
_SILENT_MS = 310

_CHECK_ID = "3d0c7c52-7c3f-5b0e-9a55-0a8f0c1f2b7e"
_SUMMARY = "The shop's cart is being moved to the new API; tests for checkout are still red."

PATHS = {
    "listSessions": "/v1/sessions",
    "readSession": "/v1/sessions/{}",
    "listEvents": "/v1/sessions/{}/events?type=context_warning&limit=1",
    "listReadings": "/v1/sessions/{}/readings?limit=1",
    "listCompactions": "/v1/sessions/{}/compactions",
    "readRules": "/v1/sessions/{}/rules",
    "readContext": "/v1/sessions/{}/context",
    "readHistory": "/v1/sessions/{}/history?limit=2",
    "recallMessages": "/v1/sessions/{}/recall?query=checkout",
    "readStats": "/v1/stats",
    "readProjection": "/v1/projection",
    "listAgentEvents": "/api/agents/{}/events",
}
"""What is asked for the example of an operation."""


class _Clock(SystemClock):
    """A clock that stands still."""

    def __init__(self, time_ms: int) -> None:
        self._time_ms = time_ms

    def now_ms(self) -> int:
        return self._time_ms


def _session() -> list[Record]:
    """Return the shortest session with an automatic compaction whose duration is known."""
    sessions: dict[str, list[Record]] = {}
    for record in sample_records():
        data = record.data
        if isinstance(data, CompactionSummary):  # filler, in the simulator's
            data = replace(data, summary=_SUMMARY)
        sessions.setdefault(data.session_id, []).append(replace(record, data=data))
    compacted = [
        records
        for records in sessions.values()
        if any(
            isinstance(record.data, CompactionComplete)
            and (record.data.trigger, record.data.duration_ms is None) == ("auto", False)
            for record in records
        )
    ]
    return _with_check(min(compacted, key=len))


def _with_check(records: list[Record]) -> list[Record]:
    """Return the records with a check of the user's rules after the last boundary."""
    boundary_id, boundary = [
        (record.id, record.data) for record in records if isinstance(record.data, CompactBoundary)
    ][-1]
    common = {each.name: getattr(boundary, each.name) for each in fields(Common)}
    data = PinsChecked(
        **common,
        boundary_id=boundary_id,
        number=boundary.number,
        pins_kept=4,
        pins_lost=1,
        lost_pins=("Never change the price table without my approval.",),
    )
    last = records[-1]
    checked = replace(last, id=_CHECK_ID, sequence=last.sequence + 1, data=data)
    return [*records, checked]


async def examples() -> dict[str, Any]:
    """Return an answer of each route, by its operation."""
    records = _session()
    last_ms = max(record.time_ms or 0 for record in records)
    views = GrowingViews(partitions=1)
    views.add(*records)
    views.report_heartbeat(
        ProjectorHeartbeat(last_ms + _LATER_MS - _SILENT_MS, views.offsets[0], 0)
    )
    session = records[0].data.session_id
    conversations = OneConversation(session, kept_conversation())
    api = api_over(views, clock=_Clock(last_ms + _LATER_MS), conversations=conversations)
    found = {name: await api.json(path.format(session)) for name, path in PATHS.items()}
    entry = views.partitions[views.generation, 0].held.live[-1]
    position = feed_id(views.generation, views.offsets)
    return {**found, "listen": encoded(b"record", position, entry.document).decode()}


if __name__ == "__main__":
    text = json.dumps(asyncio.run(examples()), indent=1, ensure_ascii=False)
    Path(EXAMPLES).write_text(text + "\n", encoding="utf-8")
