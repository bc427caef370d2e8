"""What the service publishes, as the deriver reads it (R14 to R24)."""

import pytest

from contextgauge import json_codec
from contextgauge.normalise.signals import InputMessage
from schemas.commands import CommandTrigger
from schemas.records import CompactBoundary, CompactionStart, RecordData
from streams.codec.cloudevents import rfc3339
from streams.core.control.messages import AttemptMessages, Compacted, Line, step_id
from streams.flow.derive.deriver import Deriver
from tests.flow.derive_kit import RULES

SESSION = "session"
BEGAN_MS = 1_760_000_000_000
DONE = Compacted(
    tokens_before=90_000,
    tokens_after=12_000,
    duration_ms=4_000,
    plan={"covers": 3, "last_id": "c", "prefix_hash": "00"},
    edit={"covers": 3},
    receipt={"trigger": "auto"},
    summary="What happened.",
)


def attempt(number: int = 1, trigger: CommandTrigger = "auto") -> AttemptMessages:
    return AttemptMessages(SESSION, "command", number, trigger)


def at(seconds: float) -> str:
    return rfc3339(BEGAN_MS + int(seconds * 1_000))


def records(*lines: Line) -> list[RecordData]:
    deriver = Deriver(RULES)
    return [
        record.data
        for line in lines
        for record in deriver.derive(InputMessage(json_codec.dumps(line), SESSION)).records
        if record.data.kind.startswith("compact")
    ]


def kinds(*lines: Line) -> list[str]:
    return [data.kind for data in records(*lines)]


@pytest.mark.parametrize("trigger", ["auto", "manual", "model_change"])
def test_a_compaction_is_one_attempt(trigger: CommandTrigger) -> None:
    messages = attempt(trigger=trigger)
    lines = [
        *messages.announced(at(0)),
        messages.heartbeat(1, at(30)),
        messages.heartbeat(2, at(60)),
        *messages.completed(DONE, at(70)),
    ]
    derived = records(*lines)
    assert [data.kind for data in derived] == [
        "compaction_start",
        "compaction_progress",
        "compaction_progress",
        "compact_boundary",
        "compaction_summary",
    ]
    start, boundary = derived[0], derived[3]
    assert isinstance(start, CompactionStart)
    assert isinstance(boundary, CompactBoundary)
    reason = "manual" if trigger == "manual" else "threshold_exceeded"
    assert start.trigger_reason == reason
    assert boundary.attempt_id == start.attempt_id
    assert boundary.trigger == ("manual" if trigger == "manual" else "auto")
    assert (boundary.pre_tokens, boundary.post_tokens) == (90_000, 12_000)
    assert (boundary.duration_ms, boundary.duration_source) == (4_000, "precomputed")
    assert records(*lines, *lines) == derived


def test_a_failed_attempt_says_why() -> None:
    messages = attempt()
    derived = records(*messages.announced(at(0)), messages.failed("no summary", at(5)))
    assert [data.kind for data in derived] == ["compaction_start", "compaction_failed"]
    assert getattr(derived[1], "error", None) == "no summary"
    assert getattr(derived[1], "outcome", None) == "failed"


@pytest.mark.parametrize(
    ("later_s", "expected"),
    [
        (299, ["compaction_start", "compaction_progress"]),
        (301, ["compaction_start", "compaction_failed", "compaction_start"]),
    ],
)
def test_a_takeover_is_another_attempt_after_five_minutes(
    later_s: int, expected: list[str]
) -> None:
    lines = [*attempt().announced(at(0)), *attempt(2).announced(at(later_s))]
    assert kinds(*lines) == expected
    assert kinds(*lines, *attempt(2).completed(DONE, at(400))) == [
        *expected,
        "compact_boundary",
        "compaction_summary",
    ]


def test_a_summary_comes_only_where_messages_were_archived() -> None:
    lines = attempt().completed(DONE._replace(summary=None, duration_ms=None), at(0))
    assert kinds(*attempt().announced(at(0)), *lines) == ["compaction_start", "compact_boundary"]


def test_steps_have_ids_of_their_own() -> None:
    ids = {
        step_id(command, number, step)
        for command in ("a", "a1", "\ud800")
        for number in (1, 11)
        for step in ("boundary", "1boundary")
    }
    assert len(ids) == 12


def test_the_boundarys_receipt_names_the_command_and_its_cause() -> None:
    messages = AttemptMessages(SESSION, "command", 2, "model_change", "record")
    (boundary, _) = records(*messages.completed(DONE, at(70)))
    assert isinstance(boundary, CompactBoundary)
    receipt = boundary.receipt
    assert receipt is not None
    assert (receipt.command_id, receipt.command_attempt) == ("command", 2)
    assert (receipt.reason, receipt.cause_id) == ("model_change", "record")
