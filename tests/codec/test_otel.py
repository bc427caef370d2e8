"""Records as events and figures of OpenTelemetry."""

from dataclasses import replace
from typing import get_args

import pytest

from schemas.records import CompactBoundary, ContextReading, Kind, Record
from streams.codec.otel_events import ATTRIBUTES, LEFT_OUT, event_of
from streams.codec.otel_figures import INSTRUMENTS, LIVE_MS, figures_of
from streams.ports.otel import OutgoingEvent
from tests.core.given import (
    AUTO,
    MODEL,
    SESSION,
    START_MS,
    Given,
    assistant,
    boundary,
    compacting,
    failed,
    side,
    summary,
    user,
)


def records(*bodies: dict[str, object]) -> dict[str, Record]:
    """Return the last record of each kind."""
    return {record.kind: record for record in Given().take(*bodies)}


def event(record: Record, runtime: str | None = "codex") -> OutgoingEvent:
    made = event_of(record, runtime, START_MS)
    assert made is not None
    return made


def figures(record: Record, runtime: str | None = "codex") -> dict[str, tuple[float, object]]:
    made = figures_of(record, runtime, record.time_ms or START_MS)
    return {each.instrument: (each.value, each.attributes) for each in made}


def test_a_reading_is_an_event_by_the_conventions() -> None:
    body = assistant("msg_1", fresh=10, creation=20, read=180_000, output=7, at=1)
    reading = records(body)["context_reading"]
    name, severity, time_ms, observed_ms, attributes = event(reading)
    assert (name, severity) == ("contextgauge.context_reading", "info")
    assert (time_ms, observed_ms) == (START_MS + 1_000, START_MS)
    assert attributes == {
        "contextgauge.runtime.name": "codex",
        "log.record.uid": reading.id,
        "contextgauge.record.sequence": reading.sequence,
        "gen_ai.conversation.id": SESSION,
        "gen_ai.request.model": MODEL,
        "gen_ai.response.id": "msg_1",
        "gen_ai.usage.input_tokens": 180_030,  # with the cached ones
        "gen_ai.usage.cache_write.input_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 180_000,
        "contextgauge.chain": "main",
        "contextgauge.context.tokens": 180_030,
        "contextgauge.context.utilization": 0.9001,
        "contextgauge.context.window_tokens": 200_000,
        "contextgauge.context.window_source": "catalog",
        "contextgauge.context.messages": 1,
    }
    assert figures(reading) == {
        "contextgauge.context.utilization": (0.9001, {"contextgauge.runtime.name": "codex"})
    }


def test_a_warning_has_its_threshold() -> None:
    warning = records(assistant("msg_1", read=190_000, at=1))["context_warning"]
    assert event(warning).severity == "warn"
    assert figures(warning, None) == {
        "contextgauge.context.warnings": (1, {"contextgauge.warning.threshold": 0.9})
    }


def test_a_compaction_is_counted_and_measured() -> None:
    made = records(
        assistant("msg_1", read=167_412, at=1),
        compacting(at=2),
        boundary(AUTO, at=26.1),
        summary("What was done.", at=27),
        assistant("msg_2", read=30_000, at=30),
    )
    by = {"contextgauge.runtime.name": "codex", "contextgauge.compaction.trigger": "auto"}
    assert figures(made["compaction_start"])["contextgauge.compaction.starts"][0] == 1
    assert figures(made["compact_boundary"]) == {
        "contextgauge.compaction.boundaries": (1, by),
        "contextgauge.compaction.duration": (24.1, by),
        "contextgauge.compaction.tokens_before": (167_412, by),
    }
    after = {"contextgauge.compaction.tokens_after": (30_000, by)}
    assert figures(made["compaction_complete"]) == after
    assert event_of(made["compaction_summary"], "codex", 0) is None
    assert figures(made["compaction_summary"]) == {}


def test_what_was_summarised_in_the_background_is_in_no_duration() -> None:
    metadata = {**AUTO, "precomputed": True}
    made = records(assistant("msg_1", read=167_412, at=1), boundary(metadata, at=26.1))
    bound = made["compact_boundary"]
    assert isinstance(bound.data, CompactBoundary)
    assert bound.data.duration_source == "precomputed"
    assert "contextgauge.compaction.duration" not in figures(bound)


def test_what_a_boundary_does_not_report_is_not_measured() -> None:
    bound = records(boundary({"trigger": "manual"}, at=1))["compact_boundary"]
    assert set(figures(bound)) == {"contextgauge.compaction.boundaries"}


def test_a_failure_has_its_outcome_and_the_runtimes_error() -> None:
    made = records(assistant("msg_1", read=100, at=1), compacting(at=2), failed("no room", at=3))
    failure = made["compaction_failed"]
    assert event(failure).attributes["contextgauge.compaction.error"] == "no room"
    assert figures(failure, None) == {
        "contextgauge.compaction.failures": (1, {"contextgauge.compaction.outcome": "failed"})
    }


def test_a_subagents_chain_is_its_agent() -> None:
    made = records(user(at=0), side(assistant("msg_1", read=100), agent="a1b2", at=1))
    attributes = event(made["context_reading"]).attributes
    assert attributes["gen_ai.agent.id"] == attributes["contextgauge.chain"] == "a1b2"


@pytest.mark.parametrize("age_ms", [LIVE_MS + 1, None])
def test_old_records_and_those_without_a_time_are_events_only(age_ms: int | None) -> None:
    reading = records(assistant("msg_1", read=190_000, at=1))["context_warning"]
    time_ms = None if age_ms is None else START_MS - age_ms
    assert event(replace(reading, time_ms=time_ms)).time_ms == time_ms
    assert list(figures_of(replace(reading, time_ms=time_ms), None, START_MS)) == []


def test_copied_history_is_in_no_figure() -> None:
    reading = records(assistant("msg_1", read=100, at=1))["context_reading"]
    copied = replace(reading, data=replace(reading.data, inherited=True))
    assert event(copied).attributes["contextgauge.record.inherited"] is True
    assert figures(copied) == {}


def test_what_the_protocol_cannot_hold_is_left_out_or_cut() -> None:
    reading = records(assistant("msg_1", read=100, at=1))["context_reading"]
    assert isinstance(reading.data, ContextReading)
    data = replace(
        reading.data, session_id="\ud800", model="m" * 5_000, chain="\ud800", window=2**63
    )
    attributes = event(replace(reading, data=data)).attributes
    assert attributes["gen_ai.conversation.id"] == attributes["gen_ai.agent.id"] == "?"
    assert len(str(attributes["gen_ai.request.model"])) == 1_024
    assert "contextgauge.context.window_tokens" not in attributes


def test_instruments_are_of_kinds_that_are_events() -> None:
    kinds = {kind for each in INSTRUMENTS.values() for kind in each.kinds}
    assert kinds <= set(get_args(Kind)) - LEFT_OUT
    named = {name for each in INSTRUMENTS.values() for name in each.attributes}
    histograms = {name for name, each in INSTRUMENTS.items() if each.kind == "histogram"}
    assert named | histograms <= ATTRIBUTES
