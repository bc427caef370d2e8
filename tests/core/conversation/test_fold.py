"""The fold of a session's messages into its conversation."""

from dataclasses import replace

import pytest

from contextgauge.compaction.engine.plan import PlanRejectedError
from contextgauge.compaction.messages import ApiUsage
from contextgauge.records import Json
from streams.core.conversation.fold import ConversationFold
from tests.core.conversation.fold_kit import (
    a_plan,
    boundary,
    fold_of,
    said,
    service_boundary,
    state_of,
    texts,
)


def test_messages_of_a_stream_are_its_conversation() -> None:
    fold = fold_of(
        {"type": "system", "subtype": "init", "model": "claude-x", "cwd": "C:/shop"},
        said("user", "go", uuid="1"),
        {"type": "stream_event", "event": {"type": "message_start", "message": {}}},
        said("assistant", "aside", parent_tool_use_id="t"),
        said("assistant", "done", uuid="2"),
        {"type": "result", "subtype": "success"},
    )
    assert texts(fold) == ["go", "done"]
    result = fold.result
    assert (result.state, result.model, result.project) == ("whole", "claude-x", "C:/shop")
    assert (result.first_offset, result.position) == (0, 6)
    assert [each.id for each in result.history.active] == ["1", "2"]


def test_a_message_that_comes_again_is_there_once() -> None:
    fold = fold_of(
        said("user", "go", uuid="1"),
        said("user", "go", uuid="1", isReplay=True),
        said("user", "without an id"),
        said("user", "without an id"),
        said("user", "without an id", isReplay=True),
        said("user", "from outside", uuid="2", isReplay=True),
    )
    assert texts(fold) == ["go", "without an id", "from outside"]


def test_a_conversation_that_was_given_stays_as_it_is() -> None:
    before = fold_of(said("user", "go", uuid="1", parentUuid=None)).result
    fold = ConversationFold(before)
    fold.add(said("user", "again", uuid="1", parentUuid=None), 1)
    fold.add(said("assistant", "done", uuid="2", parentUuid="1"), 2)
    assert texts(fold) == ["go", "done"]
    assert len(before.history.active) == 1
    assert before.position == 1
    assert fold.result.position == 3
    assert fold.result.first_offset == 0


def test_a_conversation_without_its_reading_can_be_read_on() -> None:
    given = fold_of(said("user", "go", uuid="1"))
    fold = ConversationFold(given.result._replace(reading=None))
    fold.add(said("assistant", "done", uuid="2"), 1)
    assert texts(fold) == ["go", "done"]


def test_a_runtimes_boundary_archives_and_its_summary_is_the_beginning() -> None:
    fold = fold_of(
        said("user", "before", uuid="1"),
        boundary(),
        said("user", "So far.", uuid="s", isSynthetic=True),
        said("user", "after", uuid="2"),
    )
    assert texts(fold) == ["[1] So far.", "after"]
    assert [each.text for each in fold.result.history.archived] == ["before"]
    assert state_of(fold) == "whole"


def test_a_boundary_whose_summary_is_missing_makes_the_conversation_incomplete() -> None:
    fold = fold_of(said("user", "before"), boundary(), said("user", "after"))
    assert texts(fold) == ["after"]
    assert state_of(fold) == "incomplete"


def test_what_a_compaction_preserved_follows_its_summary() -> None:
    segment: Json = {"head_uuid": "2", "tail_uuid": "3", "anchor_uuid": "s"}
    fold = fold_of(
        said("user", "a", uuid="1", parentUuid=None),
        said("user", "b", uuid="2", parentUuid="1"),
        said("assistant", "c", uuid="3", parentUuid="2"),
        {**boundary(preserved_segment=segment), "parentUuid": None, "logicalParentUuid": "3"},
        said("user", "So far.", uuid="s", parentUuid="b", isCompactSummary=True),
        said("user", "d", uuid="4", parentUuid="3"),
    )
    assert texts(fold) == ["[1] So far.", "b", "c", "d"]
    assert state_of(fold) == "whole"


