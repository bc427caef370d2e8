"""The stream of `pi --mode json`, and entries of pi without their texts, or shortened."""

from typing import Any

import pytest

from contextgauge.containers import Line
from contextgauge.delivery.shorten import fit
from contextgauge.normalise.pi.entries import stream_moment
from contextgauge.normalise.runtimes import line_of
from contextgauge.normalise.unread_lines import unread_line
from schemas.records import (
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    ContextReading,
)
from tests.core.given import Given, every, one
from tests.library.privacy_kit import check_no_text, check_same_records, derived
from tests.runtimes.pi_captures import (
    CALL,
    ORIGIN,
    RESULT,
    SESSION,
    TITLE,
    Entry,
    answered,
    asked,
    compaction,
    ended,
    entry,
    head,
    message,
    sizes,
    stream,
    streamed,
    taken,
    usage,
    values,
)


@pytest.mark.parametrize(
    ("begin", "end", "trigger"),
    [
        ({"type": "auto_compaction_start", "reason": "overflow"},
         ended("auto_compaction_end", result=RESULT), "auto"),
        ({"type": "compaction_start", "reason": "manual"},
         ended("compaction_end", reason="manual", result=RESULT), "manual"),
        ({"type": "compaction_start", "reason": "threshold"},
         ended("compaction_end", reason="threshold", result=RESULT), "auto"),
        ({"type": "compaction_start", "reason": "other"},
         ended("compaction_end", reason="other", result=RESULT), None),
    ],
)  # fmt: skip
def test_r14_a_stream_has_the_start_of_a_compaction_and_its_trigger(
    begin: Entry, end: Entry, trigger: str | None
) -> None:
    records = taken(*stream(begin, end))
    assert sizes(records) == [175_004, 31_003]
    assert [each.messages for each in every(records, ContextReading)] == [2, 1]
    start, boundary = one(records, CompactionStart), one(records, CompactBoundary)
    reasons = {"auto": "threshold_exceeded", "manual": "manual", None: None}
    assert (start.trigger_reason, boundary.trigger) == (reasons[trigger], trigger)
    assert boundary.attempt_id is not None
    assert (boundary.pre_tokens, boundary.post_tokens) == (175_024, 9_000)
    read = [each for each in records if isinstance(each.data, ContextReading)]
    assert read[0].time_ms == 1_793_534_520_000


def test_the_events_of_a_stream_that_repeat_a_usage_are_passed_over() -> None:
    end = ended("compaction_end", reason="manual", result=RESULT)
    update = {"type": "message_update", "message": {"role": "assistant", "usage": usage(3)}}
    lines = stream({"type": "compaction_start", "reason": "manual"}, end)
    assert not [unread_line(each) for each in (*lines, update) if unread_line(each)]


def test_r17_a_compaction_that_was_aborted_failed() -> None:
    begin = {"type": "compaction_start", "reason": "threshold"}
    end = ended("compaction_end", reason="threshold", aborted=True, errorMessage="Stopped.")
    records = taken(*stream(begin, end))
    assert one(records, CompactionFailed).error == "Stopped."
    assert not every(records, CompactBoundary)


def test_r28_a_message_without_a_time_has_none() -> None:
    assert line_of(streamed("message_end", 1, "user")).moment is not None
    assert stream_moment({"type": "message_end"}) is None


def test_a_message_start_of_anthropics_api_is_none_of_pi() -> None:
    started = {"type": "message_start", "message": {"role": "assistant", "id": "msg_1",
               "model": "claude-sonnet-5", "usage": {"input_tokens": 90_000}}}  # fmt: skip
    given = Given()
    assert sizes(given.take(started, hint=SESSION)) == [90_000]


WORDS = "a S3cret of mine"
SPOKEN: list[Entry] = [
    TITLE | {"title": WORDS},
    head(parentSession=ORIGIN, title=WORDS),
    entry("model_change", "m1", None, 10, provider="anthropic", modelId="claude-opus-5"),
    entry("model_change", "m2", "m1", 10, model="openai/gpt-4", role="default"),
    asked("a1", "m2", 11, WORDS),
    message("b2", "a1", 11, role="bashExecution", command=WORDS, excludeFromContext=True),
    answered("a2", "b2", 12, usage(3, 170_000, 5_001), {"type": "text", "text": WORDS}, CALL),
    answered("a3", "a2", 12, usage(0), provider="openclaw", model="gateway-injected"),
    compaction("c1", "a3", 13, summary=WORDS, tokensAfter=9, usage=usage(5), fromHook=True,
               details={"readFiles": [WORDS]}),
    entry("branch_summary", "d1", "c1", 14, fromId="a1", summary=WORDS),
    entry("reset_boundary", "r1", "d1", 15),
    answered("a4", "r1", 16, usage(3, 0, 31_000)),
]  # fmt: skip


def test_without_texts_the_records_are_the_same() -> None:
    streamed_lines = stream({"type": "compaction_start", "reason": "manual"},
                  ended("compaction_end", reason="manual", result=RESULT | {"summary": WORDS}),
                  {"type": "compaction_start", "reason": "manual"},
                  ended("compaction_end", errorMessage=WORDS))  # fmt: skip
    lines = values(*SPOKEN, *streamed_lines[1:])
    assert check_same_records(lines) > len(lines) // 2
    check_no_text(lines)


def test_shortened_lines_give_the_same_sizes() -> None:
    long: list[dict[str, Any]] = [each | {"padding": "x" * 3_000} for each in SPOKEN]
    lines = values(*long)
    shortened = [fit(Line("f", 1, line, len(line), None), 2_000) for line in lines]
    assert all(isinstance(each, bytes) and len(each) <= 2_000 for each in shortened)
    assert sizes(derived(each for each in shortened if isinstance(each, bytes))) == sizes(
        derived(lines)
    )
