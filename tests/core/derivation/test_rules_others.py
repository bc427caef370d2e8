"""R26 to R30: edits, resets, times, other runtimes' compactions, forks."""

import pytest

from contextgauge.records import Json
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionSummary,
    ContextEdit,
    ContextReading,
    ContextReset,
    ContextWarning,
    SessionInfo,
)
from streams.core.json_size import json_bytes
from tests.core.given import (
    SESSION,
    START_MS,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    clear,
    compacting,
    every,
    init,
    kinds,
    line,
    message_delta,
    message_start,
    one,
    reset,
    result,
    rollout,
    session,
    side,
    system,
    token_count,
    user,
)

TOOLS = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4, "cleared_input_tokens": 15_000}
THINKING = {"type": "clear_thinking_20251015", "cleared_input_tokens": 2_100}


def edited(response: str, *edits: object, read: int = 60_000) -> Body:
    management = {"context_management": {"applied_edits": list(edits)}}
    return assistant(response, read=read, inside=management)


def test_r26_applied_edits_give_a_context_edit_with_whole_objects() -> None:
    records = session(init()).take(edited("a", TOOLS, THINKING))
    edit = one(records, ContextEdit)
    assert edit.edits == (TOOLS, THINKING)
    assert edit.cleared_input_tokens == 17_100
    assert kinds(records)[0] == "context_edit"


def test_r26_once_per_response() -> None:
    given = session(edited("a", TOOLS))
    assert not every(
        given.take(edited("a", TOOLS), edited("a", THINKING, read=60_001)), ContextEdit
    )
    assert every(given.take(edited("b", TOOLS)), ContextEdit)


def test_r26_many_edits_are_summed_and_64_kib_of_them_are_kept() -> None:
    tool: dict[str, Json] = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 5}
    many: list[dict[str, Json]] = [{**tool, "number": number} for number in range(2_000)]
    record = one(Given().take(edited("r", *many)), ContextEdit)
    assert record.cleared_input_tokens == 10_000
    assert record.edits == tuple(many[: len(record.edits)])
    assert len(record.edits) + (record.edits_left_out or 0) == 2_000
    sizes = [json_bytes(edit) for edit in many]
    count = len(record.edits)
    assert sum(sizes[:count]) <= 64 * 1024 < sum(sizes[: count + 1])
    assert one(Given().take(edited("r", TOOLS)), ContextEdit).edits_left_out is None


def test_r26_a_later_line_of_the_response_may_report_edits() -> None:
    assert every(session(assistant("a", read=60_000)).take(edited("a", TOOLS)), ContextEdit)


def test_r26_a_message_delta_may_report_edits() -> None:
    given = session(message_start("a", read=60_000))
    delta = message_delta(None, context_management={"applied_edits": [TOOLS]})
    assert one(given.take(delta), ContextEdit).cleared_input_tokens == 15_000
    assert not every(given.take(edited("a", TOOLS)), ContextEdit)
    again = message_delta(None, context_management={"applied_edits": [TOOLS]})
    assert not every(given.take(again), ContextEdit)


def test_r26_edits_without_a_count_have_none() -> None:
    edit = one(session().take(edited("a", {"type": "later"}, 5)), ContextEdit)
    assert (edit.edits, edit.cleared_input_tokens) == (({"type": "later"},), None)


@pytest.mark.parametrize("management", [None, 5, {}, {"applied_edits": []}, {"applied_edits": "x"}])
def test_r26_without_edits_there_is_none(management: object) -> None:
    frame = assistant("a", read=60_000, inside={"context_management": management})
    assert not every(session().take(frame), ContextEdit)


def test_r26_a_micro_compaction_is_an_edit() -> None:
    metadata = {
        "trigger": "auto",
        "preTokens": 61_000,
        "tokensSaved": 18_000,
        "compactedToolIds": ["t"],
    }
    given = session(line(assistant(read=61_000)))
    records = given.take(line(system("microcompact_boundary", microcompactMetadata=metadata)))
    edit = one(records, ContextEdit)
    assert edit.edits == (metadata,)
    assert edit.cleared_input_tokens == 18_000
    assert given.chain().used == 61_000
    assert not every(records, CompactBoundary)


def test_r26_an_unexplained_drop_gives_nothing_but_its_reading() -> None:
    given = session(assistant("a", read=150_000))
    assert kinds(given.take(assistant("b", read=20_000))) == ["context_reading"]


@pytest.mark.parametrize("how", [reset(), clear(), line(clear())])
def test_r27_a_cleared_conversation_gives_a_reset(how: Body) -> None:
    given = session(line(user()), assistant("a", read=90_000))
    records = given.take(how)
    assert kinds(records) == ["context_reset"]
    assert one(records, ContextReset).reason == "clear"
    assert (given.chain().used, given.chain().percent) == (None, None)


@pytest.mark.parametrize(
    ("trigger", "reason"), [("new", "new"), (None, "clear"), ("clear", "clear")]
)
def test_r27_the_reason_is_the_messages_trigger_else_clear(
    trigger: str | None, reason: str
) -> None:
    assert one(session().take(reset(trigger)), ContextReset).reason == reason