def test_what_a_compaction_preserved_and_is_not_known_is_missing() -> None:
    segment: Json = {"head_uuid": "8", "tail_uuid": "9", "anchor_uuid": "s"}
    summary = said("user", "So far.", uuid="s", isSynthetic=True)
    fold = fold_of(said("user", "a", uuid="1"), boundary(preserved_segment=segment), summary)
    assert state_of(fold) == "incomplete"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "conversation_reset", "session_id": "s"},
        said("user", "<command-name>/clear</command-name>", uuid="c"),
    ],
)
def test_a_reset_archives_everything(line: dict[str, Json]) -> None:
    fold = fold_of(said("user", "before", uuid="1"), line, said("user", "after", uuid="2"))
    assert texts(fold) == ["after"]
    assert fold.result.history.archived[0].text == "before"
    assert state_of(fold) == "whole"


def test_turns_that_were_taken_back_are_archived() -> None:
    fold = fold_of(
        said("user", "A", uuid="1", parentUuid=None),
        said("assistant", "done", uuid="2", parentUuid="1"),
        said("user", "ABANDONED", uuid="3", parentUuid="2"),
        said("assistant", "abandoned too", uuid="4", parentUuid="3"),
    )
    assert texts(fold) == ["A", "done", "ABANDONED", "abandoned too"]
    fold.add(said("user", "REWOUND", uuid="5", parentUuid="2"), 4)
    assert texts(fold) == ["A", "done", "REWOUND"]
    assert [each.text for each in fold.result.history.archived] == ["ABANDONED", "abandoned too"]


def test_a_compaction_that_was_taken_back_is_undone() -> None:
    fold = fold_of(
        said("user", "A", uuid="1", parentUuid=None),
        said("user", "B", uuid="2", parentUuid="1"),
        {**boundary(), "parentUuid": None, "logicalParentUuid": "2"},
        said("user", "So far.", uuid="s", parentUuid="b", isCompactSummary=True),
        said("user", "C", uuid="3", parentUuid="s"),
        said("user", "REWOUND", uuid="4", parentUuid="1"),
    )
    assert texts(fold) == ["A", "REWOUND"]
    assert state_of(fold) == "whole"


def test_results_of_parallel_calls_and_lines_between_are_no_branch() -> None:
    def block(role: str, uuid: str, parent: str | None, **fields: Json) -> dict[str, Json]:
        return {**said(role, [fields]), "uuid": uuid, "parentUuid": parent}

    fold = fold_of(
        said("user", "go", uuid="1", parentUuid=None),
        block("assistant", "2", "1", type="tool_use", id="a", name="read", input={}),
        block("assistant", "3", "2", type="tool_use", id="b", name="read", input={}),
        block("user", "4", "2", type="tool_result", tool_use_id="a", content="x"),
        {"type": "progress", "uuid": "p", "parentUuid": "3"},
        block("user", "5", "p", type="tool_result", tool_use_id="b", content="y"),
        said("assistant", "done", uuid="6", parentUuid="5"),
    )
    assert len(fold.result.history.active) == 6
    assert state_of(fold) == "whole"


def test_a_line_after_one_that_is_not_known_makes_the_conversation_incomplete() -> None:
    fold = fold_of(said("user", "later", uuid="9", parentUuid="8"))
    assert state_of(fold) == "incomplete"
    fold.add({"type": "conversation_reset"}, 1)
    assert state_of(fold) == "whole"


