"""R23: summaries, what counts as a message, and the completions after a boundary."""

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionSummary,
    ContextReading,
    ContextWarning,
)
from tests.core.given import (
    AUTO,
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    bound,
    boundary,
    every,
    kinds,
    line,
    message_start,
    one,
    reset,
    result,
    rollout,
    session,
    side,
    summary,
    system,
    token_count,
    user,
)


def test_r23_the_summary_follows_the_boundary() -> None:
    given, boundary_id = bound()
    record = one(given.take(summary("What was done.")), CompactionSummary)
    assert (record.boundary_id, record.summary) == (boundary_id, "What was done.")


def test_r23_a_transcripts_summary_is_marked_otherwise() -> None:
    given = session(line(boundary(AUTO)))
    records = given.take(line(user("Done."), isCompactSummary=True, isVisibleInTranscriptOnly=True))
    assert one(records, CompactionSummary).summary == "Done."


def test_r23_text_blocks_are_joined_by_a_blank_line() -> None:
    given, _ = bound()
    blocks = [{"type": "text", "text": "One."}, {"type": "image"}, {"type": "text", "text": "Two."}]
    records = given.take(user(blocks, isSynthetic=True))
    assert one(records, CompactionSummary).summary == "One.\n\nTwo."


@pytest.mark.parametrize("inner", ["preserved_messages", "preserved_segment"])
def test_r23_a_synthetic_line_must_have_the_anchors_uuid_where_one_was_given(inner: str) -> None:
    given = session(boundary(AUTO | {inner: {"anchor_uuid": "anchor"}}))
    assert given.take(summary("Another synthetic line.")) == []
    records = given.take(summary("What was done.", uuid="anchor"))
    assert one(records, CompactionSummary).summary == "What was done."


def test_r23_an_anchor_in_camel_case_is_one_too() -> None:
    given = session(
        line(boundary(AUTO)) | {"compactMetadata": {"preservedMessages": {"anchorUuid": "a"}}}
    )
    assert given.take(summary("Another.", uuid="b")) == []
    assert every(given.take(summary("This.", uuid="a")), CompactionSummary)


def test_r23_only_the_first_such_line_is_the_summary() -> None:
    given, _ = bound()
    given.take(summary("First."))
    assert not every(given.take(summary("Second.")), CompactionSummary)


def test_r23_a_user_line_before_it_does_not_matter() -> None:
    given, _ = bound()
    given.take(user(), user("meta", isMeta=True))
    assert every(given.take(summary()), CompactionSummary)


def test_r23_after_the_next_reading_no_summary_comes() -> None:
    given, _ = bound()
    given.take(assistant("b", read=9))
    assert given.take(summary()) == []


def test_r23_a_response_without_a_size_is_no_reading_to_wait_for() -> None:
    given, _ = bound()
    given.take(assistant("b"))
    assert every(given.take(summary()), CompactionSummary)


def test_r23_a_summary_belongs_to_its_chain() -> None:
    given, _ = bound()
    assert not every(given.take(side(summary())), CompactionSummary)
    assert one(given.take(summary()), CompactionSummary).chain == "main"


COUNTED = [
    user("text"),
    user([{"type": "tool_result", "tool_use_id": "t", "content": "out"}]),
    user("replay off", isReplay=False),
    user("/compact"),
    assistant("a", read=9),
    assistant("empty"),
    message_start("s", read=9),
    side(user()) | {"isSidechain": False},
]
UNCOUNTED = [
    user("x", isMeta=True),
    user("x", isReplay=True),
    user("<local-command-stdout>Compacted</local-command-stdout>"),
    user("<local-command-caveat>Caveat</local-command-caveat>"),
    user("<command-name>/help</command-name>"),
    user([{"type": "text", "text": "<command-message>x</command-message>"}]),
    user("x", isSynthetic=True),
    user("x", isCompactSummary=True),
    assistant("y", read=9, model="<synthetic>"),
    assistant("z", read=9, isApiErrorMessage=True),
    system("api_retry"),
    any_message("progress"),
    result(),
    side(user()),
]


@pytest.mark.parametrize("body", COUNTED)
def test_r23_a_distinct_response_or_a_user_line_is_a_message(body: Body) -> None:
    given = session(body)
    record = one(given.take(boundary()), CompactBoundary)
    assert record.messages_since_last == 1
    assert given.chain().total == 1


@pytest.mark.parametrize("body", UNCOUNTED)
def test_r23_other_lines_are_no_messages(body: Body) -> None:
    assert one(session(body).take(boundary()), CompactBoundary).messages_since_last == 0


