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
from schemas.commands import CommandView, ControlView, DecisionView
from schemas.records import (
    Common,
    CompactBoundary,
    CompactionComplete,
    CompactionSummary,
    PinsChecked,
    Record,
)
from schemas.topics import CONTEXT_COMMANDS
from streams.edge.commands import LogCommandSink
from streams.edge.memory.log import MemoryLog
from streams.ports import ProjectorHeartbeat
from streams.serve.api.openapi import EXAMPLES
from streams.serve.feed.feed import encoded, feed_id
from tests.doubles.control import KeptControl
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
    "readCosts": "/v1/sessions/{}/costs",
    "readWhatIf": "/v1/sessions/{}/what-if?trigger=60%25",
    "readContext": "/v1/sessions/{}/context",
    "readHistory": "/v1/sessions/{}/history?limit=2",
    "recallMessages": "/v1/sessions/{}/recall?query=checkout",
    "readStats": "/v1/stats",
    "readProjection": "/v1/projection",
    "listAgentEvents": "/api/agents/{}/events",
    "readControl": "/v1/sessions/{}/control",
}
"""What is asked for the example of an operation."""

_COMMAND = "5e3f6f0a-6f9b-4c1e-9a53-0b8a7f1d2c33"
_OPEN = "8c0d2b7e-41f5-4f0a-b1c9-6e2a7d3f5b10"
_SESSION_CHANGES = {
    "compactSession": ("POST", "/compact", {"command_id": _COMMAND}),
    "cancelCommand": ("DELETE", f"/compact/{_OPEN}", None),
    "deleteText": ("DELETE", "/text", None),
    "setThresholds": ("PUT", "/thresholds", {"automatic": True, "compact_at": "80%"}),
    "removeThresholds": ("DELETE", "/thresholds", None),
}
_CHANGES = {
    name: (method, f"/v1/sessions/{{}}{path}", body)
    for name, (method, path, body) in _SESSION_CHANGES.items()
} | {
    f"{verb}{scope.capitalize()}Thresholds": (method, f"/v1/{scope}s/x/thresholds", body)
    for scope in ("agent", "project")
    for verb, method, body in (("set", "PUT", {"automatic": True}), ("remove", "DELETE", None))
}
"""What is requested for the example of an operation that changes something."""


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
    """Return the records with a check of the user's turns after the last boundary."""
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


def _control(session_id: str, at_ms: int) -> KeptControl:
    """Return a reader of what the control plane knows: a compaction that was done."""
    decision = DecisionView(
        id="0b7c4a52-0f4e-5a43-8a1b-3c2e5d6f7a81",
        time_ms=at_ms - 90_000,
        fired=True,
        reason="above_threshold",
        command_id=_COMMAND,
        cause_id="4d1f8f1e-6f0f-5a52-9d2e-0a7b6c5d4e3f",
        model="claude-sonnet-5",
        used_tokens=171_204,
        window=200_000,
        window_source="catalog",
        threshold_tokens=170_000,
    )
    command = CommandView(
        command_id=_COMMAND,
        trigger="auto",
        requested_by="control",
        instructions=None,
        cause_id=decision.cause_id,
        state="finished",
        requested_ms=at_ms - 90_000,
        accepted_ms=at_ms - 89_800,
        planned_ms=at_ms - 89_500,
        called_ms=at_ms - 89_400,
        finished_ms=at_ms - 61_000,
        attempt=1,
        driver="service",
        tokens_before=171_204,
        summariser="anthropic:claude-haiku-4-5",
        outcome="completed",
        boundary_uuid="6a0e5b1c-2d3f-5c4b-8e9a-1f2d3c4b5a69",
    )
    view = ControlView(session_id=session_id, commands=(command,), decisions=(decision,))
    return KeptControl({session_id: view}, at_ms)


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
    clock = _Clock(last_ms + _LATER_MS)
    log = MemoryLog(clock)
    await log.create_topics([CONTEXT_COMMANDS], 1)
    api = api_over(
        views,
        clock=clock,
        conversations=OneConversation(
            session, kept_conversation()._replace(behind=0, reported_ms=last_ms)
        ),
        control=_control(session, last_ms),
        commands=LogCommandSink(log, CONTEXT_COMMANDS.name),
    )
    answers = {name: await api.json(path.format(session)) for name, path in PATHS.items()}
    entry = views.partitions[views.generation, 0].held.live[-1]
    position = feed_id(views.generation, views.offsets)
    for name, (method, path, body) in _CHANGES.items():
        answer = await api.client.request(method, path.format(session), json=body)
        answers[name] = answer.json()
    return {**answers, "listen": encoded(b"record", position, entry.document).decode()}


if __name__ == "__main__":
    text = json.dumps(asyncio.run(examples()), indent=1, ensure_ascii=False)
    Path(EXAMPLES).write_text(text + "\n", encoding="utf-8")