def test_items_of_one_answer_of_codex_are_one_message() -> None:
    def item(**payload: Json) -> dict[str, Json]:
        return {"type": "response_item", "timestamp": str(payload), "payload": payload}

    text: Json = [{"type": "input_text", "text": "go"}]
    fold = fold_of(
        {"type": "session_meta", "payload": {"id": "s", "cwd": "C:/shop"}},
        {"type": "turn_context", "payload": {"model": "gpt-x"}},
        item(type="message", role="user", content=text),
        item(type="function_call", call_id="a", name="shell", arguments="{}"),
        item(type="function_call", call_id="b", name="shell", arguments="{}"),
        item(type="function_call_output", call_id="a", output="x"),
        item(type="function_call_output", call_id="b", output="y"),
    )
    user, answer, results = fold.result.history.active
    assert (user.text, len(answer.calls), len(results.results)) == ("go", 2, 2)
    assert (fold.result.model, fold.result.project) == ("gpt-x", "C:/shop")
    fold.add({"type": "compacted", "payload": {"message": "So far."}}, 7)
    assert texts(fold) == ["[1] So far."]
    fold.add({"type": "event_msg", "payload": {"type": "thread_rolled_back"}}, 8)
    assert state_of(fold) == "incomplete"


def test_an_answer_of_an_api_has_its_place_after_what_it_answers() -> None:
    chat: dict[str, Json] = {
        "object": "chat.completion",
        "model": "gpt-x",
        "choices": [{"message": {"role": "assistant", "content": "two"}}],
    }
    bare: dict[str, Json] = {"type": "message", "role": "assistant", "content": "one"}
    fold = fold_of(said("user", "first"), bare, said("user", "second"), chat)
    assert texts(fold) == ["first", "one", "second", "two"]
    assert state_of(fold) == "whole"
    assert fold_of(bare).result.state == "incomplete"


def test_a_compaction_of_the_service_takes_effect_as_it_was_planned() -> None:
    fold = fold_of(said("user", "a", uuid="1"), said("assistant", "b", uuid="2"))
    line = service_boundary(a_plan(fold.result, 2), fold.result)
    fold.add(said("user", "c", uuid="3"), 2)
    fold.add(line, 3, strict=True)
    summary = said("user", "So far.", uuid="s", isCompactSummary=True)
    fold.add(said("user", "d", uuid="4"), 4)
    fold.add(summary, 5)
    assert texts(fold) == ["[1] So far.", "c", "d"]
    assert state_of(fold) == "whole"
    assert [each.text for each in fold.result.history.archived] == ["a", "b"]


def test_a_compaction_that_does_not_fit_is_rejected_or_without_effect() -> None:
    fold = fold_of(said("user", "a", uuid="1"), said("assistant", "b", uuid="2"))
    plan = replace(a_plan(fold.result, 2), prefix_hash="0" * 64)
    line = service_boundary(plan, fold.result)
    with pytest.raises(PlanRejectedError):
        fold.add(line, 2, strict=True)
    fold.add(line, 2)
    fold.add(said("user", "So far.", uuid="s", isCompactSummary=True), 3)
    assert texts(fold) == ["a", "b"]


def test_the_same_compaction_gives_the_same_ids_wherever_it_is_read() -> None:
    lines = [said("user", "a", uuid="1"), said("assistant", "b", uuid="2")]
    fold = fold_of(*lines)
    line = service_boundary(a_plan(fold.result, 2), fold.result)
    other = ConversationFold(fold.result._replace(reading=None))
    for each in (fold, other):
        each.add(line, 2)
    ids = [[each.id for each in one.result.history.active] for one in (fold, other)]
    assert ids[0] == ids[1] == ["b.0"]


def test_messages_without_text_are_no_conversation_to_compact() -> None:
    stub = said("user", "[contextgauge: 9 characters left out]", contextgauge_no_text=True)
    fold = fold_of(stub)
    assert state_of(fold) == "without_text"
    fold.add({"type": "conversation_reset"}, 1)
    assert state_of(fold) == "whole"


def test_a_message_whose_text_was_shortened_counts_as_one_without() -> None:
    mark: Json = {"bytes": 1, "sha256": "0"}
    elsewhere = said("user", "whole", contextgauge_shortened=mark)
    assert fold_of(elsewhere).result.state == "whole"
    cut = said("user", "cut[contextgauge: 9 bytes left out, sha256 0]", contextgauge_shortened=mark)
    assert fold_of(cut).result.state == "without_text"