def test_r27_a_reset_starts_a_new_epoch_and_keeps_history() -> None:
    given = session(user(), assistant("a", read=90_000), boundary(), reset())
    records = given.take(assistant("b", read=50_000))
    assert one(records, ContextWarning).thresholds_crossed == (10, 20)
    assert one(records, ContextReading).messages_total == 3
    assert one(given.take(boundary()), CompactBoundary).number == 2


@pytest.mark.parametrize(
    ("first", "second"), [(reset(), clear()), (clear(), reset()), (reset(), reset())]
)
def test_r27_both_forms_for_one_clear_give_one_reset(first: Body, second: Body) -> None:
    given = session(first)
    progress = any_message("progress")
    assert given.take(progress, first, second) == []
    assert every(given.take(user(), reset()), ContextReset)


def test_r27_a_relevant_message_between_makes_it_a_second_clear() -> None:
    assert len(every(session(reset(), user(), reset()).records, ContextReset)) == 2
    assert len(every(session(reset(), side(user()), clear()).records, ContextReset)) == 2


@pytest.mark.parametrize(
    "content",
    [
        "/clear",
        "please <command-name>/clear</command-name>",
        "<command-name>/clearance</command-name>",
        "<command-name>/help</command-name>",
        [{"type": "tool_result", "content": "<command-name>/clear</command-name>"}],
    ],
)
def test_r27_other_lines_clear_nothing(content: object) -> None:
    assert not every(session(init()).take(user(content)), ContextReset)


def test_r27_content_may_be_a_list_of_blocks() -> None:
    block = {"type": "text", "text": "<command-name>/clear</command-name>"}
    assert every(session().take(user([block])), ContextReset)


def test_r28_the_time_is_the_messages_own_timestamp() -> None:
    records = Given().take(assistant(read=9, at=1.5), received_ms=START_MS + 90_000)
    assert {record.time_ms for record in records} == {START_MS + 1_500}


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-11-01T12:00:00Z", START_MS),
        ("2026-11-01T13:00:00.250+01:00", START_MS + 250),
        ("2026-11-01T12:00:00.123456789Z", START_MS + 123),
        ("2020-01-01T00:00:00.000Z", 1_577_836_800_000),
        ("2100-12-31T23:59:59.999Z", 4_133_980_799_999),
    ],
)
def test_r28_a_timestamp_in_2020_to_2100_counts(timestamp: str, expected: int) -> None:
    records = Given().take(assistant(read=9, timestamp=timestamp))
    assert records[0].time_ms == expected


@pytest.mark.parametrize(
    "timestamp",
    [
        "1970-01-01T00:00:00.000Z",
        "2019-12-31T23:59:59.999Z",
        "2101-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59.999-23:59",
        "0001-01-01T00:00:00.000+23:59",
        "2026-11-01T12:00:00.000",
        "yesterday",
        "",
        1_793_534_400_000,
        None,
    ],
)
def test_r28_else_the_live_receive_time_else_none(timestamp: object) -> None:
    body = assistant(read=9, timestamp=timestamp)
    assert Given().take(body)[0].time_ms is None
    assert Given().take(body, received_ms=START_MS + 7)[0].time_ms == START_MS + 7


def test_r28_a_backward_timestamp_changes_nothing_else() -> None:
    given = session(assistant("a", read=100, at=100))
    records = given.take(assistant("b", read=200, at=50))
    assert kinds(records) == ["context_reading"]
    assert (records[0].time_ms, records[0].sequence) == (START_MS + 50_000, 3)
    assert given.chain().used == 200


def block(**fields: object) -> Body:
    return {"type": "compaction"} | fields


def with_blocks(*blocks: object, response: str = "msg_2", read: int = 23_000) -> Body:
    return assistant(response, read=read, inside={"content": list(blocks)})


def test_r29_an_anthropic_compaction_block_is_a_boundary_before_its_reading() -> None:
    given = session(init(), assistant("a", read=150_000))
    summary_block = block(content="What was done.", encrypted_content=None)
    records = given.take(with_blocks(summary_block, {"type": "text", "text": "go on"}))
    assert kinds(records) == [
        "compact_boundary", "compaction_summary", "context_reading", "compaction_complete",
        "context_warning",
    ]  # fmt: skip
    record = one(records, CompactBoundary)
    assert (record.trigger, record.pre_tokens, record.pre_tokens_source) == (
        None, 150_000, "last_reading"
    )  # fmt: skip
    assert (record.duration_ms, record.post_tokens, record.metadata) == (None, None, summary_block)
    assert one(records, CompactionSummary).summary == "What was done."
    assert one(records, CompactionComplete).tokens_saved == 127_000
    assert one(records, ContextReading).messages == 1


def test_r29_a_block_of_null_content_is_none() -> None:
    assert not every(session().take(with_blocks(block(content=None))), CompactBoundary)


