"""Which lines of a session are its history just before, and right after, each compaction."""

import pytest

from contextgauge.compaction.history import History
from contextgauge.compaction.messages import ContextCompaction, Message, Text
from contextgauge.errors import ConfigError
from contextgauge.normalise.codex.fork import FORK as CODEX
from contextgauge.records import Json
from streams.core.conversation.checkpoints import (
    BoundaryReport,
    before_compaction,
    checkpoints,
    same_boundaries,
    seen_context,
    with_known,
    written,
)
from tests.core.conversation.fold_kit import boundary, fold_of, said, shown

SUMMARY = said("user", "What was done.", isCompactSummary=True)
COMMAND = said(
    "user", "<command-name>/compact</command-name>\n<command-message>compact</command-message>"
)
LINES: list[dict[str, Json]] = [
    said("user", "Fix it."),
    said("assistant", "Fixed."),
    boundary(),
    SUMMARY,
    COMMAND,
    {"type": "attachment", "attachment": {"type": "file"}},
    said("user", "Go on."),
    said("assistant", "Yes."),
    boundary() | {"uuid": "b2"},
    said("user", "What was done then.", isCompactSummary=True),
]


def test_the_context_after_ends_where_the_conversation_goes_on() -> None:
    first, second = checkpoints(LINES, [2, 8], None)
    assert (*first.before, *first.after) == (2, 2, True, 6, 2, True)
    assert (*second.before, *second.after) == (8, 4, True, 10, 1, True)


def test_a_context_of_which_a_part_is_missing_is_not_whole() -> None:
    begun = [said("assistant", "Fixed."), *LINES[2:6]]
    (only,) = checkpoints(begun, [1], None)
    assert (only.before.is_whole, only.after.is_whole) == (False, True)


def test_a_line_that_cannot_be_read_makes_its_context_incomplete() -> None:
    broken = said("user", [{"type": "text"}])
    (only,) = checkpoints([LINES[0], broken, *LINES[2:6]], [2], None)
    assert not only.before.is_whole


def test_a_boundary_is_known_by_its_id_and_one_that_telemetry_reported_by_its_time() -> None:
    ids = [BoundaryReport("a", 0), BoundaryReport("b", 1_000)]
    assert same_boundaries(ids, ids[1:]) == {"b": 0}
    late = [BoundaryReport("t", 2_000_000), BoundaryReport("u", None), *ids]
    assert same_boundaries(late, [*ids, BoundaryReport("c", 2_003_000)]) == {"a": 0, "b": 1, "t": 2}
    either = [BoundaryReport("c", 2_001_000), BoundaryReport("d", 2_002_000)]
    assert same_boundaries(late[:1], either) == {}


def item(role: str, text: str) -> dict[str, Json]:
    kind = "output_text" if role == "assistant" else "input_text"
    content: Json = [{"type": kind, "text": text}]
    return {
        "type": "response_item",
        "payload": {"role": role, "type": "message", "content": content},
    }


def test_a_runtimes_own_turn_of_a_compaction_is_in_neither_context() -> None:
    turn: dict[str, Json] = {"type": "event_msg", "payload": {"type": "task_started"}}
    after: Json = [{"role": "user", "content": [{"type": "input_text", "text": "It is done."}]}]
    compacted: Json = {"message": "Summary: It is done.", "replacement_history": after}
    lines = [
        item("user", "Fix it."),
        item("assistant", "Fixed."),
        turn,
        item("assistant", "It is done."),
        {"type": "compacted", "payload": compacted},
        turn,
        item("user", "Go on."),
    ]
    (only,) = checkpoints(lines, [4], CODEX)
    assert (*only.before, *only.after) == (2, 2, True, 5, 1, True)


def test_prompts_that_no_line_has_are_known_by_the_line_after_them() -> None:
    queue: dict[str, Json] = {"type": "queue-operation", "operation": "remove"}
    prompts = [{**queue, "operation": "enqueue", "content": each} for each in ("Hurry.", "Now.")]
    answer = said("assistant", "Fixed.") | {"uuid": "a1"}
    seen = seen_context([LINES[0], *prompts, queue, {**queue, "content": "Now."}, answer])
    assert [each.text for each in seen.messages] == ["Fix it.", "Hurry.", "Now.", "Fixed."]
    assert dict(seen.prompts) == {"a1": ["Hurry.", "Now."]}


def test_a_marker_gets_what_is_known_elsewhere_and_keeps_what_it_has() -> None:
    messages, *_ = seen_context(LINES[:7])
    marked, *rest = with_known(messages, 5, None)
    assert rest == messages[1:]
    assert marked.compaction == ContextCompaction(
        1, 5, "What was done.", None, None, prose="What was done."
    )
    (again, *_) = with_known([marked], 6, 7)
    assert again.compaction is not None
    assert (again.compaction.timestamp_ms, again.compaction.context_size_before) == (5, 7)


def test_messages_of_a_context_are_written_with_their_ids_and_without_instructions() -> None:
    messages, model, _ = seen_context([*LINES[:2], said("system", "Only for a machine.")])
    assert (len(messages), model) == (2, None)
    instructions = Message("system", (Text("Be brief."),), id="s")
    values = written([instructions, *messages], "anthropic")
    assert values == [
        ("m0", {"role": "user", "content": "Fix it."}),
        ("m1", {"role": "assistant", "content": "Fixed."}),
    ]


def test_a_kept_conversation_is_there_as_it_was_before_each_compaction() -> None:
    history = fold_of(*LINES).result.history
    texts = [[shown(each) for each in before_compaction(history, n).active] for n in (1, 2)]
    assert texts[0] == ["Fix it.", "Fixed."]
    assert (texts[1][0], texts[1][-1]) == ("[1] What was done.", "Yes.")
    with pytest.raises(ConfigError, match="no compaction 3"):
        before_compaction(history, 3)


def test_a_kept_conversation_may_begin_with_a_summary() -> None:
    marked = fold_of(*LINES).result.history.after_compaction(1).active
    assert before_compaction(History(marked), 1).active == []