def test_an_unreadable_message_makes_the_conversation_incomplete() -> None:
    fold = fold_of(said("user", 5))
    assert state_of(fold) == "incomplete"
    assert not fold.result.history.active


def test_a_conversation_that_outgrew_its_bounds_begins_at_the_next_boundary() -> None:
    fold = fold_of(said("user", "a", uuid="1"))
    fold.outgrow()
    fold.add(said("user", "b", uuid="2"), 1)
    assert state_of(fold) == "too_large"
    fold.add(boundary(), 2)
    fold.add(said("user", "So far.", uuid="s", isSynthetic=True), 3)
    assert state_of(fold) == "whole"
    assert texts(fold) == ["[1] So far."]


def test_a_conversation_that_outgrew_its_bounds_begins_at_a_compaction_inside_an_answer() -> None:
    summary: Json = {"type": "compaction", "content": "So far."}
    text: Json = {"type": "text", "text": "on it"}
    for parts in ([summary, text], [summary]):
        fold = fold_of(said("user", "a", uuid="1"))
        fold.outgrow()
        fold.add(said("assistant", parts, uuid="2", contextgauge_no_text=True), 1)
        assert texts(fold) == ["[1] So far.", "on it"][: len(parts)]
        assert state_of(fold) == "without_text"
        reading = fold.result.reading
        assert reading is not None
        assert reading.without_text >= {each.id for each in fold.history.active}


def test_frames_that_an_answer_supersedes_are_archived() -> None:
    fold = fold_of(
        said("user", "go", uuid="1"),
        said("assistant", "refused", uuid="2"),
        said("assistant", "done", uuid="3", supersedes=["2"]),
    )
    assert texts(fold) == ["go", "done"]


def test_the_lines_of_one_answer_report_its_usage_once() -> None:
    def part(uuid: str) -> dict[str, Json]:
        line = said("assistant", uuid, uuid=uuid)
        usage: Json = {"input_tokens": 100, "output_tokens": 5}
        message: Json = {"id": "m", "role": "assistant", "content": uuid, "usage": usage}
        return {**line, "message": message}

    history = fold_of(said("user", "go"), part("1"), part("2")).result.history
    assert [each.usage and each.usage.context for each in history.active] == [None, None, 100]
    assert (history.tokens.answers, history.tokens.input) == (1, 100)


def test_a_conversation_that_was_loaded_is_in_the_state_that_it_was_in() -> None:
    result = fold_of(said("user", "hi"), said("assistant", "hello")).result
    for state in ("incomplete", "without_text"):
        loaded = result._replace(reading=None, state=state)
        assert ConversationFold(loaded).result.state == state


def test_what_codex_reports_in_a_line_of_its_own_counts_once() -> None:
    def item(role: str, kind: str) -> dict[str, Json]:
        content: Json = [{"type": kind, "text": role}]
        payload: Json = {"type": "message", "role": role, "content": content}
        return {"type": "response_item", "payload": payload}

    def counted(at: str) -> dict[str, Json]:
        last: Json = {"input_tokens": 100, "output_tokens": 5}
        info: Json = {"total_token_usage": {"input_tokens": 100}, "last_token_usage": last}
        payload: Json = {"type": "token_count", "info": info, "rate_limits": {}}
        return {"type": "event_msg", "payload": payload, "timestamp": at}

    head: dict[str, Json] = {"type": "session_meta", "payload": {"id": "s"}}
    question, answer = item("user", "input_text"), item("assistant", "output_text")
    fold = fold_of(head, question, answer, counted("1"), counted("2"))
    assert fold.history.active[-1].usage == ApiUsage(100, 5)
    assert fold.history.tokens.total == 105
    assert state_of(fold) == "whole"