def test_r23_further_lines_of_a_response_are_no_messages() -> None:
    given = session(assistant("a", read=9), assistant("a", read=9), assistant("a", read=10))
    assert one(given.take(boundary()), CompactBoundary).messages_since_last == 1


def test_r23_a_codex_user_item_is_a_user_line_and_others_are_not() -> None:
    given = Given()
    for role in ("user", "assistant", "developer"):
        item = {"type": "message", "role": role, "content": [{"type": "input_text", "text": "x"}]}
        given.take(rollout("response_item", item), hint=SESSION)
    given.take(rollout("response_item", {"type": "function_call", "name": "x"}), hint=SESSION)
    given.take(rollout("event_msg", {"type": "user_message"}), hint=SESSION)
    reading = one(given.take(token_count({"input_tokens": 9}, 9), hint=SESSION), ContextReading)
    assert (reading.messages, reading.messages_total) == (2, 2)


def test_r23_a_summary_is_not_counted() -> None:
    given, _ = bound()
    given.take(summary(), summary("A line marked so without a pending boundary."))
    assert one(given.take(assistant("b", read=9)), ContextReading).messages == 1


def test_records_messages_count_since_the_last_boundary_or_reset_and_in_all() -> None:
    given = session(user(), assistant("a", read=9), user(), boundary(), user())
    reading = one(given.take(assistant("b", read=9)), ContextReading)
    assert (reading.messages, reading.messages_total) == (2, 5)
    given.take(reset())
    reading = one(given.take(assistant("c", read=9)), ContextReading)
    assert (reading.messages, reading.messages_total) == (1, 6)


def test_records_messages_since_last_are_not_restarted_by_a_reset() -> None:
    given = session(boundary(), user(), reset(), user())
    assert one(given.take(boundary()), CompactBoundary).messages_since_last == 2


def test_records_a_boundary_counts_its_chains_messages_in_all() -> None:
    given = session(user(), assistant("a", read=9), user(), side(assistant("s", read=9)))
    assert one(given.take(boundary()), CompactBoundary).messages_total == 3
    given.take(user(), reset(), user())
    assert one(given.take(boundary()), CompactBoundary).messages_total == 5
    assert one(given.take(side(boundary())), CompactBoundary).messages_total == 1


def test_records_a_completion_comes_with_the_chains_first_reading() -> None:
    given, boundary_id = bound()
    given.take(side(assistant("s", read=9)))
    record = one(given.take(assistant("b", 4, 28_400)), CompactionComplete)
    assert (record.boundary_id, record.trigger, record.duration_ms) == (boundary_id, "auto", 24_100)
    assert (record.tokens_before, record.tokens_after, record.tokens_saved) == (
        167_412,
        28_404,
        139_008,
    )
    assert not every(given.take(assistant("c", read=9)), CompactionComplete)


def test_records_tokens_saved_may_be_negative() -> None:
    given = session(boundary({"trigger": "manual", "pre_tokens": 500}))
    record = one(given.take(assistant("b", read=700)), CompactionComplete)
    assert record.tokens_saved == -200


def test_records_without_tokens_before_tokens_saved_is_unknown() -> None:
    given = session(boundary())
    record = one(given.take(assistant("b", read=700)), CompactionComplete)
    assert (record.tokens_before, record.tokens_after, record.tokens_saved) == (None, 700, None)


@pytest.mark.parametrize("ender", [boundary(), reset()])
def test_records_an_unmeasured_boundary_is_completed_by_the_next_boundary_or_reset(
    ender: Body,
) -> None:
    given, boundary_id = bound(assistant("a", read=150_000))
    record = one(given.take(ender), CompactionComplete)
    assert (record.boundary_id, record.tokens_before, record.duration_ms) == (
        boundary_id,
        167_412,
        24_100,
    )
    assert (record.tokens_after, record.tokens_saved) == (None, None)


def test_records_a_measured_boundary_is_not_completed_again() -> None:
    given, _ = bound()
    given.take(assistant("b", read=9))
    assert not every(given.take(reset(), boundary()), CompactionComplete)


def test_records_a_boundary_starts_a_new_epoch_of_warnings() -> None:
    given = session(assistant("a", read=90_000), boundary(AUTO))
    warning = one(given.take(assistant("b", read=50_000)), ContextWarning)
    assert warning.thresholds_crossed == (10, 20)
    assert kinds(given.take(assistant("c", read=59_999))) == ["context_reading"]