def test_r29_a_summary_may_be_a_list_of_text_blocks_or_not_readable() -> None:
    texts = block(content=[{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}])
    assert one(session().take(with_blocks(texts)), CompactionSummary).summary == "One.\n\nTwo."
    records = session().take(with_blocks(block(content={"opaque": 1})))
    assert every(records, CompactBoundary)
    assert not every(records, CompactionSummary)


def test_r29_an_openai_compaction_item_is_a_boundary() -> None:
    item = {"id": "cmp_1", "type": "compaction", "encrypted_content": "opaque"}
    body: Body = {
        "object": "response",
        "id": "resp_1",
        "model": "gpt-4",
        "output": [{"type": "message"}, item],
    }
    body |= {"usage": {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 0}}}
    given = session(assistant("a", read=7_000, model="gpt-4"))
    records = given.take(body, hint=SESSION)
    record = one(records, CompactBoundary)
    assert (record.pre_tokens, record.pre_tokens_source, record.metadata) == (
        7_000,
        "last_reading",
        item,
    )
    assert not every(records, CompactionSummary)
    assert one(records, CompactionComplete).tokens_after == 900


def test_r29_an_openai_item_needs_no_content() -> None:
    body: Body = {"object": "response", "id": "resp_1", "output": [{"type": "compaction"}]}
    record = one(session(user()).take(body, hint=SESSION), CompactBoundary)
    assert record.metadata == {"type": "compaction"}


def test_r29_a_codex_compacted_line_is_a_boundary() -> None:
    given = Given()
    given.take(token_count({"input_tokens": 200_000}, 200_000), hint="r")
    payload = {"message": "What was done.", "replacement_history": [{"type": "message"}]}
    records = given.take(rollout("compacted", payload, 9), hint="r")
    assert kinds(records) == ["compact_boundary", "compaction_summary"]
    record = one(records, CompactBoundary)
    assert (record.trigger, record.pre_tokens, record.pre_tokens_source) == (
        None, 200_000, "last_reading"
    )  # fmt: skip
    assert record.metadata == payload
    assert one(records, CompactionSummary).summary == "What was done."
    later = given.take(token_count({"input_tokens": 9_000}, 209_000), hint="r")
    assert one(later, CompactionComplete).tokens_saved == 191_000


def test_r29_a_codex_compacted_line_without_a_readable_summary() -> None:
    records = Given().take(rollout("compacted", {"message": ""}), hint="r")
    assert kinds(records) == ["compact_boundary"]
    assert one(records, CompactBoundary).pre_tokens is None


def test_r29_several_in_one_message_are_one_boundary() -> None:
    records = session().take(with_blocks(block(content={"x": 1}), block(content="Readable.")))
    assert one(records, CompactBoundary).metadata == block(content={"x": 1})
    assert one(records, CompactionSummary).summary == "Readable."
    both = session().take(with_blocks(block(content="First."), block(content="Second.")))
    assert one(both, CompactionSummary).summary == "First."


def test_r29_one_repeated_for_the_same_response_is_one_boundary() -> None:
    given = session(with_blocks(block(content="Done.")))
    again = given.take(with_blocks(block(content="Done.")), with_blocks(block(content="x"), read=9))
    assert not every(again, CompactBoundary)
    other = given.take(with_blocks(block(content="Done."), response="msg_3"))
    assert one(other, CompactBoundary).number == 2


def test_r29_such_a_boundary_closes_an_open_attempt() -> None:
    given = session(compacting())
    records = given.take(with_blocks(block(content="Done.")))
    assert one(records, CompactBoundary).attempt_id is not None
    assert not every(records, CompactionFailed)


def test_r29_a_subagents_compaction_is_its_own() -> None:
    frame = with_blocks(block(content="Done."))
    records = session(assistant("a", read=9)).take(side(frame))
    assert one(records, CompactBoundary).chain == "a1b2"


def test_r29_other_blocks_are_no_compactions() -> None:
    frame = with_blocks({"type": "text", "text": "compaction"}, "compaction", block())
    assert not every(session().take(frame), CompactBoundary)


def test_r30_a_fork_that_repeats_old_uuids_is_derived_again_under_its_id() -> None:
    given = Given()
    lines = [line(user(), 0), line(assistant("a", read=90_000), 5), line(boundary(), 9)]
    first = given.take(*lines)
    forked = given.take(*(value | {"sessionId": "fork"} for value in lines))
    assert kinds(forked) == kinds(first)
    assert {record.data.session_id for record in forked} == {"fork"}
    assert not {record.id for record in forked} & {record.id for record in first}


@pytest.mark.parametrize(
    "body",
    [
        init(forked_from="parent"),
        init(forked_from={"session_id": "parent"}),
        line(user(), forkedFrom={"sessionId": "parent", "messageUuid": "u"}),
        rollout("session_meta", {"id": SESSION, "forked_from_id": "parent"}),
    ],
)
def test_r30_forked_from_is_recorded_where_reported(body: Body) -> None:
    assert one(Given().take(body, hint=SESSION), SessionInfo).forked_from == "parent"


def test_records_a_result_without_exhaustion_gives_no_record() -> None:
    assert session(init()).take(result(terminal_reason="completed")) == []
